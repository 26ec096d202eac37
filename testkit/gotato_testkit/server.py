"""A provider on the loopback interface, for tests of what speaks HTTP: real sockets, scripted answers, server-sent
events, and everything that servers do wrong.

    with SSEServer(Reply(sse({"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}))) as server:
        agent = Agent(OpenAIChat("any", base_url=f"{server.url}/v1"))
        assert agent.run("Hi").text == "Hello"
        assert server.received[0].json["messages"][-1]["content"] == "Hi"
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from gotato_py import InvalidArgument

EVENT_STREAM = {"Content-Type": "text/event-stream"}
"""The headers of a stream of server-sent events."""

Then = Literal["end", "cut", "reset", "stall", "close"]
"""What follows the last piece of a reply."""

_JOIN_S = 5.0


@dataclass(frozen=True)
class Received:
    """A request as it arrived; names of headers are in lower case, `connection` counts the connections from 0."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:  # Any: a JSON value
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer: its pieces go out one by one, `gap` seconds apart.

    `then` is what follows the last piece: the proper end, a cut without one, a reset, silence until the client leaves,
    or a proper end after which the connection closes. The proper end goes out together with the last of a list of
    pieces, as servers send it. A `status` of 0 sends no headers, so only `then` happens.
    """

    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    framing: Literal["chunked", "close", "length"] = "chunked"
    gzip: bool = False
    gap: float = 0.0
    then: Then = "end"

    def __post_init__(self) -> None:
        if isinstance(self.pieces, str | bytes):
            raise InvalidArgument(f"Reply.pieces must be pieces of bytes, not one {type(self.pieces).__name__}")
        if isinstance(self.pieces, Sequence) and not all(isinstance(piece, bytes) for piece in self.pieces):
            raise InvalidArgument("Reply.pieces must be pieces of bytes, each of them")
        if self.framing == "length" and not isinstance(self.pieces, Sequence):
            raise InvalidArgument("Reply.pieces must be a list where framing is 'length': their size is sent first")
        if self.framing == "length" and self.gzip:
            raise InvalidArgument("Reply.framing must be 'chunked' or 'close' with gzip: the size is not known before")


Behaviour = Reply | Sequence[Reply] | Callable[[Received], Reply]
"""One reply for every request, one after another, or a function that looks at the request."""


def sse(*data: object, done: bool = True) -> list[bytes]:
    """Server-sent events with this data, each a piece: text as it is, all else as JSON; then, with `done`, `[DONE]`."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in data] + (["[DONE]"] if done else [])
    return [f"data: {text}\n\n".encode() for text in texts]


class SSEServer:
    """Answers every request on a free port of 127.0.0.1 until its `with` block ends; a thread a connection.

    `received` is what has come. The events `arrived`, `left` and `closed` say that a request has come, that a client
    has gone, that a connection has ended. A request for which no reply is left is answered with status 500, and so is
    one for which the function raises. What it or the pieces raise is raised at the end of the block.
    """

    def __init__(self, replies: Behaviour, *, tls: ssl.SSLContext | None = None) -> None:
        self._reply = _behaviour(replies)
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._stopped = threading.Event()
        self._raised: list[Exception] = []
        self.received: list[Received] = []
        self.arrived: threading.Event = threading.Event()
        self.left: threading.Event = threading.Event()
        self.closed: threading.Event = threading.Event()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Where it is, without a path: `http://127.0.0.1:PORT`."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections it has accepted."""
        return len(self._sockets)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for each in [self._listener, *self._sockets]:
            _shut(each)
            each.close()
        for thread in self._threads:
            thread.join(_JOIN_S)
        if self._raised and error is None:
            raise self._raised[0]

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(accepted)
            self._start(self._serve, accepted, len(self._sockets) - 1)

    def _serve(self, accepted: socket.socket, number: int) -> None:
        try:
            used = self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted
            self._sockets[number] = used
            with used, used.makefile("rb") as stream:
                while (received := _read_request(used, stream, number)) is not None:
                    if not self._answer(used, self._reply_to(received)):
                        return
                self.left.set()
        except OSError:
            self.left.set()
        except Exception as error:  # of the pieces, which may be made as they go out, or of a request that is none
            self._raised.append(error)
        finally:
            self.closed.set()

    def _reply_to(self, received: Received) -> Reply:
        self.received.append(received)
        self.arrived.set()
        try:
            reply = self._reply(received)
            if not isinstance(reply, Reply):
                raise InvalidArgument(f"SSEServer: the function must return a Reply, not {type(reply).__name__}")
            return reply
        except Exception as error:
            self._raised.append(error)
            return _refusal(f"{type(error).__name__} was raised by the function of replies")

    def _answer(self, used: socket.socket, reply: Reply) -> bool:
        """Sends one reply; returns whether the connection goes on."""
        if reply.status:
            used.sendall(_head(reply))
        squeeze = zlib.compressobj(wbits=31) if reply.gzip else None
        ends, kept = reply.then in ("end", "close"), b""
        last = len(reply.pieces) - 1 if ends and isinstance(reply.pieces, Sequence) else -1
        for number, piece in enumerate(reply.pieces):
            if squeeze is not None:
                piece = squeeze.compress(piece) + squeeze.flush(zlib.Z_SYNC_FLUSH)
            if number == last:
                kept = _framed(piece, reply)
                break
            used.sendall(_framed(piece, reply))
            if reply.gap and self._stopped.wait(reply.gap):
                return False
        if reply.then == "stall":
            used.settimeout(None)
            self.left.set() if not used.recv(1) else None
            return False
        if reply.then == "reset":
            used.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if reply.then in ("cut", "reset"):
            return False
        tail = squeeze.flush() if squeeze is not None else b""
        used.sendall(kept + _framed(tail, reply) + (b"0\r\n\r\n" if reply.framing == "chunked" else b""))
        return reply.framing != "close" and reply.then != "close"


def _behaviour(replies: Behaviour) -> Callable[[Received], Reply]:
    if isinstance(replies, Reply):
        same = replies
        return lambda received: same
    if callable(replies):
        return replies
    if isinstance(replies, Sequence) and all(isinstance(each, Reply) for each in replies):
        return partial(_next_of, deque(replies))
    raise InvalidArgument("SSEServer: replies must be a Reply, a sequence of them or a function that returns one")


def _next_of(left: deque[Reply], received: Received) -> Reply:
    try:
        return left.popleft()  # one step: connections are served by threads of their own
    except IndexError:
        return _refusal(f"no reply is left for {received.path}")


def _refusal(why: str) -> Reply:
    body = json.dumps({"error": {"message": f"SSEServer: {why}"}}).encode()
    return Reply([body], 500, {"Content-Type": "application/json"}, "length")


def _shut(each: socket.socket) -> None:
    try:
        socket.socket.shutdown(each, socket.SHUT_RDWR)
    except OSError:
        pass


def _read_request(used: socket.socket, stream: Any, number: int) -> Received | None:  # Any: a file of a socket
    first = stream.readline().decode("latin-1")
    if not first.endswith(("HTTP/1.1\r\n", "HTTP/1.0\r\n")):  # CONNECT is said in the older one
        if first:
            used.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        return None
    headers: dict[str, str] = {}
    while (line := stream.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    size = int(headers.get("content-length", "0"))
    body = stream.read(size)
    if len(body) < size:  # the client left in the middle of it
        return None
    return Received(first.split()[1], headers, body, number)


def _head(reply: Reply) -> bytes:
    headers = dict(reply.headers)
    if reply.framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
    elif reply.framing == "length":
        headers["Content-Length"] = str(sum(map(len, reply.pieces)))
    else:
        headers["Connection"] = "close"
    if reply.gzip:
        headers["Content-Encoding"] = "gzip"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {reply.status} Said\r\n{lines}\r\n".encode("latin-1")


def _framed(piece: bytes, reply: Reply) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" and piece else piece
