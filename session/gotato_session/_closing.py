"""What becomes of calls that are open while nobody works on them."""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import Message, ToolCall, ToolMessage, ToolResult, ToolResultStatus

from ._arguments import with_fields
from ._entries import BranchEntry, Entry, MessageEntry, SettlementEntry
from ._path import Path
from ._rules import Entries
from ._settlements import untold
from ._state import State

LOST = "the run that asked for it ended first"
ELSEWHERE = "it goes on in the session that this one was forked from"


def closing_entries(
    state: State,
    time: float,
    new_id: Callable[[], str],
    *,
    branch: str | None = None,
    moved: bool = False,
    why: str = LOST,
) -> Entries:
    """The way to a branch, the one that ends with that entry; results for the open calls at its tail; then places for
    the messages that waited for their end; and if the session has `moved` to that place, what came of pending calls
    that nobody has told there.

    An open call gets, in this order: the answer that it has elsewhere in the session; `cancelled` (effect unknown) if
    it was started; nothing if any call of its message still waits; else `not_run`.
    """
    made: list[Entry] = []
    parent, path = state.leaf, state.path

    def add(message: Message) -> None:
        nonlocal parent
        made.append(MessageEntry(state.seq + len(made) + 1, time, parent, message))
        parent = message.id

    if branch is not None and branch != parent:
        parent, path = branch, state.path_to(branch)
        made.append(BranchEntry(state.seq + 1, time, branch))
    results, left = _results(state, path, why)
    for result in results:
        add(ToolMessage(result, id=new_id()))
    for message in [] if left else list(state.held.values()):  # another thread may add one
        add(message)
    if moved:
        for key, told in untold(state, path.history, results).items():
            again = with_fields(told, id=new_id())
            made.append(SettlementEntry(state.seq + len(made) + 1, time, key, again))
            if not left:
                add(again)
    return tuple(made)


def _results(state: State, path: Path, why: str) -> tuple[list[ToolResult], int]:
    """The results for the open calls at the tail of the path, and how many calls are left to wait."""
    found: list[ToolResult] = []
    left, waits = 0, _waits(state, path)
    for key, call in path.open_calls:
        known = state.results.get(key)
        if known is not None:
            found.append(known.result)
        elif key in state.started:
            found.append(_result(call, key, ToolResultStatus.CANCELLED, why))
        elif waits:
            left += 1
        else:
            found.append(_result(call, key, ToolResultStatus.NOT_RUN, why))
    return found, left


def _waits(state: State, path: Path) -> bool:
    """Whether a call at the tail of the path still waits."""
    waiting = {record.key for record in state.waiting_on(path)}
    return any(key in waiting and key not in state.started and key not in state.results for key, _ in path.open_calls)


def _result(call: ToolCall, key: str, status: ToolResultStatus, why: str) -> ToolResult:
    """The result of a call whose tool gave no answer; its text says the outcome in words."""
    told = ToolResult(call.id, status, error=why, key=key)
    return with_fields(told, parts=told.text)
