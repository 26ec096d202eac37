"""The connections of one store: one a thread for what writes, one a look for what reads."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from gotato_py import GotatoError, NotSupported, SessionCorrupt, StoreFailure

from ._sqlite_errors import SQLITE_ERRORS, is_absent, is_damage, is_locked, told
from ._sqlite_held import Held, let_fork
from ._sqlite_schema import is_new, journal_mode, make_tables

T = TypeVar("T")

_WAIT_S = 0.25
"""At a time, inside SQLite, where no signal handler runs; it is asked again while there is patience."""
_PAUSE_S = 0.002
_FILE_ALONE = "?mode=ro&immutable=1"
"""Reads the file as if nobody ever wrote to it: no lock, no log, nothing beside it."""


class Connections:
    """Ways to a database file. `sync` says when commits are durable; `patience` are the seconds that a call waits
    while other processes write."""

    factory: type[sqlite3.Connection] = sqlite3.Connection

    def __init__(self, path: str, sync: str, patience: float) -> None:
        self.path = path
        self.sync_later: bool = sync == "run"
        self._uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        # NORMAL syncs when the log is copied into the file, so that a power cut takes the tail and nothing else.
        self._synchronous = "FULL" if sync == "commit" else "NORMAL"
        self._patience = patience
        self._wait = min(_WAIT_S, patience)
        self._mine = threading.local()
        self._writers: WeakSet[Held] = WeakSet()
        self._known: tuple[int, int] | None = None  # the file that was found to be ours

    # ---- writing

    def write(self, operation: str, act: Callable[[sqlite3.Connection], T]) -> T:
        """What `act` gives, in a transaction that begins by taking the right to write, and that is kept as a whole or
        not at all. Makes the database if there is none.

        Raises what `act` raises, and SQLite's errors as ours.
        """

        def commit(connection: sqlite3.Connection) -> T:
            with connection:  # rolls back what was not committed, in one step of the interpreter
                connection.execute("BEGIN IMMEDIATE")
                done = act(connection)
                connection.execute("COMMIT")
                return done

        return self.use(operation, commit)

    def write_durably(self, operation: str, act: Callable[[sqlite3.Connection], T]) -> T:
        """The same, and when it returns, this commit and all before it survive a power cut."""

        def commit(connection: sqlite3.Connection) -> T:
            connection.execute("PRAGMA synchronous = FULL")  # syncs the log, in which the others lie too
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                done = act(connection)
                connection.execute("COMMIT")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            return done

        return self.use(operation, commit)

    def use(self, operation: str, act: Callable[[sqlite3.Connection], T]) -> T:
        """What `act` gives, with this thread's connection; it is asked again while another process is in the way."""
        until = time.monotonic() + self._patience
        while True:
            let_fork()
            held = self._writer(operation, until)
            with held.lock:
                if held.using.locked():
                    raise StoreFailure("a signal handler cannot write in the middle of a commit", operation=operation)
                with held.using:
                    connection = held.connection
                    if connection is None:  # closed, since the process forks; the next one is opened after that
                        continue
                    try:
                        if connection.in_transaction:  # two interrupts left it
                            connection.rollback()
                        return act(connection)
                    except SQLITE_ERRORS as error:
                        if not is_locked(error) or time.monotonic() > until:
                            raise told(error, self.path, operation) from error
                        time.sleep(_PAUSE_S)  # SQLite has waited, mostly

    def _writer(self, operation: str, until: float) -> Held:
        """This thread's own connection, with the tables there."""
        held: Held | None = getattr(self._mine, "held", None)
        if held is not None and held.connection is not None:
            return held
        self._look_before(operation, until)
        held = Held(self.path)
        try:
            with held.lock, held.using:
                self._prepare(held.open(f"{self._uri}?mode=rwc", self.factory, self._wait), until)
        except SQLITE_ERRORS as error:
            held.close()
            raise told(error, self.path, operation) from error
        except BaseException:
            held.close()
            raise
        self._writers.add(held)
        self._mine.held = held
        return held

    def _prepare(self, connection: sqlite3.Connection, until: float) -> None:
        """Makes the tables, and turns to WAL: several processes may do that at once, and are in each other's way."""
        while True:
            try:
                connection.execute("BEGIN")  # so that the check sees one moment
                new = is_new(connection, self.path)
                connection.execute("COMMIT")
                if new:
                    journal_mode(connection, "DELETE")  # or the header would go to the log
                    make_tables(connection, self.path)
                if journal_mode(connection) != "wal" and journal_mode(connection, "WAL") != "wal":
                    text = f"{self.path} cannot have a write-ahead log: put it on a local disk"
                    raise NotSupported(text)
                break
            except SQLITE_ERRORS as error:
                if not is_locked(error) or time.monotonic() > until:
                    raise
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                time.sleep(_PAUSE_S)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA fullfsync = ON")  # where fsync does not reach the disk (macOS)

    # ---- reading

    def read(self, operation: str, look: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `look` sees of one moment; None where there is no database. It writes nothing.

        A file that nobody has open, so that no log lies beside it, is read alone, and again if it changed meanwhile;
        with a log, SQLite reads both.
        """
        until = time.monotonic() + self._patience
        while True:
            before = self._look_before(operation, until)
            if before is None:
                return None
            alone = not self._has_log()
            try:
                seen = self._look(_FILE_ALONE if alone else "?mode=ro", look)
            except SQLITE_ERRORS as error:
                if not self._is_passing(error, before, alone) or time.monotonic() > until:
                    raise told(error, self.path, operation) from error
                time.sleep(_PAUSE_S)
            except GotatoError:  # what it saw may have been torn
                if not alone or self._is_as(before) or time.monotonic() > until:
                    raise
            else:
                if not alone or self._is_as(before):
                    return seen

    def _look(self, mode: str, look: Callable[[sqlite3.Connection], T]) -> T:
        held = Held(self.path)
        try:
            with held.lock, held.using:
                connection = held.open(self._uri + mode, self.factory, self._wait)
                connection.execute("BEGIN")
                return look(connection)
        finally:
            held.close()

    def _is_passing(self, error: sqlite3.Error | UnicodeDecodeError, before: os.stat_result, alone: bool) -> bool:
        """Whether the error may come of what others are doing just now."""
        if is_locked(error):
            return True
        if alone:
            return not self._is_as(before)
        return is_absent(error) and not self._has_log()

    def _has_log(self) -> bool:
        return Path(f"{self.path}-wal").exists()

    def _is_as(self, before: os.stat_result) -> bool:
        """Whether nobody has written to the file, or begun to."""
        return not self._has_log() and not self._is_changed(before)

    def _stat(self) -> os.stat_result | None:
        try:
            return Path(self.path).stat()
        except FileNotFoundError:
            return None

    def _look_before(self, operation: str, until: float) -> os.stat_result | None:
        """What the system says of the file, once its header has said that it is ours; None where there is none yet.

        A file that is not ours is not touched: of another application's database, SQLite would open the log as well.
        """
        recovered = False
        while True:
            found = self._stat()
            if found is None or found.st_size == 0:
                return None
            if self._known == (found.st_dev, found.st_ino):
                return found
            # Somebody makes the tables just now, or was killed while doing so: SQLite waits, or takes them back.
            half_made = not recovered and Path(f"{self.path}-journal").exists()
            try:
                if self._look(_FILE_ALONE, self._is_new) and not half_made:
                    return None
                if not half_made:
                    self._known = found.st_dev, found.st_ino
                    return found
            except (*SQLITE_ERRORS, SessionCorrupt) as error:
                if not (half_made and is_damage(error)):
                    self._raise_unless_passing(error, found, operation, until)
                    continue
            try:
                self._look("?mode=rw", self._is_new)
                recovered = True
            except (*SQLITE_ERRORS, SessionCorrupt) as error:
                self._raise_unless_passing(error, found, operation, until)

    def _raise_unless_passing(
        self,
        error: sqlite3.Error | UnicodeDecodeError | SessionCorrupt,
        before: os.stat_result,
        operation: str,
        until: float,
    ) -> None:
        if time.monotonic() < until and (is_locked(error) or self._is_changed(before)):
            return
        if isinstance(error, SQLITE_ERRORS):
            raise told(error, self.path, operation) from error
        raise error

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        return is_new(connection, self.path)

    def _is_changed(self, before: os.stat_result) -> bool:
        now = self._stat()
        return now is None or _changes(now) != _changes(before)

    def close(self) -> None:
        """Closes what is open, once it is not in use. Whoever comes later opens it anew."""
        for held in list(self._writers):
            with held.lock:
                if not held.using.locked():
                    held.close()


def _changes(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
