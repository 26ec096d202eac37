"""How many tokens a request will take, before anybody has counted them: four bytes of text are about one."""

from __future__ import annotations

from collections.abc import Iterator

from gotato_py import AssistantMessage, JSONPart, ModelRequest, Part, ReasoningPart, TextPart, ToolMessage

_BYTES_A_TOKEN = 4
_MEDIA_TOKENS = 1000
"""For a picture, a sound or a file: their bytes say little about what they cost."""


def estimated_tokens(request: ModelRequest) -> int:
    """Tokens of the request's own; the answer's are not among them."""
    return sum(_sizes(request)) // _BYTES_A_TOKEN + 1


def _sizes(request: ModelRequest) -> Iterator[int]:
    """Bytes of text, piece by piece. Nothing is serialised: the adapter does that, and once is enough."""
    yield _bytes(request.system)
    for spec in request.tools:
        yield _bytes(spec.name) + _bytes(spec.description) + len(str(spec.input_schema))
    for message in request.messages:
        yield from map(_part, message.parts)
        if isinstance(message, ToolMessage):
            yield _bytes(message.result.error)
        elif isinstance(message, AssistantMessage):
            yield from (_bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)


def _part(part: Part) -> int:
    match part:
        case TextPart(text) | ReasoningPart(text):
            return _bytes(text)
        case JSONPart(value):
            return len(str(value))
        case _:
            return _MEDIA_TOKENS * _BYTES_A_TOKEN


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
