"""Time and ids that a test controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import RLock
from time import monotonic, sleep

from gotato_py import InvalidArgument, Scope


class ManualClock:
    """A clock that moves by hand, and by itself where something waits: no test waits for real.

    `wait` moves it on by the seconds asked for, or up to the scope's deadline. With `auto=False` it waits instead until
    other threads have moved the clock far enough with `advance`, or the scope ends: to test what happens meanwhile.
    `set_time` moves only the wall clock, backwards too. Reading takes no lock, so that a signal handler may cancel a
    scope that is measured by it.

    >>> clock = ManualClock()
    >>> scope = Scope(timeout=5, clock=clock)
    >>> scope.wait(2), clock.monotonic(), scope.wait(60), clock.monotonic()
    (False, 2.0, True, 5.0)
    >>> clock.waits
    [2.0, 60.0]
    """

    def __init__(self, unix: float = 1_700_000_000.0, *, auto: bool = True) -> None:
        self._auto = auto
        self._elapsed = 0.0
        self._zero = float(unix)  # the wall clock's reading at elapsed 0
        self._waits: list[float] = []
        self._wakeups: dict[object, Callable[[], object]] = {}  # one for each thread that waits now
        self._lock = RLock()  # re-entrant: a signal handler may move the clock too

    def __repr__(self) -> str:
        return f"ManualClock(unix={self.time()}, elapsed={self._elapsed})"

    @property
    def waits(self) -> list[float]:
        """The seconds of every wait so far, as they were asked for."""
        return list(self._waits)

    @property
    def waiting(self) -> int:
        """How many threads wait at this moment; always 0 for a clock that moves itself."""
        return len(self._wakeups)

    def time(self) -> float:
        """Unix seconds."""
        return self._zero + self._elapsed

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Moves both clocks on, and wakes the threads that have waited long enough by it."""
        if not seconds >= 0:
            raise InvalidArgument("ManualClock.advance: seconds must be at least 0; set_time moves the wall clock back")
        with self._lock:
            self._elapsed += seconds
        for wake in list(self._wakeups.values()):
            wake()

    def set_time(self, unix: float) -> None:
        """Sets the wall clock, as an administrator or a time server would; the monotonic one goes on undisturbed."""
        with self._lock:
            self._zero = unix - self._elapsed

    def wait(self, scope: Scope, seconds: float) -> bool:
        """Moves time instead of waiting, or waits for it to be moved; returns whether the scope has ended."""
        with self._lock:
            self._waits.append(seconds)
            until = self._elapsed + seconds
            if self._auto:
                left = scope.remaining()
                self._elapsed += seconds if left is None else min(seconds, left)
        if not self._auto:
            self._sleep(scope, until)
        return scope.cancelled

    def wait_for_waiting(self, count: int = 1, *, timeout: float = 5.0) -> None:
        """Blocks, for at most `timeout` real seconds, until `count` threads wait by this clock; then move it.

        Raises `TimeoutError` if fewer do.
        """
        end = monotonic() + timeout
        while True:
            last = monotonic() >= end  # before the look: this process may be kept from running between the two
            if (waiting := self.waiting) >= count:
                return
            if last:
                raise TimeoutError(f"{waiting} threads wait by the clock after {timeout} s, not {count}")
            sleep(0.001)

    def _sleep(self, scope: Scope, until: float) -> None:
        """Blocks until `advance` or the end of the scope wakes it, by a queue: a Condition is not safe in handlers."""
        wakeup, token = SimpleQueue[None](), object()
        self._wakeups[token] = wake = partial(wakeup.put, None)
        unregister = scope.on_end(wake)
        try:
            while not scope.cancelled and self._elapsed < until:
                wakeup.get()
        finally:
            unregister()
            del self._wakeups[token]


class SequentialIds:
    """Ids in order: `agent-1`, `run-1`, `message-1`, `message-2`, … Pass it as `ids=`.

    >>> ids = SequentialIds()
    >>> ids("run"), ids("message"), ids("message")
    ('run-1', 'message-1', 'message-2')
    """

    def __init__(self) -> None:
        self._counts: dict[str, Iterator[int]] = {}

    def __call__(self, kind: str) -> str:
        return f"{kind}-{next(self._counts.setdefault(kind, count(1)))}"
