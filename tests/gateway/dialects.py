"""What every dialect has of its own: the header of its key, and its smallest streams, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import anthropic_stream, responses_events
from .server import Received, chunk, sse

CARRIERS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("x-api-key", ""),
    "gemini": ("x-goog-api-key", ""),
    "openai-chat": ("authorization", "Bearer "),
    "openai-responses": ("authorization", "Bearer "),
}
"""The header that carries a key, and what stands before the key there."""


def credentials(received: Received) -> dict[str, str]:
    """The headers of a request that a credential may be in."""
    names = {name for name, _ in CARRIERS.values()}
    return {name: value for name, value in received.headers.items() if name in names}


def with_key(dialect: str, key: str) -> dict[str, str]:
    """Those headers of a request with this key."""
    name, prefix = CARRIERS[dialect]
    return {name: f"{prefix}{key}"}


def gemini(text: str, finish: str | None = None) -> dict[str, Any]:
    """A chunk of Gemini's."""
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **({"finishReason": finish} if finish else {})}]}


STREAMS: Mapping[str, Callable[[str], list[bytes]]] = {
    "anthropic": lambda said: anthropic_stream.events(
        anthropic_stream.START, *anthropic_stream.text(said), anthropic_stream.end(), anthropic_stream.STOP
    ),
    "gemini": lambda said: sse(gemini(said), gemini("", "STOP"), done=False),
    "openai-chat": lambda said: sse(chunk(said), chunk(finish="stop")),
    "openai-responses": lambda said: sse(responses_events.text(said), responses_events.end(), done=False),
}
"""A whole answer with this text."""

BEGINNINGS: Mapping[str, Callable[[str], list[bytes]]] = {
    "anthropic": lambda said: anthropic_stream.events(anthropic_stream.START, *anthropic_stream.text(said)[:2]),
    "gemini": lambda said: sse(gemini(said), done=False),
    "openai-chat": lambda said: sse(chunk(said), done=False),
    "openai-responses": lambda said: sse(responses_events.text(said), done=False),
}
"""The beginning of an answer that never goes on."""
