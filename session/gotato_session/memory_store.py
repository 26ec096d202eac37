"""Sessions in the memory of one process, for tests and for programs that need no more."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from gotato_py import ForkedProcess, InvalidState, LeaseLost, NotFound, SessionBusy

from .journal import JSONObject
from .lease import Lease
from .store import StoreBase
from .summary import SessionSummary


class _Counted(NamedTuple):
    """What was counted of a session's commits, and of how many; `metadata` is the JSON text."""

    commits: int
    size: int
    messages: int
    updated_at: float
    metadata: str


class _Kept:
    """What is kept of one session. `commits` grows by one atomic step; `lease` is changed by one, too."""

    __slots__ = ("_counted", "commits", "head", "lease", "tokens")

    def __init__(self, head: JSONObject) -> None:
        self.head = head
        self.commits: list[tuple[JSONObject, ...]] = []
        self.lease: dict[str, Lease] = {}  # "writer": the one who writes
        self.tokens = 0
        self._counted = _Counted(0, len(json.dumps(head)), 0, head["created_at"], _text(head))

    @property
    def entries(self) -> list[JSONObject]:
        """The head and what was committed."""
        return [self.head, *(entry for commit in list(self.commits) for entry in commit)]

    def summary(self, id: str) -> SessionSummary:
        """What a list says of it; only what was committed since the last list is looked at."""
        commits, size, messages, updated_at, metadata = self._counted
        for commit in self.commits[commits:]:
            for entry in commit:
                size += len(json.dumps(entry))
                messages += entry.get("type") == "message"
                updated_at = max(updated_at, entry.get("time", 0.0))
                metadata = _text(entry) if entry.get("type") == "metadata" else metadata
            commits += 1
        self._counted = _Counted(commits, size, messages, updated_at, metadata)
        parent_id: str = self.head.get("parent_id", "")
        created_at: float = self.head["created_at"]
        values: JSONObject = json.loads(metadata)  # a copy of its own for whoever asks
        return SessionSummary(id, parent_id, created_at, updated_at, size, values, None if parent_id else messages)


class _MemoryJournal:
    __slots__ = ("_id", "_kept", "_pid", "_sessions", "lease")

    def __init__(self, id: str, kept: _Kept, sessions: Mapping[str, _Kept], lease: Lease | None) -> None:
        self._id = id
        self._kept = kept
        self._sessions = sessions  # of the store, as they come and go
        self._pid = os.getpid()
        self.lease: Lease | None = lease

    @property
    def last_seq(self) -> int:
        """The number of the last entry."""
        commits = self._kept.commits
        seq: int = commits[-1][-1]["seq"] if commits else self._kept.head.get("at", 0)
        return seq

    def is_kept(self) -> bool:
        """Whether the session was not removed."""
        return self._sessions.get(self._id) is self._kept

    def entries(self) -> list[JSONObject]:
        """Everything that is kept."""
        return self._kept.entries

    def append(self, entries: Sequence[JSONObject]) -> None:
        """Keeps them all, in one step."""
        if os.getpid() != self._pid:
            raise ForkedProcess(f"the session {self._id} was opened by the process that this one was forked from")
        holder = self._kept.lease.get("writer")
        if holder is not self.lease or holder is None:
            now = "is gone" if holder is None else f"was taken over by {holder.owner}"
            raise LeaseLost(f"the session {self._id} {now}", **_told(holder))
        if entries:
            self._kept.commits.append(tuple(entries))

    def sync(self) -> None:
        """Nothing to do: memory lasts as long as the process."""

    def close(self) -> None:
        """Lets the session go, if it is this one's."""
        mine = self.lease
        if mine is not None and os.getpid() == self._pid and self._kept.lease.get("writer") is mine:
            self._kept.lease.pop("writer", None)

    def __del__(self) -> None:
        if hasattr(self, "lease"):  # else it was interrupted while it was made
            self.close()  # who dropped it has let it go


class MemoryStore(StoreBase):
    """Keeps sessions as long as the store lives. Any thread may use it; a forked child has a copy to read."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Kept] = {}

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._sessions)} sessions)"

    def create_journal(self, id: str, head: JSONObject) -> None:
        """Keeps the head."""
        kept = _Kept(head)
        if self._sessions.setdefault(id, kept) is not kept:
            raise InvalidState(f"there is a session {id} already", operation="Store.create")

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> _MemoryJournal:
        """The journal, at once: nobody waits for a lease."""
        kept = self._kept(id)
        if read_only:
            return _MemoryJournal(id, kept, self._sessions, None)
        kept.tokens += 1
        lease = Lease(owner, socket.gethostname(), os.getpid(), self.clock.time(), kept.tokens)
        journal = _MemoryJournal(
            id, kept, self._sessions, lease
        )  # first: an interrupt from here on drops it, and the lease with it
        if steal:
            kept.lease["writer"] = lease
        elif (holder := kept.lease.setdefault("writer", lease)) is not lease:
            raise _busy(id, holder, "; open it with read_only=True, or take it over with steal=True")
        return journal

    def summaries(self) -> Iterator[SessionSummary]:
        """All sessions."""
        return iter([kept.summary(id) for id, kept in list(self._sessions.items())])

    def delete_journal(self, id: str) -> None:
        """Forgets the session."""
        kept = self._kept(id)
        if (holder := kept.lease.get("writer")) is not None:
            raise _busy(id, holder)
        self._sessions.pop(id, None)

    def _kept(self, id: str) -> _Kept:
        kept = self._sessions.get(id)
        if kept is None:
            raise NotFound(f"there is no session {id}", operation="Store.open")
        return kept


def _text(entry: JSONObject) -> str:
    return json.dumps(entry.get("metadata", {}))


class _Holder(TypedDict):
    owner: str
    host: str
    pid: int
    since: float


def _busy(id: str, holder: Lease, advice: str = "") -> SessionBusy:
    return SessionBusy(f"the session {id} is open: {holder.owner} writes to it{advice}", **_told(holder))


def _told(lease: Lease | None) -> _Holder:
    """What an error says of the one who writes."""
    if lease is None:
        return {"owner": "", "host": "", "pid": 0, "since": 0.0}
    return {"owner": lease.owner, "host": lease.host, "pid": lease.pid, "since": lease.since}
