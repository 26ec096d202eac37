"""What becomes of calls that are open while nobody works on them."""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import ToolCall, ToolMessage, ToolResult, ToolResultStatus

from ._arguments import with_fields
from ._entries import BranchEntry, Entry, MessageEntry
from ._path import Path
from ._rules import Entries, held_entries
from ._state import State

LOST = "the run that asked for it ended first"
ELSEWHERE = "it goes on in the session that this one was forked from"


def closing_entries(
    state: State,
    time: float,
    new_id: Callable[[], str],
    *,
    branch: str | None = None,
    why: str = LOST,
) -> Entries:
    """The way to a branch, the one that ends with that entry; results for the open calls at its tail; and then places
    for the messages that waited for their end.

    An open call gets, in this order: the answer that it has elsewhere in the session; `cancelled` (effect unknown) if
    it was started; nothing if any call of its message still waits; else `not_run`.
    """
    made: list[Entry] = []
    seq, parent, path = state.seq, state.leaf, state.path
    if branch is not None and branch != parent:
        seq, parent, path = seq + 1, branch, state.path_to(branch)
        made.append(BranchEntry(seq, time, branch))
    left = 0
    waits = _waits(state, path)
    for key, call in path.open_calls:
        known = state.results.get(key)
        if known is not None:
            result = known.result
        elif key in state.started:
            result = _result(call, key, ToolResultStatus.CANCELLED, why)
        elif waits:
            left += 1
            continue
        else:
            result = _result(call, key, ToolResultStatus.NOT_RUN, why)
        seq += 1
        message = ToolMessage(result, id=new_id())
        made.append(MessageEntry(seq, time, parent, message))
        parent = message.id
    return (*made, *(() if left else held_entries(state, time, seq, parent)))


def _waits(state: State, path: Path) -> bool:
    """Whether a call at the tail of the path still waits."""
    waiting = {record.key for record in state.waiting_on(path)}
    return any(key in waiting and key not in state.started and key not in state.results for key, _ in path.open_calls)


def _result(call: ToolCall, key: str, status: ToolResultStatus, why: str) -> ToolResult:
    """The result of a call whose tool gave no answer; its text says the outcome in words."""
    told = ToolResult(call.id, status, error=why, key=key)
    return with_fields(told, parts=told.text)
