"""`gotato session`: look at sessions, fork, write out and check them; `_resume` goes on with one."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import Any

from gotato_py import message_to_dict, record_to_dict
from gotato_session import Session, SessionSummary, StoreBase
from gotato_session.exporting import export_session
from gotato_session.readable import to_html, to_markdown

from ._arguments import Arguments
from ._check import check
from ._interrupts import EXIT_INTERRUPTED, Interrupts
from ._output import Output
from ._problems import EXIT_FAILED, UsageError
from ._reports import usage_dict
from ._stores import store_at


def session_command(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Carries out the action and returns the exit code. Raises `UsageError`, errors of the store, and `CannotWrite`."""
    if arguments.action == "resume":
        code: int = import_module("gotato_cli._resume").resume_command(arguments, interrupts, output)
        return code
    with store_at(arguments.store) as store:
        match arguments.action:
            case "list":
                return _list(store, arguments, interrupts, output)
            case "show":
                return _show(store, arguments, output)
            case "fork":
                return _fork(store, arguments, output)
            case "export":
                return _export(store, arguments, output)
            case _:
                return check(store, arguments, output)


# ---- list


def _list(store: StoreBase, arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    for summary in store.list(where=dict(arguments.where) or None, limit=arguments.limit):
        if interrupts.count:
            return EXIT_INTERRUPTED
        told = summary_dict(summary)
        if arguments.json:
            output.json_line(told)
        else:
            output.lines(_row(told))
    return 0


def summary_dict(summary: SessionSummary) -> dict[str, Any]:
    """What a list says of a session, as plain JSON types."""
    return {
        "id": summary.id,
        "parent_id": summary.parent_id,
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "size": summary.size,
        "messages": summary.messages,
        "metadata": None if summary.metadata is None else dict(summary.metadata),
    }


def _row(told: dict[str, Any]) -> str:
    messages = "?" if told["messages"] is None else str(told["messages"])
    words = [utc(told["updated_at"]), f"{messages:>6} messages", f"{told['size']:>10,} B", told["id"]]
    if told["parent_id"]:
        words.append(f"(fork of {told['parent_id']})")
    if told["metadata"]:
        words.append(dumps(told["metadata"], ensure_ascii=False))
    return "  ".join(words)


def utc(seconds: float) -> str:
    """A time in Unix seconds, in words."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (ValueError, OverflowError, OSError):  # a year that datetime does not have
        return f"{seconds} (Unix seconds)"


# ---- show


def _show(store: StoreBase, arguments: Arguments, output: Output) -> int:
    with store.open(arguments.id, read_only=True) as session:
        if arguments.json:
            output.json_line(session_dict(session))
        else:
            output.text(to_markdown(session, full=arguments.full))
    return 0


def session_dict(session: Session) -> dict[str, Any]:
    """What a session shows of its current branch, as plain JSON types."""
    path = session.path
    return {
        "id": session.id,
        "parent_id": session.parent_id,
        "leaf": path[-1] if path else "",
        "leaves": list(session.leaves),
        "path": list(path),
        "labels": dict(session.labels),
        "metadata": dict(session.metadata),
        "messages": [message_to_dict(message) for message in session.history],
        "compactions": [record_to_dict(each) for each in session.compactions],
        "waiting": [record_to_dict(each) for each in session.waiting],
        "runs": [record_to_dict(each) for each in session.runs],
        "usage": usage_dict(session.usage),
        "recovered": list(session.recovered),
    }


# ---- fork and export


def _fork(store: StoreBase, arguments: Arguments, output: Output) -> int:
    with store.open(arguments.id, read_only=True) as session:
        at = arguments.at
        if at is not None and at not in session.tree:
            at = session.labels.get(at, at)
        with session.fork(at, id=arguments.new_id) as fork:
            told = {"id": fork.id, "parent_id": fork.parent_id, "at": at}
    if arguments.json:
        output.json_line(told)
    else:
        output.line(fork.id)
    return 0


def _export(store: StoreBase, arguments: Arguments, output: Output) -> int:
    form = arguments.format or "json"
    path = None if arguments.output == "-" else arguments.output  # "-" is stdout
    if arguments.json and form != "json" and path is None:
        raise UsageError(f"--json with --format {form} needs -o FILE: it tells of the file")
    with store.open(arguments.id, read_only=True) as session:
        if form == "json":
            data = export_session(session)
            if path is None:
                output.json_line(data)
                return 0
            text = dumps(data, ensure_ascii=False) + "\n"
        else:
            text = (to_markdown if form == "markdown" else to_html)(session, full=arguments.full)
    if path is None:
        output.text(text)
        return 0
    return _write(text, form, path, arguments, output)


def _write(text: str, form: str, path: str, arguments: Arguments, output: Output) -> int:
    data = text.encode()
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        output.problem(f"cannot write {path}: {error.strerror}")
        return EXIT_FAILED
    if arguments.json:
        output.json_line({"id": arguments.id, "format": form, "path": path, "bytes": len(data)})
    else:
        output.note(f"wrote {len(data):,} bytes to {path}")
    return 0
