"""The entries that make a state: what a fork begins with, written out, so that it needs no parent."""

from __future__ import annotations

from collections.abc import Iterator

from ._entries import BranchEntry, Entry, GapEntry, LabelEntry, MessageEntry, SettlementEntry, StartedEntry
from ._state import State


def flattened(state: State) -> list[Entry]:
    """Entries, numbered from 1, which make that state from nothing but its metadata.

    Messages and summaries come in their order, with the moves between branches; a mark of a call that was started
    comes behind the message that asks for it. Runs, events and what waits are not written: a fork begins without them.
    """
    made = list(_entries(state))
    for seq, entry in enumerate(made, start=1):
        entry.seq = seq
    return made


def _entries(state: State) -> Iterator[Entry]:
    marks, settles = _marks(state), {message_id: key for key, message_id in state.settled.items()}
    times = [node.time for node in state.nodes.values()]
    for text in state.gaps:
        yield GapEntry(0, times[0] if times else state.time, text)
    yield from [StartedEntry(0, state.time, key) for key in marks.get("", ())]
    leaf = ""
    for id, node in state.nodes.items():
        if node.parent != leaf:
            yield BranchEntry(0, node.time, node.parent)
        if isinstance(node, MessageEntry):
            if id in settles and node.message.role == "user":
                yield SettlementEntry(0, node.time, settles[id], node.message)
            yield MessageEntry(0, node.time, node.parent, node.message)
        else:
            yield type(node)(0, node.time, node.parent, node.compaction)
        yield from [StartedEntry(0, node.time, key) for key in marks.get(id, ())]
        leaf = id
    yield from [SettlementEntry(0, state.time, settles[id], message) for id, message in state.held.items()]
    yield from [LabelEntry(0, state.time, name, id) for name, id in state.labels.items()]
    if leaf != state.leaf:
        yield BranchEntry(0, state.time, state.leaf)


def _marks(state: State) -> dict[str, list[str]]:
    """The keys of the calls that were started, by the id of the message that asks for them, "" where there is none."""
    found: dict[str, list[str]] = {}
    for key in state.started:
        message_id = key.rpartition(":")[0]
        found.setdefault(message_id if message_id in state.nodes else "", []).append(key)
    return found
