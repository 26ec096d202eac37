"""A stream that breaks at any of its bytes is the whole answer, if that was there already, or an error worth a retry.

One small recorded stream of each dialect. Most breaks need no socket: the bytes come from memory, through `requests`
and `urllib3` as always. Over a socket there are fewer of them; the profiles ci and nightly try more, or all.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import ssl
import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from gotato_gateway import Adapter
from gotato_gateway._sse import SSEReader
from gotato_py import (
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    Done,
    GotatoError,
    ModelEvent,
    ModelRequest,
    Scope,
    UserMessage,
)

from ..effort import by_profile
from .answers import Answer, ask, gather, local
from .recordings import ADAPTERS, COPIED, Recording
from .server import EVENT_STREAM, Received, Reply, Server

NAMES = ("017-request-stream", "010-google-stream-usage", "043-snowflake", "008-reused-tool-call-ids")
RECORDINGS = [next(each for each in COPIED if each.name.startswith(name)) for name in NAMES]
GARBAGE = (
    b"\x00\xff\xfe\r\n\x1b[0m\n\n",
    b"502 Bad Gateway\n\n",
    b'"}]}}\n\ndata: {"x":\n\n',
    bytes(range(128, 256)) * 9,
)

each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.dialect)
pytestmark = pytest.mark.timeout(by_profile(dev=120, ci=600, nightly=3600))


def places(length: int, *, dev: int, ci: int) -> list[int]:
    """Where to break a stream of this length: everywhere by night, at fewer places before; both ends are among them."""
    most = by_profile(dev=dev, ci=ci, nightly=length)
    return sorted({0, length, *range(0, length, -(-length // most))})


class InMemory(HTTPAdapter):
    """Answers every request with the body that was given last, at the end of which the fault happens."""

    body: bytes = b""
    headers: Mapping[str, str] = EVENT_STREAM
    fault: Exception | None = None

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """The answer."""
        read = Reader(self.body, self.fault)
        return self.build_response(request, urllib3.HTTPResponse(read, self.headers, 200, preload_content=False))


class Reader(io.BytesIO):
    """The bytes, some at a time, and then the fault instead of the end."""

    def __init__(self, body: bytes, fault: Exception | None) -> None:
        super().__init__(body)
        self._fault = fault

    def read1(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        piece = super().read1(600)
        if not piece and self._fault is not None:
            raise self._fault
        return piece


@cache
def in_memory(dialect: str) -> tuple[InMemory, Adapter]:
    """What answers, and an adapter of the dialect that asks it."""
    session, memory = requests.Session(), InMemory()
    session.mount("http://", memory)
    return memory, local("http://127.0.0.1:9/v1", ADAPTERS[dialect], session=session)


def heard(
    recording: Recording, body: bytes, headers: Mapping[str, str] | None = None, fault: Exception | None = None
) -> Answer:
    """What the recording's adapter makes of this body, and of what happens at its end."""
    memory, model = in_memory(recording.dialect)
    memory.body, memory.headers, memory.fault = body, {**EVENT_STREAM, **(headers or {})}, fault
    return ask(model)


@cache
def whole(dialect: str) -> Answer:
    """The whole answer of the dialect's recording."""
    recording = next(each for each in RECORDINGS if each.dialect == dialect)
    return heard(recording, recording.body)


@cache
def over_at(dialect: str) -> int:
    """After how many bytes of the dialect's recording its answer is over."""
    recording = next(each for each in RECORDINGS if each.dialect == dialect)
    reader, decoder = SSEReader(), recording.decoder()
    for place in range(len(recording.body)):
        for event in reader.feed(recording.body[place : place + 1]):
            decoder.feed(event.data, event.event)
        if decoder.complete:
            return place + 1
    raise AssertionError("the recording never ends")


def judge(recording: Recording, answer: Answer, arrived: int, *, sure: bool = False) -> None:
    """A broken stream of which `arrived` bytes came is whole if it was over, else an error to retry.

    What stands behind the data of the last event may be missing. With `sure`, one that was over is whole.
    """
    full, over = whole(recording.dialect), over_at(recording.dialect)
    if answer.error is None:
        assert arrived > recording.body.rindex(b"}", 0, over)
        assert (answer.text, answer.reasoning, told(answer)) == (full.text, full.reasoning, told(full))
        assert answer.done.stop_reason == full.done.stop_reason
        assert answer.done.usage in (full.done.usage, None)
    else:
        assert not sure or arrived < over
        assert answer.error.retryable, answer.error
        assert not any(isinstance(event, Done) for event in answer.events)
        assert full.text.startswith(answer.text)
        assert full.reasoning.startswith(answer.reasoning)
        assert told(answer) == told(full)[: len(answer.calls)]


def told(answer: Answer) -> list[tuple[str, str]]:
    """The calls, without their ids, some of which are made up."""
    return [(call.name, call.arguments) for call in answer.calls]


FAULTS: Mapping[str, Callable[[], Exception | None]] = {
    "closed": lambda: None,
    "reset": lambda: ConnectionResetError(104, "Connection reset by peer"),
    "silent": lambda: TimeoutError("timed out"),
    "cut under TLS": lambda: ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
}


def decoded(recording: Recording, body: bytes) -> Answer:
    """What its reader and decoder alone make of this body."""
    reader, decoder = SSEReader(), recording.decoder()

    def events() -> Iterator[ModelEvent]:
        for event in [*reader.feed(body), *reader.finish()]:
            yield from decoder.feed(event.data, event.event)
        yield from decoder.finish()

    return gather(events())


@each_recording
def test_a_body_that_ends_at_every_byte(recording: Recording) -> None:
    """At each single byte where the body may end, reader and decoder give the whole answer or an error to retry."""
    for place in places(len(recording.body), dev=200, ci=100_000):
        judge(recording, decoded(recording, recording.body[:place]), place)


@each_recording
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_connection_lost_at_any_byte(recording: Recording, fault: Callable[[], Exception | None]) -> None:
    """Closed, reset, silent or cut off under TLS: what was over is whole, all else is a connection that failed."""
    for place in places(len(recording.body), dev=15, ci=120):
        failure = fault()
        answer = heard(recording, recording.body[:place], fault=failure)
        judge(recording, answer, place, sure=failure is not None)
        assert answer.error is None or failure is None or type(answer.error) is ConnectionFailed


@each_recording
def test_a_body_shorter_than_it_said(recording: Recording) -> None:
    """A body of fewer bytes than its Content-Length is a connection that failed, wherever it ends."""
    size = {"Content-Length": str(len(recording.body) + 1)}
    for place in places(len(recording.body), dev=15, ci=120):
        answer = heard(recording, recording.body[:place], size)
        judge(recording, answer, place, sure=True)
        assert answer.error is None or type(answer.error) is ConnectionFailed


@each_recording
@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_from_any_byte_on(recording: Recording, garbage: bytes) -> None:
    """What a proxy writes into a stream instead of its rest is never taken for a part of the answer."""
    for place in places(len(recording.body), dev=15, ci=120):
        judge(recording, heard(recording, recording.body[:place] + garbage), place)


@each_recording
def test_a_changed_byte_anywhere(recording: Recording) -> None:
    """A stream with a byte that is wrong, missing or too many is an answer with one end, or a typed error."""
    body, chance = recording.body, random.Random(len(recording.body))
    for place in places(len(body) - 1, dev=15, ci=120):
        stray = bytes([chance.randrange(256)])
        for rest in (stray + body[place + 1 :], body[place + 1 :], stray + body[place:]):
            answer = heard(recording, body[:place] + rest)
            assert answer.error is not None or answer.done.stop_reason


@each_recording
@pytest.mark.parametrize("fault", ["closed", "reset"])
@pytest.mark.parametrize("garbage", [b"", GARBAGE[-1]], ids=["cut", "garbage"])
def test_a_compressed_stream_broken_at_any_byte(recording: Recording, fault: str, garbage: bytes) -> None:
    """A gzip stream that ends early or goes on as garbage is judged by what could be decompressed."""
    packed = gzip.compress(recording.body, 6, mtime=0)
    for place in places(len(packed), dev=15, ci=120):
        arrived = len(zlib.decompressobj(31).decompress(packed[:place]))
        answer = heard(recording, packed[:place] + garbage, {"Content-Encoding": "gzip"}, FAULTS[fault]())
        judge(recording, answer, arrived)


# Over a socket


def broken(recording: Recording, place: int, how: str, then: Any) -> Reply:
    """The recording up to this byte, framed like this, and what follows."""
    body = recording.body[:place]
    if how == "length":
        headers = {**EVENT_STREAM, "Content-Length": str(len(recording.body) + 1)}
        return Reply([body], headers=headers, framing="close", then=then)
    if how == "chunked":
        return Reply([body[at : at + 300] for at in range(0, place, 300)], then=then)
    return Reply([body], gzip=how == "gzip", framing="close", then=then)


@each_recording
@pytest.mark.parametrize("how", ["close", "chunked", "length", "gzip"])
def test_a_socket_cut_or_reset_at_many_bytes(recording: Recording, how: str) -> None:
    """Over a socket, in every framing, a close and a reset in the middle are judged the same way."""
    current = [Reply()]
    with Server(lambda received: current[0]) as server:
        model = local(server.url, ADAPTERS[recording.dialect])
        for place in places(len(recording.body), dev=5, ci=60):
            for then in ("cut", "reset"):
                current[0] = broken(recording, place, how, then)
                judge(recording, ask(model), place, sure=then == "cut" and how in ("chunked", "length"))


@contextmanager
def stalling(recording: Recording, **options: Any) -> Generator[tuple[Adapter, list[int], Callable[..., Any]]]:
    """An adapter of a server whose stream falls silent at the byte that the request names, and a `map` for it.

    The places, and what gives the outcome of an attempt at each of them, many at a time.
    """

    def behave(received: Received) -> Reply:
        found = re.search(rb"place (\d+)", received.body)
        assert found is not None
        place = int(found[1])
        return broken(recording, place, ("close", "chunked", "gzip")[place % 3], "stall")

    chosen = places(len(recording.body), dev=8, ci=60)
    with Server(behave) as server, ThreadPoolExecutor(16) as pool:
        yield local(server.url, ADAPTERS[recording.dialect], **options), chosen, pool.map


def at(place: int) -> ModelRequest:
    """The request for a stream that falls silent at this byte."""
    return ModelRequest(messages=(UserMessage(f"place {place}"),))


@each_recording
def test_a_stall_at_many_bytes_ends_with_idle_timeout(recording: Recording) -> None:
    """A stream that falls silent is given up after `idle_timeout`: whole if it was over, else a connection lost."""
    with stalling(recording, idle_timeout=0.15) as (model, chosen, spread):
        for place, answer in zip(chosen, spread(lambda place: ask(model, at(place)), chosen), strict=True):
            judge(recording, answer, place)
            assert answer.error is None or "did not answer in time" in str(answer.error)


@each_recording
def test_a_stall_at_many_bytes_ends_with_the_scope(recording: Recording) -> None:
    """A stream that falls silent ends when its scope is cancelled or out of time, unless its last event was there."""

    def attempt(place: int) -> Answer | GotatoError:
        scope = Scope(timeout=None if place % 2 else 0.15)
        timer = threading.Timer(0.15, scope.cancel)
        timer.start()
        try:
            return ask(model, at(place), scope)
        except (Cancelled, DeadlineExceeded) as error:
            return error
        finally:
            timer.join()

    with stalling(recording) as (model, chosen, spread):
        for place, outcome in zip(chosen, spread(attempt, chosen), strict=True):
            if isinstance(outcome, Answer):
                assert outcome.error is None
                judge(recording, outcome, place)
