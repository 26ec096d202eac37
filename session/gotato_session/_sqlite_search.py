"""Finding words in messages, by an index of their texts (FTS5).

The index is made when somebody searches, from where the last search ended: a commit pays nothing for it, whoever never
searches has no second copy of the texts, and a build of SQLite without FTS5 can do all the rest. The price is that the
first search reads everything once. It goes on in short transactions, so that writers wait for none of it long.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from gotato_py import GotatoError, NotSupported, message_from_dict

from ._sqlite_connections import Connections
from ._sqlite_schema import MAX_SEQ, SEQ_BITS, place_of

_BATCH = 1_000
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(text, role UNINDEXED, entry_id UNINDEXED, tokenize = 'unicode61')"
_INDEXED = "CREATE TABLE indexed (session INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL)"
_BEHIND = """
SELECT progress.session, coalesce(indexed.last_seq, 0), progress.last_seq
FROM progress LEFT JOIN indexed USING (session) WHERE progress.last_seq > coalesce(indexed.last_seq, 0) LIMIT ?
"""
_NEXT = "SELECT place, CAST(text AS BLOB) FROM entries WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
_INSERT = "INSERT INTO words (rowid, text, role, entry_id) VALUES (?, ?, ?, ?)"
_MATCHES = """
SELECT id, entry_id, role, snippet(words, 0, '', '', '…', 24)
FROM words JOIN sessions ON number = words.rowid >> ? WHERE words MATCH ? ORDER BY rank, words.rowid LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that has the words that were looked for: where it is, and a piece of its text around them."""

    session_id: str
    entry_id: str
    role: str
    snippet: str


def search(ways: Connections, text: str, limit: int) -> list[SearchHit]:
    """The messages that have all words of the text, the best match first."""
    words = _quoted(text)
    if not words or limit == 0 or not ways.read("SQLiteStore.search", lambda connection: True):
        return []
    while ways.write("SQLiteStore.search", _index_more):
        pass
    return ways.read("SQLiteStore.search", lambda connection: _hits(connection, words, limit)) or []


def forget_words(connection: sqlite3.Connection, session: int) -> None:
    """Takes a session out of the index, if there is one."""
    if _has_index(connection):
        first, last = place_of(session, 0), place_of(session, MAX_SEQ)
        connection.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (first, last))
        connection.execute("DELETE FROM indexed WHERE session = ?", (session,))


def _quoted(text: str) -> str:
    """The words as FTS5 reads them literally: each a phrase of its own, whatever signs it holds."""
    words = text.encode("utf-8", "replace").decode().replace("\0", " ").replace('"', '""').split()
    return " ".join(f'"{word}"' for word in words)


def _has_index(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone() is not None


def _hits(connection: sqlite3.Connection, words: str, limit: int) -> list[SearchHit]:
    return [SearchHit(*row) for row in connection.execute(_MATCHES, (SEQ_BITS, words, limit))]


def _index_more(connection: sqlite3.Connection) -> bool:
    """Adds the next entries to the index; False once there is nothing to add."""
    if not _has_index(connection):
        try:
            connection.execute(_WORDS)
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):
                raise
            raise NotSupported("this build of SQLite has no full-text search (FTS5)", operation="search") from error
        connection.execute(_INDEXED)
    behind = connection.execute(_BEHIND, (_BATCH,)).fetchall()
    room = _BATCH
    for session, after, last_seq in behind:
        if room > 0:
            rows = connection.execute(_NEXT, (place_of(session, after), place_of(session, MAX_SEQ), room)).fetchall()
            connection.executemany(_INSERT, _messages(rows))
            reached = last_seq if len(rows) < room else rows[-1][0] & MAX_SEQ
            connection.execute("INSERT OR REPLACE INTO indexed VALUES (?, ?)", (session, reached))
            room -= len(rows) + 1
    return bool(behind)


def _messages(rows: Iterable[tuple[int, bytes]]) -> Iterable[tuple[int, str, str, str]]:
    """The messages among entries, as rows of the index; what cannot be read is for the session itself to tell."""
    for place, text in rows:
        try:
            entry = json.loads(text)
            if entry["type"] != "message":
                continue
            message = message_from_dict(entry["message"])
        except (GotatoError, ValueError, TypeError, KeyError):
            continue
        if said := message.text:
            yield place, said, entry["message"]["role"], message.id
