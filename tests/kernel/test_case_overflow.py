"""Cases of a context that is too large: the provider says so, an extension makes room, the request is built again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gotato_py import (
    Compaction,
    ContextOverflow,
    ErrorCode,
    ExtensionFailure,
    Hooks,
    InvalidRequest,
    Limits,
    MessageDiscarded,
    ModelRetry,
    RateLimited,
    RetryPolicy,
    RunFailed,
    RunStatus,
    SessionCompacted,
    TextDelta,
    TurnView,
    Usage,
    UserMessage,
    tool,
)
from gotato_testkit import ManualClock, Raise, call, say

from .laws import assert_laws
from .notes import fail, note
from .stage import Stage

FULL = Raise(ContextOverflow("the context is full"))


def work(n: int = 0) -> str:
    """Works."""
    return f"worked {n}"


def compact(view: TurnView, error: ContextOverflow) -> bool:
    """Puts a summary in the place of everything but the last message, or of everything where there is one."""
    last = view.messages[-2 if len(view.messages) > 1 else -1]
    view.transcript.replace(Compaction(UserMessage("Summary."), last.id))  # type: ignore[attr-defined]
    return True


def overflowing(*steps: Any, cure: Any = compact, **options: Any) -> Stage:
    """A stage with a first answer behind it, and an extension that cures what overflows."""
    options.setdefault("extensions", [] if cure is None else [Hooks(on_overflow=cure, name="cure")])
    stage = Stage(say("Hello."), *steps, tools=[work], clock=ManualClock(), retry=RetryPolicy(jitter=0), **options)
    assert stage.run("hi").text == "Hello."
    return stage


class TestC44Cured:
    """An extension makes room."""

    def test_c44_the_request_is_built_again(self) -> None:
        """The rebuilt request shows the summary; the user's message is sent and stored once; the run completes."""
        stage = overflowing(FULL, say("Ok."))
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "Ok.")
        assert stage.asked[1:] == [["U hi", "A Hello. end_turn", "U do it"], ["U Summary.", "U do it"]]
        assert stage.history == ["U Summary.", "U do it", "A Ok. end_turn"]
        assert sum(isinstance(event, SessionCompacted) for event in stage.events) == 1
        (retry,) = (event for event in stage.events if isinstance(event, ModelRetry))
        assert retry.error is not None
        assert (retry.error.code, retry.delay) == (ErrorCode.CONTEXT_OVERFLOW, 0.0)
        assert stage.kinds.count("context_built") == 3
        assert_laws(stage)

    def test_c44_again_in_a_later_turn(self) -> None:
        """Once a model call: the next one may overflow and be cured again."""
        stage = overflowing(FULL, call("work"), FULL, say("Ok."), cure=lambda view, error: True)
        assert stage.run().text == "Ok."
        assert_laws(stage)

    def test_c44_in_the_middle_of_an_answer(self) -> None:
        """What was shown of the answer is taken back before the next attempt."""
        stage = overflowing([TextDelta("On"), FULL], say("Ok."))
        assert stage.run().text == "Ok."
        assert sum(isinstance(event, MessageDiscarded) for event in stage.events) == 1
        assert "On" not in "".join(message.text for message in stage.messages)
        assert_laws(stage)

    def test_c44_by_something_else_than_a_summary(self) -> None:
        """An extension may make room in its own way: the request goes through its other points again."""
        small: list[bool] = []
        hooks = Hooks(
            on_overflow=lambda view, error: note(small, True, True),
            transform=lambda view, messages: messages[-1:] if small else messages,
        )
        stage = overflowing(FULL, say("Ok."), extensions=[hooks])
        assert stage.run().text == "Ok."
        assert stage.asked[-1] == ["U do it"]
        assert_laws(stage, again=False)

    def test_c44_in_order_to_the_first_that_cures(self) -> None:
        """Extensions are asked in order until one has made room."""
        asked: list[int] = []

        def cure(number: int, cured: bool) -> Hooks:
            return Hooks(on_overflow=lambda view, error: note(asked, number, cured))

        stage = overflowing(FULL, say("Ok."), extensions=[cure(1, False), cure(2, True), cure(3, True)])
        assert (stage.run().text, asked) == ("Ok.", [1, 2])
        assert_laws(stage)

    def test_c44_what_it_sees(self) -> None:
        """The view of the run, and the error as the adapter raised it."""
        seen: list[Any] = []

        def cure(view: TurnView, error: ContextOverflow) -> bool:
            seen.append((view.turn, len(view.messages), str(error)))
            return True

        stage = overflowing(FULL, say("Ok."), cure=cure)
        stage.run()
        assert seen == [(1, 3, "the context is full")]
        assert_laws(stage)

    def test_c44_of_a_wrap_up(self) -> None:
        """The last request after a limit is cured like any other."""
        limits = Limits(max_turns=1, wrap_up=True)
        stage = overflowing(call("work"), FULL, say("So far."), cure=lambda view, error: True, limits=limits)
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.LIMITED, "So far.")
        assert_laws(stage)


class TestC44NotCured:
    """Nothing helps, or nobody is asked."""

    def test_c44_a_second_overflow(self) -> None:
        """A second overflow of the same call fails the run: two requests, one cure, a transcript that can be sent."""
        asked: list[int] = []
        stage = overflowing(FULL, FULL, say("never"), cure=lambda view, error: note(asked, 1, compact(view, error)))
        result = stage.run()
        assert (result.status, asked, len(stage.asked)) == (RunStatus.FAILED, [1], 3)
        assert isinstance(result.error, ContextOverflow)
        with pytest.raises(RunFailed) as raised:
            result.raise_for_status()
        assert raised.value.code is ErrorCode.CONTEXT_OVERFLOW
        assert stage.history == ["U Summary.", "U do it"]
        assert_laws(stage)

    def test_c44_what_is_too_big_is_told(self) -> None:
        """The error of a second overflow says how much of the request is what, and quotes nothing of it."""
        told = {"limit": 100}
        again = Raise(ContextOverflow("the context is full", status=400, details=told))
        stage = overflowing(FULL, again, instructions="Zürich" * 100)
        spec = tool(work).spec
        error = stage.run("naïve").error
        assert isinstance(error, ContextOverflow)
        sizes = {"instructions": 700, "messages": len("Summary.naïve") + 1, "largest_message": len("Summary.")}
        assert error.details == {**told, **sizes, "tools": error.details["tools"]}
        assert error.details["tools"] == len(json.dumps([[spec.name, spec.description, dict(spec.input_schema)]]))
        assert (error.status, error.cause) == (400, None)
        assert str(error) == (
            "the context is full (after 2 attempts); room was made, and it still has 700 bytes of instructions,"
            f" {error.details['tools']} of tools and 14 in 2 message(s), the largest 8"
        )
        assert isinstance(again.error, ContextOverflow)
        assert again.error.details == told
        assert_laws(stage)

    def test_c44_without_tools(self) -> None:
        """A request without tools has no bytes of them."""
        stage = Stage(FULL, FULL, clock=ManualClock(), extensions=[Hooks(on_overflow=lambda view, error: True)])
        error = stage.run().error
        assert error is not None
        assert error.details == {"instructions": 0, "tools": 0, "messages": 5, "largest_message": 5}

    @pytest.mark.parametrize("cure", [None, lambda view, error: False], ids=["nobody", "no cure"])
    def test_c44_at_once(self, cure: Any) -> None:
        """Without a cure the run fails at once, and a model that can take more goes on from there."""
        stage = overflowing(FULL, say("Ok."), cure=cure)
        assert isinstance(stage.run().error, ContextOverflow)
        assert len(stage.asked) == 2
        assert stage.run(None).text == "Ok."
        assert stage.history == ["U hi", "A Hello. end_turn", "U do it", "A Ok. end_turn"]
        assert_laws(stage)

    def test_c44_a_rate_limit_is_none(self) -> None:
        """A 429 whose text speaks of too many tokens is retried, and nobody is asked to make room."""
        asked: list[int] = []
        limited = Raise(RateLimited("too many tokens: reduce the length of the messages", retry_after=1.0))
        stage = overflowing(limited, say("Ok."), cure=lambda view, error: note(asked, 1, True))
        assert (stage.run().text, asked) == ("Ok.", [])
        assert stage.asked[1] == stage.asked[2]
        assert_laws(stage)

    def test_c44_another_refusal_is_none(self) -> None:
        """Only the typed error counts, whatever the text of another one says."""
        stage = overflowing(Raise(InvalidRequest("context length exceeded")))
        assert isinstance(stage.run().error, InvalidRequest)
        assert len(stage.asked) == 2
        assert_laws(stage)

    def test_c44_usage_alone_is_none(self) -> None:
        """An answer with huge usage is an answer: the kernel does not guess."""
        stage = overflowing(say("Ok.", usage=Usage(10**9, 1)))
        assert stage.run().text == "Ok."
        assert not any(isinstance(event, SessionCompacted) for event in stage.events)
        assert_laws(stage)

    def test_c44_retries_around_it(self) -> None:
        """Errors that are worth another attempt are retried before and after the cure, as many as a call may have."""
        busy = Raise(RateLimited("busy", retry_after=1.0))
        stage = overflowing(busy, FULL, say("Ok."))
        assert stage.run().text == "Ok."
        assert [event.attempt for event in stage.events if isinstance(event, ModelRetry)] == [1, 2]
        stage = overflowing(FULL, busy, busy, say("never"))
        assert isinstance(stage.run().error, RateLimited)
        assert_laws(stage)


class TestC44TheCureFails:
    """The extension that is to make room cannot."""

    @pytest.mark.parametrize("act", [fail, lambda: None, lambda: 1, lambda: "yes"], ids=["raises", "None", "1", "yes"])
    def test_c44_fails_the_run(self, act: Any) -> None:
        """It raises, or returns what is no yes and no no: the run fails in its name; the overflow is named too."""
        stage = overflowing(FULL, cure=lambda view, error: act())
        result = stage.run()
        assert isinstance(result.error, ExtensionFailure)
        assert "extension cure failed at on_overflow" in str(result.error)
        assert (len(stage.asked), stage.history[-1]) == (2, "U do it")
        assert isinstance(result.error.__context__ or result.error.__cause__, BaseException)
        assert_laws(stage)

    def test_c44_advisory(self) -> None:
        """An advisory one that fails has not cured anything: the run fails with the overflow."""
        advice = Hooks(on_overflow=lambda view, error: fail(), advisory=True, name="advice")
        stage = overflowing(FULL, extensions=[advice])
        assert isinstance(stage.run().error, ContextOverflow)
        assert_laws(stage)

    def test_c44_a_refused_summary_changes_nothing(self) -> None:
        """A summary that the transcript refuses is the extension's failure, and nothing is replaced."""

        def bad(view: TurnView, error: ContextOverflow) -> bool:
            view.transcript.replace(Compaction(UserMessage(" "), view.messages[-1].id))  # type: ignore[attr-defined]
            return True

        stage = overflowing(FULL, cure=bad)
        before = ["U hi", "A Hello. end_turn", "U do it"]
        assert isinstance(stage.run().error, ExtensionFailure)
        assert stage.history == before
        assert_laws(stage)
