"""The journal of one session in a database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from gotato_py import ForkedProcess, GotatoError, InvalidState, LeaseLost, NotFound, StoreFailure

from ._sqlite_connections import Connections
from ._sqlite_errors import is_failed_fsync
from ._sqlite_lease import Holder, facts, let_go, standing
from ._sqlite_rows import Written, number_of, read_entries, written_entries
from .journal import JSONObject
from .lease import Lease

Act = Callable[[sqlite3.Connection], None]

_ADVANCE = """
UPDATE progress SET last_seq = ?, messages = ?, size = size + ?, updated_at = max(updated_at, ?)
WHERE session = ? AND token = ? AND last_seq = ?
"""
_INSERT = "INSERT INTO entries (place, messages, checksum, text) VALUES (?, ?, ?, ?)"


class SQLiteJournal:
    """A session's entries. A writer, who has the lease and its holder, has a number and a token; a reader has none."""

    __slots__ = ("_closed", "_ended", "_holder", "_known", "_number", "_pid", "_seen", "_ways", "_when", "id", "lease")

    def __init__(
        self,
        id: str,
        ways: Connections,
        when: Callable[[], float],
        number: int = 0,
        lease: Lease | None = None,
        holder: Holder | None = None,
    ) -> None:
        """`when()` tells the time of a commit, in Unix seconds."""
        self.id = id
        self.lease: Lease | None = lease
        self._ways = ways
        self._when = when
        self._number = number
        self._seen = number
        self._holder = holder
        self._pid = os.getpid()
        self._closed = False
        self._known: tuple[int, int | None] | None = None  # the last number and the count of messages, where sure
        self._ended: GotatoError | None = None  # why nothing more is accepted

    @property
    def last_seq(self) -> int:
        """The number of the last entry that is kept."""
        return self._position()[0]

    def entries(self) -> list[JSONObject]:
        """The head and everything that was appended."""
        read = self._ways.read("Journal.entries", self._read)
        if read is None:
            raise NotFound(f"there is no session {self.id}", operation="Journal.entries")
        number, entries = read
        self._seen = self._seen or number
        return entries

    def is_kept(self) -> bool:
        """Whether the session is the one that was first read: the number of one that was deleted is not given again."""
        return self._ways.read("Journal.is_kept", lambda connection: number_of(connection, self.id)) == self._seen

    def _read(self, connection: sqlite3.Connection) -> tuple[int, list[JSONObject]]:
        return number_of(connection, self.id), read_entries(connection, self.id)

    def append(self, entries: Sequence[JSONObject]) -> None:
        """One transaction: it asks for the token, moves the session's last number on, and adds the rows."""
        lease = self._writable("Journal.append")
        if not entries:
            return
        before, messages = self._position()
        written = written_entries(self._number, before, messages, entries)
        self._known = None  # until it is sure
        self._commit(self._ways.write, "Journal.append", partial(self._add, lease, before, written))
        self._known = written.last_seq, written.messages

    def sync(self) -> None:
        """Makes what was committed survive a power cut, where the commits did not."""
        lease = self._writable("Journal.sync")
        if self._ways.sync_later:
            self._commit(self._ways.write_durably, "Journal.sync", partial(self._touch, lease))

    def close(self) -> None:
        """Lets the session go. Where the database cannot be told so now, another call tries again."""
        lease = self.lease
        if lease is None or self._closed or os.getpid() != self._pid:
            return
        if not isinstance(self._ended, LeaseLost):
            self._ended = InvalidState(f"the session {self.id} is closed")
        self._holder = None  # from here on it is free for whoever asks in this process
        number = self._number
        try:
            self._ways.write("Journal.close", lambda connection: let_go(connection, number, lease.token))
        except StoreFailure:
            return
        self._closed = True

    def _writable(self, operation: str) -> Lease:
        if os.getpid() != self._pid:
            text = f"the session {self.id} was opened by the process that this one was forked from; open it here"
            raise ForkedProcess(text, operation=operation)
        if self._ended is not None:
            raise self._ended.with_traceback(None)
        if self.lease is None:
            raise InvalidState(f"the session {self.id} was opened read-only", operation=operation)
        return self.lease

    def _commit(self, write: Callable[[str, Act], None], operation: str, act: Act) -> None:
        try:
            write(operation, act)
        except LeaseLost as error:
            self._ended = error
            raise
        except StoreFailure as error:
            if is_failed_fsync(error.cause):  # what the system has dropped, no later fsync brings to the disk
                self._ended = error
            raise

    def _add(self, lease: Lease, before: int, written: Written, connection: sqlite3.Connection) -> None:
        now, progress = self._when(), (written.last_seq, written.messages, written.size)
        moved = connection.execute(_ADVANCE, (*progress, now, self._number, lease.token, before)).rowcount
        if moved != 1:
            raise self._refusal(connection, lease, before)
        if len(written.rows) == 1:
            connection.execute(_INSERT, written.rows[0])
        else:
            connection.executemany(_INSERT, written.rows)
        if written.metadata is not None:
            sql = "UPDATE sessions SET metadata = ? WHERE number = ?"
            connection.execute(sql, (written.metadata, self._number))

    def _touch(self, lease: Lease, connection: sqlite3.Connection) -> None:
        """Something for SQLite to write, and with it to sync: all that was written before lies in the same log."""
        sql = "UPDATE progress SET synced = synced + 1 WHERE session = ? AND token = ?"
        if connection.execute(sql, (self._number, lease.token)).rowcount != 1:
            raise self._refusal(connection, lease, None)

    def _refusal(self, connection: sqlite3.Connection, lease: Lease, before: int | None) -> LeaseLost | StoreFailure:
        """Why a commit found no row to change."""
        try:
            found = standing(connection, self.id)
        except NotFound:
            found = None
        if found is None or found.number != self._number:
            return LeaseLost(f"the session {self.id} was deleted: its lease had run out")
        if found.token != lease.token:
            by = f"was taken over by {found.owner}" if found.owner is not None else "was taken over, and let go again"
            return LeaseLost(f"the session {self.id} {by}; nothing of this commit is kept", **facts(found))
        return StoreFailure(f"the session {self.id} does not end with entry {before} any more; nothing was kept")

    def _position(self) -> tuple[int, int | None]:
        """The number of the last entry, and the number of messages up to there."""
        if self._known is not None:
            return self._known
        position = self._ways.read("Journal.last_seq", self._look_up)
        if position is None:
            raise NotFound(f"there is no session {self.id}", operation="Journal.last_seq")
        if self.lease is not None:  # nobody else can move it
            self._known = position
        return position

    def _look_up(self, connection: sqlite3.Connection) -> tuple[int, int | None] | None:
        sql = "SELECT last_seq, messages, token, number FROM sessions JOIN progress ON session = number WHERE id = ?"
        found = connection.execute(sql, (self.id,)).fetchone()
        if self.lease is None:
            return None if found is None else (found[0], found[1])
        if found is None or found[2:] != (self.lease.token, self._number):  # these are another's
            self._ended = refusal = self._refusal(connection, self.lease, None)
            raise refusal
        return found[0], found[1]
