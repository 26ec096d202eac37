"""The socket of one request, reachable from other threads.

A blocked TLS handshake or `recv` in another thread ends at once when its socket is shut down, but `requests` shows no
socket before the headers are there. `urllib3` lets every pool choose its connection class, for http, https and proxies
alike, so the pool that will send the request is given a subclass that reports its socket to the line of the thread that
uses it. Nothing global is changed.
"""

from __future__ import annotations

import functools
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

import requests

from ._looking import looking_responses

_CURRENT = threading.local()


class Line:
    """A handle on the connection of one request, from before its TLS handshake to the end of its body.

    It is a duplicate of the socket's descriptor. Shutting down the duplicate shuts down the connection, and neither the
    wrapping by TLS (which moves the descriptor to a new object) nor a close in another thread can make it point at a
    stranger's socket.
    """

    __slots__ = ("_handle", "_pid", "cut_off", "idle_timeout", "sock")

    def __init__(self, idle_timeout: float) -> None:
        self._pid = os.getpid()
        self.idle_timeout = idle_timeout
        self.cut_off = False
        self.sock: socket.socket | None = None
        self._handle: socket.socket | None = None

    def use_in_this_thread(self) -> None:
        """Connections that this thread opens or reuses from now on report here."""
        _CURRENT.line = self

    @property
    def connected(self) -> bool:
        """Whether there is a connection to cut."""
        return self._handle is not None

    @property
    def inherited(self) -> bool:
        """Whether this is a child process' copy: the connection is the parent's, and a shutdown would end it there."""
        return os.getpid() != self._pid

    def attach(self, sock: socket.socket) -> None:
        """Remembers the socket; one that comes after `cut` is shut down at once."""
        self.release()
        # What is shut down is the descriptor: family and type say nothing here, and TLS inside TLS does not know them.
        self._handle = socket.fromfd(sock.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        if self.cut_off:
            self.cut()

    def cut(self) -> None:
        """Shuts the connection down, now or as soon as there is one. For any thread and any signal handler."""
        self.cut_off = True
        handle = self._handle
        if handle is not None and not self.inherited:
            try:
                handle.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed already, by either side
                pass

    def set_timeout(self, seconds: float) -> None:
        """Bounds each later read of the connection."""
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def release(self) -> None:
        """Closes the duplicate; the connection itself stays as it is."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


def report_connections(session: requests.Session, url: str, settings: Mapping[str, Any]) -> None:
    """Makes the pool that will serve `url` report its connections.

    An adapter that has no pool (a test library's fake, say) is left alone; so is a connection that the session opened
    earlier for somebody else: waiting on it ends with `idle_timeout`, though its caller leaves at once.
    """
    pool_for = getattr(session.get_adapter(url), "get_connection_with_tls_context", None)
    if pool_for is None:
        return
    probe = requests.Request("POST", url).prepare()
    pool = pool_for(probe, settings["verify"], proxies=settings["proxies"], cert=settings["cert"])
    if not hasattr(pool.ConnectionCls, "reports_to_line"):
        pool.ConnectionCls = _reporting(pool.ConnectionCls)


def _report(sock: socket.socket | None, *, ready: bool) -> None:
    """Tells the line of this thread which socket it uses; `ready` means connected, wrapped, and the headers sent."""
    line: Line | None = getattr(_CURRENT, "line", None)
    if line is None or sock is None:
        return
    if not (ready and line.connected):  # new, or a pooled connection used again
        line.attach(sock)
    if ready:
        line.sock = sock
        line.set_timeout(line.idle_timeout)  # urllib3 would give the upload the time of a connect


@functools.cache
def _reporting(base: Any) -> Any:  # Any: a connection class of urllib3 (plain, TLS, SOCKS), known only at run time
    def new_conn(self: Any) -> socket.socket:
        made: socket.socket = base._new_conn(self)
        _report(made, ready=False)
        return made

    def endheaders(self: Any, *args: Any, **kwargs: Any) -> None:
        base.endheaders(self, *args, **kwargs)
        _report(self.sock, ready=True)

    responses = staticmethod(looking_responses(base.response_class))
    members = {"reports_to_line": True, "_new_conn": new_conn, "endheaders": endheaders, "response_class": responses}
    return type(f"Reporting{base.__name__}", (base,), members)
