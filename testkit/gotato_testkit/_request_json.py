"""A request as plain JSON data: what a provider would be sent, so the same in every run of the same script.

What differs from run to run is left out: ids of messages, keys of results, metadata, what an answer has cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from gotato_py import (
    AssistantMessage,
    InvalidArgument,
    Message,
    ModelRequest,
    ToolMessage,
    ToolResult,
    UserMessage,
    message_to_dict,
)

JSONObject = dict[str, Any]  # Any: JSON data

_OPTIONS = (
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "reasoning_effort",
    "reasoning_budget",
    "reasoning_summary",
    "tool_choice",
    "parallel_tool_calls",
    "response_schema",
)
_STRUCTURE = {"parts", "tool_calls", "result"}
"""Members that are looked into for what differs; within others the names may be a user's own words."""

_FIRST = ("role", "kind", "status", "name", "text")
"""Members that are told of before others that differ too."""


def request_to_dict(request: ModelRequest) -> JSONObject:
    """The request as it would be sent. Raises `InvalidArgument` where it holds what JSON cannot."""
    options = {name: getattr(request.options, name) for name in _OPTIONS}
    tools = [
        {"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}
        for spec in request.tools
    ]
    made: JSONObject = {
        "system": request.system,
        "tools": tools,
        "messages": [message_to_dict(_as_sent(message)) for message in request.messages],
        "options": {name: value for name, value in options.items() if value not in (None, ())},
    }
    try:
        return cast("JSONObject", json.loads(json.dumps(made, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the request holds what JSON cannot say: {type(error).__name__}") from None


def _as_sent(message: Message) -> Message:
    if isinstance(message, UserMessage):
        return UserMessage(message.parts, extra=message.extra)
    if isinstance(message, AssistantMessage):
        return AssistantMessage(message.parts, message.tool_calls, extra=message.extra)
    told = message.result
    return ToolMessage(ToolResult(told.call_id, told.status, told.parts, told.error, extra=told.extra))


def fingerprint(request: JSONObject) -> str:
    """The same for equal requests, in every process and release."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    hashes: Any = import_module("hashlib")  # loads OpenSSL, which a program that records nothing never needs
    return str(hashes.sha256(text.encode("ascii")).hexdigest()[:32])


def first_difference(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Where two requests first differ, in the order in which a model reads them; no content is quoted.

    "messages[2] (tool), field result.parts[0].text"; "" where they are equal.
    """
    if recorded["system"] != asked["system"]:
        return "system"
    for kind, name in (("tools", "name"), ("messages", "role")):
        before, now = recorded[kind], asked[kind]
        for index, (one, other) in enumerate(zip(before, now, strict=False)):
            if one[name] != other[name]:
                return f"{kind}[{index}]: {other[name]} here, {one[name]} in the recording"
            if one != other:
                return f"{kind}[{index}] ({other[name]}), field {_path(one, other)}"
        if len(before) != len(now):
            return (
                f"{kind}: {len(now)} here, {len(before)} in the recording, the first {min(len(before), len(now))} equal"
            )
    return (
        ""
        if recorded["options"] == asked["options"]
        else f"options, field {_path(recorded['options'], asked['options'])}"
    )


def _path(one: Any, other: Any) -> str:
    """The way to the first member that differs, of two values that do."""
    if one.__class__ is dict and other.__class__ is dict:
        differing = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        name: str = min(differing, key=lambda each: (_FIRST.index(each) if each in _FIRST else len(_FIRST), each))
        deeper = _path(one.get(name), other.get(name)) if name in _STRUCTURE else ""
        return f"{name}.{deeper}".rstrip(".").replace(".[", "[")
    if one.__class__ is list and other.__class__ is list:
        for index, (first, second) in enumerate(zip(one, other, strict=False)):
            if first != second:
                return f"[{index}].{_path(first, second)}".rstrip(".")
        return f"[{min(len(one), len(other))}]"
    return ""
