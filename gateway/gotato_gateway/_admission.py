"""Who may go next: a queue in front of two buckets and a number of places, shared by threads.

No thread watches it. What happens is news (somebody came, left, was counted), put into a queue and taken in by whoever
holds the lock, who also lets in those that may go. Only the head of the queue waits by the clock; the others wait for
it. A ticket waits in a child of its scope, and the end of that child wakes it: `Scope.cancel` takes no lock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from threading import RLock

from gotato_py import RateLimited, RateLimits, Scope, SystemClock

from ._bucket import Bucket

OPERATION = "RateLimiter"
"""What the errors made here say, which tells them from a provider's."""

_REAL = SystemClock()
_LONG = 1e6
_LOOK_AGAIN = 0.05
"""Seconds after which one that waits without a time looks for its deadline, under a clock that moves by hand."""
_ROUNDING = 1e-6


class Ticket:
    """One stream's place in the queue. `tokens` is what it will take, then what it took."""

    def __init__(self, scope: Scope, tokens: int) -> None:
        self.scope = scope
        self.tokens = tokens
        self.turn = scope.child()
        self.moment: float | None = None  # when it is worth looking again, by its own clock; None: when woken
        self.expected = 0.0  # seconds it has to wait, as it was last told
        self.came = self.admitted = False

    def now(self) -> float:
        """The time by its own clock."""
        return self.scope.clock.monotonic()

    def come_in(self, seconds: float) -> None:
        """Tells it, at the head of the queue, how long it has to wait; wakes it if it would sleep longer."""
        moment, before = self.now() + seconds, self.moment
        self.moment, self.expected = moment, seconds
        if before is None or moment < before - _ROUNDING:
            self.turn.cancel()

    def admit(self) -> None:
        """Lets it go."""
        self.admitted = True
        self.turn.cancel()

    def wait(self) -> None:
        """Waits until it is woken or its moment comes. Raises its scope's end, and where that comes first."""
        left, expected = self.scope.remaining(), self.expected
        self.expected = 0.0  # was counted from the moment it was told
        if left is not None and expected and expected >= left:
            self.scope.check()
            raise RateLimited(
                "the rate limiter has no place in time",  # `retry_after` says when, and so does the kernel
                retry_after=expected,
                operation=OPERATION,
            )
        if self.moment is not None:
            self.turn.wait(max(0.0, self.moment - self.now()))
        else:
            _REAL.wait(self.turn, _LONG if isinstance(self.scope.clock, SystemClock) else _LOOK_AGAIN)
        self.scope.check()


class Admission:
    """The queue, the buckets and the places; `None` for what is not limited."""

    def __init__(self, requests: Bucket | None, tokens: Bucket | None, places: int | None) -> None:
        self._requests, self._tokens = requests, tokens
        self._places = inf if places is None else places
        self._reads: Callable[[], float] | None = None
        self._last, self._hold = 0.0, -inf
        self._start()

    def _start(self) -> None:
        """Nobody is here: at first, and in a child process, where those of the parent never leave."""
        self._lock = RLock()
        self._draining = False
        self._news: deque[Callable[[], None]] = deque()
        self._queue: deque[Ticket] = deque()
        self._running: set[Ticket] = set()
        self._pid = os.getpid()

    @property
    def waiting(self) -> int:
        """How many are in the queue."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many have been let in and have not left."""
        return len(self._running)

    def enter(self, ticket: Ticket) -> None:
        """Waits for its turn. Raises the end of its scope, and `RateLimited` where that would come first."""
        try:
            self._tell(partial(self._arrive, ticket))
            while not ticket.admitted:
                ticket.wait()
                ticket.turn = ticket.scope.child()  # before looking, so that no waking is missed
                self._tell(_look)
        except BaseException:
            self.leave(ticket)
            raise

    def leave(self, ticket: Ticket, tokens: int | None = None) -> None:
        """Gives its place back; `tokens` is what it took in truth, None where nobody knows."""
        if tokens is not None:
            self._tell(partial(self._correct, ticket, tokens))
        self._tell(partial(self._depart, ticket))

    def know(self, limits: RateLimits) -> None:
        """Takes in what the provider says is left."""
        self._tell(partial(self._know, limits))

    def hold(self, scope: Scope, seconds: float) -> None:
        """Lets nobody in for that time, as the provider asks."""
        self._tell(partial(self._hold_until, scope, scope.clock.monotonic() + seconds))

    def _tell(self, news: Callable[[], None]) -> None:
        if self._pid != os.getpid():
            self._start()
        self._news.append(news)
        with self._lock:
            # Re-entered where the garbage collector closes a stream in the midst of this: the outer call goes on.
            if self._draining:
                return
            self._draining = True
            try:
                while self._news:
                    self._news[0]()  # taken out afterwards, and harmless twice: an interrupt loses nothing
                    self._news.popleft()
                    self._admit()
            finally:
                self._draining = False

    def _arrive(self, ticket: Ticket) -> None:
        if not ticket.came:
            ticket.came = True
            ticket.expected = self._delay(ticket, len(self._queue), sum(other.tokens for other in self._queue))
            self._queue.append(ticket)

    def _depart(self, ticket: Ticket) -> None:
        self._running.discard(ticket)
        if not ticket.admitted and ticket in self._queue:
            self._queue.remove(ticket)

    def _correct(self, ticket: Ticket, tokens: int) -> None:
        if self._tokens is not None and ticket.admitted:
            self._pass_time(ticket.scope)
            self._tokens.take(tokens - ticket.tokens)
        ticket.tokens = tokens

    def _know(self, limits: RateLimits) -> None:
        if self._requests is not None:
            self._requests.know(limits.remaining_requests)
        if self._tokens is not None:
            self._tokens.know(limits.remaining_tokens)

    def _hold_until(self, scope: Scope, moment: float) -> None:
        self._pass_time(scope)
        self._hold = max(self._hold, moment)

    def _admit(self) -> None:
        """Lets in all that may go now, and tells the next one when to come."""
        while self._queue:
            head = self._queue[0]
            if len(self._running) >= self._places:
                head.moment, head.expected = None, 0.0
                return
            delay = self._delay(head)
            if delay > 0:
                head.come_in(delay)
                return
            self._running.add(head)
            self._queue.popleft()
            if self._requests is not None:
                self._requests.take(1)
            if self._tokens is not None:
                self._tokens.take(head.tokens)
            head.admit()

    def _delay(self, ticket: Ticket, requests: float = 0.0, tokens: float = 0.0) -> float:
        """Seconds until it can go, if so many requests and tokens go before it."""
        held = self._hold - self._pass_time(ticket.scope)
        first = 0.0 if self._requests is None else self._requests.delay(1, requests)
        second = 0.0 if self._tokens is None else self._tokens.delay(ticket.tokens, tokens)
        return max(held if held > _ROUNDING else 0.0, first, second)

    def _pass_time(self, scope: Scope) -> float:
        """Fills the buckets up to now, by the clock of the scope; all who share a limiter have one clock."""
        reads = scope.clock.monotonic
        now = reads()
        if reads != self._reads:  # another clock, another zero
            self._reads, self._last, self._hold = reads, now, -inf
        elapsed = now - self._last
        if elapsed > 0:
            self._last = now
            for bucket in (self._requests, self._tokens):
                if bucket is not None:
                    bucket.refill(elapsed)
        return now


def _look() -> None:
    """No news but that somebody wants to know."""
