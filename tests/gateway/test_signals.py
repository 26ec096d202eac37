"""Signal handlers get their turn while a body is read in the main thread, also one that came right before the wait.

`_thread.interrupt_main` is such a signal: the handler becomes due and nothing wakes the thread that waits.
"""

from __future__ import annotations

import _thread
import io
import signal
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gotato_gateway._looking import looking_responses
from gotato_py import Cancelled, Scope

from .answers import HI, ask, local
from .dialects import BEGINNINGS
from .recordings import ADAPTERS
from .server import HELLO, Reply, Server, chunk, sse

SOON, LONG = 4.0, 30.0
"""Seconds: more than a machine stalls and less than the time that a silence may last here (5 s, the body of a refusal),
and that time."""
STARTED = sse(chunk("Hel"), done=False)


@contextmanager
def unnoticed(number: signal.Signals, server: Server) -> Generator[Callable[[], float]]:
    """A signal that becomes due without waking anybody, once the request is there and the caller has had time to wait.

    What this gives tells how many seconds ago that was.
    """
    over, due_at = threading.Event(), list[float]()

    def work() -> None:
        reached = server.arrived.wait(10)
        if not over.wait(0.1):
            due_at.append(time.monotonic())
            _thread.interrupt_main(number)
        assert reached

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: time.monotonic() - due_at[0]
    finally:
        over.set()
        thread.join()


@contextmanager
def cancelling(scope: Scope) -> Generator[None]:
    """SIGUSR1 cancels the scope."""
    before = signal.signal(signal.SIGUSR1, lambda number, frame: scope.cancel("signal"))
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def ended_by_signal(server: Server, dialect: str = "openai-chat") -> float:
    """How many seconds after a signal a call ends that it cancels."""
    scope = Scope()
    with cancelling(scope), unnoticed(signal.SIGUSR1, server) as since:
        with pytest.raises(Cancelled, match="signal"):
            for _ in local(server.url, ADAPTERS[dialect], idle_timeout=LONG).stream(HI, scope):
                pass
        return since()


REPLIES = {
    "no headers": Reply(status=0, then="stall"),
    "headers, no body": Reply(then="stall"),
    "chunks": Reply(STARTED, then="stall"),
    "one chunk, in the midst of a line": Reply([STARTED[0][:20]], then="stall"),
    "no chunks": Reply(STARTED, framing="close", then="stall"),
    "gzip": Reply(STARTED, gzip=True, then="stall"),
    "over, without an end": Reply(sse(chunk("Hello"), chunk(finish="stop"), done=False), then="stall"),
    "a refusal": Reply(status=500, then="stall"),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_handler_that_cancels_right_before_a_read(reply: Reply) -> None:
    """The read looks again within moments, whatever it waits for."""
    with Server(reply) as server:
        assert ended_by_signal(server) < SOON


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_in_every_dialect(dialect: str) -> None:
    """Reading is the same for all of them."""
    with Server(Reply(BEGINNINGS[dialect]("Hel"), then="stall")) as server:
        assert ended_by_signal(server, dialect) < SOON


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_behind_tls_too(tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch, framing: Any) -> None:
    """There it is the TLS layer that has nothing to give yet."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with Server(Reply(STARTED, framing=framing, then="stall"), tls=tls) as server:
        assert ended_by_signal(server) < SOON


def test_ctrl_c_right_before_a_read() -> None:
    """Python's own handler of SIGINT is one of them."""
    with Server(Reply(STARTED, then="stall")) as server:
        # Only inside of `raises` may the signal come: anywhere else it would end pytest.
        with pytest.raises(KeyboardInterrupt), unnoticed(signal.SIGINT, server) as since:
            ask(local(server.url, idle_timeout=LONG))
        assert since() < SOON


def test_a_silence_still_ends_with_idle_timeout() -> None:
    """Looking again is no new beginning of the silence; behind it, the connection is the same as ever."""
    with Server(Reply(STARTED, then="stall")) as server:
        started = time.monotonic()
        error = ask(local(server.url, idle_timeout=0.3)).error
        assert 0.29 < time.monotonic() - started < 0.3 + SOON
    assert "did not answer in time" in str(error)


def test_a_body_in_many_small_pieces_arrives_whole(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that come one by one, with pauses longer and shorter than a look, in plain text and under TLS."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    body = b"".join(HELLO)
    for context in (None, tls):
        pieces = [body[:1], *(body[at : at + 1] for at in range(1, 40)), body[40:]]
        with Server(Reply(pieces, gap=0.002), tls=context) as server:
            model = local(server.url)
            assert [ask(model).text for _ in range(2)] == ["Hello"] * 2
            assert server.connections == 1  # it can be used again
    with Server(Reply([body[:60], body[60:]], gap=0.12)) as server:
        assert ask(local(server.url)).text == "Hello"


def test_a_large_body_arrives_whole() -> None:
    """More than any buffer holds."""
    said = ["x" * 50_000] * 40
    with Server(Reply(sse(*map(chunk, said), chunk(finish="stop")))) as server:
        assert ask(local(server.url)).text == "".join(said)


def test_tls_inside_tls_is_left_alone() -> None:
    """A connection whose socket is another library's keeps the buffer that it made."""
    made = SimpleNamespace(fp=io.BufferedReader(io.BytesIO(b"x")))
    buffer = made.fp
    assert looking_responses(lambda sock: made)(object()).fp is buffer
