"""Who writes to a session: the lease, taken and let go in the database, each by one transaction.

What counts is the token, which every commit looks at. The rest only tells whether somebody is still there.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from typing import NamedTuple, TypedDict
from weakref import WeakValueDictionary

from gotato_py import NotFound, SessionBusy, SessionCorrupt

from ._sqlite_process import is_alive, process_mark
from .lease import Lease

_SELECT = """
SELECT number, owner, host, pid, process, since, token, updated_at
FROM sessions LEFT JOIN progress ON session = number WHERE id = ?
"""
_TAKE = "UPDATE sessions SET owner = ?, host = ?, pid = ?, process = ?, since = ? WHERE number = ?"


class Holder:
    """What stands for the right to write in the process that has it: who dropped it has let it go."""

    __slots__ = ("__weakref__",)


_holders: WeakValueDictionary[tuple[str, int, int], Holder] = WeakValueDictionary()
"""By database, session and token, those of this process."""


class Standing(NamedTuple):
    """What the database says of a session and of its owner, who is None if it is free."""

    number: int
    owner: str | None
    host: str
    pid: int
    process: str
    since: float
    token: int
    updated_at: float


class _Facts(TypedDict):
    owner: str
    host: str
    pid: int
    since: float


def standing(connection: sqlite3.Connection, id: str) -> Standing:
    """How it stands with a session. Raises `NotFound`, `SessionCorrupt`."""
    row = connection.execute(_SELECT, (id,)).fetchone()
    if row is None:
        raise NotFound(f"there is no session {id}")
    found = Standing(*row)
    if not isinstance(found.token, int):
        raise SessionCorrupt(f"the session {id} is damaged: how far it got is lost", line=1)
    return found


def facts(found: Standing | None) -> _Facts:
    """What an error tells of the owner."""
    if found is None or found.owner is None:
        return {"owner": "", "host": "", "pid": 0, "since": 0.0}
    return {"owner": found.owner, "host": found.host, "pid": found.pid, "since": found.since}


def check_free(path: str, id: str, found: Standing, now: float, lease_timeout: float) -> None:
    """Raises `SessionBusy` if the session has an owner who lives."""
    if found.owner is not None and _lives(path, found, now, lease_timeout):
        text = f"the session {id} is open: {found.owner} writes to it (process {found.pid} on {found.host})"
        raise SessionBusy(text, **facts(found))


def _lives(path: str, found: Standing, now: float, lease_timeout: float) -> bool:
    if found.host != socket.gethostname():
        return now - max(found.since, found.updated_at) <= lease_timeout
    if found.pid == os.getpid() and found.process == process_mark(found.pid):
        return (path, found.number, found.token) in _holders
    return is_alive(found.pid, found.process)


def take(connection: sqlite3.Connection, path: str, found: Standing, owner: str, now: float) -> tuple[Lease, Holder]:
    """Makes this process the owner, with the next token. It holds as long as the holder is kept."""
    holder = Holder()
    pid = os.getpid()
    lease = Lease(owner, socket.gethostname(), pid, now, found.token + 1)
    _holders[path, found.number, lease.token] = holder
    connection.execute(_TAKE, (owner, lease.host, pid, process_mark(pid) or "", now, found.number))
    connection.execute("UPDATE progress SET token = ? WHERE session = ?", (lease.token, found.number))
    return lease, holder


def let_go(connection: sqlite3.Connection, number: int, token: int) -> None:
    """Frees the session, unless another has taken it meanwhile."""
    free = (
        "UPDATE sessions SET owner = NULL WHERE number = ? AND (SELECT token FROM progress WHERE session = number) = ?"
    )
    connection.execute(free, (number, token))
