"""The options of `gotato session` and `gotato context`."""

from __future__ import annotations

import argparse
import json

from ._model_arguments import add_form, add_model, command, count

_LIST = """\
Lists the sessions, those changed last first. --json prints an object a line:
{id, parent_id, created_at, updated_at, size, messages, metadata}; times are
Unix seconds, size is in bytes, null is what only reading a session would tell.
"""
_SHOW = """\
Shows the current branch of a session as text: what was said, calls and what
became of them, summaries, labels, what waits for an answer and by which key.
--json prints one object with the messages and all of that as data.
"""
_FORK = """\
Makes a new session that begins with what another one holds, and prints its id.
Works while others write to it. --json prints {id, parent_id, at}.
"""
_EXPORT = """\
Writes a whole session as one JSON object, or its current branch as a readable
transcript. --json is --format json; with -o FILE it prints
{id, format, path, bytes} instead.
"""
_CHECK = """\
Reads a session and tells what is wrong with it: damage, calls without a result,
what would be mended when it is opened for writing. Changes nothing, unless
--repair is given: that opens a copy of what is left of a damaged session.
Exits 0 if nothing is wrong, else 1. --json prints one object: {id, ok,
problems, recovered, corrupt, repaired}.
"""
_RESUME = """\
Goes on with a session: with what was interrupted, with answers for the calls
that wait, or with a new message. The model gets the tools of "gotato run".
Calls that wait and get no answer are shown, and the code is 5. --json and
--events are those of "gotato run".
"""
_INSPECT = """\
Tells what the model would be shown now: each part with its size, what of it a
provider's cache can keep, what is left out and why. The tools are those of
"gotato run". --json prints one object, without content.
"""
_COMPACT = """\
Puts a summary in the place of the oldest messages; the session keeps them all.
--json prints {id, compacted, through, tokens_before, tokens_after, summary}.
"""


def add_store(parser: argparse.ArgumentParser) -> None:
    """Where the sessions are."""
    parser.add_argument("--store", metavar="PATH", help="a folder or a database file; else GOTATO_STORE says which")


def add_session(parser: argparse.ArgumentParser) -> None:
    """What can be done with sessions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = command(actions.add_parser, "list", "list the sessions of a store", _LIST)
    _add_place(listing, with_id=False)
    listing.add_argument(
        "--where",
        type=_pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="only those with this metadata; VALUE is JSON, or else text",
    )
    listing.add_argument("--limit", type=count, metavar="N", help="at most so many")
    show = command(actions.add_parser, "show", "show a session as text", _SHOW)
    _add_place(show)
    show.add_argument("--full", action="store_true", help="do not cut long results")
    fork = command(actions.add_parser, "fork", "begin a new session with what one holds", _FORK)
    _add_place(fork)
    fork.add_argument("--at", metavar="ENTRY", help="from this entry, or label, instead of the newest entry")
    fork.add_argument("--id", dest="new_id", metavar="NEW", help="the new session's id")
    export = command(actions.add_parser, "export", "write a session as JSON, Markdown or HTML", _EXPORT)
    _add_place(export)
    export.add_argument("--format", choices=("json", "markdown", "html"), help="json if left out")
    export.add_argument("-o", "--output", metavar="FILE", help="write it there instead of to stdout, which is also -")
    export.add_argument("--full", action="store_true", help="do not cut long results in a transcript")
    check = command(actions.add_parser, "check", "tell what is wrong with a session", _CHECK)
    _add_place(check)
    check.add_argument("--repair", action="store_true", help="open a copy of what is left of a damaged one")
    _add_resume(command(actions.add_parser, "resume", "go on with a session", _RESUME))


def _add_resume(resume: argparse.ArgumentParser) -> None:
    _add_id(resume)
    add_store(resume)
    add_model(resume)
    resume.add_argument("--ask", action="store_true", help="let a person decide about each call")
    resume.add_argument(
        "--approve", action="append", default=[], metavar="KEY", help="let the call that waits under this key run"
    )
    resume.add_argument(
        "--deny", type=_answer, action="append", default=[], metavar="KEY[=REASON]", help="refuse it, and say why"
    )
    resume.add_argument("--message", metavar="TEXT", help="go on with a new message; what waits is dropped")
    add_form(resume)


def add_context(parser: argparse.ArgumentParser) -> None:
    """What can be done with contexts."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    inspect = command(actions.add_parser, "inspect", "tell what the model would be shown now", _INSPECT)
    _add_place(inspect)
    inspect.add_argument("--instructions", default="", metavar="S", help="what the model is told before all else")
    compact = command(actions.add_parser, "compact", "put a summary in the place of old messages", _COMPACT)
    _add_place(compact)
    compact.add_argument(
        "--keep-tokens", type=count, required=True, metavar="N", help="what may stay beside the summary, in tokens"
    )
    compact.add_argument(
        "--summarizer",
        default="truncate",
        metavar="truncate|MODEL",
        help="cut what is summarised to its ends (no model), or let a model write: PROVIDER:NAME or a configured name",
    )
    compact.add_argument("--base-url", metavar="URL", help="where the provider is, if not at its usual place")


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the session")


def _add_place(parser: argparse.ArgumentParser, *, with_id: bool = True) -> None:
    if with_id:
        _add_id(parser)
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _pair(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def _answer(text: str) -> tuple[str, str]:
    key, _, reason = text.partition("=")
    return key, reason
