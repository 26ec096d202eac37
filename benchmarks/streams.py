"""The rows on reading streams: recorded ones, as fast as they go, and long ones, twice as long at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.long_streams import ARGUMENTS, DELTAS, text_of, tiny_lines
from benchmarks.measure import Effort, Goal, Measured, Row, paired, spread

from gotato_gateway import Adapter, AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses, Quirks

# The reader and the decoders are inner parts: through an adapter, connections would be measured as well.
from gotato_gateway._dialect import Hearing  # pyright: ignore[reportPrivateUsage]  # measured without HTTP
from gotato_gateway._sse import SSEReader  # pyright: ignore[reportPrivateUsage]  # measured without HTTP

ADAPTERS: dict[str, type[Adapter]] = {
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
}
RECORDED = Path(__file__).resolve().parents[1] / "tests" / "gateway" / "data"
PIECE, SMALL_PIECE = 65536, 1024

Pieces = Sequence[bytes]


class Passes(NamedTuple):
    """Bodies in pieces, to be read so many times."""

    bodies: Sequence[Pieces]
    times: int

    @property
    def megabytes(self) -> float:
        """All that is read."""
        return sum(len(piece) for body in self.bodies for piece in body) * self.times / 1e6


def in_pieces(body: bytes, size: int) -> Pieces:
    """The body as a socket may give it."""
    return [body[start : start + size] for start in range(0, len(body), size)]


def recorded(dialect: str) -> list[Pieces]:
    """The recorded streams of a dialect that an SDK could read to the end."""
    bodies: list[Pieces] = []
    for path in sorted(RECORDED.glob("*.json")):
        facts: dict[str, Any] = json.loads(path.read_text("utf-8"))  # Any: what a provider's JSON holds
        if facts["expect"] is not None and _dialect(facts["request"] or {}) == dialect:
            bodies.append(in_pieces(path.with_suffix(".sse").read_bytes(), PIECE))
    return bodies


def _dialect(request: dict[str, Any]) -> str:
    if "contents" in request or "input" in request:
        return "gemini" if "contents" in request else "responses"
    return "anthropic" if isinstance(request.get("max_tokens"), int) else "chat"


def read(dialect: str, pieces: Pieces) -> int:
    """All events of an answer, as an adapter makes them; returns how many."""
    reader = SSEReader()
    decoder = ADAPTERS[dialect]._dialect.decoder(Hearing(Quirks(), f"{dialect}:m"))  # pyright: ignore[reportPrivateUsage]  # measured without HTTP
    events = 0
    for piece in pieces:
        for found in reader.feed(piece):
            events += len(decoder.feed(found.data, found.event))
    for found in reader.finish():
        events += len(decoder.feed(found.data, found.event))
    return events + len(decoder.finish())


def parse(pieces: Pieces) -> int:
    """The floor: the lines split and the JSON of the data parsed; nobody reads a stream with less."""
    parsed, rest = 0, b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                json.loads(line[6:])
                parsed += 1
    return parsed


def _speed(passes: Passes, work: Callable[[Pieces], int]) -> float:
    began = time.thread_time()
    for _ in range(passes.times):
        for body in passes.bodies:
            if not work(body):
                raise AssertionError("nothing was read")
    return passes.megabytes / (time.thread_time() - began)


def reading(dialect: str) -> Callable[[Effort], Measured]:
    """Megabytes a second of a dialect's recorded streams."""

    def measure(effort: Effort) -> Measured:
        passes = Passes(recorded(dialect), effort.times(40, 2))
        return paired(
            lambda: _speed(passes, parse), lambda: _speed(passes, lambda body: read(dialect, body)), effort.times(25)
        )

    return measure


def doubled(dialect: str, make: Callable[[int], bytes], count: int, size: int) -> Callable[[Effort], Measured]:
    """The time for a body of `count` parts as a multiple of that for half of them, in pieces of this size."""

    def measure(effort: Effort) -> Measured:
        whole = max(count // (100 if effort.quick else 1), 2)
        half, full = in_pieces(make(whole // 2), size), in_pieces(make(whole), size)

        def seconds(body: Pieces) -> float:
            began = time.thread_time()
            if not read(dialect, body):
                raise AssertionError("nothing was read")
            return time.thread_time() - began

        seconds(full)
        return Measured(spread([seconds(full) / seconds(half) for _ in range(effort.times(7))]))

    return measure


_FAST, _STEADY = Goal(20, 40, least=True), Goal(3, 2.3)

ROWS = (
    *(Row(f"read_{name}", f"recorded streams of {name}", "MB/s", _FAST, reading(name)) for name in ADAPTERS),
    Row(
        "line_1k", "a data line of 10 MB in pieces of 1 KB", "x", _STEADY, doubled("chat", text_of, 10**7, SMALL_PIECE)
    ),
    Row("line_64k", "the same in pieces of 64 KB", "x", _STEADY, doubled("chat", text_of, 10**7, PIECE)),
    Row("lines", "a million tiny lines", "x", _STEADY, doubled("chat", tiny_lines, 10**6, PIECE)),
    *(
        Row(f"deltas_{name}", f"100,000 tiny deltas of {name}", "x", _STEADY, doubled(name, make, 100_000, PIECE))
        for name, make in DELTAS.items()
    ),
    *(
        Row(
            f"arguments_{name}",
            f"a call of {name}, 10 MB of arguments",
            "x",
            _STEADY,
            doubled(name, make, 10**5, PIECE),
        )
        for name, make in ARGUMENTS.items()
    ),
)
