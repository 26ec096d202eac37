"""What a session takes and what it refuses: one function a kind of entry, asked before anything is changed.

Each makes the entries of one commit from what the session holds, or none where there is nothing to do.
"""

from __future__ import annotations

from gotato_py import (
    Compaction,
    InvalidArgument,
    InvalidState,
    Message,
    NotFound,
    RunRecord,
    ToolMessage,
    ToolResultStatus,
    UserMessage,
    WaitingCall,
)

from ._arguments import wrong
from ._entries import (
    CompactionEntry,
    Entry,
    EventEntry,
    LabelEntry,
    MessageEntry,
    MetadataEntry,
    RunEntry,
    SettlementEntry,
    StartedEntry,
    WaitingEntry,
)
from ._holder import Holder
from ._path import compacted
from ._state import State

Entries = tuple[Entry, ...]
"""What one commit adds."""


def message_entry(message: Message, state: State, time: float) -> Entries:
    """Refuses an id that the session has, a result without an open call, and anything else while a call is open."""
    check_message(message, state)
    return (MessageEntry(state.seq + 1, time, state.leaf, message),)


def late_result(message: ToolMessage, state: State, time: float) -> Entries:
    """The result of a tool that did run, if its call is still open: it may have been closed otherwise meanwhile."""
    return message_entry(message, state, time) if state.path.takes(message.result) else ()


def check_message(message: Message, state: State) -> None:
    """Raises what `message_entry` refuses."""
    operation = "Session.append"
    if message.id in state.nodes or message.id in state.held:
        text = f"the session has an entry with the id {message.id!r}; an id comes once, leave it out to get a new one"
        raise InvalidArgument(text, operation=operation)
    if isinstance(message, ToolMessage):
        if not state.path.takes(message.result):
            text = "a result without an open call: " + ("its key names none" if state.path.open else "no call is open")
            raise InvalidArgument(text, operation=operation)
    elif state.path.open:
        text = f"{state.path.open} call(s) at the tail are open: append their results first"
        raise InvalidState(text, operation=operation)


def started_entry(key: str, state: State, time: float) -> Entries:
    """The mark, which may be set at any time, once."""
    return () if key in state.started else (StartedEntry(state.seq + 1, time, key),)


def waiting_entry(calls: tuple[WaitingCall, ...], state: State, time: float) -> Entries:
    """The record, or nothing where nothing waits and nothing did."""
    return (WaitingEntry(state.seq + 1, time, calls),) if calls or state.waiting_calls else ()


def compaction_entry(compaction: Compaction, state: State, time: float) -> Entries:
    """Tries the compaction on a copy, which refuses what would break the context."""
    kept, _ = compacted(state.path.context, compaction)
    summary_id = kept.summary.id
    if summary_id in state.nodes or summary_id in state.held:
        text = f"the session has an entry with the id of the summary, {summary_id!r}; an id comes once"
        raise InvalidArgument(text, operation="Session.replace")
    return (CompactionEntry(state.seq + 1, time, state.leaf, kept),)


def run_entries(record: RunRecord, holder: Holder, state: State, time: float) -> Entries:
    """The record, if the run has none yet, and the messages that waited for its end, unless another run goes on."""
    if record.run_id in state.run_ids:
        return ()
    run = RunEntry(state.seq + 1, time, record)
    others = [run_id for run_id in holder.run_ids if run_id != record.run_id and run_id not in state.run_ids]
    return (run,) if state.path.open or others else (run, *held_entries(state, time, run.seq, state.leaf))


def held_entries(state: State, time: float, seq: int, parent: str) -> Entries:
    """Places for the messages that waited for one, behind the entry with that number and the one with that id."""
    made: list[Entry] = []
    for message in list(state.held.values()):  # another thread may add one
        seq += 1
        made.append(MessageEntry(seq, time, parent, message))
        parent = message.id
    return tuple(made)


def metadata_entry(key: str, text: str, state: State, time: float) -> Entries:
    """The metadata with that value."""
    return (MetadataEntry(state.seq + 1, time, {**state.values, key: text}),)


def label_entry(name: str, entry_id: str | None, state: State, time: float) -> Entries:
    """The name for the place, the newest entry if none is said."""
    place = state.leaf if entry_id is None else entry_id
    check_place(place, state, "Session.label")
    return (LabelEntry(state.seq + 1, time, name, place),)


def check_place(entry_id: str, state: State, operation: str) -> None:
    """Raises `NotFound` for what is no place of the session, `InvalidArgument` for what cannot be one."""
    if not isinstance(entry_id, str):
        raise wrong(f"{operation}: entry_id", "a str", entry_id)
    if entry_id and entry_id not in state.nodes:
        raise NotFound(f"the session has no entry with the id {entry_id!r}", operation=operation)


def event_entry(text: str, state: State, time: float) -> Entries:
    """The event, which may come at any time."""
    return (EventEntry(state.seq + 1, time, text),)


def settlement_entries(key: str, message: UserMessage, holder: Holder, state: State, time: float) -> Entries:
    """What came of a pending call, and the place of its message, unless a run or an open call is in the way.

    A run that is recorded has ended, even where it has the session still.
    """
    operation = "Session.complete_call"
    result = state.results.get(key)
    if result is None:
        raise NotFound(f"no call {key!r} of this session has a result", operation=operation)
    if result.result.status is not ToolResultStatus.PENDING:
        text = f"the call {key!r} is not pending: its result is {result.result.status.value}"
        raise InvalidState(text, operation=operation)
    if key in state.settled:
        raise InvalidState(f"the call {key!r} was completed before; the first completion counts", operation=operation)
    seq = state.seq + 1
    settled = SettlementEntry(seq, time, key, message)
    if state.path.open or any(run_id not in state.run_ids for run_id in holder.run_ids):
        return (settled,)
    return (settled, MessageEntry(seq + 1, time, state.leaf, message))
