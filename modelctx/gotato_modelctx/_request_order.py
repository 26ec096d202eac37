"""A history as a request shows it: the results of a batch in the order of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import AssistantMessage, Message, ToolMessage


def in_request_order(messages: Sequence[Message]) -> list[Message]:
    """The messages, those results of one batch that name their calls put at their places; nothing is left out."""
    ordered: list[Message] = []
    start = 0
    for index, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            ordered.extend(_sorted(messages[start:index]))
            start = index
    ordered.extend(_sorted(messages[start:]))
    return ordered


def _sorted(batch: Sequence[Message]) -> Sequence[Message]:
    """An answer and what follows it, in call order: a result by its key, else the next call that no key names."""
    answer, results = (batch[0] if batch else None), batch[1:]
    if not isinstance(answer, AssistantMessage) or len(results) < 2:
        return batch
    keyed = {message.result.key.rpartition(":")[2] for message in results if isinstance(message, ToolMessage)}
    free = iter([str(index) for index in range(len(answer.tool_calls)) if str(index) not in keyed])
    places = [_place(message) or next(free, "") for message in results]
    last = len(answer.tool_calls)
    order = sorted(range(len(results)), key=lambda at: int(places[at]) if places[at].isdecimal() else last)
    return [answer, *[results[at] for at in order]]


def _place(message: Message) -> str:
    return message.result.key.rpartition(":")[2] if isinstance(message, ToolMessage) else ""
