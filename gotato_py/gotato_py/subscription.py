"""A run's events for other threads: a bounded queue that no run waits for, and no interrupt damages."""

from __future__ import annotations

import time
from _thread import LockType, allocate_lock
from collections.abc import Callable
from os import getpid
from types import TracebackType
from typing import Literal, TypeVar, overload

from ._backlog import CLOSED, FINISHED, OPEN, Backlog
from .errors import ForkedProcess, InvalidArgument, SubscriptionOverflow
from .events import Event
from .scope import checked_timeout

T = TypeVar("T")
_LONGEST_WAIT = 1e6  # seconds at a time; a lock's timeout overflows somewhere past this


class EventStream:
    """The events of an agent's runs, in order, for any number of reading threads; each event goes to one of them.

    Iterate it, or ask by `get`. It ends when the agent closes, or by `close()`. At most `maxsize` events are queued:
    when they are, updates of the same message are joined, so that no text is lost. A reader too slow for the other
    events gets `SubscriptionOverflow` once it has read what was queued, and then has to subscribe again.

    Every method may be called from any thread and from signal handlers. The queue is one immutable `Backlog`; a step
    makes the next one and puts it in place by one atomic dict operation, so that it happens wholly or not at all.
    """

    __slots__ = ("__weakref__", "_backlog", "_on_close", "_pid", "_waiting")

    def __init__(self, maxsize: int, on_close: Callable[[EventStream], object]) -> None:
        if isinstance(maxsize, bool) or not isinstance(maxsize, int):
            raise InvalidArgument(f"subscribe: maxsize must be an int, not {type(maxsize).__name__}")
        if maxsize < 1:
            raise InvalidArgument(f"subscribe: maxsize must be at least 1, not {maxsize}")
        self._backlog = Backlog(maxsize)
        self._on_close = on_close
        self._pid = getpid()
        self._waiting: set[LockType] = set()  # one for each reader that waits; it is released to wake the reader

    def __repr__(self) -> str:
        backlog = self._current()
        state = "overflowed" if backlog.missed else backlog.state
        return f"EventStream({state}, {backlog.size} of {backlog.maxsize} queued)"

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        return self._read(None, iterating=True)

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event. Waits for one at most `timeout` seconds (None: without end; 0: not at all).

        Returns None when none came in time, or the stream has ended and all of it is read. Raises
        `SubscriptionOverflow`, and `ForkedProcess` in a child of the process that subscribed.
        """
        return self._read(checked_timeout("EventStream.get: timeout", timeout), iterating=False)

    def close(self) -> None:
        """Ends the stream and drops what is queued; readers that wait return. Closing again does nothing."""
        if self._surely(Backlog.ended, CLOSED):
            self._on_close(self)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def listening(self) -> bool:
        """Whether further events can be read here: it has not ended, and this is the process that subscribed."""
        return self._current().state is OPEN and self._pid == getpid()

    def push(self, event: Event) -> None:
        """For the kernel: queues an event, and never waits. An interrupt is raised when that is done.

        The same event twice in a row is queued once.
        """
        self._surely(Backlog.pushed, event)

    def finish(self) -> None:
        """For the kernel: no event follows. What is queued can still be read."""
        self._surely(Backlog.ended, FINISHED)

    @overload
    def _read(self, timeout: float | None, *, iterating: Literal[True]) -> Event: ...
    @overload
    def _read(self, timeout: float | None, *, iterating: Literal[False]) -> Event | None: ...
    def _read(self, timeout: float | None, *, iterating: bool) -> Event | None:
        """Takes the oldest event, or waits for it. Nothing is called between the step that takes it and its return to
        the caller's caller: there an interrupt could not give it back."""
        until = None if timeout is None else time.monotonic() + timeout
        step: tuple[Backlog, Event, Backlog] | None = None
        try:
            while True:
                self._refuse_in_child()
                step = self._current().taken()
                if step is not None:
                    if self._replace(step[0], step[2]):
                        return step[1]
                elif self._has_ended():
                    if iterating:
                        raise StopIteration
                    return None
                else:
                    left = None if until is None else until - time.monotonic()
                    if left is not None and left <= 0:
                        return None
                    self._wait(left)
        except BaseException:
            if step is not None and step[0].next.get("next") is step[2]:
                self._take_step(Backlog.given_back, step[1])
            raise

    def _refuse_in_child(self) -> None:
        if self._pid != getpid():
            raise ForkedProcess(
                "this subscription belongs to the process that made it, of which this one is a fork: subscribe here",
                operation="EventStream.get",
            )

    def _has_ended(self) -> bool:
        """Whether all is read and no event follows. Raises if events were missed."""
        backlog = self._current()
        if backlog.missed and not backlog.size:
            raise SubscriptionOverflow(
                f"too slow for a queue of {backlog.maxsize} events: {backlog.missed} could not be queued so far; "
                "subscribe again, with a larger maxsize or a quicker reader",
                operation="EventStream.get",
                details={"maxsize": backlog.maxsize, "missed": backlog.missed},
            )
        return backlog.state is not OPEN and not backlog.size

    def _wait(self, seconds: float | None) -> None:
        """Waits until there may be something to read, or the time has passed."""
        wakeup = allocate_lock()
        wakeup.acquire()
        try:
            self._waiting.add(wakeup)
            if self._current().must_wait:  # whoever changes that from here on sees the lock
                wakeup.acquire(timeout=_LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT))
        finally:
            self._waiting.discard(wakeup)

    def _wake(self) -> None:
        try:
            for wakeup in list(self._waiting):
                try:
                    wakeup.release()
                except RuntimeError:  # another thread has done it
                    pass
                self._waiting.discard(wakeup)
        except BaseException:  # an interrupt: the others have to be woken, too
            self._wake()
            raise

    def _current(self) -> Backlog:
        backlog = self._backlog
        while backlog.next:
            backlog = backlog.next["next"]
        return backlog

    def _replace(self, before: Backlog, after: Backlog) -> bool:
        """Puts one backlog in the place of another, unless something else has taken that."""
        if before.next.setdefault("next", after) is not after:
            return False
        self._backlog = after  # only a shortcut: `_current` would find it
        return True

    def _take_step(self, step: Callable[[Backlog, T], Backlog], given: T) -> bool:
        """Changes the backlog, unless the step leaves it as it is, and wakes the readers. Returns whether it did."""
        changed = False
        while not changed:
            before = self._current()
            after = step(before, given)
            if after is before:
                break
            changed = self._replace(before, after)
        if self._waiting:
            self._wake()
        return changed

    def _surely(self, step: Callable[[Backlog, T], Backlog], given: T) -> bool:
        """A step that may be taken twice, taken also when an interrupt comes."""
        try:
            return self._take_step(step, given)
        except BaseException:
            self._take_step(step, given)
            raise
