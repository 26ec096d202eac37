"""The neutral requests in the wire cases, as ours."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from gotato_py import (
    AssistantMessage,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)


def neutral(messages: list[dict[str, Any]], origin: str = "") -> tuple[Message, ...]:
    """A case's messages as ours; its reasoning comes from `origin`."""
    return tuple(_message(each, origin) for each in messages)


def image_part(given: Mapping[str, Any]) -> ImagePart:
    """The image of a case."""
    if given["data"].startswith("data:"):
        return ImagePart(url=given["data"])
    return ImagePart(base64.b64decode(given["data"]), media_type=given["media_type"] or "")


def _message(said: Mapping[str, Any], origin: str) -> Message:
    calls = tuple(
        ToolCall(each["id"], each["name"], json.dumps(each["arguments"], separators=(",", ":")))
        for each in said["content"]
        if each["type"] == "tool_call"
    )
    parts = [_part(each, origin) for each in said["content"] if each["type"] != "tool_call"]
    if said["role"] == "user":
        return UserMessage(parts)
    if said["role"] == "assistant":
        return AssistantMessage(parts, calls)
    return ToolMessage(ToolResult(said["tool_call_id"], "ok", parts))


def _part(said: Mapping[str, Any], origin: str) -> Part:
    if said["type"] == "text":
        return TextPart(said["text"])
    if said["type"] == "reasoning":
        signature = said.get("signature") or ""
        sealed = signature if isinstance(signature, str) else json.dumps(signature)
        return ReasoningPart(said["text"], sealed, origin, said.get("redacted", False))
    return image_part(said)
