"""Reads that look up: how a signal handler gets its turn while a body is read in the main thread.

A handler runs between two steps of Python code. One that became due right before the system was asked to wait for bytes
would run when bytes come, and so would its `cancel`. So in the main thread, which runs the handlers, a read never waits
for longer than a moment at a time. It first takes what is there without waiting, so that bytes that have arrived cost
no more than before, under TLS too, where a record may have come in part.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from urllib3.util import wait_for_read

LOOK_AGAIN_S = 0.05


def looking_responses(response_class: Callable[..., Any]) -> Callable[..., Any]:  # Any: of urllib3's connection
    """What makes the responses of a connection, with reads that look up."""

    def respond(sock: socket.socket, *args: Any, **kwargs: Any) -> Any:
        made = response_class(sock, *args, **kwargs)
        # TLS inside TLS has a class of its own, whose reads wait all their time.
        if isinstance(sock, socket.socket) and type(made.fp) is io.BufferedReader:
            made.fp = io.BufferedReader(_Looking(sock, made.fp.detach()))
        return made

    return respond


class _Looking(io.RawIOBase):
    """The stream under a response's buffer, which takes its bytes from the socket."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._sock, self._raw = sock, raw

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            super().close()

    def readinto(self, buffer: Any, /) -> int | None:  # Any: a writable buffer
        patience = self._sock.gettimeout()
        if not patience or threading.current_thread() is not threading.main_thread():
            return self._raw.readinto(buffer)
        until = time.monotonic() + patience
        self._sock.settimeout(0)
        try:
            while (count := self._take(buffer)) is None:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError("timed out")
                wait_for_read(self._sock, min(left, LOOK_AGAIN_S))
            return count
        finally:
            self._sock.settimeout(patience)

    def _take(self, buffer: Any) -> int | None:
        """The number of bytes that were there, 0 at the end, None where some may still come."""
        try:
            return self._raw.readinto(buffer)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
