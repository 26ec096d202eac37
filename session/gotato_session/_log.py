"""The log of a session: its entries, and the state that follows from them.

The entries are the truth. Adding one is one atomic step, `dict.setdefault` under its number: whoever comes second, in
another thread or in a signal handler, looks again at what is there now. An interrupt before that step leaves nothing,
one after it leaves a state that is behind, which whoever looks next makes anew. So there is no lock that an interrupt
could leave held, a signal handler wait for, or a fork inherit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from gotato_py import ForkedProcess, InvalidState

from ._entries import Entry
from ._state import State

E = TypeVar("E", bound=Entry)
T = TypeVar("T")


class Log:
    """An append-only list of entries, safe to use from any thread and from signal handlers."""

    __slots__ = ("_entries", "_metadata", "_name", "_pid", "_state", "closed")

    def __init__(self, name: str, metadata: Mapping[str, str]) -> None:
        self.closed: bool = False
        self._name = name
        self._metadata = metadata
        self._entries: dict[int, Entry] = {}  # by number, from 1
        self._state = State(metadata)
        self._pid = os.getpid()

    def check_writable(self, operation: str) -> None:
        """Raises `ForkedProcess` in a forked child and `InvalidState` once `closed`."""
        if os.getpid() != self._pid:
            text = f"{self._name} belongs to the process that made it, and this is a fork of that; make one here"
            raise ForkedProcess(text, operation=operation)
        if self.closed:
            raise InvalidState(f"{self._name} is closed", operation=operation)

    def commit(self, operation: str, build: Callable[[State, int], E | None]) -> E | None:
        """Adds the entry that `build(state, seq)` makes; None where it makes none. What it raises changes nothing.

        `build` must change nothing itself: it is asked again if another entry came first.
        """
        self.check_writable(operation)
        while True:
            state = self.state
            seq = state.applied + 1
            entry = build(state, seq)
            if entry is None:
                return None
            if self._entries.setdefault(seq, entry) is entry:  # from here on it is kept, whatever interrupts
                state.apply(entry)  # nobody else does: this state was at the number before
                return entry

    @property
    def state(self) -> State:
        """What follows from all entries so far."""
        state = self._state
        return state if state.applied == len(self._entries) else self._made_anew()

    def read(self, look: Callable[[State], T]) -> T:
        """What `look(state)` sees while nothing is committed: for what has to fit together."""
        while True:
            state = self.state
            count = state.applied
            seen = look(state)
            if count == len(self._entries):  # no commit has begun, let alone changed the state
                return seen

    def _made_anew(self) -> State:
        """The state is behind: a commit was interrupted, or is on its way and will be told by its own thread."""
        made = State(self._metadata)
        while made.applied != len(self._entries):
            made.apply(self._entries[made.applied + 1])
        if self._state.applied != len(self._entries):
            self._state = made
        return made
