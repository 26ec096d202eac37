"""`gotato session check`: what is wrong with a session, and a copy of what is left of a damaged one."""

from __future__ import annotations

from typing import Any

from gotato_py import SessionCorrupt
from gotato_session import Session, StoreBase

from ._arguments import Arguments
from ._output import Output
from ._problems import EXIT_FAILED, plainly


def check(store: StoreBase, arguments: Arguments, output: Output) -> int:
    """Prints the report; 0 if nothing is wrong, else 1. Changes nothing, unless a repair is asked for."""
    report = examine(store, arguments.id)
    if arguments.repair and report["corrupt"] is not None:
        report |= _repair(store, arguments.id)
    if arguments.json:
        output.json_line(report)
    else:
        output.lines("\n".join(_told(report, is_repaired=arguments.repair)))
    return 0 if report["ok"] else EXIT_FAILED


def examine(store: StoreBase, id: str) -> dict[str, Any]:
    """What there is to report, as plain JSON types. Raises `NotFound` and `NotSupported`."""
    report: dict[str, Any] = {"id": id, "ok": True, "problems": [], "recovered": [], "corrupt": None, "repaired": None}
    try:
        with store.open(id, read_only=True) as session:
            report |= _findings(session)
    except SessionCorrupt as error:
        report["corrupt"] = {"line": error.line, "message": plainly(error)}
    report["ok"] = not (report["problems"] or report["recovered"] or report["corrupt"])
    return report


def _repair(store: StoreBase, id: str) -> dict[str, Any]:
    """What came of it: nothing where nothing is left."""
    try:
        with store.open(id, repair=True) as copy:
            return {"repaired": copy.id, "recovered": list(copy.recovered)}
    except SessionCorrupt:
        return {}


def _findings(session: Session) -> dict[str, Any]:
    problems = [{"index": each.index, "rule": each.rule, "text": each.text} for each in session.check()]
    return {"problems": problems, "recovered": list(session.recovered)}


def _told(report: dict[str, Any], *, is_repaired: bool) -> list[str]:
    """The report for people, a line each; `is_repaired`: a copy was asked for."""
    if report["ok"]:
        return [f"{report['id']}: nothing is wrong"]
    told = [f"{report['id']}: message {each['index']}: {each['text']}" for each in report["problems"]]
    if report["corrupt"] is not None:
        told.append(f"{report['id']}: damaged at line {report['corrupt']['line']}: {report['corrupt']['message']}")
        if report["repaired"] is None and is_repaired:
            told.append(f"{report['id']}: nothing of it can be read: there is no copy")
        elif report["repaired"] is None:
            told.append(f"{report['id']}: --repair would open a copy of what is left, and leave this one as it is")
        else:
            told.append(f"{report['id']}: what is left of it is now the session {report['repaired']}:")
    return [*told, *[f"{report['id']}: {line}" for line in report["recovered"]]]
