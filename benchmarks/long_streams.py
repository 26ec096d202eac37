"""Streams longer than any provider sends, each as long as one asks for, in the form of their dialects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

_FRAGMENT = ', {"key": "' + "x" * 84 + '"}'
"""A hundred characters of arguments that end like a whole object."""


def _said(*data: object) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in data)


def _chat(delta: object, finish: str | None = None) -> object:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _chat_call(arguments: str) -> object:
    # The name stands in every fragment, as some servers have it.
    return _chat({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": arguments}}]})


def _gemini(part: object) -> object:
    return {"candidates": [{"content": {"parts": [part]}}]}


def _block(kind: str, **members: object) -> object:
    return {"type": f"content_block_{kind}", "index": 0, **members}


def _item(kind: str, **members: object) -> object:
    return {"type": f"response.{kind}", "item_id": "i", "output_index": 0, **members}


_CHAT_END = _said(_chat({}, "stop")) + b"data: [DONE]\n\n"
_GEMINI_END = _said({"candidates": [{"finishReason": "STOP"}]})
_ANTHROPIC_END = _said({"type": "message_stop"})
_RESPONSES_END = _said({"type": "response.completed", "response": {"status": "completed"}})


def text_of(length: int) -> bytes:
    """One event with a text of this length."""
    return _said(_chat({"content": "x" * length})) + _CHAT_END


def tiny_lines(count: int) -> bytes:
    """So many lines of a character or none: comments, unknown fields, blank ones."""
    return b":\nx\n\n{\n}\n" * (count // 5) + _said(_chat({"content": "x"})) + _CHAT_END


def _anthropic_call(count: int) -> bytes:
    begun = _block("start", content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}})
    fragment = _block("delta", delta={"type": "input_json_delta", "partial_json": _FRAGMENT})
    return _said(begun) + _said(fragment) * count + _ANTHROPIC_END


def _responses_call(count: int) -> bytes:
    begun = _item("output_item.added", item={"type": "function_call", "id": "i", "call_id": "c", "name": "f"})
    fragment = _item("function_call_arguments.delta", delta=_FRAGMENT)
    return _said(begun) + _said(fragment) * count + _RESPONSES_END


def _chat_arguments(count: int) -> bytes:
    return _said(_chat_call('{"list": [0')) + _said(_chat_call(_FRAGMENT)) * count + _said(_chat_call("]}")) + _CHAT_END


def _gemini_call(count: int) -> bytes:
    """The one dialect that sends a call in one piece."""
    return _said(_gemini({"functionCall": {"name": "f", "args": {"list": ["x" * 98] * count}}})) + _GEMINI_END


DELTAS: Mapping[str, Callable[[int], bytes]] = {
    "anthropic": lambda count: (
        _said(_block("delta", delta={"type": "text_delta", "text": "ab"})) * count + _ANTHROPIC_END
    ),
    "gemini": lambda count: _said(_gemini({"text": "ab"})) * count + _GEMINI_END,
    "chat": lambda count: _said(_chat({"content": "ab"})) * count + _CHAT_END,
    "responses": lambda count: _said(_item("output_text.delta", content_index=0, delta="ab")) * count + _RESPONSES_END,
}
"""So many deltas of two characters, by dialect."""

ARGUMENTS: Mapping[str, Callable[[int], bytes]] = {
    "anthropic": _anthropic_call,
    "gemini": _gemini_call,
    "chat": _chat_arguments,
    "responses": _responses_call,
}
"""A call whose arguments come in so many fragments of a hundred characters, by dialect."""
