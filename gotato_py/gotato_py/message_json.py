"""Messages as plain JSON data and back: the most permanent format here. Fields at their default are left out.

What is written is strict JSON: no NaN, no lone surrogate, bytes as base64 text. A message comes back as it was, `id`,
`metadata` and `extra` included; keys that this release does not know are kept in `extra`, at every level, and written
back. Texts never hold a lone surrogate, because the values replace it when they are made. `metadata` and `extra` take
any object, so they are checked here: a tuple is written as a list, a lone surrogate as U+FFFD, and what JSON has no
form for is an `InvalidArgument` that names its path.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any

from ._fields import wrong
from ._message_reader import (
    USAGE_KEYS,
    call_from_dict,
    message_from_dict,
    part_from_dict,
    result_from_dict,
    usage_from_dict,
)
from ._plain import plain_json
from ._text import well_formed
from .messages import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from .parts import AudioPart, FilePart, ImagePart, JSONPart, Part, ReasoningPart, StopReason, TextPart, ToolCall, Usage

__all__ = [
    "JSONObject",
    "call_from_dict",
    "call_to_dict",
    "message_from_dict",
    "message_to_dict",
    "part_from_dict",
    "part_to_dict",
    "result_from_dict",
    "result_to_dict",
    "usage_from_dict",
    "usage_to_dict",
]

JSONObject = dict[str, Any]
"""A JSON object: what `json.dumps(…, allow_nan=False)` writes."""


def message_to_dict(message: Message) -> JSONObject:
    """The message as plain JSON data.

    Raises `InvalidArgument`, naming the path, where `metadata` or `extra` holds what JSON cannot.
    """
    if isinstance(message, ToolMessage):
        written: JSONObject = {"role": "tool"}
        if message.id:
            written["id"] = message.id
        written["result"] = result_to_dict(message.result)
    elif isinstance(message, UserMessage):
        written = {"role": "user"}
        if message.id:
            written["id"] = message.id
        written["parts"] = _parts(message.parts)
    elif isinstance(message, AssistantMessage):
        written = _assistant(message)
    else:
        raise wrong("message", "a UserMessage, an AssistantMessage or a ToolMessage", message)
    if message.metadata:
        written["metadata"] = plain_json("metadata", message.metadata)
    return _with_extra("", written, message.extra) if message.extra else written


def _assistant(message: AssistantMessage) -> JSONObject:
    written: JSONObject = {"role": "assistant"}
    if message.id:
        written["id"] = message.id
    if message.parts:
        written["parts"] = _parts(message.parts)
    if message.tool_calls:
        written["tool_calls"] = [call_to_dict(call, f"tool_calls[{at}]") for at, call in enumerate(message.tool_calls)]
    usage = usage_to_dict(message.usage)
    if usage:
        written["usage"] = usage
    if message.stop_reason is not StopReason.NONE:
        written["stop_reason"] = message.stop_reason.value
    if message.model:
        written["model"] = message.model
    return written


def _parts(parts: tuple[Part, ...], path: str = "parts") -> list[JSONObject]:
    return [part_to_dict(part, f"{path}[{index}]") for index, part in enumerate(parts)]


def part_to_dict(part: Part, path: str = "part") -> JSONObject:
    """A part as plain JSON data; `path` is what an error calls it."""
    if isinstance(part, TextPart):
        written: JSONObject = {"kind": "text", "text": part.text}
    elif isinstance(part, JSONPart):
        written = {"kind": "json", "value": plain_json(f"{path}.value", part.value)}
    elif isinstance(part, ReasoningPart):
        written = {"kind": "reasoning"}
        _add(written, part, ("text", "signature", "origin"))
        if part.redacted:
            written["redacted"] = True
    elif isinstance(part, ImagePart):
        written = _source("image", part)
        if part.detail != "auto":
            written["detail"] = part.detail
    elif isinstance(part, FilePart):
        written = _source("file", part)
        if part.filename:
            written["filename"] = part.filename
    elif isinstance(part, AudioPart):
        written = {"kind": "audio", "data": _base64(part.data)}
        _add(written, part, ("media_type",))
    else:
        raise wrong(path, "a part", part)
    return _with_extra(path + ".", written, part.extra) if part.extra else written


def _add(written: JSONObject, value: object, names: tuple[str, ...]) -> None:
    """Writes those of the named fields that are not empty or 0."""
    for name in names:
        kept = getattr(value, name)
        if kept:
            written[name] = kept


def _source(kind: str, part: ImagePart | FilePart) -> JSONObject:
    written: JSONObject = {"kind": kind}
    if part.data is not None:
        written["data"] = _base64(part.data)
    else:
        written["url"] = part.url
    if part.media_type:
        written["media_type"] = part.media_type
    return written


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def call_to_dict(call: ToolCall, path: str = "call") -> JSONObject:
    """A tool call as plain JSON data; `path` is what an error calls it."""
    written: JSONObject = {"id": call.id, "name": call.name}
    if call.arguments != "{}":
        written["arguments"] = call.arguments
    if call.signature:
        written["signature"] = call.signature
    if call.origin:
        written["origin"] = call.origin
    return _with_extra(path + ".", written, call.extra) if call.extra else written


def result_to_dict(result: ToolResult, path: str = "result") -> JSONObject:
    """A tool result as plain JSON data; `path` is what an error calls it."""
    written: JSONObject = {"call_id": result.call_id, "status": result.status.value}
    if result.parts:
        written["parts"] = _parts(result.parts, f"{path}.parts")
    if result.error:
        written["error"] = result.error
    if result.key:
        written["key"] = result.key
    if result.metadata:
        written["metadata"] = plain_json(f"{path}.metadata", result.metadata)
    return _with_extra(path + ".", written, result.extra) if result.extra else written


def usage_to_dict(usage: Usage) -> JSONObject:
    """Token usage as plain JSON data; `{}` where nothing was counted."""
    written: JSONObject = {}
    _add(written, usage, USAGE_KEYS)
    return _with_extra("usage.", written, usage.extra) if usage.extra else written


def _with_extra(prefix: str, written: JSONObject, extra: Mapping[str, object]) -> JSONObject:
    for key, kept in extra.items():
        written[well_formed(key)] = plain_json(prefix + key, kept)
    return written
