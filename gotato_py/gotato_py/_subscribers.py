"""Who has subscribed to an agent's events. Only the subscribers themselves keep their streams alive."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from operator import attrgetter
from weakref import ref

from .events import Event
from .subscription import EventStream

_next_number = count().__next__
_by_number = attrgetter("number")


class _Subscription(ref[EventStream]):
    """A stream that nobody here keeps alive, and its place among the others."""

    __slots__ = ("number",)

    number: int

    def push(self, event: Event) -> None:
        stream = self()
        if stream is not None:
            stream.push(event)


class Subscribers:
    """The streams of one agent, in any thread. All of them end when it is finished, or dropped."""

    __slots__ = ("_finished", "_live")

    def __init__(self) -> None:
        self._finished = False
        self._live: set[_Subscription] = set()  # no lock: each call on it is one atomic step

    def __repr__(self) -> str:
        return f"Subscribers({len(self._listening())} listening)"

    def __bool__(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listening())

    def __del__(self) -> None:  # the agent was dropped unclosed: nobody may wait for its events for ever
        if hasattr(self, "_live"):  # else an interrupt came while this was made
            self.finish()

    def add(self, maxsize: int) -> EventStream:
        """A new stream, which gets the events from here on. Raises `InvalidArgument` for a `maxsize` below 1."""
        live = self._live  # not `self`: a stream must not keep alive whoever ends it

        def forget(stream: EventStream) -> None:
            live.discard(ref(stream))  # equal to the subscription of the same stream

        stream = EventStream(maxsize, forget)
        subscription = _Subscription(stream, live.discard)
        subscription.number = _next_number()
        live.add(subscription)
        if self._finished:
            stream.finish()
        return stream

    def pushes(self) -> tuple[Callable[[Event], object], ...]:
        """How each stream that listens takes an event, in the order of subscription; none of them keeps it alive."""
        return tuple([subscription.push for subscription in self._listening()])

    def finish(self) -> None:
        """Ends all streams, and every one that is made from here on."""
        self._finished = True
        try:
            self._finish_all()
        except BaseException:  # an interrupt: nobody may wait for ever
            self._finish_all()
            raise

    def _finish_all(self) -> None:
        for subscription in list(self._live):
            stream = subscription()
            if stream is not None:
                stream.finish()

    def _listening(self) -> list[_Subscription]:
        found: list[_Subscription] = []
        for subscription in list(self._live):
            stream = subscription()
            if stream is not None and stream.listening:
                found.append(subscription)
        found.sort(key=_by_number)
        return found
