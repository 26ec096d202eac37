"""Where an answer ends: in the midst of an event, or in a body that does not end at all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

import pytest

from gotato_gateway import Quirks
from gotato_gateway._answer_events import GRACE_S, answer_events
from gotato_gateway._dialect import Hearing
from gotato_gateway._errors import Origin
from gotato_py import ConnectionFailed, ModelEvent, ModelProtocolError, Overloaded, Scope, StopReason, Usage

from . import anthropic_stream, responses_events
from .answers import HI, Answer, ask, gather, local
from .dialects import BEGINNINGS, STREAMS, gemini
from .recordings import ADAPTERS
from .server import Reply, Server, chunk, forever, sse

each_dialect = pytest.mark.parametrize("dialect", ADAPTERS)

COUNTED = {"prompt_tokens": 3, "completion_tokens": 2}
COUNTS = {"promptTokenCount": 3, "candidatesTokenCount": 2}
OVER: dict[str, list[bytes]] = {
    "anthropic": anthropic_stream.events(
        anthropic_stream.START, *anthropic_stream.text("Hello"), anthropic_stream.end()
    ),
    "gemini": sse(gemini("Hello"), {**gemini("", "STOP"), "usageMetadata": COUNTS}, done=False),
    "openai-chat": sse(chunk("Hello"), chunk(finish="stop"), {"choices": [], "usage": COUNTED}, done=False),
}
"""An answer that is over and counted, and what might follow is not there."""
TORN = [
    b'data: {"id": "x", "choices": [{"ind',
    b'event: more\ndata: {"type":\ndata: "',
    b"data: [DON",
    b"dat",
    b"data:",
]


class Quick:
    """An adapter in one attempt, with another grace than its own, in seconds."""

    def __init__(self, dialect: str, url: str, grace: float) -> None:
        self._model, self._dialect, self._grace = local(url, ADAPTERS[dialect]), dialect, grace

    def ask(self, scope: Scope | None = None) -> Answer:
        """What it answers."""
        return gather(self._stream(scope or Scope()))

    def _stream(self, scope: Scope) -> Iterator[ModelEvent]:
        made = self._model._dialect
        exchange = self._model._exchange(f"{self._model._base_url}/x", made.body("m", HI, Quirks(), ""))
        try:
            exchange.open(scope)
            decoder = made.decoder(Hearing(Quirks(), ""))
            yield from answer_events(exchange, decoder, scope, lambda said: Overloaded(), Origin("x"), self._grace)
        finally:
            exchange.close()


@each_dialect
@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("then", ["end", "reset"])
def test_an_answer_that_was_over_survives_a_torn_line(dialect: str, torn: bytes, then: Any) -> None:
    """After the finish word, a body that ends in the midst of an event has lost nothing, closed or reset."""
    whole = [*(OVER.get(dialect) or STREAMS[dialect]("Hello")), torn]
    with Server(Reply([b"".join(whole)], framing="close", then=then)) as server:
        answer = ask(local(server.url, ADAPTERS[dialect]))
    if then == "end":  # a reset may throw away what was not read yet
        assert answer.error is None
    if answer.error is None:
        assert (answer.text, answer.done.stop_reason) == ("Hello", StopReason.END_TURN)
    else:
        assert type(answer.error) is ConnectionFailed


@each_dialect
@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("framing", ["close", "chunked", "length"])
def test_an_answer_that_was_not_over_is_cut_off(
    dialect: str, torn: bytes, framing: Literal["chunked", "close", "length"]
) -> None:
    """Without a finish word the same torn line is an answer that was cut off, to be tried again."""
    with Server(Reply([*BEGINNINGS[dialect]("Hello"), torn], framing=framing)) as server:
        answer = ask(local(server.url, ADAPTERS[dialect]))
    assert type(answer.error) is ConnectionFailed
    assert answer.error.retryable
    assert "cut off" in str(answer.error)


@each_dialect
def test_a_last_event_without_its_blank_line_counts(dialect: str) -> None:
    """It is whole, so it is heard, also where it is an error."""
    *_, last = STREAMS[dialect]("Hello")
    whole = b"".join(STREAMS[dialect]("Hello")).removesuffix(b"\n\n")
    assert last.endswith(b"\n\n")
    error = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}'
    for body in (whole, b"".join(BEGINNINGS[dialect]("Hello")) + error):
        with Server(Reply([body], framing="close")) as server:
            answer = ask(local(server.url, ADAPTERS[dialect]))
        assert (answer.error is None) == (body is whole)
        assert answer.error is None or type(answer.error) is Overloaded


@each_dialect
def test_broken_json_inside_the_stream_is_no_torn_end(dialect: str) -> None:
    """An event that has its blank line and is no JSON breaks the protocol, at the end as well."""
    with Server(Reply([*BEGINNINGS[dialect]("Hello"), b'data: {"id":\n\n'], framing="close")) as server:
        answer = ask(local(server.url, ADAPTERS[dialect]))
    assert type(answer.error) is ModelProtocolError


@pytest.mark.parametrize("dialect", OVER)
@pytest.mark.parametrize("pings", [False, True], ids=["silence", "pings"])
def test_a_body_that_does_not_end_is_left_after_a_grace(dialect: str, pings: bool) -> None:
    """An answer that is over and counted waits for the end of its body for a moment, not for `idle_timeout`."""
    reply = Reply(chain(OVER[dialect], forever(b": ping\n\n")) if pings else OVER[dialect], gap=0.01, then="stall")
    with Server(reply) as server:
        started = time.monotonic()
        answer = Quick(dialect, server.url, 0.1).ask()
        assert time.monotonic() - started < 10
        assert server.left.wait(10)
    assert (answer.text, answer.done.stop_reason) == ("Hello", StopReason.END_TURN)
    assert answer.done.usage is not None
    assert answer.done.usage.output_tokens > 0


@pytest.mark.parametrize("dialect", ["gemini", "openai-chat"])
def test_a_finish_word_with_every_chunk_ends_nothing(dialect: str) -> None:
    """Where content came behind a finish word, such a word says nothing: the end of the body is waited for."""

    def piece(said: str) -> dict[str, Any]:
        if dialect == "gemini":
            return {**gemini(said, "STOP"), "usageMetadata": COUNTS}
        return chunk(said, "stop", usage=COUNTED)

    pieces = sse(*map(piece, ["a", "b", "c", "d"]), done=False)
    with Server(Reply(pieces, gap=0.05)) as server:
        assert Quick(dialect, server.url, GRACE_S).ask().text == "abcd"
    with Server(Reply([pieces[0] + pieces[1], *pieces[2:]], gap=0.2)) as server:  # the second comes within any grace
        assert Quick(dialect, server.url, 0.1).ask().text == "abcd"


@pytest.mark.parametrize("dialect", ["gemini", "openai-chat"])
def test_an_answer_without_usage_is_waited_for(dialect: str) -> None:
    """The tokens may still come, so without them the body has all of `idle_timeout`; then it is an answer too."""
    pieces = [piece for piece in STREAMS[dialect]("Hello") if piece != b"data: [DONE]\n\n"]
    late = {"usageMetadata": COUNTS} if dialect == "gemini" else {"choices": [], "usage": COUNTED}
    with Server(Reply([*pieces, *sse(late, done=False)], gap=0.1)) as server:
        assert Quick(dialect, server.url, 0.01).ask().done.usage == Usage(3, 2)
    with Server(Reply(pieces, then="stall")) as server:
        # As much patience as all that comes needs on a machine that stalls.
        answer = ask(local(server.url, ADAPTERS[dialect], idle_timeout=2.0))
    assert (answer.text, answer.error) == ("Hello", None)


def test_a_scope_that_ends_in_the_grace_ends_the_call() -> None:
    """The grace is no shelter: a deadline in it is a deadline."""
    with Server(Reply(OVER["gemini"], then="stall")) as server, pytest.raises(TimeoutError):
        Quick("gemini", server.url, GRACE_S).ask(Scope(timeout=0.2))


@pytest.mark.parametrize("dialect", OVER)
def test_what_is_settled(dialect: str) -> None:
    """An answer has all that belongs to it with its finish word and its usage, not before."""
    decoder = ADAPTERS[dialect]._dialect.decoder(Hearing(Quirks(), ""))
    assert (decoder.begun, decoder.settled) == (False, False)
    told: list[bool] = []
    for event in OVER[dialect]:
        name, _, data = event.decode().rpartition("data: ")
        decoder.feed(data, name.removeprefix("event: ").strip())
        told.append(decoder.settled)
    assert told == [False] * (len(told) - 1) + [True]
    assert decoder.begun


def test_the_responses_dialect_has_an_end_of_its_own() -> None:
    """Its last event is the end: nothing is waited for."""
    decoder = ADAPTERS["openai-responses"]._dialect.decoder(Hearing(Quirks(), ""))
    decoder.feed(json.dumps(responses_events.text("Hello")))
    assert (decoder.begun, decoder.settled) == (True, False)
    decoder.feed(json.dumps(responses_events.end()))
    assert (decoder.settled, decoder.ended) == (True, True)
