"""Where a history may be cut: never between a call and its results, never at a result."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import AssistantMessage, Message, ToolMessage, WaitingCall

from ._arguments import check_count, check_counter, check_messages, check_waiting
from .tokens import TokenCounter, message_tokens


def cut_points(messages: Sequence[Message], waiting: Sequence[WaitingCall] = ()) -> list[int]:
    """The indexes from which on a history may be kept, in order; all of what stands before one may be left out.

    What is kept starts with a user message, or with an answer whose results are all kept. Results follow their answer
    directly, in whatever order they came, so no cut stands at one. Calls that are open at the tail, and those that
    wait, are kept together with their message. Raises `InvalidArgument` for what is no sequence of these.
    """
    check_messages("cut_points", messages)
    check_waiting("cut_points", waiting)
    held = {call.key.rpartition(":")[0] for call in waiting}
    points: list[int] = []
    for index, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            points.append(index)
            if held and message.id in held:
                break
    return points


def tail_start(messages: Sequence[Message]) -> int:
    """Where the part starts that has to stay: the last answer with calls, their results and what the user said since;
    after an answer without calls, the last user message; for an answer at the very end, that answer.

    It is a cut point, and whatever is cut, this part is kept. 0 for an empty history. Raises `InvalidArgument` for what
    is no sequence of messages.
    """
    check_messages("tail_start", messages)
    said = -1  # the last user message
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage):
            return index if message.tool_calls or said < 0 else said
        if said < 0 and not isinstance(message, ToolMessage):
            said = index
    return max(0, said)


def last_cut_within(
    messages: Sequence[Message],
    budget: int,
    *,
    waiting: Sequence[WaitingCall] = (),
    counter: TokenCounter | None = None,
) -> int:
    """The first cut point from which on the messages take at most `budget` tokens, by `estimate_tokens`.

    Where even the part that has to stay takes more, the start of that part: see `tail_start`; open and waiting calls
    belong to it. 0 for an empty history. Only what is kept is counted, from the end.
    Raises `InvalidArgument` for a negative budget, and for what these cannot be.
    """
    check_messages("last_cut_within", messages)
    check_count("last_cut_within: budget", budget)
    check_waiting("last_cut_within", waiting)
    check_counter("last_cut_within: counter", counter)
    held = {call.key.rpartition(":")[0] for call in waiting}
    latest = tail_start(messages)
    if held:
        latest = next((at for at, each in enumerate(messages) if each.id in held and at < latest), latest)
    taken, cut = 0, latest
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        taken += message_tokens(message, counter)
        if taken > budget:
            break
        if index <= latest and not isinstance(message, ToolMessage):
            cut = index
    return cut
