"""Cancellation and time in one mechanism, safe from every thread and from signal handlers. Monotonic time only."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Callable
from math import inf
from threading import get_ident, main_thread
from typing import Protocol

from .errors import Cancelled, DeadlineExceeded, InvalidArgument


class Clock(Protocol):
    """Where time comes from. A clock for tests moves its own time; others delegate `wait` to `SystemClock`."""

    def time(self) -> float:
        """Unix seconds, for people: it may jump. Called from any thread; must not raise."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; every duration and deadline is measured by it. Must not raise."""
        ...

    def wait(self, scope: Scope, seconds: float) -> bool:
        """Waits in the calling thread until the scope ends (True) or the seconds have passed (whether it has ended)."""
        ...


class SystemClock:
    """The machine's own clocks: `time()` in Unix seconds, `monotonic()` in seconds that never run backwards."""

    __slots__ = ()

    monotonic: staticmethod[[], float] = staticmethod(time.monotonic)
    time: staticmethod[[], float] = staticmethod(time.time)

    def wait(self, scope: Scope, seconds: float) -> bool:
        """Waits on a lock that the scope's end releases: interruptible by `cancel` from threads and signal handlers."""
        until = self.monotonic() + seconds
        most = _LOOK_AGAIN if get_ident() == main_thread().ident else _LONGEST_WAIT
        wakeup = allocate_lock()
        wakeup.acquire()
        unregister = scope.on_end(wakeup.release)
        try:
            while not scope.cancelled:  # a lock's timeout may end a hair early
                rest = until - self.monotonic()
                if rest <= 0:
                    break
                left = scope.remaining()
                wakeup.acquire(timeout=min(rest if left is None else min(rest, left), most))
        finally:
            unregister()
        return scope.cancelled


_LONGEST_WAIT = 1e6  # seconds at a time; a lock's timeout overflows somewhere past this
_LOOK_AGAIN = 0.05
"""Seconds at a time in the main thread, which runs the handlers of signals: one that comes right before the lock is
waited for does not end that wait (measured: one or two in a hundred among busy threads)."""
_FOREVER = 1e300  # an int past this has no float
SYSTEM_CLOCK = SystemClock()
_DEADLINE_REASON = "deadline exceeded"


def checked_timeout(where: str, timeout: float | None) -> float | None:
    """A timeout in seconds, or None; 0 has passed already."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise InvalidArgument(f"{where} must be None or a number of seconds of at least 0")
    return float(timeout) if timeout < _FOREVER else inf


class _End:
    """How a scope ended. `at` is monotonic time: the deadline, or when `cancel` was called."""

    __slots__ = ("at", "reason", "seconds", "timed_out")

    def __init__(self, timed_out: bool, reason: str, at: float, seconds: float = 0.0) -> None:
        self.timed_out, self.reason, self.at, self.seconds = timed_out, reason, at, seconds


class _Registration:
    """A callback, and how to take back its link to the parent scope."""

    __slots__ = ("callback", "unlink")

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.unlink: Callable[[], None] | None = None


class Scope:
    """Ends once, by `cancel` or because its time has passed; then it says why.

    `timeout` is in seconds from now; None never passes, 0 has passed. Nothing watches time in the background: code
    that blocks bounds itself by `remaining()`. No method takes a lock, so that all of them may be called anywhere:
    each step that must happen once is one atomic dict operation.
    """

    __slots__ = (
        "__weakref__", "_callbacks", "_clock", "_deadline", "_end", "_nearest", "_now", "_outer", "_parent", "_timeout",
    )  # fmt: skip

    def __init__(self, timeout: float | None = None, *, clock: Clock | None = None) -> None:
        self._clock: Clock = SYSTEM_CLOCK if clock is None else clock
        if clock is not None and not hasattr(clock, "monotonic"):
            raise InvalidArgument(f"Scope.clock must be a Clock, not {type(clock).__name__}")
        seconds = checked_timeout("Scope.timeout", timeout)
        self._now, self._timeout = self._clock.monotonic, seconds
        self._deadline = None if seconds is None or seconds == inf else self._now() + seconds
        self._end: dict[str, _End] = {}
        self._callbacks: dict[object, _Registration] = {}
        self._parent: Scope | None = None
        self._outer: tuple[dict[str, _End], ...] = ()  # the ends of the scopes around it
        self._nearest = self._deadline  # the first of all their deadlines

    def __repr__(self) -> str:
        if self.cancelled:
            return f"Scope(ended, reason={self.reason!r})"
        return f"Scope(remaining={self.remaining()})"

    @property
    def clock(self) -> Clock:
        """The clock that its time is measured by."""
        return self._clock

    @property
    def cancelled(self) -> bool:
        """Whether the scope has ended, cancelled or out of time."""
        if self._end:
            return True
        for end in self._outer:
            if end:
                break
        else:
            if self._nearest is None or self._now() < self._nearest:
                return False
        return self._take_end()

    def _take_end(self) -> bool:
        """Ends with whichever end was the first, whenever somebody looks."""
        parent, deadline = self._parent, self._deadline
        inherited = parent._end["end"] if parent is not None and parent.cancelled else None
        if deadline is not None and self._now() >= deadline:
            own = _End(True, _DEADLINE_REASON, deadline, self._timeout or 0.0)
            inherited = own if inherited is None or own.at < inherited.at else inherited
        if inherited is None:
            return False
        self._finish(inherited)
        return True

    @property
    def reason(self) -> str:
        """Why the scope has ended; "" while it has not, or when `cancel` gave no reason."""
        return self._end["end"].reason if self.cancelled else ""

    @property
    def timed_out(self) -> bool:
        """Whether the scope has ended because its time passed."""
        return self.cancelled and self._end["end"].timed_out

    def remaining(self) -> float | None:
        """Seconds left, 0.0 once it has ended, None without a deadline."""
        if self.cancelled:
            return 0.0
        inherited = None if self._parent is None else self._parent.remaining()
        if self._deadline is None:
            return inherited
        own = max(0.0, self._deadline - self._now())
        return own if inherited is None else min(own, inherited)

    def cancel(self, reason: str = "") -> bool:
        """Ends the scope, from any thread or a signal handler. Returns whether this call ended it."""
        if not isinstance(reason, str):
            raise InvalidArgument(f"Scope.cancel: reason must be a str, not {type(reason).__name__}")
        if self.cancelled:
            self._run_callbacks()  # none is left, unless an interrupt hit the thread that ended it
            return False
        return self._finish(_End(False, reason, self._now()))

    def check(self) -> None:
        """Raises `Cancelled` or `DeadlineExceeded` once the scope has ended."""
        if self.cancelled:
            end = self._end["end"]
            if end.timed_out:
                raise DeadlineExceeded(f"the {end.seconds:g} s for this have passed", operation="Scope.check")
            raise Cancelled(end.reason or "cancelled", operation="Scope.check")

    def wait(self, seconds: float) -> bool:
        """Sleeps in the calling thread, at most until the scope ends; returns whether it has."""
        bounded = checked_timeout("Scope.wait: seconds", seconds)
        if bounded is None:
            raise InvalidArgument("Scope.wait: seconds must be a number of at least 0")
        return self.cancelled or self._clock.wait(self, bounded)

    def on_end(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Calls `callback()` once, in the thread that cancels or first sees the time passed; at once if it has ended.

        What the callback raises is ignored. Returns a function that takes the registration back.
        """
        if not callable(callback):
            raise InvalidArgument(f"Scope.on_end: callback must be callable, not {type(callback).__name__}")
        token = object()
        registration = self._callbacks[token] = _Registration(callback)
        if self._parent is not None:
            # A link for each callback: one for all of them could be taken back while another thread relies on it.
            registration.unlink = self._parent.on_end(self._parent_ended)
            if token not in self._callbacks:  # ended meanwhile, perhaps before the link was known
                registration.unlink()
        if self.cancelled:
            self._run(token)

        def unregister() -> None:
            if self._callbacks.pop(token, None) is not None and registration.unlink is not None:
                registration.unlink()

        return unregister

    def child(self, timeout: float | None = None) -> Scope:
        """A scope that ends with this one, or earlier by itself; the nearer end wins."""
        made = Scope.__new__(Scope)  # filled here: one is made for each model call
        made._clock, made._now = self._clock, self._now
        seconds = timeout
        if type(timeout) is not float or not 0 <= timeout < inf:
            seconds = checked_timeout("Scope.child: timeout", timeout)
        own = None if seconds is None or seconds == inf else self._now() + seconds
        nearest = self._nearest
        made._deadline, made._timeout = own, seconds
        made._nearest = own if nearest is None or (own is not None and own < nearest) else nearest
        made._end, made._callbacks = {}, {}
        made._parent, made._outer = self, (self._end, *self._outer)
        return made

    def _parent_ended(self) -> None:
        if self.cancelled:  # looks at the parent, and takes its end over
            self._run_callbacks()

    def _finish(self, end: _End) -> bool:
        won = self._end.setdefault("end", end) is end
        self._run_callbacks()
        return won

    def _run_callbacks(self) -> None:
        for token in list(self._callbacks):
            self._run(token)

    def _run(self, token: object) -> None:
        """Whoever takes a registration out of the dict runs it, so each runs once."""
        registration = self._callbacks.pop(token, None)
        if registration is None:
            return
        try:
            if registration.unlink is not None:
                registration.unlink()
            registration.callback()
        except Exception:  # a callback's failure is no concern of whoever cancels
            pass
        except BaseException:  # an interrupt: the others still have to know
            self._run_callbacks()
            raise
