"""What a model streams as plain JSON data and back: one object an event, fields at their default left out.

{"kind": "text_delta", "text": "Hel"}
{"kind": "tool_call_ready", "call": {"id": "c1", "name": "weather", "arguments": "{\\"city\\":\\"Oslo\\"}"}}
{"kind": "done", "stop_reason": "tool_calls", "usage": {"input_tokens": 12, "output_tokens": 5}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gotato_py import (
    AssistantMessage,
    Done,
    InvalidArgument,
    ModelEvent,
    RateLimits,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    Usage,
    UsageUpdate,
    message_from_dict,
    message_to_dict,
)

JSONObject = dict[str, Any]
"""A JSON object; Any: JSON data."""

_FIELDS: Mapping[type, tuple[str, tuple[str, ...]]] = {
    TextDelta: ("text_delta", ("text",)),
    ReasoningDelta: ("reasoning_delta", ("text",)),
    ReasoningDone: ("reasoning_done", ("signature", "origin", "redacted")),
    ToolCallDelta: ("tool_call_delta", ("index", "name", "fragment")),
    ToolCallReady: ("tool_call_ready", ("call",)),
    UsageUpdate: ("usage_update", ("usage",)),
    RateLimits: (
        "rate_limits",
        (
            "limit_requests",
            "remaining_requests",
            "reset_requests_s",
            "limit_tokens",
            "remaining_tokens",
            "reset_tokens_s",
        ),
    ),
    Done: ("done", ("stop_reason", "usage", "response_id", "model")),
}
_KINDS: Mapping[str, type] = {kind: made for made, (kind, _) in _FIELDS.items()}
_ALWAYS = {"text", "index", "call", "stop_reason"}


def model_event_to_dict(event: ModelEvent) -> JSONObject:
    """The event as plain JSON data. A lone surrogate in a delta stays one, since the pair may be split over two deltas.

    Raises `InvalidArgument` for what is no ModelEvent.
    """
    known = _FIELDS.get(type(event))
    if known is None:
        raise InvalidArgument(f"model_event_to_dict: event must be a ModelEvent, not {type(event).__name__}")
    kind, names = known
    written: JSONObject = {"kind": kind}
    for name in names:
        value = getattr(event, name)
        if name in _ALWAYS or (value is not None and value != "" and value is not False):
            written[name] = _plain(value)
    return written


def _plain(value: Any) -> Any:  # Any: the value of a field
    """Calls and usages by way of a message that holds them: its format is the permanent one."""
    if isinstance(value, ToolCall):
        return message_to_dict(AssistantMessage("", [value]))["tool_calls"][0]
    if isinstance(value, Usage):
        return message_to_dict(AssistantMessage("", usage=value)).get("usage", {})
    return str(value) if isinstance(value, str) else value


def model_event_from_dict(data: Mapping[str, object]) -> ModelEvent:
    """The event that `model_event_to_dict` wrote.

    Raises `InvalidArgument`, naming the key, for an unknown kind, a missing key and a value of the wrong type. Keys
    that this release does not know are ignored.
    """
    if not isinstance(data, Mapping):
        raise InvalidArgument(f"model event: must be a JSON object, not {type(data).__name__}")
    made = _KINDS.get(str(data.get("kind")))
    if made is None:
        raise InvalidArgument(f"model event: kind is missing or unknown; it has to be one of {', '.join(_KINDS)}")
    kind, names = _FIELDS[made]
    given: dict[str, object] = {}
    for name in names:
        if name in data:
            given[name] = _READERS.get(name, _as_it_is)(data[name])
        elif name in _ALWAYS:
            raise InvalidArgument(f"model event {kind}: {name} is missing")
    event: ModelEvent = made(**given)
    return event


def _as_it_is(value: object) -> object:
    return value


def _call(value: object) -> ToolCall:
    return _in_a_message({"tool_calls": [value]}).tool_calls[0]


def _usage(value: object) -> Usage:
    return _in_a_message({"usage": value}).usage


def _in_a_message(members: JSONObject) -> AssistantMessage:
    message = message_from_dict({"role": "assistant", **members})
    assert isinstance(message, AssistantMessage)
    return message


_READERS: Mapping[str, Callable[[object], object]] = {"call": _call, "usage": _usage}
