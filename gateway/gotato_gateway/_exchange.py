"""One POST and its answer, under a scope: every wait in it ends within moments of the scope.

Looking up a name, connecting and the TLS handshake cannot be interrupted from outside, so a daemon thread does them and
waits for the headers; the caller waits for that thread or for the end of the scope, whichever comes first. When the
caller leaves, the connection is shut down under the thread, which then ends; inside a lookup or a connect it needs
until that returns, at most `connect_timeout` an address. The body is read in the caller's own thread.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Generator, Mapping
from queue import Empty, SimpleQueue

import requests
from urllib3.exceptions import ReadTimeoutError

from gotato_py import ConnectionFailed, DeadlineExceeded, GotatoError, ModelError, ModelProtocolError, Scope

from ._line import Line
from ._looking import LOOK_AGAIN_S

PIECE = 65536
MAX_BODY = 256 * 1024 * 1024
"""More than any answer has: a longer one is a server gone mad, and would fill the memory."""

_LONGEST_WAIT = 1e6
_DRAIN_SECONDS = 0.05
_ERROR_BODY_BYTES = 65536
_ERROR_BODY_SECONDS = 5.0

Explain = Callable[[BaseException, bool], BaseException]
"""`explain(raised, answering)`: what to raise for what `requests` or `urllib3` raised, before or in the answer."""


class Exchange:
    """One POST. `open` brings status and headers, then `chunks` the body; `close` belongs into a `finally`."""

    def __init__(self, send: Callable[[], requests.Response], explain: Explain, idle_timeout: float) -> None:
        self._send, self._explain, self._idle_timeout = send, explain, idle_timeout
        self._line = Line(idle_timeout)
        self._response: requests.Response | None = None
        self._failure: BaseException | None = None
        self._arrived: SimpleQueue[bool] = SimpleQueue()
        self._left = False
        self._complete = False
        self._until: float | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return 0 if self._response is None else self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are found in any case."""
        return {} if self._response is None else self._response.headers

    def open(self, scope: Scope) -> None:
        """Sends the request and returns when the headers are there. Sends nothing if the scope has ended."""
        scope.check()
        work = contextvars.copy_context().run
        thread = threading.Thread(target=work, args=(self._work,), name="gotato-connect", daemon=True)
        unregister = scope.on_end(lambda: self._arrived.put(False))
        try:
            _start(thread)
            while not self._wait(scope):
                scope.check()
        finally:
            unregister()
        scope.check()
        if self._failure is not None:
            error, self._failure = self._explain(self._failure, False), None
            raise error

    def _wait(self, scope: Scope) -> bool:
        """Whether the headers are there, or the failure. In the main thread a wait is short: see `_looking`."""
        left = scope.remaining()
        most = LOOK_AGAIN_S if threading.current_thread() is threading.main_thread() else _LONGEST_WAIT
        try:
            return self._arrived.get(timeout=most if left is None else min(left, most))
        except Empty:
            return False

    def _work(self) -> None:
        self._line.use_in_this_thread()
        try:
            self._response = self._send()
        except BaseException as error:  # whatever it is, the caller raises it
            self._failure = error
        if self._failure is not None:
            self._line.release()
        self._arrived.put(True)
        if self._left:  # nobody waits any more: what was opened here is closed here
            self._dispose()

    def chunks(self, scope: Scope) -> Generator[bytes]:
        """The body as it comes in, decompressed. Raises when the scope ends or the connection does."""
        unregister = scope.on_end(self._cut)
        total = 0
        try:
            while piece := self._next_piece(scope, self._patience()):
                total += len(piece)
                if total > MAX_BODY:
                    raise ModelProtocolError(f"the answer is longer than {MAX_BODY >> 20} MiB", retryable=False)
                yield piece
                if self._until is not None and time.monotonic() >= self._until:
                    return
            self._complete = True
        finally:
            unregister()

    def end_within(self, seconds: float | None) -> None:
        """From now on the body gets so many seconds to end; after that it is taken as ended or lost. None: it gets all
        the time again."""
        self._until = None if seconds is None else time.monotonic() + seconds

    def _patience(self) -> float:
        left = self._idle_timeout if self._until is None else self._until - time.monotonic()
        return max(0.0, min(self._idle_timeout, left))

    def _next_piece(self, scope: Scope, patience: float) -> bytes:
        scope.check()
        left = scope.remaining()
        error: BaseException | None = None
        piece = b""
        try:
            self._line.set_timeout(patience if left is None else max(min(patience, left), 0.001))
            piece = self._read1()
        except Exception as failure:  # the border: everything is translated here
            if left is not None and left <= patience and isinstance(failure, ReadTimeoutError):
                error = DeadlineExceeded("the time for this has passed", operation="Model.stream")
            else:
                error = self._explain(failure, True)
        scope.check()
        if error is not None:  # raised out here, so that its context holds no request with its headers
            raise error
        return piece

    def _read1(self) -> bytes:
        # read1 gives what has arrived; read, iter_content and iter_lines wait until their buffer is full.
        return b"" if self._response is None else self._response.raw.read1(PIECE, decode_content=True)

    def error_body(self, scope: Scope) -> bytes:
        """The beginning of a body that only explains a refusal: what comes in a few seconds, and no failure of it."""
        pieces: list[bytes] = []
        until = time.monotonic() + _ERROR_BODY_SECONDS
        unregister = scope.on_end(self._cut)
        try:
            while sum(map(len, pieces)) < _ERROR_BODY_BYTES and (left := until - time.monotonic()) > 0:
                piece = self._next_piece(scope, min(left, self._idle_timeout))
                if not piece:
                    self._complete = True
                    break
                pieces.append(piece)
        except ModelError:
            pass
        finally:
            unregister()
        return b"".join(pieces)

    def drain(self, scope: Scope) -> None:
        """Reads what is left of an answer that is known to be over, so that its connection can be used again.

        Waits moments only; a server that has more to say has its connection closed by `close`.
        """
        until, left = time.monotonic() + _DRAIN_SECONDS, _DRAIN_SECONDS
        try:
            while not self._complete and left > 0:  # at least once: what has come is read, however late this thread is
                self._complete = not self._next_piece(scope, left)
                left = until - time.monotonic()
        except GotatoError:
            pass

    def _cut(self) -> None:
        if self._line.connected or self._response is None:
            self._line.cut()
            return
        shutdown = getattr(self._response.raw, "shutdown", None)  # a connection that reports to no line
        if shutdown is not None and not self._line.inherited:
            shutdown()

    def close(self) -> None:
        """Gives the connection back if its answer was read to the end, else closes it. Any number of times."""
        self._left = True
        if not self._complete:
            self._line.cut()
        if self._response is not None:
            self._dispose()

    def _dispose(self) -> None:
        response = self._response
        try:
            if response is not None:
                response.close()
        except Exception:  # a connection that is given up has nothing more to say
            pass
        finally:
            self._line.release()


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as error:  # the system has no room for another, which may pass
        text = f"connecting takes a thread for a moment, and the system gave none ({error})"
        raise ConnectionFailed(text, operation="Model.stream", cause=error) from None
