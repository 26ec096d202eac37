"""Journals in databases for tests: plain entries, and what a file holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gotato_session._sqlite_journal import SQLiteJournal
from gotato_session.sqlite_store import SQLiteStore

ID = "s-1"


def head(id: str = ID, **members: Any) -> dict[str, Any]:  # Any: JSON values
    """The first entry of a session."""
    return {"gotato_session": 1, "id": id, "created_at": 1000.0, **members}


def entry(seq: int, type: str = "event", **members: Any) -> dict[str, Any]:  # Any: JSON values
    """A plain entry with that number."""
    return {"seq": seq, "v": 1, "type": type, "time": 1000.0 + seq, **members}


def said(seq: int, text: str = "häh? 🙂", *, role: str = "user", id: str = "") -> dict[str, Any]:  # Any: JSON values
    """A message."""
    parts = [{"kind": "text", "text": text}]
    message = {"role": role, "id": id or f"m-{seq}", "parts": parts}
    return entry(seq, "message", parent="", message=message)


def opened(
    store: SQLiteStore, id: str = ID, *, owner: str = "me", read_only: bool = False, steal: bool = False
) -> SQLiteJournal:
    """The journal of the store."""
    return store.open_journal(id, owner, read_only, steal)


def made(store: SQLiteStore, id: str = ID, **members: Any) -> SQLiteJournal:  # Any: JSON values
    """A new journal, open for writing."""
    store.create_journal(id, head(id, **members))
    return opened(store, id)


def filled(path: Path, count: int, *, id: str = ID) -> SQLiteStore:
    """A store with one session of that many messages, which nobody has open."""
    store = SQLiteStore(path, sync="never")
    journal = made(store, id)
    journal.append([said(seq) for seq in range(1, count + 1)])
    journal.close()
    store.close()
    return store


def numbers(journal: SQLiteJournal) -> list[int]:
    """The numbers of its entries, read from the database."""
    return [each["seq"] for each in journal.entries()[1:]]


def numbers_in(store: SQLiteStore, id: str = ID) -> list[int]:
    """The numbers of the entries in the database, as a reader sees them."""
    return numbers(opened(store, id, read_only=True))


@contextmanager
def raw(path: Path | str) -> Generator[sqlite3.Connection, None, None]:
    """A connection that knows nothing of the store."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def change(path: Path | str, sql: str, *values: object) -> None:
    """One statement behind the store's back."""
    with raw(path) as connection:
        connection.execute(sql, values)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the folder with the time of its last change and its content."""
    return {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in folder.iterdir()}
