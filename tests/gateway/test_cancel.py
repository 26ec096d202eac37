"""When the scope ends, a call ends, in every state that it can be in; nothing is left but what the contract names."""

from __future__ import annotations

import signal
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from gotato_gateway import Adapter
from gotato_py import Cancelled, DeadlineExceeded, GotatoError, Scope

from .answers import HI, local
from .dialects import BEGINNINGS
from .recordings import ADAPTERS
from .server import HELLO, Reply, Server, chunk, forever, silent_listener, sse, unanswered_port

SOON = 1.0
"""Seconds: far less than any timeout here. How soon it really is, benchmarks/cancels_http.py measures."""
STARTED = sse(chunk("Hel"), done=False)
State = Generator[tuple[Adapter, Callable[[], bool]]]
"""An adapter whose next call comes into this state, and what waits until it has."""


class SlowLookup(HTTPAdapter):
    """Stands for a name lookup that takes its time: it holds every request up until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.release = threading.Event(), threading.Event()

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        self.entered.set()
        self.release.wait(10)
        return super().send(*args, **kwargs)


@contextmanager
def lookup(dialect: str) -> State:
    """A call whose host is being looked up."""
    session, adapter = requests.Session(), SlowLookup()
    session.mount("http://", adapter)
    with Server(Reply(HELLO)) as server:
        try:
            yield local(server.url, ADAPTERS[dialect], session=session), lambda: adapter.entered.wait(5)
        finally:
            adapter.release.set()


@contextmanager
def connect(dialect: str) -> State:
    """A call that connects to a port whose queue is full, so that nothing answers."""
    with unanswered_port() as port:
        # Inside a connect the helper thread stays until its timeout, so that is short here.
        yield local(f"http://127.0.0.1:{port}/v1", ADAPTERS[dialect], connect_timeout=1.0), lambda: True


@contextmanager
def tls_handshake(dialect: str) -> State:
    """A call whose server accepts and never answers the handshake."""
    with silent_listener() as (port, accepted):
        yield local(f"https://127.0.0.1:{port}/v1", ADAPTERS[dialect]), lambda: accepted.wait(5)


@contextmanager
def proxy_connect(dialect: str) -> State:
    """A call whose proxy accepts and never answers CONNECT."""
    with silent_listener() as (port, accepted):
        session = requests.Session()
        session.proxies = {"https": f"http://127.0.0.1:{port}"}
        yield local("https://api.example.test/v1", ADAPTERS[dialect], session=session), lambda: accepted.wait(5)


def served(reply: Callable[[list[bytes]], Reply]) -> Callable[[str], Any]:
    """A call that a server answers like this, with the beginning of a stream of the dialect."""

    @contextmanager
    def state(dialect: str) -> State:
        with Server(reply(BEGINNINGS[dialect]("Hel"))) as server:
            yield local(server.url, ADAPTERS[dialect]), lambda: server.arrived.wait(5)
            assert server.left.wait(2), "the connection was not closed"

    return state


STATES: dict[str, Callable[[str], Any]] = {
    "lookup": lookup,
    "connect": connect,
    "TLS handshake": tls_handshake,
    "CONNECT to a proxy": proxy_connect,
    "no headers": served(lambda began: Reply(status=0, then="stall")),
    "headers without end": served(
        lambda began: Reply(chain([b"HTTP/1.1 200 OK\r\n"], forever(b"X: y\r\n")), 0, framing="close", gap=0.01)
    ),
    "continue for ever": served(
        lambda began: Reply(forever(b"HTTP/1.1 100 Continue\r\n\r\n"), 0, framing="close", gap=0.01)
    ),
    "headers, no body": served(lambda began: Reply(then="stall")),
    "stalled body": served(lambda began: Reply(began, then="stall")),
    "stalled body without chunks": served(lambda began: Reply(began, framing="close", then="stall")),
    "pings only": served(lambda began: Reply(forever(b": ping\n\n"), gap=0.01)),
    "pings behind the beginning": served(lambda began: Reply(chain(began, forever(b": ping\n\n")), gap=0.01)),
    "text without end": served(lambda began: Reply(chain(began, forever(began[-1])), gap=0.01)),
    "refusal without end": served(lambda began: Reply(status=500, then="stall")),
}
each_state = pytest.mark.parametrize("state", STATES.values(), ids=STATES)


def ended_with(model: Adapter, scope: Scope) -> GotatoError:
    """What a call raises when its scope ends."""
    with pytest.raises((Cancelled, DeadlineExceeded)) as caught:
        for _ in model.stream(HI, scope):
            pass
    return caught.value


@each_state
@pytest.mark.parametrize("dialect", ADAPTERS)
def test_cancel_from_another_thread(state: Callable[[str], Any], dialect: str) -> None:
    """`cancel` ends the call within moments, and its connection is closed."""
    scope, cancelled_at = Scope(), list[float]()

    def cancel() -> None:
        under_way()
        time.sleep(0.05)
        cancelled_at.append(time.monotonic())
        scope.cancel("enough")

    with state(dialect) as (model, under_way):
        thread = threading.Thread(target=cancel)
        thread.start()
        error = ended_with(model, scope)
        took = time.monotonic() - cancelled_at[0]
        thread.join()
    assert isinstance(error, Cancelled)
    assert str(error) == "enough"
    assert took < SOON


@each_state
def test_the_deadline_passes(state: Callable[[str], Any]) -> None:
    """When its time has passed, the call ends within moments, and not with a connection error."""
    with state("openai-chat") as (model, _):
        started = time.monotonic()
        error = ended_with(model, Scope(timeout=0.3))
        assert 0.29 < time.monotonic() - started < 0.3 + SOON
    assert isinstance(error, DeadlineExceeded)


@each_state
def test_cancel_from_a_signal_handler(state: Callable[[str], Any]) -> None:
    """A signal handler of the very thread that waits may cancel."""
    scope, cancelled_at = Scope(), list[float]()

    def handle(number: int, frame: object) -> None:
        cancelled_at.append(time.monotonic())
        scope.cancel("signal")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with state("openai-chat") as (model, _):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            error = ended_with(model, scope)
            assert time.monotonic() - cancelled_at[0] < SOON
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert str(error) == "signal"


@each_state
def test_ctrl_c(state: Callable[[str], Any]) -> None:
    """Ctrl-C goes through at once, and leaves no thread and no socket."""
    with state("openai-chat") as (model, _):
        main = threading.main_thread().ident or 0
        threading.Timer(0.2, signal.pthread_kill, [main, signal.SIGINT]).start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            for _ in model.stream(HI, Scope()):
                pass
        assert time.monotonic() - started < 0.2 + SOON


@pytest.mark.parametrize("scope", [Scope(timeout=0), Scope(timeout=5).child(0)])
def test_an_ended_scope_sends_nothing(scope: Scope) -> None:
    """With a scope that has ended before, no connection is made."""
    with Server(Reply(HELLO)) as server:
        assert isinstance(ended_with(local(server.url), scope), DeadlineExceeded)
        cancelled = Scope()
        cancelled.cancel()
        assert isinstance(ended_with(local(server.url), cancelled), Cancelled)
        assert server.connections == 0


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_tls_body_is_cancelled_too(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch, framing: Any
) -> None:
    """Behind TLS, a stalled body ends with the scope as well."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with Server(Reply(STARTED, framing=framing, then="stall"), tls) as server:
        scope = Scope()
        threading.Timer(0.2, scope.cancel, ["enough"]).start()
        started = time.monotonic()
        assert str(ended_with(local(server.url), scope)) == "enough"
        assert time.monotonic() - started < 0.2 + SOON


def test_a_parent_scope_ends_the_call() -> None:
    """The end of the run's scope ends the call of its child."""
    with Server(Reply(STARTED, then="stall")) as server:
        run = Scope()
        threading.Timer(0.1, run.cancel, ["run over"]).start()
        assert str(ended_with(local(server.url), run.child(60))) == "run over"


def test_a_connection_of_the_users_session_is_cut_too() -> None:
    """A connection that the user's session opened before, for something else, ends with the scope in its body."""
    replies = [Reply(HELLO), Reply(STARTED, then="stall")]
    with Server(lambda received: replies[len(server.received) - 1]) as server, requests.Session() as session:
        session.post(f"{server.url}/other", data=b"x").close()
        scope = Scope()
        threading.Timer(0.2, scope.cancel, ["enough"]).start()
        started = time.monotonic()
        assert str(ended_with(local(server.url, session=session), scope)) == "enough"
        assert time.monotonic() - started < 0.2 + SOON
        assert [received.connection for received in server.received] == [0, 0]


def test_pings_keep_an_idle_call_alive() -> None:
    """Case 62: any byte resets `idle_timeout`, so a model that thinks for long is not given up."""
    pings = [b": ping\n\n"] * 20
    with Server(Reply([*pings, *HELLO], gap=0.05)) as server:
        events = list(local(server.url, idle_timeout=0.3).stream(HI, Scope()))
    assert events


def test_a_cancelled_scope_leaves_its_callbacks() -> None:
    """A finished call takes its callbacks back: a long-lived scope does not collect them."""
    scope = Scope()
    with Server(Reply(HELLO)) as server:
        for _ in range(3):
            list(local(server.url).stream(HI, scope))
    seen: list[int] = []
    scope.on_end(lambda: seen.append(1))
    scope.cancel()
    assert seen == [1]
