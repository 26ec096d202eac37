"""The command line, parsed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gotato_py import __version__

from ._model_arguments import EXIT_CODES, add_form, add_model, command
from ._session_arguments import add_context, add_session, add_store


class Arguments(argparse.Namespace):
    """What was asked for. `command` is "run", "session", "context" or "doctor", `action` what of those two in the
    middle; which of the others there are follows from these."""

    command: str
    action: str
    # models and runs
    model: str
    base_url: str | None
    instructions: str
    timeout: float | None
    ask: bool
    json: bool
    events: bool
    prompt: str
    # sessions
    store: str | None
    session: str | None
    id: str
    where: list[tuple[str, object]]
    limit: int | None
    full: bool
    at: str | None
    new_id: str | None
    format: str
    output: str | None
    repair: bool
    approve: list[str]
    deny: list[tuple[str, str]]
    message: str | None
    # contexts
    keep_tokens: int
    summarizer: str


def parse(argv: Sequence[str]) -> Arguments:
    """Parses the arguments. Ends the program by SystemExit after --help, --version and a mistake (code 2)."""
    parser = argparse.ArgumentParser(
        prog="gotato",
        description="Run an agent from the shell.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gotato {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(command(commands.add_parser, "run", "answer a prompt", _RUN))
    add_session(command(commands.add_parser, "session", "look at sessions, and go on with them", _SESSION))
    add_context(command(commands.add_parser, "context", "look at what a model would see, and shorten it", _CONTEXT))
    doctor = command(commands.add_parser, "doctor", "check the installation", _DOCTOR)
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(argv, namespace=Arguments())


_RUN = """\
Answers a prompt, with two tools that work offline: weather(city), from a fixed
table, and calculate(expression). The default model, "demo", follows simple
rules and needs no key and no network; other models get the same tools, so that
calling them can be tried. Text goes to stdout as it comes, a line for each call
and each result to stderr.

With --session ID the run goes on with that session, in the store that --store
or GOTATO_STORE names; where there is none yet, it is made. With --ask a person
decides about each call: the run ends waiting (code 5), and goes on with
"gotato session resume".
"""
_SESSION = """\
Sessions in a store: a folder (FileStore), or a database file (SQLiteStore).
--store PATH or the variable GOTATO_STORE says where: an existing folder or
database, or a path that ends in .db, .sqlite or .sqlite3 for a database.
"""
_CONTEXT = """\
What a model would see of a session if it were asked now, and how to shorten it.
The store is named as for "gotato session".
"""
_DOCTOR = """\
Shows the versions in use, the configured models and which keys are set, by
name, and tries a run offline. Exits 0 if all is well.
"""


def _add_run(run: argparse.ArgumentParser) -> None:
    add_model(run)
    run.add_argument("--session", metavar="ID", help="go on with this session, or begin it")
    add_store(run)
    run.add_argument("--ask", action="store_true", help="let a person decide about each call (with --session)")
    add_form(run)
    run.add_argument("prompt", help="what to ask; - reads it from stdin")
