"""Who has a journal file: the lock on it, the fence around its replacement, and a note for people of who it is.

The lock is on the file that the writer has open, so it ends with the process, however that ends. A stopped one holds it
still; then the file is replaced by a copy that the next owner has locked. What keeps the two apart:

1. The next owner puts up the fence, a file of a known name, and locks it: one at a time replaces or removes a journal.
2. He copies the journal, locks the copy, renames it over the journal, and takes the fence down.
3. After each write, before it is called committed, its writer looks whether the fence is up, and then whether the path
   leads elsewhere. If neither, the copy is not begun yet and will have what he wrote; if either, his lease is lost.

A fence whose maker died is unlocked. Whoever gets the journal's own lock next takes it down.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from gotato_py import NotFound, SessionBusy

from ._file_disk import Handle
from ._file_names import Names
from .lease import Lease


def lock_journal(names: Names) -> Handle | None:
    """The journal's file, locked; None if another has it. Raises `NotFound`."""
    try:
        return _locked(names.journal, "r+")
    except FileNotFoundError:
        raise not_found(names) from None


def _locked(path: Path, mode: str, opened: Callable[[Path, str], Handle] = Handle) -> Handle | None:
    """The file that the path leads to, locked; None if another has it. `opened` is another in tests."""
    while True:
        handle = opened(path, mode)
        try:
            if not handle.lock():
                handle.let_go()
                return None
            if handle.is_at(path):  # it was not replaced or removed before it was locked
                return handle
        except BaseException:
            handle.let_go()
            raise
        handle.let_go()


def not_found(names: Names) -> NotFound:
    """The error for a session that is not there."""
    return NotFound(f"there is no session {names.id!r} in {names.folder}")


@contextmanager
def fenced(names: Names, holder: Handle | None) -> Generator[None, None, None]:
    """The journal may be replaced or removed meanwhile. Raises `SessionBusy` if another is at that, or if the holder of
    its lock, where there is one, has lost it to another."""
    _check_held(names, holder)
    fence = _locked(names.fence, "a")
    if fence is None:
        raise SessionBusy(f"session {names.id!r} is being taken over, rewritten or removed; try again in a moment")
    try:
        _check_held(names, holder)
        yield
    finally:
        names.fence.unlink(missing_ok=True)
        fence.let_go()


def _check_held(names: Names, holder: Handle | None) -> None:
    if holder is not None and not holder.is_at(names.journal):
        raise busy(names)


def clear_fence(names: Names) -> None:
    """For who has the journal's lock: takes the fence of a dead one down; `SessionBusy` if its maker lives."""
    if os.access(names.fence, os.F_OK):
        with fenced(names, None):
            pass


def new_lease(names: Names, owner: str, since: float) -> Lease:
    """The next owner's lease, noted for those who find the session busy; where it cannot be noted it holds as well."""
    before = read_lease(names)
    lease = Lease(owner, os.uname().nodename, os.getpid(), since, before.token + 1 if before else 1)
    noted = {"owner": owner, "host": lease.host, "pid": lease.pid, "since": lease.since, "token": lease.token}
    temporary = names.folder / f".{names.id}~lease"
    try:
        temporary.write_text(json.dumps(noted), "utf-8")
        temporary.replace(names.lease)
    except OSError:
        pass
    return lease


def read_lease(names: Names) -> Lease | None:
    """The last owner's lease, if it was noted."""
    try:
        noted = json.loads(names.lease.read_text("utf-8"))
        owner, host = str(noted["owner"]), str(noted["host"])
        return Lease(owner, host, int(noted["pid"]), float(noted["since"]), int(noted["token"]))
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return None


def busy(names: Names) -> SessionBusy:
    """The error for a session that another writes to."""
    lease = read_lease(names) or Lease("", "", 0, 0.0)
    who = f"{lease.owner!r} (process {lease.pid} on {lease.host})" if lease.owner else "another"
    text = f"session {names.id!r} is open for {who}; open it with read_only=True, or take it over with steal=True"
    return SessionBusy(text, owner=lease.owner, host=lease.host, pid=lease.pid, since=lease.since)
