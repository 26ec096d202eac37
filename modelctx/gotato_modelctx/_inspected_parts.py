"""The parts of a request, each with its size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    JSONPart,
    Message,
    ModelContext,
    Part,
    ToolMessage,
    ToolSpec,
)

from ._context_notes import placed_in
from .sections import render_sections
from .tokens import TokenCounter, estimate_tokens, message_tokens


@dataclass(frozen=True, slots=True)
class InspectedPart:
    """One part of a request: `kind` is "system", "tool", "message", "panel" or "section" (then `within` says of what).

    `name` is a tool's name, a section's tag, or a message's role; `detail` says more in words, `id` is a message's.
    `bytes` is the UTF-8 size of its content, `tokens` an estimate; `cached` says that it is in the cacheable prefix.
    """

    kind: str
    name: str
    bytes: int
    tokens: int
    cached: bool
    detail: str = ""
    id: str = ""
    within: str = ""

    def to_dict(self) -> dict[str, Any]:  # Any: JSON data
        """Plain JSON data; empty texts are left out."""
        told: dict[str, Any] = {"kind": self.kind, "name": self.name, "bytes": self.bytes, "tokens": self.tokens}
        more = {"detail": self.detail, "id": self.id, "within": self.within}
        return {**told, "cached": self.cached, **{name: text for name, text in more.items() if text}}


def parts_of(
    context: ModelContext, tools: Sequence[ToolSpec], counter: TokenCounter | None
) -> tuple[InspectedPart, ...]:
    """The parts, in the order of the request; `tools` are sorted."""
    found: list[InspectedPart] = []
    if context.system:
        found.append(_of_text("system", "system", context.system, counter, cached=True))
        found.extend(_sections(context, "system", counter))
    for spec in tools:
        schema = json.dumps(spec.input_schema, ensure_ascii=False, separators=(",", ":"))
        size = _size(spec.name) + _size(spec.description) + _size(schema)
        found.append(InspectedPart("tool", spec.name, size, estimate_tokens(spec, counter=counter), cached=True))
    called: dict[str, str] = {}
    last = len(context.messages) - 1
    for index, message in enumerate(context.messages):
        if isinstance(message, AssistantMessage):
            called = {f"{message.id}:{at}": call.name for at, call in enumerate(message.tool_calls)}
        tokens = message_tokens(message, counter)
        found.append(
            InspectedPart(
                "message",
                message.role,
                _message_size(message),
                tokens,
                index < last,
                _detail(message, called),
                message.id,
            )
        )
    if context.panel:
        found.append(_of_text("panel", "panel", context.panel, counter, cached=False))
        found.extend(_sections(context, "panel", counter))
    return tuple(found)


def _sections(context: ModelContext, place: str, counter: TokenCounter | None) -> Iterator[InspectedPart]:
    for placed in placed_in(context):
        if placed.place == place:
            attrs = " ".join([f"{name}={text}" for name, text in placed.section.attrs.items()])
            text, cached = render_sections(placed.section), place == "system"
            yield _of_text("section", placed.section.tag, text, counter, cached=cached, detail=attrs, within=place)


def _of_text(
    kind: str, name: str, text: str, counter: TokenCounter | None, *, cached: bool, detail: str = "", within: str = ""
) -> InspectedPart:
    tokens = estimate_tokens(text, counter=counter)
    return InspectedPart(kind, name, _size(text), tokens, cached, detail, within=within)


def _detail(message: Message, called: dict[str, str]) -> str:
    if isinstance(message, ToolMessage):
        name = called.get(message.result.key, "")
        return f"{name} {message.result.status.value}".strip()
    if isinstance(message, AssistantMessage) and message.tool_calls:
        return "calls " + ", ".join([call.name or "(no name)" for call in message.tool_calls])
    return ""


def _message_size(message: Message) -> int:
    size = sum(map(_part_size, message.parts))
    if isinstance(message, ToolMessage) and not message.parts:
        return _size(message.text)
    if isinstance(message, AssistantMessage):
        size += sum(_size(call.name) + _size(call.arguments) for call in message.tool_calls)
    return size


def _part_size(part: Part) -> int:
    match part:
        case ImagePart() | AudioPart() | FilePart():
            return len(part.data or b"")
        case JSONPart(value):
            return _size(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case _:
            return _size(part.text)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
