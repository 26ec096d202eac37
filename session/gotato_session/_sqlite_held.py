"""Connections to SQLite, and forks.

SQLite keeps its file locks in tables of the process, one entry a file, for all connections of that process. A forked
child inherits the tables without the locks: a new connection of its own to the same file would believe in them, the
parent would take itself for the last one and remove the log into which the child writes, and commits would be lost. So
no connection is open while Python forks: a hook closes those that are idle, waits for those in use, and lets no other
be opened meanwhile. What was inherited all the same, because something forked without telling Python, is never used,
never closed, and the database is refused in that child.
"""

from __future__ import annotations

import os
import sqlite3
from itertools import count
from threading import Lock, RLock
from weakref import WeakSet

from gotato_py import ForkedProcess

_LONGEST_WAIT_S = 10.0
"""For a connection that is in use when the process forks; after that it is inherited."""

_numbers = count(1)


class _Process:
    """What SQLite has open in this process."""

    def __init__(self) -> None:
        self.gate = RLock()  # held while a connection is opened, and while the process forks
        self.forking = False
        self.held: WeakSet[Held] = WeakSet()
        self.opened: dict[int, tuple[str, int]] = {}  # by number: the path, and the process that opened it

    def before_fork(self) -> None:
        """Closes what is idle, and keeps the gate."""
        self.gate.acquire()
        self.forking = True
        for each in list(self.held):
            if each.lock.acquire(timeout=_LONGEST_WAIT_S):
                try:
                    if not each.using.locked():  # else by the very thread that forks, from a signal handler
                        each.close()
                finally:
                    each.lock.release()

    def after_fork_in_parent(self) -> None:
        """Opens the gate."""
        self.forking = False
        self.gate.release()

    def after_fork_in_child(self) -> None:
        """A gate of its own: in a fork that told Python late, a thread that is not here may hold the old one."""
        self.gate = RLock()
        self.forking = False


class Held:
    """A connection. Whoever holds `lock`, and in it `using`, may use it; `connection` is None once it is closed.

    It is closed when nobody refers to it any more, so that a thread that ends leaves none open.
    """

    connection: sqlite3.Connection | None = None
    _pid: int = 0  # of no process, until it is made

    def __init__(self, path: str) -> None:
        self.lock = RLock()  # keeps other threads out
        self.using = Lock()  # tells whether an outer frame of the same thread uses it
        self.path = path
        self._number = next(_numbers)
        self._pid = os.getpid()

    def open(self, uri: str, factory: type[sqlite3.Connection], wait_s: float) -> sqlite3.Connection:
        """Opens it. Raises `sqlite3.Error`, and `ForkedProcess` where the database was open when something forked."""
        with _process.gate:
            for path, pid in list(_process.opened.values()):
                if path == self.path and pid != self._pid:
                    text = f"{path} was open when this process was forked, by something that did not tell Python"
                    raise ForkedProcess(f"{text}; open it for the first time after the fork")
            _process.held.add(self)
            _process.opened[self._number] = self.path, self._pid
            try:
                made = self.connection = sqlite3.connect(
                    uri, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=False, factory=factory
                )
                # A reference that nothing but closing it ends: one that was inherited must never be closed.
                made.create_function("held", 0, lambda: made.in_transaction)
                made.text_factory = _shown
            except BaseException:
                self.close()
                raise
            return made

    def close(self) -> None:
        """Closes it, and rolls back what is open in it. Does nothing twice, and nothing in a forked child."""
        if os.getpid() == self._pid:
            if self.connection is not None:
                self.connection.close()
                self.connection = None
            _process.opened.pop(self._number, None)

    def __del__(self) -> None:
        self.close()


def _shown(data: bytes) -> str:
    """A text that is no UTF-8 any more, as far as it can be read: the driver's own error would quote all of it."""
    return data.decode("utf-8", "replace")


def let_fork() -> None:
    """Lets a fork go first that waits for connections: a thread that commits all the time would keep it waiting."""
    if _process.forking:
        with _process.gate:
            pass


_process = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_process.before_fork,
        after_in_parent=_process.after_fork_in_parent,
        after_in_child=_process.after_fork_in_child,
    )
