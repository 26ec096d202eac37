"""A transcript as a dialect says it: what users said, and each answer together with the results of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gotato_py import AssistantMessage, InvalidRequest, Message, ToolMessage, UserMessage

NO_OUTPUT = "(no output)"
"""What the model is told of a result without words; every call needs one, and servers refuse an empty one."""

NO_TEXT = "(no text)"
"""What stands for a user message without words."""


class Turn(NamedTuple):
    """An answer, and its results with the places of their calls, in the order of the calls."""

    answer: AssistantMessage
    results: list[tuple[int, ToolMessage]]


def turns(messages: Sequence[Message]) -> Iterator[UserMessage | Turn]:
    """The messages in their order. Raises `InvalidRequest` for a result that belongs to no call before it."""
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if isinstance(message, UserMessage):
            yield message
        elif isinstance(message, ToolMessage):
            raise InvalidRequest("messages: a tool result does not follow the message that called the tool")
        else:
            results: list[ToolMessage] = []
            while index < len(messages) and isinstance(follower := messages[index], ToolMessage):
                results.append(follower)
                index += 1
            yield Turn(message, sorted(_paired(message, results), key=lambda pair: pair[0]))


def _paired(message: AssistantMessage, results: Sequence[ToolMessage]) -> Iterator[tuple[int, ToolMessage]]:
    """Each result with the place of its call: by key, else by position, never by a provider's id."""
    taken: set[int] = set()
    for position, result in enumerate(results):
        owner, _, number = result.result.key.rpartition(":")
        if owner and owner == message.id and number.isdecimal():
            position = int(number)
        if position >= len(message.tool_calls) or position in taken:
            raise InvalidRequest("messages: there are more tool results than calls before them")
        taken.add(position)
        yield position, result
