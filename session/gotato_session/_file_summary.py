"""What a list says of a session, read from the first and the last line of its file."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gotato_py import GotatoError, SessionCorrupt

from ._file_format import Format
from ._file_lines import is_intact, read_line
from ._file_names import SUFFIX, is_id
from .journal import JSONObject
from .summary import SessionSummary

_LOG = logging.getLogger("gotato_session")

_BLOCK = 4096


def summaries(folder: Path, form: Format) -> Iterator[SessionSummary]:
    """Those of all sessions in the folder, in any order; what cannot be read, or is no session, is left out with a line
    in the log."""
    found: list[SessionSummary] = []
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file()]
    except FileNotFoundError:
        names = []
    for name in names:
        id = name.removesuffix(SUFFIX)
        if is_id(id):
            summary = _summary(f"{folder}/{name}", id, form)
            if summary is not None:
                found.append(summary)
    return iter(found)


def _summary(path: str, id: str, form: Format) -> SessionSummary | None:
    try:
        with io.FileIO(path) as file:
            return _read(file.fileno(), id, form)
    except FileNotFoundError:
        return None  # it was deleted meanwhile
    except (GotatoError, OSError) as error:
        _LOG.warning("%s is left out of the list: %s", path, error)
        return None


def _read(file: int, id: str, form: Format) -> SessionSummary:
    status = os.fstat(file)
    first = _line_at(file, 0)
    head = form.read_head(first, id)
    if not is_intact(first):
        raise SessionCorrupt(f"session {id!r}: the head, the file's first line, is damaged", line=1)
    last = _last_entry(file, len(first) + 1, status.st_size)
    created = _seconds(head.get("created_at"), status.st_mtime)
    parent = str(head.get("parent_id", ""))
    return SessionSummary(
        id=id,
        parent_id=parent,
        created_at=created,
        updated_at=created if last is None else max(created, _seconds(last.get("time"), status.st_mtime)),
        size=status.st_size,
        metadata=_metadata(file, head, last),
        messages=(None if parent else 0) if last is None else last.get("n"),
    )


def _seconds(given: Any, otherwise: float) -> float:  # Any: a JSON value
    return float(given) if type(given) in (int, float) else otherwise


def _metadata(file: int, head: JSONObject, last: JSONObject | None) -> dict[str, Any] | None:  # Any: JSON values
    at = 0 if last is None else last.get("meta", 0)
    holder = read_line(_line_at(file, at)) if at else head
    found: dict[str, Any] | None = holder.get("metadata", {} if holder is head else None) if holder else None
    return found if isinstance(found, dict) else None


def _line_at(file: int, offset: int) -> bytes:
    """The line that begins there, without its newline; without an end, all there is."""
    line = os.pread(file, _BLOCK, offset)
    size = _BLOCK
    while b"\n" not in line:
        size *= 4
        longer = os.pread(file, size, offset)
        if len(longer) == len(line):
            return line
        line = longer
    return line.partition(b"\n")[0]


def _last_entry(file: int, first: int, size: int) -> JSONObject | None:
    """The last entry of the last whole commit, looked for backwards from the end; None if there is none yet."""
    block = _BLOCK
    while True:
        start = max(first, size - block)
        lines = os.pread(file, max(0, size - start), start).split(b"\n")
        for line in reversed(lines if start == first else lines[1:]):
            entry = read_line(line)
            if entry is not None and not entry.get("more"):
                return entry
        if start == first:
            return None
        block *= 4
