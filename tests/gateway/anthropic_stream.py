"""Events of Anthropic's Messages API, and what the decoder makes of them without any network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gotato_gateway import Quirks
from gotato_gateway._anthropic_stream import MessagesDecoder
from gotato_gateway._dialect import Hearing
from gotato_py import ModelEvent

from .answers import Answer, gather

ORIGIN = "anthropic:claude"
USED = {"input_tokens": 9, "output_tokens": 1}
START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude", "usage": USED},
}
STOP = {"type": "message_stop"}


def begin(index: object, kind: str, **members: object) -> dict[str, Any]:
    """The start of a block."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def more(index: object, kind: str, **members: object) -> dict[str, Any]:
    """A delta of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def over(index: object) -> dict[str, Any]:
    """The stop of a block."""
    return {"type": "content_block_stop", "index": index}


def end(word: str | None = "end_turn", **usage: object) -> dict[str, Any]:
    """The last event but one."""
    return {"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 5, **usage}}


def text(said: str, index: int = 0) -> list[dict[str, Any]]:
    """A whole block of text."""
    return [begin(index, "text", text=""), more(index, "text_delta", text=said), over(index)]


def call(*pieces: str, index: int = 0, call_id: str = "toolu_1", name: str = "f") -> list[dict[str, Any]]:
    """A whole call, whose arguments come in pieces."""
    deltas = [more(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [begin(index, "tool_use", id=call_id, name=name, input={}), *deltas, over(index)]


def events(*said: object) -> list[bytes]:
    """The events as a server sends them, each with its name."""
    named = [(each.get("type", "") if isinstance(each, dict) else "", each) for each in said]
    return [f"event: {name}\ndata: {json.dumps(each)}\n\n".encode() for name, each in named]


HELLO = events(START, *text("Hello"), end(), STOP)


def decoded(*said: object) -> Answer:
    """What these events mean; strings go in as they are."""
    decoder = MessagesDecoder(Hearing(Quirks(), ORIGIN))

    def found() -> Iterator[ModelEvent]:
        for each in said:
            yield from decoder.feed(each if isinstance(each, str) else json.dumps(each))
        yield from decoder.finish()

    return gather(found())
