"""A provider on the loopback interface for the adapters, and ports where nobody answers."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from gotato_testkit.server import EVENT_STREAM, Received, Reply, SSEServer, Then, sse

__all__ = [
    "EVENT_STREAM",
    "HELLO",
    "Received",
    "Reply",
    "Server",
    "Then",
    "chunk",
    "forever",
    "pieces_of",
    "refusing_port",
    "silent_listener",
    "sse",
    "unanswered_port",
]


def pieces_of(body: bytes, seed: int, longest: int = 400) -> list[bytes]:
    """The body in pieces of random sizes."""
    sizes, found = random.Random(seed), []
    while body:
        size = sizes.randint(1, longest)
        found.append(body[:size])
        body = body[size:]
    return found


def chunk(content: str | None = None, finish: str | None = None, **more: object) -> dict[str, Any]:
    """A chunk of the chat dialect."""
    delta = {} if content is None else {"content": content}
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


HELLO = sse(chunk("Hello"), chunk(finish="stop"))


class Server(SSEServer):
    """The testkit's server, whose `url` is a base URL as the adapters take it."""

    @property
    def url(self) -> str:
        """The base URL for an adapter."""
        return f"{super().url}/v1"


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
