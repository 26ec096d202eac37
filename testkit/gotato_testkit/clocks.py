"""Time and ids that a test controls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import RLock

from gotato_py import InvalidArgument, Scope


class ManualClock:
    """A clock that moves by hand, and by itself where something waits: no test waits for real.

    `wait` moves it on by the seconds asked for, or up to the scope's deadline. `set_time` moves only the wall clock,
    backwards too. Reading takes no lock, so that a signal handler may cancel a scope that is measured by it.

    >>> clock = ManualClock()
    >>> scope = Scope(timeout=5, clock=clock)
    >>> scope.wait(2), clock.monotonic(), scope.wait(60), clock.monotonic()
    (False, 2.0, True, 5.0)
    >>> clock.waits
    [2.0, 60.0]
    """

    def __init__(self, unix: float = 1_700_000_000.0) -> None:
        self._elapsed = 0.0
        self._zero = float(unix)  # the wall clock's reading at elapsed 0
        self._waits: list[float] = []
        self._lock = RLock()  # re-entrant: a signal handler may move the clock too

    def __repr__(self) -> str:
        return f"ManualClock(unix={self.time()}, elapsed={self._elapsed})"

    @property
    def waits(self) -> list[float]:
        """The seconds of every wait so far, as they were asked for."""
        return list(self._waits)

    def time(self) -> float:
        """Unix seconds."""
        return self._zero + self._elapsed

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Moves both clocks on."""
        if not seconds >= 0:
            raise InvalidArgument("ManualClock.advance: seconds must be at least 0; set_time moves the wall clock back")
        with self._lock:
            self._elapsed += seconds

    def set_time(self, unix: float) -> None:
        """Sets the wall clock, as an administrator or a time server would; the monotonic one goes on undisturbed."""
        with self._lock:
            self._zero = unix - self._elapsed

    def wait(self, scope: Scope, seconds: float) -> bool:
        """Moves time instead of waiting; returns whether the scope has ended."""
        with self._lock:
            self._waits.append(seconds)
            left = scope.remaining()
            self._elapsed += seconds if left is None else min(seconds, left)
        return scope.cancelled


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
