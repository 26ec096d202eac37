"""Sessions in one SQLite database, for many processes at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from sqlite3 import Connection
from types import TracebackType
from typing import Self

from gotato_py import InvalidArgument, InvalidState, NotFound, SessionBusy

from . import _sqlite_sessions as sessions
from ._arguments import wrong
from ._sqlite_connections import Connections
from ._sqlite_journal import SQLiteJournal
from ._sqlite_lease import check_free, standing, take
from ._sqlite_rows import salvage_entries
from ._sqlite_search import SearchHit, search
from .journal import JSONObject
from .store import StoreBase
from .summary import SessionSummary

__all__ = ["SQLiteStore", "SearchHit"]

SYNCS = ("commit", "run", "never")


class SQLiteStore(StoreBase):
    """Keeps sessions in the database file at `path`, which the first one makes; its folder has to be there.

    `sync` says when a commit survives a power cut: "commit" when it returns, "run" at the end of a run, "never" some
    time later; every commit survives the end of the process at once. `lease_timeout` are the seconds without a commit
    after which an owner on another host is taken for dead; on this host the system is asked. `busy_timeout` are the
    seconds that a call waits for the commits of other processes before it raises a retryable `StoreFailure`.

    The file needs a local disk: SQLite's log is shared memory. Any thread and any process may use it; a forked child
    opens its sessions anew. Nothing has to be cleaned up after a process was killed. Raises `InvalidArgument`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: str = "commit",
        lease_timeout: float = 3600.0,
        busy_timeout: float = 30.0,
    ) -> None:
        if sync not in SYNCS:
            raise InvalidArgument(f"SQLiteStore.sync must be one of {', '.join(SYNCS)}, not {sync!r}")
        self._path = _a_path(path)
        self._lease_timeout = _seconds("SQLiteStore.lease_timeout", lease_timeout)
        self._ways = Connections(self._path, sync, _seconds("SQLiteStore.busy_timeout", busy_timeout))

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections to the database; whoever uses the store or its sessions later opens them anew."""
        self._ways.close()

    # ---- journals

    def create_journal(self, id: str, head: JSONObject) -> None:
        """Adds a session that holds its head alone. Raises `InvalidState` if there is one already."""
        now = self.clock.time()
        self._ways.write("Store.create", lambda connection: sessions.create(connection, id, head, now))

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> SQLiteJournal:
        """The journal of a session; a writer has the lease from here on, and whoever had it before `LeaseLost`."""
        ways, when = self._ways, self._time
        found = ways.read("Store.open", lambda connection: standing(connection, id))
        if found is None:
            raise NotFound(f"there is no session {id}: there is no database {self._path}", operation="Store.open")
        if read_only:
            return SQLiteJournal(id, ways, when)

        def opened(connection: Connection) -> SQLiteJournal:
            now, found = self._time(), standing(connection, id)
            if not steal:
                check_free(self._path, id, found, now, self._lease_timeout)
            lease, holder = take(connection, self._path, found, owner, now)
            return SQLiteJournal(id, ways, when, found.number, lease, holder)

        return ways.write("Store.open", opened)

    def summaries(self) -> Iterator[SessionSummary]:
        """All sessions, those changed last first."""
        return sessions.summaries(self._ways)

    def forks_of(self, id: str) -> list[str]:
        """The ids of the sessions that were forked from that one."""
        return self._ways.read("Store.delete", lambda connection: sessions.forks_of(connection, id)) or []

    def delete_journal(self, id: str) -> None:
        """Removes a session. Raises `NotFound`, `SessionBusy` while it is open, `InvalidState` while it has forks."""
        if not self._ways.read("Store.delete", lambda connection: True):
            raise NotFound(f"there is no session {id}: there is no database {self._path}", operation="Store.delete")
        self._ways.write("Store.delete", lambda connection: self._remove(connection, id))

    def salvage_journal(self, id: str) -> list[JSONObject]:
        """What can be read of a damaged session, with marks where something is missing. Raises `NotFound`."""
        left = self._ways.read("Store.open", lambda connection: salvage_entries(connection, id))
        if left is None:
            raise NotFound(f"there is no session {id}: there is no database {self._path}", operation="Store.open")
        return left

    # ---- what only a database can

    def search(self, text: str, *, limit: int = 20) -> list[SearchHit]:
        """The messages that have all words of the text, at most `limit` of them, the best match first.

        Words are what Unicode calls so, whole ones, in any case and with any accents; everything else in the text is
        taken literally. What was committed before the call is found. The first search reads all messages once, to
        index them; so it needs the right to write. A fork's hits in what it shares are told under its parent's id.

        Raises `NotSupported` where this build of SQLite has no full-text search.
        """
        if not isinstance(text, str):
            raise wrong("search: text", "a str", text)
        if type(limit) is not int or limit < 0:
            raise InvalidArgument("search: limit must be an int of at least 0")
        return search(self._ways, text, min(limit, sys.maxsize))

    def purge(self, *, older_than: float, keep: Callable[[SessionSummary], bool] | None = None) -> list[str]:
        """Deletes the sessions that were not changed for `older_than` seconds, and returns their ids.

        What is kept: a session that is open, one that has a fork which is kept, and those of which `keep(summary)` is
        true. Each is deleted in a commit of its own, and looked at again there.
        """
        before = self._time() - _seconds("purge: older_than", older_than)
        old = [each.id for each in self.summaries() if each.updated_at < before and not (keep and keep(each))]
        purged: list[str] = []
        while old:  # a session may go once its forks are gone
            gone = [id for id in old if self._purged(id, before)]
            purged += gone
            if not gone:
                break
            old = [id for id in old if id not in gone]
        return purged

    def _purged(self, id: str, before: float) -> bool:
        def act(connection: Connection) -> bool:
            if standing(connection, id).updated_at >= before:
                return False
            self._remove(connection, id)
            return True

        try:
            return self._ways.write("SQLiteStore.purge", act)
        except (NotFound, SessionBusy, InvalidState):
            return False

    def vacuum(self) -> None:
        """Gives the room of what was deleted back to the system. It writes the file anew, and others wait meanwhile."""
        if self._ways.read("SQLiteStore.vacuum", lambda connection: True):
            self._ways.use("SQLiteStore.vacuum", lambda connection: connection.execute("VACUUM").fetchall())

    def _remove(self, connection: Connection, id: str) -> None:
        sessions.remove(connection, self._path, id, self._time(), self._lease_timeout)

    def _time(self) -> float:
        return self.clock.time()


def _a_path(given: str | os.PathLike[str]) -> str:
    if not isinstance(given, str | os.PathLike) or not isinstance(path := os.fspath(given), str):
        raise wrong("SQLiteStore.path", "a str or a path", given)
    if not path or path == ":memory:" or "\0" in path:
        raise InvalidArgument("SQLiteStore.path must name a file; sessions that stay in memory are MemoryStore's")
    return os.path.realpath(path)  # the log lies beside the file itself, not beside a link to it


def _seconds(where: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise InvalidArgument(f"{where} must be a number of seconds of at least 0")
    return float(given)
