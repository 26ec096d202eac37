"""Loopback servers that leave a client waiting, each in another state of its request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

_HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
_CHUNK = b"%x\r\n%s\r\n" % (len(_EVENT), _EVENT)
SAYS = {"mute": b"", "headers": _HEADERS, "body": _HEADERS + _CHUNK}
"""What a server says before it falls silent."""


@contextmanager
def stalling(says: bytes) -> Generator[str, None, None]:
    """A server that takes a request, says this much and nothing more; gives its base URL."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        accepted: list[socket.socket] = []

        def serve() -> None:
            try:
                while True:
                    line = listener.accept()[0]
                    accepted.append(line)
                    line.recv(65536)
                    line.sendall(says)
            except OSError:  # the listener is shut down
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for line in accepted:
                line.close()


@contextmanager
def full_backlog() -> Generator[str, None, None]:
    """A server whose backlog is full: a further connect gets no answer at all; gives its base URL."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(8):  # one or two fill it; the others wait in the same way as the client will
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}/v1"
