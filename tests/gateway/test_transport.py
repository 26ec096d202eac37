"""Connections: given back, never leaked, never shared with a child process; bytes delivered as they come."""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from gotato_gateway import OpenAIChat
from gotato_py import ConnectionFailed, InvalidRequest, ModelProtocolError, ModelRequest, Scope, TextDelta, UserMessage

from .answers import HI, ask, local
from .dialects import STREAMS, credentials, with_key
from .recordings import ADAPTERS
from .server import HELLO, Received, Reply, Server, chunk, forever, sse

KEY = "sk-TESTKEY-111"
ROOT = Path(__file__).resolve().parents[2]

each_dialect = pytest.mark.parametrize("dialect", ADAPTERS)


@pytest.mark.parametrize(
    ("framing", "gzip"), [("close", False), ("chunked", True), ("chunked", False), ("close", True)]
)
def test_08_incremental_delivery(framing: Any, gzip: bool) -> None:
    """A body without chunks and a compressed one arrive piece by piece, as they are sent."""
    heard, in_time = threading.Semaphore(0), list[bool]()

    def pieces() -> Iterator[bytes]:
        for said in "123":
            yield sse(chunk(said), done=False)[0]
            in_time.append(heard.acquire(timeout=10))
        yield from sse(chunk(finish="stop"))

    with Server(Reply(pieces(), framing=framing, gzip=gzip)) as server:
        for event in local(server.url).stream(HI, Scope()):
            if isinstance(event, TextDelta):
                heard.release()
    assert in_time == [True] * 3


@pytest.mark.parametrize(
    "reply", [Reply(HELLO), Reply(HELLO, gzip=True), Reply(HELLO, framing="length"), Reply([b"{}"], 400)]
)
def test_a_connection_is_used_again(reply: Reply) -> None:
    """After an answer that was read to its end, the next request uses the same connection."""
    with Server(reply) as server:
        model = local(server.url)
        for _ in range(3):
            ask(model)
        assert [received.connection for received in server.received] == [0, 0, 0]


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    """A pooled connection that the server has closed is replaced without an error."""
    with Server(Reply(HELLO, then="close")) as server:
        model = local(server.url)
        assert ask(model).text == "Hello"
        assert server.closed.wait(10)
        assert ask(model).text == "Hello"
        assert server.connections == 2


def test_an_answer_that_goes_on_after_its_end_is_cut() -> None:
    """What a server sends after `[DONE]` is not waited for, and its connection is not used again."""
    with Server(Reply([*HELLO], then="stall")) as server:
        model = local(server.url)
        started = time.monotonic()
        assert ask(model).text == "Hello"
        assert time.monotonic() - started < 10
        assert server.left.wait(10)


@pytest.mark.parametrize("taken", [1, 2])
def test_closing_early_closes_the_connection(taken: int) -> None:
    """A caller that stops listening leaves no connection behind."""
    with Server(Reply(forever(sse(chunk("x"), done=False)[0]), gap=0.005)) as server:
        events = local(server.url).stream(HI, Scope())
        for _ in range(taken):
            next(events)
        events.close()  # type: ignore[attr-defined]  # a generator
        assert server.left.wait(10)


def test_a_dropped_iterator_closes_the_connection() -> None:
    """A caller that drops the iterator leaves no connection behind either."""
    with Server(Reply(forever(sse(chunk("x"), done=False)[0]), gap=0.005)) as server:
        events = local(server.url).stream(HI, Scope())
        next(events)
        del events
        assert server.left.wait(10)


def test_nothing_is_sent_before_the_first_next() -> None:
    """Making the iterator opens nothing."""
    with Server(Reply(HELLO)) as server:
        local(server.url).stream(HI, Scope())
        assert server.connections == 0


def test_threads_share_an_adapter() -> None:
    """Eight threads use one adapter at once, each with its own answer."""

    def behave(received: Received) -> Reply:
        return Reply(sse(chunk(received.json["messages"][0]["content"]), chunk(finish="stop")), gap=0.002)

    texts: dict[int, set[str]] = {}

    def work(number: int) -> None:
        request = ModelRequest(messages=(UserMessage(f"number {number}"),))
        texts[number] = {ask(model, request).text for _ in range(5)}

    with Server(behave) as server:
        model = local(server.url)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == {number: {f"number {number}"} for number in range(8)}


FORK = """
import os, sys
sys.path[:0] = {paths!r}
from gotato_gateway import OpenAIChat
from gotato_py import ModelRequest, Scope, UserMessage
import requests
session = requests.Session() if {given!r} else None
model = OpenAIChat("m", base_url={url!r}, session=session)
def ask():
    return list(model.stream(ModelRequest(messages=(UserMessage("hi"),)), Scope()))
ask()
child = os.fork()
ask()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("given", [False, True])
def test_a_child_process_uses_its_own_connections(given: bool) -> None:
    """After a fork, the child opens a connection of its own, and the parent's goes on."""
    with Server(Reply(HELLO)) as server:
        paths = [str(ROOT / "gateway"), str(ROOT / "gotato_py")]
        program = FORK.format(paths=paths, url=server.url, given=given)
        subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
        assert sorted(received.connection for received in server.received) == [0, 0, 1]


INHERITED = """
import os, sys
sys.path[:0] = {paths!r}
from gotato_gateway import OpenAIChat
from gotato_py import Cancelled, ModelRequest, Scope, TextDelta, UserMessage
import requests
session = requests.Session() if {given!r} else None
if session:
    session.post("{url}/other", data=b"x").close()  # a connection that was there before, and that nobody can watch
model = OpenAIChat("m", base_url={url!r}, session=session)
scope, hi = Scope(), ModelRequest(messages=(UserMessage("hi"),))
events = model.stream(hi, scope)
said = [next(events)]
for way in ("drop", "close", "cancel", "cancel and read"):
    child = os.fork()
    if not child:
        if way == "drop":
            del events
        elif way == "close":
            events.close()
        else:
            scope.cancel()
        if way == "cancel and read":
            try:
                next(events)
            except Cancelled:
                pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, way
list(model.stream(hi, Scope()))  # lets the first answer go on
said += events
assert "".join(each.text for each in said if isinstance(each, TextDelta)) == "Hello", said
"""


@pytest.mark.parametrize("given", [False, True])
def test_a_child_process_leaves_an_inherited_answer_alone(given: bool) -> None:
    """A child that drops, closes or cancels an answer which its parent was reading does not end it there."""
    go_on = threading.Event()

    def first() -> Iterator[bytes]:
        yield sse(chunk("Hel"), done=False)[0]
        go_on.wait(10)
        time.sleep(0.1)  # the parent reads before there is anything more
        yield from sse(chunk("lo"), chunk(finish="stop"))

    def behave(received: Received) -> Reply:
        asked = sum(each.path.endswith("/completions") for each in server.received)
        if asked > 1:
            go_on.set()
        return Reply(first() if asked == 1 else HELLO)

    with Server(behave) as server:
        paths = [str(ROOT / "gateway"), str(ROOT / "gotato_py")]
        program = INHERITED.format(paths=paths, url=server.url, given=given)
        subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


@each_dialect
@pytest.mark.parametrize("status", [302, 307])
def test_79_a_redirect_is_not_followed(dialect: str, status: int) -> None:
    """A redirect is an error that names itself, and the key goes nowhere else."""
    with Server(Reply(HELLO)) as other:
        elsewhere = {"Location": f"http://127.0.0.1:{other.port}/v1/chat/completions"}
        with Server(Reply((), status, elsewhere, "length")) as server:
            error = ask(local(server.url, ADAPTERS[dialect])).error
        assert other.connections == 0
        assert len(server.received) == 1
    assert type(error) is InvalidRequest
    assert (error.status, error.retryable) == (status, False)
    assert "redirect" in str(error)


@each_dialect
@pytest.mark.parametrize("key", [KEY, None])
def test_80_netrc_does_not_replace_the_key(
    dialect: str, key: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .netrc that knows the host neither replaces the key nor stands in for one."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with Server(Reply(HELLO)) as server:
        ask(ADAPTERS[dialect]("m", api_key=key, base_url=server.url))
    assert credentials(server.received[0]) == (with_key(dialect, KEY) if key else {})


@each_dialect
def test_80_proxies_still_work(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY takes requests to the proxy, and NO_PROXY keeps them from it; the key goes along."""
    reply, adapter = Reply(STREAMS[dialect]("Hello")), ADAPTERS[dialect]
    with Server(reply) as proxy, Server(reply) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert ask(local("http://api.example.test/v1", adapter, api_key=KEY)).text == "Hello"
        assert proxy.received[0].path.startswith("http://api.example.test/v1/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert ask(local(server.url, adapter, api_key=KEY)).text == "Hello"
        assert len(proxy.received) == len(server.received) == 1
    assert credentials(proxy.received[0]) == credentials(server.received[0]) == with_key(dialect, KEY)


@each_dialect
def test_80_a_proxy_gets_its_own_password_only(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before TLS, a proxy learns its own password and the host to go to, and neither the key nor the path."""
    with Server(Reply((), 403, framing="length")) as proxy:
        monkeypatch.setenv("https_proxy", f"http://user:pass@127.0.0.1:{proxy.port}")
        error = ask(local("https://api.example.test/v1", ADAPTERS[dialect], api_key=KEY)).error
    assert type(error) is ConnectionFailed
    assert "the proxy on the way to api.example.test" in str(error)
    (received,) = proxy.received
    assert received.path == "api.example.test:443"
    assert received.headers["proxy-authorization"] == "Basic dXNlcjpwYXNz"
    assert credentials(received) == {}
    assert "pass" not in str(error)


@each_dialect
def test_80_a_ca_bundle_still_works(
    dialect: str, tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 61 h as well: an unknown certificate is an error that is not retried, until REQUESTS_CA_BUNDLE knows it."""
    with Server(Reply(STREAMS[dialect]("Hello")), tls=tls) as server:
        model = local(server.url, ADAPTERS[dialect])
        error = ask(model).error
        assert type(error) is ConnectionFailed
        assert not error.retryable
        assert "certificate" in str(error)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        assert ask(model).text == ask(model).text == "Hello"
        assert len({received.connection for received in server.received}) == 1


@pytest.mark.parametrize("place", ["CURL_CA_BUNDLE", "session.verify"])
def test_80_other_places_for_a_ca(
    place: str, tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate authority is also taken from the older variable and from the user's session."""
    with Server(Reply(HELLO), tls=tls) as server, requests.Session() as session:
        if place == "session.verify":
            session.verify = str(certificate)
        else:
            monkeypatch.setenv(place, str(certificate))
        model = local(server.url, session=session)
        assert ask(model).text == ask(model).text == "Hello"
        assert server.connections == 1


def test_80_the_sessions_own_proxies_are_used() -> None:
    """Proxies that are set on the user's session take its requests, as everywhere with `requests`."""
    with Server(Reply(HELLO)) as proxy, requests.Session() as session:
        session.proxies = {"http": f"http://127.0.0.1:{proxy.port}"}
        assert ask(local("http://api.example.test/v1", session=session)).text == "Hello"
        assert proxy.connections == 1


def test_plain_http_behind_https_is_not_retried() -> None:
    """A base_url with https for a server that speaks http is a mistake, not bad luck."""
    with Server(Reply(HELLO)) as server:
        error = ask(local(server.url.replace("http:", "https:"))).error
    assert type(error) is ConnectionFailed
    assert not error.retryable


def test_the_users_session_is_used() -> None:
    """Headers, adapters and auth of a session that was passed in take part."""

    class Token(AuthBase):
        def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = "Token t"
            return request

    with Server(Reply(HELLO)) as server, requests.Session() as session:
        session.headers["X-Mine"] = "1"
        session.auth = Token()
        ask(OpenAIChat("m", base_url=server.url, session=session))
        ask(OpenAIChat("m", base_url=server.url, api_key=KEY, session=session))
    assert [received.headers["authorization"] for received in server.received] == ["Token t", f"Bearer {KEY}"]
    assert server.received[0].headers["x-mine"] == "1"


def test_a_bug_in_the_users_session_is_not_hidden() -> None:
    """An exception that has nothing to do with the network comes out as it is, and so is not retried."""

    class Broken(HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            raise LookupError("a bug")

    with requests.Session() as session:
        session.mount("http://", Broken())
        with pytest.raises(LookupError, match="a bug"):
            ask(local("http://127.0.0.1:9/v1", session=session))


def test_a_large_upload_may_be_slow() -> None:
    """A request of some megabytes arrives whole, and sending it is not bound by `connect_timeout`."""
    text = "x" * 8_000_000
    with Server(Reply(HELLO)) as server:
        model = local(server.url, connect_timeout=0.5)
        assert ask(model, ModelRequest(messages=(UserMessage(text),))).text == "Hello"
    assert server.received[0].json["messages"][0]["content"] == text


def test_a_body_that_is_no_gzip_is_a_protocol_error() -> None:
    """A body that says gzip and is none is reported as such."""
    with Server(Reply([b"not gzip at all"], headers={"Content-Encoding": "gzip"})) as server:
        error = ask(local(server.url)).error
    assert type(error) is ModelProtocolError


def test_a_query_in_the_base_url_stays() -> None:
    """Azure's `api-version` stays behind the path; user and password of the URL become a header."""
    with Server(Reply(HELLO)) as server:
        ask(OpenAIChat("m", base_url=f"http://u:p%40@127.0.0.1:{server.port}/x/?api-version=1"))
    assert server.received[0].path == "/x/chat/completions?api-version=1"
    assert server.received[0].headers["authorization"] == "Basic dTpwQA=="


def test_a_line_after_the_finish_word_may_be_lost() -> None:
    """A connection that is lost after the finish word loses nothing: the answer is over."""
    with Server(Reply(sse(chunk("Hi"), chunk(finish="stop"), done=False), then="cut")) as server:
        answer = ask(local(server.url))
    assert answer.error is None
    assert answer.text == "Hi"


def test_a_trickle_after_the_end_is_not_waited_for() -> None:
    """A server that goes on for ever after `[DONE]` does not hold the answer up."""
    with Server(Reply((piece for part in (HELLO, forever(b": still here\n\n")) for piece in part), gap=0.01)) as server:
        started = time.monotonic()
        assert ask(local(server.url)).text == "Hello"
        assert time.monotonic() - started < 10
        assert server.left.wait(10)


def test_an_answer_longer_than_any_is_given_up() -> None:
    """A body without end and without events does not fill the memory."""
    with Server(Reply([zeros := b"x" * 1_000_000] * 300, gzip=True)) as server:
        error = ask(local(server.url)).error
        assert server.left.wait(10)
    assert zeros
    assert type(error) is ModelProtocolError
    assert not error.retryable
