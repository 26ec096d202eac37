"""A log made of what a journal holds, and of what a fork shares with its parents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from gotato_py import Clock, GotatoError, InvalidArgument, NotFound, NotSupported, SessionCorrupt

from ._entries import BranchEntry, CompactionEntry, Entry, LabelEntry, MessageEntry, SettlementEntry
from ._entry_json import entry_from_dict
from ._head import Head, read_head
from ._log import Log
from ._path import compacted
from ._rules import check_message, check_place
from ._state import State
from .journal import Journal, JSONObject

EntriesOf = Callable[[str], "Readable"]
"""What can be read of another session, by its id."""


class Readable(NamedTuple):
    """The entries of a journal, the head first; only those before the damage, where there is any."""

    entries: list[JSONObject]
    damage: SessionCorrupt | None = None


class _Stored(NamedTuple):
    """A session as a store gives it: what follows the head is not looked at yet."""

    id: str
    head: Head
    entries: Sequence[JSONObject]
    damage: SessionCorrupt | None = None


class _Share(NamedTuple):
    """What a fork has from its parent, and where it goes on from."""

    entries: list[Entry]
    branch: str | None


def open_log(id: str, journal: Journal, clock: Clock, entries_of: EntriesOf) -> tuple[Head, Log]:
    """The head and the log of a journal.

    Raises `SessionCorrupt` for what does not fit together, and `NotSupported` for what a newer release wrote.
    """
    stored = [*journal.entries()]  # its own list, which is emptied
    head, state, base = first_state(id, stored, entries_of)
    log = Log(f"the session {id}", base, clock, journal, state=state)
    log.load(_checked(id, _forgotten(stored), state))
    return head, log


def _forgotten(stored: list[JSONObject]) -> Iterator[JSONObject]:
    """What follows the head; each entry is let go when the next is asked for, so that a long session need not be in
    memory in both forms."""
    stored.reverse()
    stored.pop()
    while stored:
        yield stored.pop()


def first_state(id: str, stored: list[JSONObject], entries_of: EntriesOf) -> tuple[Head, State, Callable[[], State]]:
    """The head of what a journal holds, the state before its first entry, and what makes that state anew."""
    lineage = _lineage(id, stored, entries_of)
    values = lineage[0].head.values
    state, shares = State(values), list[_Share]()
    for parent, fork in pairwise(lineage):
        share = _Share(_shared(parent, fork, state), fork.head.branch)
        shares.append(share)
        state = state.forked(share.branch)
    return lineage[-1].head, state, partial(_replayed, values, shares)


def _lineage(id: str, entries: list[JSONObject], entries_of: EntriesOf) -> list[_Stored]:
    """The session, and before it all that it was forked from, the eldest first."""
    found = [_Stored(id, read_head(id, entries), entries[1:])]
    while parent_id := found[-1].head.parent_id:
        if any(parent_id == each.id for each in found):
            raise SessionCorrupt(f"the session {id} is its own ancestor", line=1)
        try:
            entries, damage = entries_of(parent_id)
        except NotFound:
            text = f"the session {found[-1].id} is a fork of {parent_id}, which is not there"
            raise SessionCorrupt(text, line=1) from None
        found.append(_Stored(parent_id, read_head(parent_id, entries), entries[1:], damage))
    return found[::-1]


def _shared(parent: _Stored, fork: _Stored, state: State) -> list[Entry]:
    """What the fork has from its parent, taken into the parent's state."""
    taken: list[Entry] = []
    count = max(0, fork.head.at - state.seq)
    for entry in _checked(parent.id, parent.entries[:count], state):
        state.take((entry,))
        taken.append(entry)
    if fork.head.begins_with(state):
        return taken
    text = f"the session {fork.id} begins with entry {fork.head.at} of {parent.id}, which "
    if parent.damage is not None:
        text += f"cannot be read as far as that: {parent.damage.message}"
        raise SessionCorrupt(text, line=parent.damage.line)
    text += "is not there" if state.seq != fork.head.at else "has another one with that number now"
    raise SessionCorrupt(f"{text}; open(…, repair=True) opens a copy of what can be read", line=1)


def _replayed(values: dict[str, str], shares: Sequence[_Share]) -> State:
    """The state before a session's own first entry, made anew."""
    state = State(values)
    for share in shares:
        for entry in share.entries:
            state.take((entry,))
        state = state.forked(share.branch)
    return state


def _checked(id: str, stored: Iterable[JSONObject], state: State) -> Iterator[Entry]:
    """The entries, each as it fits the state, which has to have taken the one before when the next is asked for."""
    for line, data in enumerate(stored, start=2):
        try:
            entry = entry_from_dict(data)
            check_fit(entry, state)
        except NotSupported as error:
            raise NotSupported(f"the session {id}, entry {line - 1}: {error.message}") from None
        except GotatoError as error:
            text = f"the session {id} is damaged: entry {line - 1} does not fit: {error.message}"
            raise SessionCorrupt(text, line=line) from None
        yield entry


def check_fit(entry: Entry, state: State) -> None:
    """Raises what is wrong with an entry as the next one."""
    if entry.seq != state.seq + 1:
        raise InvalidArgument(f"its number is {entry.seq}, after {state.seq}")
    match entry:
        case MessageEntry():
            _check_parent(entry.parent, state)
            if state.held:
                state.held.pop(entry.message.id, None)  # its place has come
            check_message(entry.message, state)
        case CompactionEntry():
            _check_parent(entry.parent, state)
            if entry.compaction.summary.id in state.nodes:
                raise InvalidArgument("there is an entry with the id of its summary")
            compacted(state.path.context, entry.compaction)
        case SettlementEntry():
            if entry.message.id in state.nodes or entry.message.id in state.held:
                raise InvalidArgument("there is an entry with the id of its message")
        case BranchEntry():
            check_place(entry.to, state, "")
        case LabelEntry():
            check_place(entry.entry_id, state, "")
        case _:
            pass


def _check_parent(parent: str, state: State) -> None:
    if parent != state.leaf:
        raise InvalidArgument("it does not follow the entry before it in its branch")
