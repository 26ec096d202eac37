"""A provider on the loopback interface: real sockets, scripted answers, everything that servers do wrong."""

from __future__ import annotations

import json
import random
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

EVENT_STREAM = {"Content-Type": "text/event-stream"}
Then = Literal["end", "cut", "reset", "stall", "close"]


@dataclass(frozen=True)
class Received:
    """A request as it arrived; `connection` counts the connections from 0."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer: its pieces go out one by one, `gap` seconds apart.

    `then` is what follows the last piece: the proper end, a cut without one, a reset, silence until the client leaves,
    or a proper end after which the connection closes. The proper end goes out together with the last of a list of
    pieces: an adapter that has its answer waits for that end for a moment only, and then drops the connection. A
    `status` of 0 sends no headers, so only `then` happens.
    """

    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    framing: Literal["chunked", "close", "length"] = "chunked"
    gzip: bool = False
    gap: float = 0.0
    then: Then = "end"


def pieces_of(body: bytes, seed: int, longest: int = 400) -> list[bytes]:
    """The body in pieces of random sizes."""
    sizes, found = random.Random(seed), []
    while body:
        size = sizes.randint(1, longest)
        found.append(body[:size])
        body = body[size:]
    return found


def sse(*data: object, done: bool = True) -> list[bytes]:
    """Events with this data (objects become JSON), and the usual last one."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in data] + (["[DONE]"] if done else [])
    return [f"data: {text}\n\n".encode() for text in texts]


def chunk(content: str | None = None, finish: str | None = None, **more: object) -> dict[str, Any]:
    """A chunk of the chat dialect."""
    delta = {} if content is None else {"content": content}
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


HELLO = sse(chunk("Hello"), chunk(finish="stop"))


class Server:
    """Serves `behave(received)` for each request until its `with` block ends."""

    def __init__(self, behave: Callable[[Received], Reply] | Reply, tls: ssl.SSLContext | None = None) -> None:
        self._behave = behave if callable(behave) else lambda received: behave
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._stopped = threading.Event()
        self.received: list[Received] = []
        self.arrived = threading.Event()
        self.left = threading.Event()
        self.closed = threading.Event()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The base URL for an adapter."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

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
            thread.join(5)

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
                    self.received.append(received)
                    self.arrived.set()
                    if not self._answer(used, self._behave(received)):
                        return
                self.left.set()
        except OSError:
            self.left.set()
        finally:
            self.closed.set()

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


def _shut(each: socket.socket) -> None:
    try:
        socket.socket.shutdown(each, socket.SHUT_RDWR)
    except OSError:
        pass


def _read_request(used: socket.socket, stream: Any, number: int) -> Received | None:
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


def forever(piece: bytes) -> Iterator[bytes]:
    """The same piece without end."""
    while True:
        yield piece


@contextmanager
def refusing_port() -> Generator[int]:
    """A port at which nobody listens, and nobody else can while it is used."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def unanswered_port() -> Generator[int]:
    """A port whose queue of connections is full, so that the system answers no further connect."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


@contextmanager
def silent_listener() -> Generator[tuple[int, threading.Event]]:
    """A port that accepts connections and says nothing; the event tells of the first."""
    accepted, held = threading.Event(), list[socket.socket]()

    def accept() -> None:
        try:
            while True:
                held.append(listener.accept()[0])
                accepted.set()
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], accepted
        finally:
            socket.socket.shutdown(listener, socket.SHUT_RDWR)
            thread.join(5)
            for each in held:
                each.close()
