"""The user's own words in a request, for keeping them out of error messages."""

from __future__ import annotations

from collections.abc import Iterator

from gotato_py import AssistantMessage, ModelRequest, ReasoningPart, TextPart, ToolMessage


def texts_of(request: ModelRequest) -> Iterator[str]:
    """Everything in a request that is the user's own words or data."""
    yield request.system
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, TextPart | ReasoningPart):
                yield part.text
        if isinstance(message, AssistantMessage):
            yield from (call.arguments for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            yield message.text
