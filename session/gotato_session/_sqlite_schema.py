"""The tables, and how a file is told from one that is not ours before anything of it is touched.

- `sessions`: one row a session, changed when it is opened and when its metadata change.
- `progress`: one short row a session, changed by every commit. Its token is the writer's right to commit.
- `entries`: one row an entry. `place` is the session's number and the entry's in one integer, so that the primary key
  keeps two writers from the same number, and a session's entries lie side by side.
- `words`: an index of what messages say, made by the first search (`_sqlite_search`).
"""

from __future__ import annotations

import sqlite3

from gotato_py import NotSupported, SessionCorrupt

APPLICATION_ID = 0x676F7461  # "gota"
VERSION = 1
"""Of the tables; it is in the file's header, as is the application's id."""

SEQ_BITS = 32
MAX_SEQ = (1 << SEQ_BITS) - 1

_TABLES = (
    """
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given again: who holds a deleted session writes to no other
        id TEXT NOT NULL UNIQUE,
        parent_id TEXT NOT NULL,
        created_at REAL NOT NULL,
        head TEXT NOT NULL,
        checksum INTEGER NOT NULL,                 -- CRC-32 of the head's UTF-8
        metadata TEXT NOT NULL,
        owner TEXT,                                -- of the lease; NULL while nobody has it
        host TEXT NOT NULL DEFAULT '',
        pid INTEGER NOT NULL DEFAULT 0,
        process TEXT NOT NULL DEFAULT '',          -- when that process began, in words of its machine
        since REAL NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX forks ON sessions (parent_id) WHERE parent_id <> ''",
    """
    CREATE TABLE progress (
        session INTEGER PRIMARY KEY,
        token INTEGER NOT NULL,                    -- grows with every owner
        last_seq INTEGER NOT NULL,
        messages INTEGER,                          -- with those of the parents; NULL where these are lost
        size INTEGER NOT NULL,
        updated_at REAL NOT NULL,
        synced INTEGER NOT NULL                    -- counts: a commit has to change something to be written
    )
    """,
    """
    CREATE TABLE entries (
        place INTEGER PRIMARY KEY,                 -- session << 32 | seq
        messages INTEGER,                          -- how many there are, up to here
        checksum INTEGER NOT NULL,                 -- CRC-32 of the text's UTF-8
        text TEXT NOT NULL
    )
    """,
)


def place_of(session: int, seq: int) -> int:
    """The key of an entry."""
    return session << SEQ_BITS | seq


def is_new(connection: sqlite3.Connection, path: str) -> bool:
    """Whether there are no tables yet.

    Raises `SessionCorrupt` for a database of another application, `NotSupported` for one of a newer release.
    """
    application, version = _number(connection, "application_id"), _number(connection, "user_version")
    if application == APPLICATION_ID and version == VERSION:
        return False
    if application == APPLICATION_ID and version > VERSION:
        text = f"{path} was written by a newer release: its tables have version {version}, and this one reads {VERSION}"
        raise NotSupported(text)
    if application == version == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        return True
    raise SessionCorrupt(f"{path} is a database of another application; it was left as it is", line=1)


def make_tables(connection: sqlite3.Connection, path: str) -> None:
    """Makes the tables in one commit, unless another process has made them."""
    connection.execute("BEGIN IMMEDIATE")
    if is_new(connection, path):
        for statement in _TABLES:
            connection.execute(statement)
        # Both are in the header of the file itself, before there is a log: they can be read without touching that.
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def journal_mode(connection: sqlite3.Connection, mode: str = "") -> str:
    """The journal mode, after the switch to `mode`; a switch that somebody hinders raises at once, without waiting."""
    found: str = connection.execute(f"PRAGMA journal_mode = {mode}" if mode else "PRAGMA journal_mode").fetchone()[0]
    return found


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    found: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return found
