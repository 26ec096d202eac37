"""The suite for context builders: the default keeps it, and each of its tests is the one that a broken one fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

from gotato_py import (
    AssistantMessage,
    ContextBuilder,
    Message,
    ModelContext,
    TextPart,
    ToolMessage,
    TurnView,
    UserMessage,
    full_history,
)
from gotato_testkit.contracts import ContextBuilderContract

from ..effort import by_profile
from .suites import assert_breaks, broken_by, names_of, not_judged_by

T = TypeVar("T")
EXAMPLES = by_profile(dev=6, ci=25, nightly=200)


class TestFullHistory(ContextBuilderContract):
    """The default builder keeps the promises of a context builder."""

    examples = EXAMPLES

    def make(self) -> ContextBuilder:
        return full_history


class LastTurns:
    """A builder that cuts in front of a user message."""

    def build(self, view: TurnView) -> ModelContext:
        users = [index for index, message in enumerate(view.messages) if isinstance(message, UserMessage)]
        return ModelContext(view.system, view.messages[users[-1] :] if users else (), panel=f"turn {view.turn}")


class TestLastTurns(ContextBuilderContract):
    """So does a window of whole turns, with a panel."""

    examples = EXAMPLES

    def make(self) -> ContextBuilder:
        return LastTurns()


# builders that are broken, each in its own way


class Good:
    """A builder that keeps every promise; subclasses break one each."""

    calls = 0

    def build(self, view: TurnView) -> Any:
        self.calls += 1
        return ModelContext(self.system(view), self.messages(view))

    def system(self, view: TurnView) -> Any:
        return view.system

    def messages(self, view: TurnView) -> Any:
        return view.messages


class JustMessages(Good):
    """Returns bare messages for an empty history."""

    def build(self, view: TurnView) -> Any:
        return view.messages if not len(view.messages) else super().build(view)


class NeverAContext(Good):
    """Returns bare messages."""

    def build(self, view: TurnView) -> Any:
        return list(view.messages)


class Raises(Good):
    """Raises whatever it is shown."""

    def build(self, view: TurnView) -> Any:
        raise KeyError("panel")


class LosesResults(Good):
    """Leaves results out, and not their calls."""

    def messages(self, view: TurnView) -> Any:
        return [message for message in view.messages if not isinstance(message, ToolMessage)]


class BeginsWithAnAnswer(Good):
    """Puts an answer in front."""

    def messages(self, view: TurnView) -> Any:
        return [AssistantMessage("Hello."), *view.messages]


class CountsInTheSystemText(Good):
    """Says something else each time."""

    def system(self, view: TurnView) -> Any:
        return f"Request {self.calls}."


class CountsInTheHistory(Good):
    """Adds something else each time."""

    def messages(self, view: TurnView) -> Any:
        return [*view.messages, UserMessage([TextPart(f"Request {self.calls}.")])]


class Appends(Good):
    """Writes into the transcript."""

    def messages(self, view: TurnView) -> Any:
        if not any(message.text == "by the builder" for message in view.transcript.messages):
            view.transcript.append(UserMessage("by the builder"))
        return view.messages


class Sorts(Good):
    """Takes the list that it is shown apart."""

    def messages(self, view: TurnView) -> Any:
        shown: Any = view.messages
        kept = list(shown)
        shown.clear()
        return kept


class StrangeMessages(Good):
    """Shows what are no messages."""

    def messages(self, view: TurnView) -> Any:
        return Strange(view.messages)


class Strange(list[Message]):
    """Messages that turn out to be others when they are read."""

    def __iter__(self) -> Any:
        return iter(["text"])


class Suite(ContextBuilderContract):
    """The suite for one of the builders above."""

    examples = 8

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made = made

    def make(self) -> ContextBuilder:
        made: ContextBuilder = self.made()
        return made

    def for_all(self, strategy: SearchStrategy[T], check: Callable[[T], None]) -> None:
        """Takes a failing example as it is drawn: to shrink it takes most of the time, and changes nothing here."""
        given(strategy)(settings(deadline=None, max_examples=self.examples or 8, phases=[Phase.generate])(check))()


BREACHES: list[tuple[Callable[[], Any], list[str]]] = [
    (JustMessages, ["it_builds_a_model_context"]),
    (NeverAContext, ["it_builds_a_model_context"]),
    (Raises, ["it_builds_a_model_context"]),
    (LosesResults, ["what_it_builds_can_be_sent"]),
    (BeginsWithAnAnswer, ["a_user_message_comes_first"]),
    (CountsInTheSystemText, ["the_same_view_gives_the_same_context"]),
    (CountsInTheHistory, ["the_same_view_gives_the_same_context"]),
    (Appends, ["what_it_is_shown_stays_as_it_was"]),
]


@pytest.mark.parametrize(("made", "expected"), BREACHES, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(made: Callable[[], Any], expected: list[str]) -> None:
    """A builder that breaks one promise fails the test of that promise, and no other."""
    assert_breaks(Suite(made), *expected)


@pytest.mark.parametrize(("made", "said"), [(NeverAContext, "a list"), (Raises, "it raised KeyError")])
def test_what_is_no_context_is_told_of_once(made: Callable[[], Any], said: str) -> None:
    """One test tells what `build` gave; all others are not judged."""
    suite = Suite(made)
    assert [each.found for each in broken_by(suite).values()] == [said]
    assert len(not_judged_by(suite)) == len(names_of(suite)) - 1


def test_a_view_that_was_changed_is_told_of() -> None:
    """A builder that changes the list that it is shown fails."""
    with pytest.raises(AssertionError, match="found: in the transcript, 0 messages"):
        Suite(Sorts).test_what_it_is_shown_stays_as_it_was()


def test_what_is_no_request_is_told_of() -> None:
    """Messages that `assemble_request` refuses are told of in its words."""
    with pytest.raises(AssertionError, match="must be a message"):
        Suite(StrangeMessages).test_a_request_can_be_made_of_it()


def test_no_message_at_all_is_told_of() -> None:
    """A context without messages, where there are some, fails."""

    class Nothing(Good):
        def messages(self, view: TurnView) -> Any:
            return ()

    with pytest.raises(AssertionError, match="found: no message at all"):
        Suite(Nothing).test_a_user_message_comes_first()


def test_results_are_shown_in_the_order_of_their_calls() -> None:
    """A view is in the order of a request, whatever order the results came in."""
    seen: list[str] = []

    class Looks(Good):
        def messages(self, view: TurnView) -> Any:
            keys = [message.result.key for message in view.messages if isinstance(message, ToolMessage)]
            batches = {key.partition(":")[0] for key in keys if key}
            for batch in batches:
                mine = [key for key in keys if key.startswith(f"{batch}:")]
                seen.extend(mine)
                assert mine == sorted(mine)
            return view.messages

    Suite(Looks).test_it_builds_a_model_context()
    with pytest.raises(NotImplementedError, match="needs make"):
        ContextBuilderContract().test_it_builds_a_model_context()
