"""What a Model promises of the ends of its streams: by their scope, by closing, by an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event
from unittest import SkipTest

from gotato_py import Cancelled, DeadlineExceeded, Done, GotatoError, Model, ModelEvent, ModelRequest, Scope
from gotato_testkit.clocks import ManualClock

from ._model_streams import ANSWERED, ONE_DONE, ModelSuite
from ._suite import NotJudged, after, require, shaped

_ENDED = "once its scope has ended, a stream raises Cancelled or DeadlineExceeded, never anything else (Model.stream)"
_IDLE, _CANCELLED = "test_a_cancelled_scope_sends_nothing", "test_a_cancel_in_mid_stream_ends_it"
_NO_IDLE_REQUEST = "a scope that had ended before sends nothing (Model.stream)"


class EndsContract(ModelSuite):
    """How a stream ends before its answer does."""

    @after(ANSWERED)
    def test_a_cancelled_scope_sends_nothing(self) -> None:
        """It raises `Cancelled` before anything has been sent or streamed."""
        scope = Scope()
        scope.cancel("before the call")
        self._refuses(scope, Cancelled)

    @after(ANSWERED, _IDLE)
    def test_a_passed_deadline_sends_nothing(self) -> None:
        """It raises `DeadlineExceeded` before anything has been sent or streamed."""
        self._refuses(Scope(timeout=0), DeadlineExceeded)

    @after(ANSWERED, ONE_DONE)
    def test_a_cancel_in_mid_stream_ends_it(self) -> None:
        """After a cancel there may come what had arrived, and then `Cancelled`: no `Done`, no connection error."""
        scope = Scope()
        self._ends(scope, Cancelled, lambda: scope.cancel("in mid-stream"))

    @after(ANSWERED, ONE_DONE, _CANCELLED)
    def test_a_deadline_in_mid_stream_ends_it(self) -> None:
        """After the scope's time there comes `DeadlineExceeded`, which is no connection error and is not retried."""
        clock = ManualClock(auto=False)
        self._ends(Scope(timeout=60, clock=clock), DeadlineExceeded, lambda: clock.advance(61))

    def test_a_cancel_ends_a_stream_that_has_stalled(self) -> None:
        """A read that blocks is ended from another thread, promptly (skipped without `stalled`)."""
        model = self.stalled()
        if model is None:
            raise SkipTest("override stalled() to test that a cancel ends a blocked read")
        scope, begun = Scope(), Event()

        def read() -> None:
            for _ in model.stream(self.request(), scope):
                begun.set()

        def cancel() -> None:
            begun.wait(self.patience)
            scope.cancel("while it stalls")

        ended = self.bounded(read, meanwhile=cancel)
        require(
            ended.in_time and isinstance(ended.error, Cancelled),
            _ENDED,
            found=f"a cancel during a stall, and {ended.said()} within {self.patience} s",
            remedy="register scope.on_end to wake the read up, or read in slices bounded by scope.remaining()",
        )

    @after(ANSWERED, ONE_DONE)
    def test_closing_a_stream_ends_it(self) -> None:
        """After `close` nothing comes, closing twice does no harm, and the model answers the next request."""
        model = shaped(self.make(), "stream")
        stream = model.stream(self.request(), Scope())
        next(stream)
        close = getattr(stream, "close", None)
        if close is None:
            raise SkipTest("the stream has no close(), which is optional")
        close()
        close()
        more: list[ModelEvent] = []
        with suppress(Exception):  # whether a closed stream is at its end or refuses to be read is its own choice
            more.extend(stream)
        require(
            not more,
            "closing a stream ends it (Model.stream)",
            found=f"{len(more)} events after close()",
            remedy="let close() drop what has arrived and is not yet read; a generator does it by itself",
        )
        self._events(model)

    @after(ANSWERED, ONE_DONE)
    def test_a_stream_releases_its_connection(self) -> None:
        """Closed early or read to its end, no stream holds a connection (skipped without `unclosed`)."""
        model = shaped(self.make(), "stream")
        if self.unclosed(model) is None:
            raise SkipTest("override unclosed() to test that connections are released")
        early, late = model.stream(self.request(), Scope()), model.stream(self.request(), Scope())
        next(early)
        for stream in (early, late):
            if stream is late:
                list(stream)
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        require(
            not self.unclosed(model),
            "closing a stream releases its connection (Model.stream)",
            found=f"{self.unclosed(model)} streams still hold one",
            remedy="close the response in a finally clause of the stream",
        )

    def test_failures_are_typed(self) -> None:
        """What goes wrong is told by the type of a `ModelError` (skipped without `failures`)."""
        failures = list(self.failures())
        if not failures:
            raise SkipTest("override failures() to test what the model raises")
        for model, expected in failures:
            raised = _raised_by(model, self.request())
            require(
                isinstance(raised, expected),
                "a failed call raises the ModelError of its kind, which decides whether it is tried again",
                found=f"{'no error' if raised is None else type(raised).__name__} where {expected.__name__} was due",
                remedy="translate the provider's status and its client's exceptions in one place, with `from`",
            )

    def _refuses(self, scope: Scope, expected: type[GotatoError]) -> None:
        model = shaped(self.make(), "stream")
        events: list[ModelEvent] = []
        ended = self.bounded(lambda: events.extend(model.stream(self.request(), scope)))
        require(
            ended.in_time and isinstance(ended.error, expected) and not events,
            _NO_IDLE_REQUEST,
            found=f"{ended.said()} where {expected.__name__} was due, after {len(events)} events",
            remedy="begin stream with scope.check()",
        )
        require(
            not self.sent(model),
            _NO_IDLE_REQUEST,
            found=f"{self.sent(model)} requests were sent",
            remedy="call scope.check() before the request is sent",
        )

    def _ends(self, scope: Scope, expected: type[GotatoError], end: Callable[[], object]) -> None:
        stream = shaped(self.make(), "stream").stream(self.request(), scope)
        if isinstance(next(stream), Done):
            raise NotJudged("the answer ends with its first event; override request() to get one of at least three")
        end()
        events: list[ModelEvent] = []
        ended = self.bounded(lambda: events.extend(stream))
        complete = any(isinstance(event, Done) for event in events)
        require(
            ended.in_time and isinstance(ended.error, expected) and not complete,
            _ENDED,
            found=f"{'Done was streamed, and ' * complete}{ended.said()} where {expected.__name__} was due "
            f"within {self.patience} s",
            remedy="call scope.check() before each event; if the answer has less than three events, override request()",
        )


def _raised_by(model: Model, request: ModelRequest) -> BaseException | None:
    try:
        for _ in model.stream(request, Scope()):
            pass
    except Exception as error:
        return error
    return None
