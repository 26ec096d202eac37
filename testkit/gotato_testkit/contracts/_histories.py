"""Histories for suites. Their ids are new each time: a transcript may hold the examples before."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    JSONPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Transcript,
    Usage,
    UserMessage,
    message_to_dict,
)


def every_kind() -> list[Message]:
    """A short history with every kind of message, part and member in it."""
    extra, metadata = {"x-new": [1, {"a": None}]}, {"source": "test", "depth": 0.5}
    parts = (
        TextPart("größer \U0001d11e \u2028", extra=extra),
        ImagePart(b"\x89PNG", media_type="image/png", detail="low"),
        ImagePart(url="https://example.org/a.png"),
        AudioPart(b"RIFF", "audio/wav"),
        FilePart(b"%PDF", media_type="application/pdf", filename="a.pdf"),
        JSONPart({"a": [True, 1, 1.5, None, "text"]}),
    )
    asked = UserMessage(parts, id="u", metadata=metadata, extra=extra)
    said = (ReasoningPart("Hm.", "signed", "dialect:family"), TextPart("I look."))
    calls = (
        ToolCall("c1", "find", '{"city": "Oslo"}', "signed", "dialect:family", extra=extra),
        ToolCall("", "find", ""),
    )
    answer = AssistantMessage(
        said,
        calls,
        usage=Usage(9, 8, 7, 6, 5, extra=extra),
        stop_reason="tool_calls",
        model="family-1",
        id="a",
        metadata=metadata,
        extra=extra,
    )
    late = ToolResult("", "failed", "it broke", "ValueError: no", "a:1", metadata, extra=extra)
    results = (
        ToolMessage(late, id="r1", metadata=metadata),
        ToolMessage(ToolResult("c1", "ok", parts, key="a:0"), id="r0"),
    )
    return [asked, answer, *results, AssistantMessage("Here.", id="b", stop_reason="end_turn", metadata=metadata)]


def renewed(history: Sequence[Message]) -> list[Message]:
    """The same history with other ids, and with the keys of its results after them."""
    prefix = uuid4().hex[:8]
    return [_renewed(message, f"{prefix}-{message.id}", prefix) for message in history]


def _renewed(message: Message, ident: str, prefix: str) -> Message:
    if isinstance(message, UserMessage):
        return UserMessage(message.parts, id=ident, metadata=message.metadata, extra=message.extra)
    if isinstance(message, ToolMessage):
        result = message.result
        key = f"{prefix}-{result.key}" if result.key else ""
        told = ToolResult(
            result.call_id, result.status, result.parts, result.error, key, result.metadata, extra=result.extra
        )
        return ToolMessage(told, id=ident, metadata=message.metadata, extra=message.extra)
    return AssistantMessage(
        message.parts,
        message.tool_calls,
        usage=message.usage,
        stop_reason=message.stop_reason,
        model=message.model,
        id=ident,
        metadata=message.metadata,
        extra=message.extra,
    )


def exact(found: Sequence[Message], expected: Sequence[Message]) -> str:
    """How the first messages that differ do so, ids and metadata included; "" where none does. No content is quoted."""
    if len(found) != len(expected):
        return f"{len(found)} messages"
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        mine, theirs = message_to_dict(one), message_to_dict(other)
        fields = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
        if fields:
            return f"message {index} ({other.role}) differs in {', '.join(fields)}"
    return ""


def batch(transcript: Transcript, count: int) -> list[str]:
    """Commits an answer with `count` calls; returns their keys."""
    transcript.append(UserMessage("Please."))
    answer = transcript.append(AssistantMessage("", [ToolCall(f"c{index}", "find") for index in range(count)]))
    return [f"{answer.id}:{index}" for index in range(count)]


def settle(transcript: Transcript, keys: Sequence[str]) -> None:
    """Commits a result for each key."""
    for key in keys:
        transcript.append(ToolMessage(ToolResult(f"c{key.rpartition(':')[2]}", "ok", "done", key=key)))


def results_by_key(transcript: Transcript) -> dict[str, ToolResult]:
    """The results that are there, by the keys of their calls."""
    return {each.result.key: each.result for each in transcript.messages if isinstance(each, ToolMessage)}


def in_request_order(history: Sequence[Message]) -> list[Message]:
    """The same messages with the results of each batch in the order of its calls, as a request shows them."""
    ordered: list[Message] = []
    results: list[ToolMessage] = []
    for message in history:
        if isinstance(message, ToolMessage):
            results.append(message)
        else:
            results.sort(key=_index)
            ordered += [*results, message]
            results = []
    results.sort(key=_index)
    return ordered + results


def _index(message: ToolMessage) -> int:
    return int(message.result.key.rpartition(":")[2] or 0)  # without keys they are in order already
