"""Events of the responses dialect, and what the decoder and the adapter make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gotato_gateway import OpenAIResponses, Quirks
from gotato_gateway._dialect import Hearing
from gotato_gateway._responses_stream import ResponsesDecoder
from gotato_py import ModelEvent

from .answers import Answer, ask, gather, local
from .server import Reply, Server, sse

ORIGIN = "openai-responses:m"
Event = dict[str, Any]


def event(kind: str, index: int = 0, **members: object) -> Event:
    """An event about the item at this place."""
    return {"type": f"response.{kind}", "output_index": index, "item_id": f"item_{index}", **members}


def added(kind: str, index: int = 0, **members: object) -> Event:
    """The announcement of an item."""
    item = {"type": kind, "id": f"item_{index}", **members}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(kind: str, index: int = 0, **members: object) -> Event:
    """An item as a whole."""
    return added(kind, index, **members) | {"type": "response.output_item.done"}


def text(said: str, index: int = 0) -> Event:
    """A piece of text."""
    return event("output_text.delta", index, content_index=0, delta=said)


def end(status: str = "completed", **members: object) -> Event:
    """The last event."""
    return {"type": f"response.{status}", "response": {"id": "resp_1", "model": "m1", "status": status, **members}}


def new_decoder() -> ResponsesDecoder:
    """A decoder at the beginning of an answer."""
    return ResponsesDecoder(Hearing(Quirks(), ORIGIN))


def decoded(*events: object) -> Answer:
    """What these events mean; strings go in as they are."""
    decoder = new_decoder()

    def out() -> Iterator[ModelEvent]:
        for each in events:
            yield from decoder.feed(each if isinstance(each, str) else json.dumps(each))
        yield from decoder.finish()

    return gather(out())


def served(*events: object) -> Answer:
    """The answer of an adapter to a server that sends these events."""
    with Server(Reply(sse(*events, done=False))) as server:
        return ask(local(server.url, OpenAIResponses))
