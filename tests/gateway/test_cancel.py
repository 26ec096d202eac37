"""When the scope ends, a call ends, in every state that it can be in; nothing is left but what the contract names."""

from __future__ import annotations

import os
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

SOON = 4.0
"""Seconds: more than a machine stalls, less than any wait here lasts if it does not end with its scope (5 s, the body
of a refusal). How soon it really is, benchmarks/cancels_http.py measures."""
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
        self.release.wait(60)
        return super().send(*args, **kwargs)


@contextmanager
def lookup(dialect: str) -> State:
    """A call whose host is being looked up."""
    session, adapter = requests.Session(), SlowLookup()
    session.mount("http://", adapter)
    with Server(Reply(HELLO)) as server:
        try:
            yield local(server.url, ADAPTERS[dialect], session=session), lambda: adapter.entered.wait(10)
        finally:
            adapter.release.set()


@contextmanager
def connect(dialect: str) -> State:
    """A call that connects to a port whose queue is full, so that nothing answers."""
    with unanswered_port() as port:
        # The helper thread stays in the connect: until the port is closed, and the system tries it again.
        yield local(f"http://127.0.0.1:{port}/v1", ADAPTERS[dialect], connect_timeout=60.0), lambda: True


@contextmanager
def tls_handshake(dialect: str) -> State:
    """A call whose server accepts and never answers the handshake."""
    with silent_listener() as (port, accepted):
        yield local(f"https://127.0.0.1:{port}/v1", ADAPTERS[dialect]), lambda: accepted.wait(10)


@contextmanager
def proxy_connect(dialect: str) -> State:
    """A call whose proxy accepts and never answers CONNECT."""
    with silent_listener() as (port, accepted):
        session = requests.Session()
        session.proxies = {"https": f"http://127.0.0.1:{port}"}
        yield local("https://api.example.test/v1", ADAPTERS[dialect], session=session), lambda: accepted.wait(10)


def served(reply: Callable[[list[bytes]], Reply]) -> Callable[[str], Any]:
    """A call that a server answers like this, with the beginning of a stream of the dialect."""

    @contextmanager
    def state(dialect: str) -> State:
        with Server(reply(BEGINNINGS[dialect]("Hel"))) as server:
            yield local(server.url, ADAPTERS[dialect]), lambda: server.arrived.wait(10)
            # A deadline may pass before the server is reached; then there is nothing to close.
            assert not server.connections or server.left.wait(10), "the connection was not closed"

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


@contextmanager
def once(under_way: Callable[[], bool], do: Callable[[], object]) -> Generator[Callable[[], float]]:
    """Does it in another thread once the call is under way; what this gives tells how many seconds ago that was."""
    over, done_at = threading.Event(), list[float]()

    def work() -> None:
        reached = under_way()
        # A moment later, so that the call mostly waits by then; it has to end all the same if it does not yet.
        if not over.wait(0.05):
            done_at.append(time.monotonic())
            do()
        assert reached

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: time.monotonic() - done_at[0]
    finally:
        over.set()
        thread.join()


@each_state
@pytest.mark.parametrize("dialect", ADAPTERS)
def test_cancel_from_another_thread(state: Callable[[str], Any], dialect: str) -> None:
    """`cancel` ends the call within moments, and its connection is closed."""
    scope = Scope()
    with state(dialect) as (model, under_way), once(under_way, lambda: scope.cancel("enough")) as since:
        error = ended_with(model, scope)
        took = since()
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
    scope = Scope()

    def signal_it() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda number, frame: scope.cancel("signal"))
    try:
        with state("openai-chat") as (model, under_way), once(under_way, signal_it) as since:
            error = ended_with(model, scope)
            took = since()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert str(error) == "signal"
    assert took < SOON


@each_state
def test_ctrl_c(state: Callable[[str], Any]) -> None:
    """Ctrl-C goes through at once, and leaves no thread and no socket."""
    main = threading.main_thread().ident or 0

    def interrupt() -> None:
        signal.pthread_kill(main, signal.SIGINT)

    with state("openai-chat") as (model, under_way):
        # Only inside of `raises` may the signal come: anywhere else it would end pytest.
        with pytest.raises(KeyboardInterrupt), once(under_way, interrupt) as since:
            for _ in model.stream(HI, Scope()):
                pass
        assert since() < SOON


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
    with Server(Reply(STARTED, framing=framing, then="stall"), tls=tls) as server:
        scope = Scope()
        with once(lambda: server.arrived.wait(10), lambda: scope.cancel("enough")) as since:
            assert str(ended_with(local(server.url), scope)) == "enough"
            assert since() < SOON


def test_a_parent_scope_ends_the_call() -> None:
    """The end of the run's scope ends the call of its child."""
    with Server(Reply(STARTED, then="stall")) as server:
        run = Scope()
        with once(lambda: server.arrived.wait(10), lambda: run.cancel("run over")):
            assert str(ended_with(local(server.url), run.child(60))) == "run over"


def test_a_connection_of_the_users_session_is_cut_too() -> None:
    """A connection that the user's session opened before, for something else, ends with the scope in its body."""
    replies = [Reply(HELLO), Reply(STARTED, then="stall")]
    with Server(lambda received: replies[len(server.received) - 1]) as server, requests.Session() as session:
        session.post(f"{server.url}/other", data=b"x").close()
        server.arrived.clear()
        scope = Scope()
        with once(lambda: server.arrived.wait(10), lambda: scope.cancel("enough")) as since:
            assert str(ended_with(local(server.url, session=session), scope)) == "enough"
            assert since() < SOON
        assert [received.connection for received in server.received] == [0, 0]


def test_pings_keep_an_idle_call_alive() -> None:
    """Case 62: any byte resets `idle_timeout`, so a model that thinks for long is not given up."""
    pings = [b": ping\n\n"] * 11
    with Server(Reply([*pings, *HELLO], gap=0.2)) as server:  # 2.6 s in all
        events = list(local(server.url, idle_timeout=2.0).stream(HI, Scope()))
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
