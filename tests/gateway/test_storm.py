"""Fifty threads on one adapter, each answer another: to each its own, and nothing is left behind."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pytest

from gotato_gateway import Adapter
from gotato_py import (
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    GotatoError,
    ModelRequest,
    Overloaded,
    RateLimited,
    Scope,
    TextDelta,
    UserMessage,
)

from .answers import local
from .dialects import BEGINNINGS, STREAMS
from .recordings import ADAPTERS
from .server import Received, Reply, Server, forever, silent_listener, unanswered_port

THREADS, EACH = 50, 3
REFUSALS: Mapping[str, tuple[int, type[GotatoError]]] = {"overloaded": (503, Overloaded), "limited": (429, RateLimited)}
BREAKS = ("reset", "cut")
SILENCES = ("mute", "headers", "silent", "pinging")
WHOLE = ("plain", "slow", "packed")
AWAY = ("no connection", "no handshake")
KINDS = (*WHOLE, *REFUSALS, *BREAKS, *SILENCES, *AWAY)


def reply_to(dialect: str, said: str) -> Reply:
    """The answer to "<kind>: <number>", whose text is those words."""
    kind, whole, beginning = said.partition(":")[0], STREAMS[dialect](said), BEGINNINGS[dialect](said)
    if kind in REFUSALS:
        return Reply([b"{}"], REFUSALS[kind][0], framing="length")
    replies = {
        "plain": Reply(whole),
        "slow": Reply(whole, gap=0.02),
        "packed": Reply(whole, gzip=True),
        "reset": Reply(beginning, then="reset"),
        "cut": Reply(beginning, then="cut"),
        "mute": Reply(status=0, then="stall"),
        "headers": Reply(then="stall"),
        "silent": Reply(beginning, then="stall"),
        "pinging": Reply(chain(beginning, forever(b": ping\n\n")), gap=0.02),
    }
    return replies[kind]


def expected(kind: str, number: int) -> type[GotatoError] | None:
    """How an attempt ends: what the server does, or else, by turns, its patience, a deadline or a cancel."""
    if kind in WHOLE:
        return None
    if kind in REFUSALS:
        return REFUSALS[kind][1]
    if kind in BREAKS:
        return ConnectionFailed
    ways = (Cancelled, DeadlineExceeded) if kind == "pinging" else (Cancelled, DeadlineExceeded, ConnectionFailed)
    return ways[number % len(ways)]


def attempt(model: Adapter, said: str, wanted: type[GotatoError] | None) -> None:
    """One attempt, which has to end as wanted."""
    scope = Scope(timeout=0.3 if wanted is DeadlineExceeded else None)
    timer = threading.Timer(0.3, scope.cancel) if wanted is Cancelled else None
    if timer is not None:
        timer.start()
    heard: list[str] = []
    error: GotatoError | None = None
    try:
        events = model.stream(ModelRequest(messages=(UserMessage(said),)), scope)
        heard.extend(event.text for event in events if isinstance(event, TextDelta))
    except GotatoError as raised:
        error = raised
    if timer is not None:
        timer.join()
    assert (type(error) if error else None) is wanted, (said, error)
    assert "".join(heard) == said if error is None else "".join(heard) in ("", said)


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_fifty_threads_on_one_adapter(dialect: str) -> None:
    """Whole answers, refusals, resets, silences, cancels and deadlines at once: each thread gets its own outcome.

    Where patience is to end, and only there, a second adapter is asked that has little of it; the other one has so much
    that no slow machine uses it up.
    """
    patient: dict[str, Any] = {"idle_timeout": 60.0, "connect_timeout": 60.0}
    impatient: dict[str, Any] = {"idle_timeout": 1.0, "connect_timeout": 1.0}

    def behave(received: Received) -> Reply:
        found = re.search(rb"[a-z]+: \d+", received.body)
        assert found is not None
        return reply_to(dialect, found[0].decode())

    with Server(behave) as server, unanswered_port() as port, silent_listener() as (silent, _):
        urls = {"no connection": f"http://127.0.0.1:{port}/v1", "no handshake": f"https://127.0.0.1:{silent}/v1"}
        urls |= {kind: server.url for kind in KINDS if kind not in AWAY}
        models = [
            {url: local(url, ADAPTERS[dialect], **options) for url in urls.values()} for options in (patient, impatient)
        ]

        def work(thread: int) -> None:
            for number in range(thread, THREADS * EACH, THREADS):
                kind = KINDS[number % len(KINDS)]
                wanted = expected(kind, number // len(KINDS))
                gives_up = wanted is ConnectionFailed and kind not in BREAKS
                attempt(models[gives_up][urls[kind]], f"{kind}: {number}", wanted)

        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(work, thread) for thread in range(THREADS)]:
                done.result()
    # That no socket and no thread is left, the fixtures see. A connect that was left goes on until its port is closed
    # and the system tries it again.
