"""The sessions of a database: making, listing and removing them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gotato_py import InvalidState, NotFound

from ._json import is_object, json_text
from ._sqlite_connections import Connections
from ._sqlite_lease import check_free, standing
from ._sqlite_rows import written_head
from ._sqlite_schema import MAX_SEQ, place_of
from ._sqlite_search import forget_words
from .journal import JSONObject
from .summary import SessionSummary

_PAGE = 500
_SUMMARY = """
SELECT number, id, parent_id, created_at, updated_at, size, CAST(metadata AS BLOB), messages
FROM sessions JOIN progress ON session = number WHERE number IN ({})
"""


def create(connection: sqlite3.Connection, id: str, head: JSONObject, now: float) -> None:
    """Adds a session that holds its head alone. Raises `InvalidState` if there is one, `NotFound` without a parent."""
    if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone():
        raise InvalidState(f"there is a session {id} already", operation="Store.create")
    parent_id, at = head.get("parent_id", ""), head.get("at", 0)
    messages = _messages_up_to(connection, parent_id, at) if parent_id else 0
    text, checksum, size = written_head(head)
    sql = "INSERT INTO sessions (id, parent_id, created_at, head, checksum, metadata) VALUES (?, ?, ?, ?, ?, ?)"
    row = (id, parent_id, head["created_at"], text, checksum, json_text("metadata", head.get("metadata", {})))
    number = connection.execute(sql, row).lastrowid
    connection.execute("INSERT INTO progress VALUES (?, 0, ?, ?, ?, ?, 0)", (number, at, messages, size, now))


def _messages_up_to(connection: sqlite3.Connection, id: str, at: int) -> int | None:
    """How many messages a session has up to an entry, with those of its parents; None where that entry is lost."""
    while True:
        row = connection.execute("SELECT number, head FROM sessions WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no session {id} to fork from", operation="Session.fork")
        if at == 0:
            return 0
        number, text = row
        found = connection.execute("SELECT messages FROM entries WHERE place = ?", (place_of(number, at),)).fetchone()
        if found is not None:
            messages: int | None = found[0]
            return messages
        head = json.loads(text)
        if not head.get("parent_id") or at > head.get("at", 0):
            return None
        id = head["parent_id"]


def forks_of(connection: sqlite3.Connection, id: str) -> list[str]:
    """The ids of the sessions that were forked from that one."""
    rows = connection.execute("SELECT id FROM sessions WHERE parent_id = ? AND parent_id <> ''", (id,))
    return [fork for (fork,) in rows]


def remove(connection: sqlite3.Connection, path: str, id: str, now: float, lease_timeout: float) -> None:
    """Removes a session. Raises `NotFound`, `SessionBusy` while it is open, `InvalidState` while it has forks."""
    found = standing(connection, id)
    check_free(path, id, found, now, lease_timeout)
    if forks := forks_of(connection, id):
        raise InvalidState(f"the session {id} has forks, which need it: {forks[0]}", operation="Store.delete")
    first, last = place_of(found.number, 0), place_of(found.number, MAX_SEQ)
    connection.execute("DELETE FROM entries WHERE place BETWEEN ? AND ?", (first, last))
    connection.execute("DELETE FROM progress WHERE session = ?", (found.number,))
    connection.execute("DELETE FROM sessions WHERE number = ?", (found.number,))
    forget_words(connection, found.number)


def summaries(ways: Connections) -> Iterator[SessionSummary]:
    """All sessions, those changed last first. Their order is that of the first look; they are read a page at a time,
    and none that was deleted meanwhile comes."""
    order = ways.read("Store.list", _order) or []
    for start in range(0, len(order), _PAGE):
        yield from ways.read("Store.list", _page(order[start : start + _PAGE])) or []


def _order(connection: sqlite3.Connection) -> list[int]:
    sql = "SELECT session FROM progress ORDER BY updated_at DESC, session DESC"
    return [number for (number,) in connection.execute(sql)]


def _page(numbers: Sequence[int]) -> Callable[[sqlite3.Connection], list[SessionSummary]]:
    def look(connection: sqlite3.Connection) -> list[SessionSummary]:
        sql = _SUMMARY.format(",".join("?" * len(numbers)))
        found = {row[0]: row[1:] for row in connection.execute(sql, numbers)}
        return [_summary(*found[number]) for number in numbers if number in found]

    return look


def _summary(
    id: str, parent_id: str, created_at: float, updated_at: float, size: int, metadata: bytes, messages: int | None
) -> SessionSummary:
    return SessionSummary(id, parent_id, created_at, updated_at, size, _metadata(metadata), messages)


def _metadata(text: bytes) -> dict[str, Any] | None:  # Any: JSON values
    try:
        given: object = json.loads(text.decode())
    except (ValueError, RecursionError):  # damaged, or too deep: only the session itself can say
        return None
    return given if is_object(given) else None
