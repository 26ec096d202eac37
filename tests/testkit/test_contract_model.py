"""The suite for models: ours keep it, and each of its tests is the one that a certain broken model fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest, TestCase

import pytest

from gotato_py import (
    ConnectionFailed,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    RateLimited,
    Scope,
)
from gotato_testkit import DemoModel, EchoModel, Raise, ScriptedModel, Stall
from gotato_testkit.contracts import BrokenPromise, ModelContract

from . import broken_models as broken
from .broken_models import HELLO, Good
from .suites import assert_breaks, not_judged_by


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


BREACHES: list[tuple[Callable[[], Good], list[str]]] = [
    (Good, []),
    (broken.TwoDones, ["a_stream_ends_with_exactly_one_done"]),
    (broken.NoDone, ["a_stream_ends_with_exactly_one_done"]),
    (broken.DoneFirst, ["a_stream_ends_with_exactly_one_done"]),
    (broken.AtOnce, ["a_request_is_answered"]),
    (broken.Empty, ["a_stream_ends_with_exactly_one_done"]),
    (broken.UntypedFailure, ["a_request_is_answered"]),
    (broken.TypedFailure, ["a_request_is_answered"]),
    (broken.WithoutScope, ["a_request_is_answered"]),
    (broken.Asynchronous, ["a_request_is_answered"]),
    (broken.HearsNothing, ["a_cancelled_scope_sends_nothing", "a_cancel_in_mid_stream_ends_it"]),
    (broken.Garbage, ["every_event_is_a_model_event"]),
    (broken.FailureAsAnswer, ["done_says_how_the_model_stopped"]),
    (broken.Silent, ["an_answer_says_something"]),
    (broken.ChangesTheRequest, ["the_request_is_left_as_it_was"]),
    (broken.AnswersOnce, ["the_same_request_may_be_sent_again"]),
    (broken.TupleOfCapabilities, ["optional_attributes_are_of_their_types"]),
    (broken.NoName, ["optional_attributes_are_of_their_types"]),
    (broken.SendsWhenCancelled, ["a_cancelled_scope_sends_nothing"]),
    (broken.AnswersWhenCancelled, ["a_cancelled_scope_sends_nothing"]),
    (broken.CallsADeadlineACancel, ["a_passed_deadline_sends_nothing"]),
    (broken.IgnoresACancel, ["a_cancel_in_mid_stream_ends_it"]),
    (broken.CallsADeadlineAConnectionError, ["a_deadline_in_mid_stream_ends_it"]),
    (broken.GoesOnWhenClosed, ["closing_a_stream_ends_it"]),
    (broken.KeepsConnections, ["a_stream_releases_its_connection"]),
    (broken.BelongsToAThread, ["threads_may_share_the_model"]),
]


class Suite(ModelContract):
    """The suite for one of the models above, which count what they send and keep open."""

    patience = 30.0
    """Nothing of it has to run out but where a test says so: the machine may be slow."""

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


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (broken.UntypedFailure, "an OSError for a request that it should answer"),
        (broken.TypedFailure, "a RateLimited for `request()`"),
        (broken.WithoutScope, "a TypeError for a request that it should answer\n  to do: take (request, scope)"),
        (broken.AtOnce, "a list, which is no iterator"),
        (broken.Asynchronous, "an async_generator, which is no iterator"),
    ],
)
def test_a_model_that_does_not_answer_is_told_of_once(model: Callable[[], Good], said: str) -> None:
    """What keeps a request from being answered is told by one test; those that build upon it are not judged."""
    suite = Suite(model)
    with pytest.raises(BrokenPromise, match=re.escape(said)):
        suite.test_a_request_is_answered()
    assert "test_a_cancel_in_mid_stream_ends_it" in not_judged_by(suite)
    assert all("(test_a_request_is_answered)" in reason for reason in not_judged_by(suite).values())


def test_a_model_that_fails_now_and_then_is_told_of() -> None:
    """An exception that is no ModelError is a broken promise wherever it comes, not an error of the suite."""
    with pytest.raises(BrokenPromise, match="a OSError for a request that it should answer"):
        Suite(broken.FailsForLists).test_the_request_is_left_as_it_was()


def test_an_answer_of_one_event_is_too_short() -> None:
    """The tests that end an answer after its first event say that they need a longer one."""
    reasons = not_judged_by(Suite(broken.DoneFirst))
    assert "override request()" in reasons["test_a_cancel_in_mid_stream_ends_it"]


@pytest.mark.parametrize("model", [broken.UntypedFailure, Good])
def test_failures_have_to_be_typed(model: Callable[[], Good]) -> None:
    """A model that has to fail, and raises another error or none, fails the test of its failures alone."""
    assert_breaks(Suite(Good, failures=[(model(), RateLimited)]), "failures_are_typed")


def test_a_stall_has_to_end_with_its_scope() -> None:
    """A read that hears no cancel is given up after `patience`, and told of."""
    suite = Suite(Good, stalled=broken.Deaf())
    suite.patience = 0.2
    broken.RELEASE.clear()
    try:
        with pytest.raises(BrokenPromise, match=r"stall, and it had not come to an end within 0\.2 s"):
            suite.test_a_cancel_ends_a_stream_that_has_stalled()
    finally:
        broken.RELEASE.set()


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
