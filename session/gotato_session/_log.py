"""The log of a session: its commits, and the state that follows from them.

The commits are the truth. In memory, adding one is one atomic step, `dict.setdefault` under its number. An interrupt
before that step leaves nothing, one after it leaves a state that is behind, which whoever looks next makes anew.
Readers take no lock.

With a journal, a commit is stored first, then added. Writers take turns: another thread waits for the disk, a signal
handler that comes into the middle of a commit of its own thread is refused. An interrupt in that middle leaves open
whether the commit was stored; whoever looks next asks the journal. Both locks are taken by `with` alone: Python lets no
signal in between the taking and the block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from threading import Lock, RLock
from time import sleep
from typing import TypeVar

from gotato_py import Clock, ForkedProcess, InvalidState, StoreFailure

from ._arguments import time_of
from ._entries import Entry
from ._entry_json import entry_to_dict
from ._failures import failure, told
from ._rules import Entries, check_place
from ._state import State
from .journal import Journal

T = TypeVar("T")
Build = Callable[[State, float], Entries]
"""Makes the entries of a commit from the state and the time; none where nothing is to be done. It changes nothing
itself: it is asked again if another commit came first."""

_LOOKS = 3
"""At a state that others change meanwhile, before it is made anew for one reader."""
_PATIENCE = 20
_MOMENT_S = 0.000_05
"""How often, and how long at a time, a reader lets the thread go first that may be bringing the state up to date."""


class Log:
    """An append-only list of commits, safe to use from any thread."""

    __slots__ = (
        "_base", "_clock", "_commits", "_name", "_pending", "_pid", "_refuses", "_state", "_storing", "_turn", "closed",
        "journal", "read_only",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        base: Callable[[], State],
        clock: Clock,
        journal: Journal | None = None,
        *,
        state: State | None = None,
    ) -> None:
        """`base()` makes the state before the first commit; `state` is that state, where it is at hand."""
        self.closed: bool = False
        self.read_only: bool = False
        self.journal: Journal | None = journal
        self._name = name
        self._base = base
        self._clock = clock
        self._commits: dict[int, Entries] = {}  # by number
        self._pending: Entries = ()  # what is being stored
        self._refuses: StoreFailure | None = None  # the sync that failed: nobody knows what the disk has
        self._state = base() if state is None else state
        self._pid = os.getpid()
        self._turn = RLock()  # of the writer
        self._storing = Lock()  # held between the beginning and the end of a commit to the journal

    def load(self, entries: Iterable[Entry]) -> None:
        """Adds what the journal held when it was opened, as one commit: nobody looks before it is there. Each entry is
        in the state when the next is asked for."""
        loaded: list[Entry] = []
        for entry in entries:
            self._state.add(entry)
            loaded.append(entry)
        if loaded:
            self._commits[1] = tuple(loaded)
            self._state.applied = 1

    def check_writable(self, operation: str) -> None:
        """Raises `ForkedProcess` in a forked child and `InvalidState` once `closed` or where it is read-only."""
        if os.getpid() != self._pid:
            text = f"{self._name} belongs to the process that opened it, and this is a fork of that; open one here"
            raise ForkedProcess(text, operation=operation)
        if self.closed:
            raise InvalidState(f"{self._name} is closed", operation=operation)
        if self.read_only:
            raise InvalidState(f"{self._name} was opened read-only", operation=operation)
        if self._refuses is not None:
            text = f"{self._name} takes nothing more: it could not be made durable, so what the store has is not known"
            raise StoreFailure(f"{text}; open it again", operation=operation, cause=self._refuses.cause)

    def commit(self, operation: str, build: Build) -> Entries:
        """Adds the entries that `build(state, time)` makes, and returns them. What it raises changes nothing.

        Raises `StoreFailure` where they could not be stored.
        """
        self.check_writable(operation)
        if self.journal is None:
            return self._add_built(build)
        with self._turn:
            if self._storing.locked():  # by an outer frame of this very thread
                text = f"{self._name} is in the middle of a commit: a signal handler cannot write to it"
                raise InvalidState(text, operation=operation)
            try:
                with self._storing:
                    if self.closed:  # while it was waited for
                        self.check_writable(operation)
                    if self._pending:
                        self._settle()
                    return self._store_built(operation, self.journal, build)
            finally:
                if self.closed:  # by a signal handler, which could not let the journal go
                    self.journal.close()

    def _add_built(self, build: Build) -> Entries:
        while True:
            state = self.state
            number = state.applied + 1
            entries = build(state, time_of(self._clock))
            if not entries:
                return entries
            if self._commits.setdefault(number, entries) is entries:  # from here on it is kept, whatever interrupts
                state.take(entries)  # nobody else does: this state was at the number before
                return entries

    def _store_built(self, operation: str, journal: Journal, build: Build) -> Entries:
        state = self.state
        entries = build(state, time_of(self._clock))
        if not entries:
            return entries
        told = [entry_to_dict(entry) for entry in entries]
        self._pending = entries
        try:
            journal.append(told)
        except Exception as error:
            self._pending = ()
            text = f"{self._name} could not be written"
            raise failure(error, text, operation, "nothing of the commit is kept")  # noqa: B904  # it carries its cause
        self._commits[state.applied + 1] = entries
        self._pending = ()
        state.take(entries)
        return entries

    def _settle(self) -> None:
        """Finds out what became of a commit that was interrupted while it was stored. Only in the turn of a writer."""
        pending, journal = self._pending, self.journal
        if not pending or journal is None:
            return
        if stored_seq(journal) >= pending[-1].seq:
            made = self._made_anew()
            if made.seq < pending[-1].seq:
                self._commits.setdefault(made.applied + 1, pending)
        self._pending = ()

    @property
    def source(self) -> Journal | None:
        """The journal, where this log does not write to it, so that others may remove what it has read."""
        return self.journal if self.read_only or self.closed else None

    @property
    def state(self) -> State:
        """What follows from all commits so far."""
        if self._pending and not self._storing.locked() and os.getpid() == self._pid:
            with self._turn:
                if not self._storing.locked():  # else a signal handler looks, in the middle of a commit
                    self._settle()
        state = self._state
        if state.applied == len(self._commits):
            return state
        if self.journal is not None and os.getpid() == self._pid:
            with self._turn:  # the commit that is on its way will have ended
                pass
        for _ in range(_PATIENCE):  # to make it anew takes as long as all there is
            if self._state.applied == len(self._commits):
                return self._state
            sleep(_MOMENT_S)  # another thread is about to tell it, unless it was interrupted
        return self._made_anew()

    def read(self, look: Callable[[State], T]) -> T:
        """What `look(state)` sees of one moment: for what has to fit together."""
        for _ in range(_LOOKS):
            state = self.state
            count = state.applied
            seen = look(state)
            if count == len(self._commits):  # no commit has begun, let alone changed the state
                return seen
        return look(_replayed(self._base(), self._commits, len(self._commits)))  # writers never rest that long

    def _made_anew(self) -> State:
        """The state is behind: a commit was interrupted, or is on its way and will be told by its own thread."""
        if self._state.applied == len(self._commits):
            return self._state
        made = self._base()
        while made.applied != len(self._commits):
            made.take(self._commits[made.applied + 1])
        if self._state.applied < made.applied:
            self._state = made
        return made

    def prefix(self, at: str | None) -> tuple[State, Callable[[], State]]:
        """The state with which a fork of all commits so far begins, at that entry or at the newest, and what makes it
        anew. Raises `NotFound` for an entry that is not there."""

        def look(state: State) -> tuple[State, int]:
            return state.forked(at), state.applied

        if at is not None:
            check_place(at, self.state, "Session.fork")
        first, count = self.read(look)
        base, commits = self._base, self._commits

        return first, lambda: _replayed(base(), commits, count).forked(at)

    def sync(self, operation: str) -> None:
        """Makes what was committed survive a power cut, as far as the store promises it. Raises `StoreFailure`."""
        if self.journal is None or self.closed or self.read_only:
            return
        self.check_writable(operation)  # a forked child cannot, and would wait for ever if a writer had the turn
        with self._turn:
            try:
                self.journal.sync()
            except Exception as error:
                text = f"{self._name} could not be made durable"
                failed = failure(error, text, operation, "it takes nothing more until it is opened again")
                if isinstance(failed, StoreFailure):
                    self._refuses = failed
                raise failed  # noqa: B904  # it carries its cause

    def close(self) -> None:
        """Ends the writing, for ever, once the commit that is on its way has ended, and lets the journal go."""
        self.closed = True
        if self.journal is None:
            return
        if os.getpid() != self._pid:  # the turn may be held for ever by a thread that is not in this process
            self.journal.close()
            return
        with self._turn:
            if self._storing.locked():  # a signal handler closes in the middle of a commit, whose end does it
                return
            with told(f"{self._name} could not be closed", "Session.close"):
                try:
                    self._settle()  # a journal that is closed need not know any more what it keeps
                finally:
                    self.journal.close()


def _replayed(state: State, commits: Mapping[int, Entries], count: int) -> State:
    """The state after so many commits; `state` is the one before the first."""
    for number in range(1, count + 1):
        state.take(commits[number])
    return state


def stored_seq(journal: Journal) -> int:
    """The number of the last entry that the journal keeps."""
    known: object = getattr(journal, "last_seq", None)
    if isinstance(known, int):
        return known
    last = journal.entries()[-1:]
    return int(last[0].get("seq", 0)) if last else 0
