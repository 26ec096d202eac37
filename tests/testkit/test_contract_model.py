"""The suite for models: ours keep it, and each of its tests is the one that a certain broken model fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest, TestCase

import pytest

from gotato_py import (
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    Done,
    InvalidState,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    RateLimited,
    Scope,
    TextDelta,
)
from gotato_testkit import DemoModel, EchoModel, Raise, ScriptedModel, Stall, say
from gotato_testkit.contracts import ModelContract

from .suites import assert_breaks

HELLO = say("Hello, whole wide world.")


class TestEchoModel(ModelContract):
    """The echo model keeps the promises of a model."""

    def make(self) -> Model:
        return EchoModel()


class TestDemoModel(ModelContract, TestCase):
    """So does the demo model; the suite works beside `unittest.TestCase` as well."""

    def make(self) -> Model:
        return DemoModel()


class TestScriptedModel(ModelContract):
    """So does the scripted model, with everything that can be told of one."""

    def make(self) -> ScriptedModel:
        return ScriptedModel([HELLO] * 9)

    def stalled(self) -> Model:
        return ScriptedModel([[*HELLO[:2], Stall()]])

    def failures(self) -> Iterable[tuple[Model, type[ModelError]]]:
        yield ScriptedModel([Raise(RateLimited("slow down"))]), RateLimited
        yield ScriptedModel([[*HELLO[:2], Raise(ConnectionFailed("cut off"))]]), ConnectionFailed

    def sent(self, model: Model) -> int:
        assert isinstance(model, ScriptedModel)
        return len(model.requests)

    def unclosed(self, model: Model) -> int:
        assert isinstance(model, ScriptedModel)
        return model.unclosed


# models that are broken, each in its own way


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
        return [*HELLO[:-1], Done("error")]  # type: ignore[arg-type]  # a word is taken too


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


class UntypedFailure(Good):
    """Lets its client's exceptions out."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        raise OSError("connection reset")


RELEASE = threading.Event()


class Deaf(Good):
    """It stalls and hears no cancel."""

    def events(self, request: ModelRequest) -> Iterable[object]:
        yield HELLO[0]
        RELEASE.wait(10)
        yield from HELLO[1:]

    def check(self, scope: Scope, *, early: bool) -> None:
        """Never."""


BREACHES: list[tuple[Callable[[], Good], list[str]]] = [
    (Good, []),
    (TwoDones, ["a_stream_ends_with_exactly_one_done"]),
    (
        NoDone,
        ["a_stream_ends_with_exactly_one_done", "the_same_request_may_be_sent_again", "threads_may_share_the_model"],
    ),
    (Garbage, ["every_event_is_a_model_event"]),
    (FailureAsAnswer, ["done_says_how_the_model_stopped"]),
    (Silent, ["an_answer_says_something"]),
    (ChangesTheRequest, ["the_request_is_left_as_it_was"]),
    (AnswersOnce, ["the_same_request_may_be_sent_again"]),
    (TupleOfCapabilities, ["optional_attributes_are_of_their_types"]),
    (NoName, ["optional_attributes_are_of_their_types"]),
    (SendsWhenCancelled, ["a_cancelled_scope_sends_nothing"]),
    (AnswersWhenCancelled, ["a_cancelled_scope_sends_nothing"]),
    (CallsADeadlineACancel, ["a_passed_deadline_sends_nothing"]),
    (IgnoresACancel, ["a_cancel_in_mid_stream_ends_it"]),
    (CallsADeadlineAConnectionError, ["a_deadline_in_mid_stream_ends_it"]),
    (GoesOnWhenClosed, ["closing_a_stream_ends_it"]),
    (KeepsConnections, ["a_stream_releases_its_connection"]),
    (BelongsToAThread, ["threads_may_share_the_model"]),
]


class Suite(ModelContract):
    """The suite for one of the models above, which count what they send and keep open."""

    patience = 0.2

    def __init__(self, model: Callable[[], Good], **told: Any) -> None:
        self.model = model
        self.told = told

    def make(self) -> Model:
        return self.model()

    def sent(self, model: Model) -> int:
        assert isinstance(model, Good)
        return model.sent

    def unclosed(self, model: Model) -> int | None:
        assert isinstance(model, Good)
        return model.open

    def stalled(self) -> Model | None:
        return self.told.get("stalled")

    def failures(self) -> Iterable[tuple[Model, type[ModelError]]]:
        failures: list[tuple[Model, type[ModelError]]] = self.told.get("failures", [])
        return failures


@pytest.mark.parametrize(("model", "expected"), BREACHES, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(model: Callable[[], Good], expected: list[str]) -> None:
    """A model that breaks one promise fails the test of that promise, and no other but what follows from it."""
    assert_breaks(Suite(model), *expected)


def test_a_model_that_raises_anything_is_told_of() -> None:
    """An exception that is no ModelError is a broken promise wherever it comes, not an error of the suite."""
    with pytest.raises(AssertionError, match="a OSError for a request that it should answer"):
        Suite(UntypedFailure).test_a_stream_ends_with_exactly_one_done()


@pytest.mark.parametrize("model", [UntypedFailure, Good])
def test_failures_have_to_be_typed(model: Callable[[], Good]) -> None:
    """A model that has to fail, and raises another error or none, fails the test of its failures alone."""
    assert_breaks(Suite(Good, failures=[(model(), RateLimited)]), "failures_are_typed")


def test_a_stall_has_to_end_with_its_scope() -> None:
    """A read that hears no cancel is given up after `patience`, and told of."""
    try:
        assert_breaks(Suite(Good, stalled=Deaf()), "a_cancel_ends_a_stream_that_has_stalled")
    finally:
        RELEASE.set()


def test_a_stream_without_close_is_not_asked_to() -> None:
    """`close` is optional: the tests about closing are left out, or only read to the end."""

    class Bare(Good):
        def answer(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
            return iter(list(HELLO))

    found = Suite(Bare)
    for test in (found.test_closing_a_stream_ends_it, found.test_a_stream_releases_its_connection):
        with suppress(SkipTest):
            test()


def test_the_suite_asks_for_make() -> None:
    """Without `make` the suite says what is missing."""
    with pytest.raises(NotImplementedError, match="needs make"):
        ModelContract().test_a_stream_ends_with_exactly_one_done()
