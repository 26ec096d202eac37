"""Chunks of the chat dialect, and what the decoder makes of them without any network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gotato_gateway import Quirks
from gotato_gateway._dialect import Hearing
from gotato_gateway._openai_stream import ChatDecoder
from gotato_py import ModelEvent

from .answers import Answer, gather


def decoded(*chunks: object, quirks: Quirks | None = None) -> Answer:
    """What these chunks and a `[DONE]` mean; strings go in as they are."""
    decoder = ChatDecoder(Hearing(quirks or Quirks(), "openai-chat:m"))

    def events() -> Iterator[ModelEvent]:
        for each in chunks:
            yield from decoder.feed(each if isinstance(each, str) else json.dumps(each))
        yield from decoder.feed("[DONE]")
        yield from decoder.finish()

    return gather(events())


def delta(finish: str | None = None, **members: object) -> dict[str, Any]:
    """A chunk with this delta."""
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def entry(
    arguments: object = None, *, index: object = 0, call_id: object = None, name: object = None
) -> dict[str, Any]:
    """A chunk with one element of `tool_calls`."""
    made = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return delta(tool_calls=[{key: value for key, value in made.items() if value is not None}])
