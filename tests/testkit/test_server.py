"""`gotato_testkit.server`: what an HTTP client sees of the scripted provider, and what a test sees of the client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from typing import Any, Literal

import pytest
import requests

from gotato_gateway import OpenAIChat
from gotato_py import Agent, InvalidArgument, RetryPolicy, RunStatus
from gotato_testkit.server import Received, Reply, SSEServer, Then, sse

PATIENCE_S = 20.0
HELLO = sse({"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]})


def post(server: SSEServer, body: bytes = b"{}") -> requests.Response:
    """A request of its own connection."""
    return requests.post(f"{server.url}/v1/chat", data=body, timeout=PATIENCE_S)


def test_an_agent_talks_to_it() -> None:
    """An adapter reads the answer, and the test the request."""
    with SSEServer(Reply(HELLO)) as server:
        agent = Agent(OpenAIChat("any", base_url=f"{server.url}/v1"))
        assert agent.run("Hi").text == "Hello"
        (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["content-type"] == "application/json"
    assert received.json["messages"][-1]["content"] == "Hi"


def test_sse_makes_one_piece_an_event() -> None:
    """Text goes out as it is, all else as JSON, the usual end behind it unless it is not wanted."""
    assert sse({"a": 1}, "raw") == [b'data: {"a": 1}\n\n', b"data: raw\n\n", b"data: [DONE]\n\n"]
    assert sse(done=False) == []


@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_framings(framing: Literal["chunked", "close"], gzip: bool) -> None:
    """Whatever the framing, the client gets the pieces joined, and the headers."""
    reply = Reply([b"one ", b"", b"two"], 201, {"X-Said": "yes"}, framing, gzip)
    with SSEServer(reply) as server:
        answer = post(server)
    assert (answer.status_code, answer.content, answer.headers["X-Said"]) == (201, b"one two", "yes")


def test_a_connection_goes_on() -> None:
    """After a proper end the connection takes the next request; after `close` it does not."""
    replies = [Reply([b"1"]), Reply([b"2"], then="close"), Reply([b"3"], framing="length")]
    with SSEServer(replies) as server, requests.Session() as session:
        said = [session.post(server.url, data=b"", timeout=PATIENCE_S).content for _ in replies[:2]]
        assert server.closed.wait(PATIENCE_S)  # else the client might not know of it yet
        said.append(session.post(server.url, data=b"", timeout=PATIENCE_S).content)
    assert said == [b"1", b"2", b"3"]
    assert [received.connection for received in server.received] == [0, 0, 1]
    assert server.connections == 2


@pytest.mark.parametrize("then", ["cut", "reset"])
def test_an_answer_that_breaks_off(then: Then) -> None:
    """The client sees that the body has no end."""
    with SSEServer(Reply([b"begun"], then=then)) as server, pytest.raises(requests.RequestException):
        post(server)


def test_no_headers_at_all() -> None:
    """A status of 0 sends nothing before what follows."""
    with SSEServer(Reply(status=0, then="cut")) as server:
        client = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        client.request("POST", "/", b"{}")
        with pytest.raises(HTTPException):
            client.getresponse()
        client.close()


def test_a_stall_lasts_until_the_client_leaves() -> None:
    """Silence after the pieces; the events tell that the request came, that the client has gone, that it is over."""
    with SSEServer(Reply([b"begun"], then="stall")) as server:
        client = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        client.request("POST", "/", b"{}")
        with client.getresponse() as answer:
            assert answer.read(5) == b"begun"
            assert server.arrived.is_set()
            assert not server.left.is_set()
        client.close()
        assert server.left.wait(PATIENCE_S)
        assert server.closed.wait(PATIENCE_S)


def test_the_end_of_the_block_ends_all() -> None:
    """A stalled answer, a slow one and the listener: no thread and no connection outlives the block."""
    before = threading.active_count()
    with SSEServer(lambda received: Reply([b"x"] * 9, gap=60.0) if received.body else Reply(then="stall")) as server:
        port = server.port
        for body in (b"", b"slow"):
            client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            client.request("POST", "/", body)
            client.getresponse()
            client.close()
    assert threading.active_count() <= before  # a thread of an earlier test may have ended meanwhile
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


def test_replies_run_out() -> None:
    """A request too many is told so, with status 500, and a run fails of it."""
    with SSEServer([Reply(HELLO)]) as server:
        post(server)
        answer = post(server)
        assert answer.status_code == 500
        assert answer.json() == {"error": {"message": "SSEServer: no reply is left for /v1/chat"}}


def test_a_function_that_raises() -> None:
    """Its request is answered with 500, and what it raised comes out of the block."""

    def behave(received: Received) -> Reply:
        raise LookupError(received.path)

    def ask() -> None:
        with SSEServer(behave) as server:
            agent = Agent(OpenAIChat("any", base_url=f"{server.url}/v1"), retry=RetryPolicy(max_attempts=1))
            assert agent.run("Hi", check=False).status is RunStatus.FAILED

    with pytest.raises(LookupError, match="/v1/chat/completions"):
        ask()


def test_a_function_that_returns_something_else() -> None:
    """That it has to return a Reply is said at the end of the block."""

    def ask() -> None:
        with SSEServer(lambda received: 7) as server:  # type: ignore[arg-type,return-value]  # on purpose
            assert post(server).status_code == 500

    with pytest.raises(InvalidArgument, match="must return a Reply, not int"):
        ask()


def test_pieces_that_raise() -> None:
    """The client sees an answer that breaks off; what the pieces raised comes out of the block."""

    def pieces() -> Iterator[bytes]:
        yield b"begun"
        raise LookupError("the second piece")

    def ask() -> None:
        with SSEServer(Reply(pieces())) as server, pytest.raises(requests.RequestException):
            post(server)

    with pytest.raises(LookupError, match="the second piece"):
        ask()


def test_an_error_of_the_block_comes_first() -> None:
    """What fails in the test itself is not hidden by what the function raised."""

    def ask() -> None:
        with SSEServer(lambda received: 1 / 0) as server:  # type: ignore[arg-type,return-value]  # on purpose
            post(server)
            raise KeyError("the test's")

    with pytest.raises(KeyError):
        ask()


def test_what_is_no_http_is_refused() -> None:
    """A client that speaks something else gets a status 400."""
    with SSEServer(Reply()) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(PATIENCE_S)
        client.sendall(b"hello\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda given: Reply(given(b"whole")), "Reply.pieces must be pieces of bytes, not one bytes"),
        (lambda given: Reply(given([b"1", "2"])), "each of them"),
        (lambda given: Reply(iter([b"1"]), framing="length"), "must be a list"),
        (lambda given: Reply([b"1"], framing="length", gzip=True), "with gzip"),
        (lambda given: SSEServer(given(7)), "replies must be"),
        (lambda given: SSEServer(given(["text"])), "replies must be"),
    ],
)
def test_what_cannot_be_served_is_refused(make: Callable[[Callable[[object], Any]], object], said: str) -> None:
    """At once, by name, where the test has written it."""

    def given(something: object) -> Any:  # Any: so that type checkers let it through
        return something

    with pytest.raises(InvalidArgument, match=said):
        make(given)
