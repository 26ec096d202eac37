"""What no other test would notice of structured output, and of the names that are kept in transcripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from gotato_py import Approve, Ask, ErrorCode, Hooks, InvalidArgument, Limits, Reject, RunStatus, TurnView, UserMessage
from gotato_testkit import Do, FakeTool, call, say

from .laws import assert_laws
from .stage import Stage


@dataclass
class Number:
    """What a run is asked for."""

    value: int


class TestFinalAnswer:
    """The call that gives the output."""

    def test_its_result(self) -> None:
        """The call that was taken has a result that says so, and no error."""
        stage = Stage(call("final_answer", value=5))
        stage.agent.run("how many?", output=Number)
        (message,) = stage.results
        assert (message.result.text, message.result.error) == ("taken", "")
        assert message.result.metadata == {"final_answer": True}
        assert_laws(stage)

    def test_one_that_does_not_fit_in_the_last_turn(self) -> None:
        """Where the last turn brings no output that fits, nothing else that it calls is run: nobody would see it."""
        stage = Stage(
            call("look") + call("final_answer", value="many"), tools=[FakeTool("look")], limits=Limits(max_turns=1)
        )
        result = stage.agent.run("how many?", output=Number, check=False)
        assert (result.status, dict(stage.effects)) == (RunStatus.LIMITED, {})
        assert_laws(stage, again=False)

    def test_text_instead_of_the_call(self) -> None:
        """A model that goes on to answer with text alone is corrected three times, and no more."""
        stage = Stage(*[say("Five.")] * 6)
        result = stage.agent.run("how many?", output=Number, check=False)
        assert (result.status, len(stage.asked)) == (RunStatus.FAILED, 4)
        assert result.error is not None
        assert result.error.code is ErrorCode.OUTPUT_INVALID
        assert_laws(stage)

    def test_a_tool_of_that_name_beside_a_native_model(self) -> None:
        """A model that keeps schemas by itself may call a tool of the user's that is named so."""
        stage = Stage(call("final_answer"), say('{"value": 5}'), tools=[FakeTool("final_answer", "the user's own")])
        stage.model.capabilities = frozenset({"response_schema"})
        result = stage.agent.run("how many?", output=Number)
        assert (result.output, stage.results[0].result.text) == (Number(5), "the user's own")
        assert_laws(stage)


def test_a_run_that_was_asked_for_none() -> None:
    """A completed run without `output` has None, and does not say that it lacks it."""
    result = Stage(say("Hi.")).run()
    assert (result.status, result.lacks_output, result.output) == (RunStatus.COMPLETED, False, None)


class TestNamesThatAreKept:
    """Metadata by which later runs, perhaps of later versions, know what a message is."""

    def test_controls(self) -> None:
        """A message that came for a run is kept with the control by which it came."""

        def act() -> None:
            stage.agent.steer("hurry")
            stage.agent.follow_up("and then?")

        def once_more(view: TurnView) -> UserMessage | None:
            return None if "sure?" in stage.history[-2] else UserMessage("sure?")

        tools = [FakeTool("a", Do(act))]
        stage = Stage(call("a"), *[say("Yes.")] * 4, tools=tools, extensions=[Hooks(before_settle=once_more)])
        stage.run()
        kept = {message.text: dict(message.metadata) for message in stage.messages if isinstance(message, UserMessage)}
        assert kept == {
            "do it": {},
            "hurry": {"control": "steer"},
            "and then?": {"control": "follow_up"},
            "sure?": {"control": "before_settle"},
        }
        assert_laws(stage, again=False)

    def test_a_rejected_answer(self) -> None:
        """An answer that a guardrail rejected is kept with its reason."""
        stage = Stage(say("Buy!"), extensions=[Hooks(check_answer=lambda view, message: Reject("advice"))])
        assert stage.run().status is RunStatus.FAILED
        assert stage.messages[-1].metadata == {"rejected": "advice"}


class TestExtensions:
    """What is said of an extension that failed."""

    def test_its_error_is_not_quoted(self) -> None:
        """The error of the run names the type of what was raised; its text, which may hold anything, is not in it."""

        def fail(view: TurnView) -> None:
            raise ValueError("secret")

        stage = Stage(say("Hi."), extensions=[Hooks(before_turn=fail, name="checker")])
        error = stage.run().error
        assert error is not None
        assert error.message == "extension checker failed at before_turn (ValueError)"

    def test_in_a_run_that_was_cancelled(self) -> None:
        """An extension that raises something of its own has failed, even where the run has ended meanwhile."""

        def fail(view: TurnView) -> None:
            stage.cancel()
            raise ValueError

        stage = Stage(say("Hi."), extensions=[Hooks(before_turn=fail, name="checker")])
        stage.run()
        assert stage.kinds.count("extension_failed") == 1


class TestAnswers:
    """What `answers` may hold."""

    @pytest.mark.parametrize(
        ("answers", "said"),
        [({5: Approve()}, "a key must be a str, not int"), ([], "must be a mapping"), ({"k": True}, "must be Approve")],
    )
    def test_wrong_ones(self, answers: Any, said: str) -> None:
        """What is no mapping of keys to decisions is refused, and the error says what is wrong with it."""
        stage = Stage(call("a"), tools=[FakeTool("a")], extensions=[Hooks(before_tool=lambda use: Ask("May it?"))])
        stage.run()
        with pytest.raises(InvalidArgument, match=said):
            stage.agent.run(answers=answers)
        assert stage.agent.status == "waiting"
