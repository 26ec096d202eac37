"""Entries as they lie in the table, each with a checksum, and how they are read back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard
from zlib import crc32

from gotato_py import InvalidArgument, NotFound, SessionCorrupt

from ._json import json_text
from ._sqlite_errors import is_damage
from ._sqlite_schema import MAX_SEQ, place_of
from .journal import JSONObject

Row = tuple[Any, Any, Any]  # Any: place, checksum and text as found, whatever they have become
EntryRow = tuple[int, int | None, int, str]
"""Place, the number of messages up to here, checksum, text: a row of the table."""

_PAGE = 2_000
# The bytes as they are: a text that is no UTF-8 any more is damage to be told, not an error of the driver.
_SELECT = "SELECT place, checksum, CAST(text AS BLOB) FROM entries WHERE place > ? AND place <= ? ORDER BY place"
_HEAD = """
SELECT number, checksum, CAST(head AS BLOB), last_seq, created_at, CAST(metadata AS BLOB)
FROM sessions LEFT JOIN progress ON session = number WHERE id = ?
"""


class Written(NamedTuple):
    """Entries as rows, with what they add to a session."""

    rows: list[EntryRow]
    size: int
    last_seq: int
    messages: int | None
    metadata: str | None


class _Head(NamedTuple):
    number: int
    checksum: Any  # Any: as found, like the rest of a row
    text: Any
    last_seq: Any
    created_at: Any
    metadata: Any


def written_head(head: JSONObject) -> tuple[str, int, int]:
    """The text of a head, its checksum, and its size in bytes."""
    text = json_text("a head", head)
    data = text.encode()
    return text, crc32(data), len(data)


def written_entries(session: int, last_seq: int, messages: int | None, entries: Sequence[JSONObject]) -> Written:
    """The entries as rows. Raises `InvalidArgument` unless they carry the next numbers."""
    rows: list[EntryRow] = []
    size, metadata, place = 0, None, place_of(session, 0)
    for seq, entry in enumerate(entries, start=last_seq + 1):
        if entry.get("seq") != seq or seq > MAX_SEQ:
            raise InvalidArgument(f"after entry {last_seq} comes {seq}, not {entry.get('seq')!r}; nothing was kept")
        kind = entry.get("type")
        if kind == "message" and messages is not None:
            messages += 1
        elif kind == "metadata":
            metadata = json_text("metadata", entry.get("metadata", {}))
        text = json_text("an entry", entry)
        data = text.encode()
        size += len(data)
        rows.append((place | seq, messages, crc32(data), text))
    return Written(rows, size, last_seq + len(rows), messages, metadata)


def read_entries(connection: sqlite3.Connection, id: str) -> list[JSONObject]:
    """The head and all entries. Raises `NotFound`, and `SessionCorrupt` with the first damaged line."""
    found = _find(connection, id)
    head = _data_of(found.text, found.checksum)
    if head is None:
        raise _corrupt(id, 1, "its head is damaged")
    entries, first = [head], _first_seq(head)
    try:
        for rows in _pages(connection, found.number):
            entries += _checked(id, rows, place_of(found.number, first), len(entries) - 1)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        raise _corrupt(id, 2 + _readable(connection, found.number), str(error)) from error
    if found.last_seq != first + len(entries) - 2:
        raise _corrupt(id, len(entries) + 1, f"the last entry is {first + len(entries) - 2}, not {found.last_seq}")
    return entries


def _checked(id: str, rows: list[Row], first: int, before: int) -> list[JSONObject]:
    """The entries of rows; `first` is the place of the session's first entry, `before` counts those read so far."""
    parsed = _parsed(rows)
    if parsed is not None and [row[0] for row in rows] == list(range(first + before, first + before + len(rows))):
        return parsed
    for index, row in enumerate(rows, start=before):
        seq = (first + index) & MAX_SEQ
        if row[0] != first + index:
            raise _corrupt(id, 2 + index, f"entry {seq} is missing")
        if _entry_of(row) is None:
            raise _corrupt(id, 2 + index, f"entry {seq} is damaged")
    raise _corrupt(id, 2 + before, "its entries cannot be read")  # no such damage is known


def _parsed(rows: list[Row]) -> list[JSONObject] | None:
    """The entries of rows, parsed as one array, in a fraction of the time; None if anything is wrong with any."""
    try:
        if [row[1] for row in rows] != [crc32(row[2]) for row in rows]:
            return None
        parsed: list[JSONObject] = json.loads(b"[" + b",".join([row[2] for row in rows]) + b"]")
        fits = [entry["seq"] for entry in parsed] == [row[0] & MAX_SEQ for row in rows]
    except (TypeError, ValueError, KeyError):
        return None
    return parsed if fits else None


def salvage_entries(connection: sqlite3.Connection, id: str) -> list[JSONObject]:
    """What is intact, and a mark where something is missing; a head that is damaged is made anew from its columns."""
    found = _find(connection, id)
    head = _data_of(found.text, found.checksum)
    left: list[JSONObject] = []
    if head is None:
        head = {"gotato_session": 1, "id": id, "created_at": _number(found.created_at)}
        try:
            head["metadata"] = json.loads(found.metadata)
        except (TypeError, ValueError):
            pass
        left.append(_gap("the head, which said what the session is a fork of"))
    first = _first_seq(head)
    rows = _rows_left(connection, found.number)
    expected = first
    for place in sorted(rows):
        seq = place & MAX_SEQ
        entry = _entry_of(rows[place])
        if entry is None or seq < expected:
            continue
        if seq > expected:
            left.append(_gap(_named(expected, seq - 1)))
        left.append(entry)
        expected = seq + 1
    last = max(found.last_seq if isinstance(found.last_seq, int) else 0, *(place & MAX_SEQ for place in rows), 0)
    if expected <= last:
        left.append(_gap(_named(expected, last)))
    return [head, *left]


def _rows_left(connection: sqlite3.Connection, number: int) -> dict[int, Row]:
    """All rows that can be read, by place: from the first on, and, where damage ends that, from the last one back."""
    left: dict[int, Row] = {}
    for order in ("", " DESC"):
        try:
            for row in connection.execute(_SELECT + order, _range(number)):
                left[row[0]] = row
            break
        except sqlite3.DatabaseError:
            continue
    return left


def number_of(connection: sqlite3.Connection, id: str) -> int:
    """The number of the session with that id; 0 where there is none."""
    row = connection.execute("SELECT number FROM sessions WHERE id = ?", (id,)).fetchone()
    return 0 if row is None else int(row[0])


def _find(connection: sqlite3.Connection, id: str) -> _Head:
    row = connection.execute(_HEAD, (id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no session {id}")
    return _Head(*row)


def _pages(connection: sqlite3.Connection, number: int) -> Iterator[list[Row]]:
    cursor = connection.execute(_SELECT, _range(number))
    while rows := cursor.fetchmany(_PAGE):
        yield rows


def _readable(connection: sqlite3.Connection, number: int) -> int:
    """How many rows come before the damage that SQLite meets."""
    count = 0
    try:
        for _ in connection.execute(_SELECT, _range(number)):
            count += 1
    except sqlite3.DatabaseError:
        pass
    return count


def _range(number: int) -> tuple[int, int]:
    return place_of(number, 0) - 1, place_of(number, MAX_SEQ)


def _data_of(text: object, checksum: object) -> JSONObject | None:
    """The JSON object of a text, if it is the one that was written."""
    try:
        if isinstance(text, bytes) and crc32(text) == checksum and _is_object(data := json.loads(text.decode())):
            return data
    except ValueError:
        pass
    return None


def _entry_of(row: Row) -> JSONObject | None:
    data = _data_of(row[2], row[1])
    return data if data is not None and data.get("seq") == row[0] & MAX_SEQ else None


def _is_object(data: object) -> TypeGuard[JSONObject]:
    return isinstance(data, dict)


def _first_seq(head: JSONObject) -> int:
    at: object = head.get("at", 0)
    return at + 1 if isinstance(at, int) else 1


def _number(given: object) -> float:
    return float(given) if isinstance(given, int | float) else 0.0


def _named(first: int, last: int) -> str:
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def _gap(what: str) -> JSONObject:
    return {"type": "gap", "text": what}


def _corrupt(id: str, line: int, what: str) -> SessionCorrupt:
    return SessionCorrupt(f"the session {id} is damaged: {what}", line=line)
