"""Models that are broken, each in its own way, beside one that is not."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from gotato_py import (
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    Done,
    InvalidState,
    ModelRequest,
    RateLimited,
    Scope,
    TextDelta,
)
from gotato_testkit import say

HELLO = say("Hello, whole wide world.")


class Good:
    """A model that keeps every promise; subclasses break one each."""

    capabilities: Any = frozenset({"images"})
    name: Any = "good"

    def __init__(self) -> None:
        self.sent = 0
        self.open = 0

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        self.check(scope, early=True)
        self.sent += 1
        return self.answer(request, scope)

    def answer(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        self.open += 1
        try:
            for event in self.events(request):
                self.check(scope, early=False)
                yield event
        finally:
            self.open -= 1

    def events(self, request: ModelRequest) -> Iterable[object]:
        return HELLO

    def check(self, scope: Scope, *, early: bool) -> None:
        scope.check()


class TwoDones(Good):
    """Says twice that it is done."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return [*HELLO, Done()]


class NoDone(Good):
    """Never says that it is done."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return HELLO[:-1]


class Garbage(Good):
    """Streams a dict."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return [HELLO[0], {"type": "text"}, *HELLO[1:]]


class FailureAsAnswer(Good):
    """Tells of a failure as if it were an answer."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return [*HELLO[:-1], Done("error")]


class Silent(Good):
    """Streams white space."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return [TextDelta(" "), TextDelta("\n"), TextDelta(" "), Done()]


class ChangesTheRequest(Good):
    """Appends to the list of its caller."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        if isinstance(request.messages, list):
            request.messages.append(request.messages[0])
        return HELLO


class AnswersOnce(Good):
    """Has nothing to say to a second request."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = threading.local()  # threads may share it

    def answer(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        if not hasattr(self.answered, "once"):
            yield from super().answer(request, scope)
        self.answered.once = True


class TupleOfCapabilities(Good):
    """Has a tuple for a frozenset."""

    capabilities = ("images",)


class NoName(Good):
    """Has None for a name."""

    name = None


class SendsWhenCancelled(Good):
    """Sends before it looks at its scope."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        self.sent += scope.cancelled and not scope.timed_out
        return super().stream(request, scope)


class AnswersWhenCancelled(Good):
    """Answers under a scope that had been cancelled."""

    def check(self, scope: Scope, *, early: bool) -> None:
        if scope.reason != "before the call":
            scope.check()


class CallsADeadlineACancel(Good):
    """Raises Cancelled where time has passed."""

    def check(self, scope: Scope, *, early: bool) -> None:
        if early and scope.timed_out:
            raise Cancelled("no time left")
        scope.check()


class IgnoresACancel(Good):
    """Goes on when it is cancelled in mid-stream."""

    def check(self, scope: Scope, *, early: bool) -> None:
        if early or scope.timed_out:
            scope.check()


class CallsADeadlineAConnectionError(Good):
    """Raises ConnectionFailed where time has passed."""

    def check(self, scope: Scope, *, early: bool) -> None:
        try:
            scope.check()
        except DeadlineExceeded:
            raise (ConnectionFailed("timed out") if not early else DeadlineExceeded()) from None


class GoesOnWhenClosed(Good):
    """Its iterator has a `close` that does nothing."""

    def answer(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        return Unclosable(self.events(request), scope)


class Unclosable:
    """An iterator whose `close` does nothing."""

    def __init__(self, events: Iterable[object], scope: Scope) -> None:
        self.events = iter(events)
        self.scope = scope

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        self.scope.check()
        return next(self.events)

    def close(self) -> None:
        """Nothing."""


class KeepsConnections(Good):
    """Forgets to give a connection back."""

    def answer(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        self.open += 1
        yield from super().answer(request, scope)


class BelongsToAThread(Good):
    """Refuses every thread but its own."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = threading.get_ident()

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        scope.check()
        if threading.get_ident() != self.owner:
            raise InvalidState("another thread has this model")
        return super().stream(request, scope)


class DoneFirst(Good):
    """Says at once that it is done."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return [HELLO[-1], *HELLO[:-1]]


class Empty(Good):
    """Says nothing at all."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        return []


class AtOnce(Good):
    """Returns all events in a list."""

    def stream(self, request: ModelRequest, scope: Scope) -> Any:
        return list(super().stream(request, scope))


class Asynchronous(Good):
    """Wants to be iterated asynchronously."""

    def stream(self, request: ModelRequest, scope: Scope) -> Any:
        return _later(HELLO)


async def _later(events: Iterable[object]) -> AsyncIterator[object]:
    for event in events:
        yield event


class WithoutScope(Good):
    """Takes no scope."""

    def stream(self, request: ModelRequest) -> Iterator[Any]:  # type: ignore[override]  # that is what is tested
        return super().stream(request, Scope())


class HearsNothing(Good):
    """Never looks at its scope."""

    def check(self, scope: Scope, *, early: bool) -> None:
        """Never."""


class TypedFailure(Good):
    """Fails as it should where it should not."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        raise RateLimited("slow down")


class FailsForLists(Good):
    """Takes only the tuple that it knows from most requests."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        if isinstance(request.messages, list):
            raise OSError("connection reset")
        return HELLO


class UntypedFailure(Good):
    """Lets its client's exceptions out."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        raise OSError("connection reset")


RELEASE = threading.Event()
"""Ends what stalls, when its test is over."""


class Deaf(Good):
    """It stalls and hears no cancel."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        yield HELLO[0]
        RELEASE.wait()
        yield from HELLO[1:]

    def check(self, scope: Scope, *, early: bool) -> None:
        """Never."""
