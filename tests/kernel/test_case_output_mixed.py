"""Cases of `output=` beside other things: other calls of its batch, limits, queued messages, guardrails, redelivery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gotato_py import (
    Accept,
    AnswerRejected,
    Hooks,
    InvalidArgument,
    InvalidState,
    LimitExceeded,
    Limits,
    Reject,
    RunStatus,
    Tool,
    ToolSource,
    TurnView,
    UserMessage,
    tool,
)
from gotato_testkit import call, say

from .laws_of_waiting import NO, YES, answers, asks, assert_laws, ran, waits_for
from .notes import fail
from .stage import Stage
from .test_case_output import GIVEN, SUNNY, Weather, ask, final, look, statuses, wanted

OTHER = {"city": "Bergen", "degrees": 12}


class TestInABatch:
    """`final_answer` beside other calls of the same message."""

    def test_ordinary_calls_run_first(self) -> None:
        """Wherever the answer stands, the other calls run, and the model is not asked again."""
        for batch in (final(**GIVEN) + call("look"), call("look") + final(**GIVEN)):
            stage = wanted(batch)
            assert ask(stage).output == SUNNY
            assert (sorted(ran(stage)), len(stage.asked)) == (["final_answer ok", "look ok"], 1)
            assert ran(stage)[0] == "look ok"
            assert_laws(stage)

    def test_the_first_valid_one(self) -> None:
        """Of several answers the first that fits is taken; those behind it are not run, those before it were wrong."""
        stage = wanted(final(city=1) + final(**GIVEN) + final(**OTHER))
        assert ask(stage).output == SUNNY
        assert statuses(stage) == ["not_run", "ok", "not_run"]
        assert "earlier" in stage.results[2].text
        with pytest.raises(InvalidArgument, match="finished"):
            stage.run(None)
        assert_laws(stage)

    def test_none_valid(self) -> None:
        """Where none of a message fits, that is one correction."""
        stage = wanted(*[final(city=1) + final(city=2) + call("look")] * 3, final(**GIVEN))
        assert ask(stage).output == SUNNY
        assert len(stage.asked) == 4
        assert_laws(stage)

    def test_a_tool_that_fails_beside_it(self) -> None:
        """A call that fails beside the answer does not make it wrong."""

        def boom() -> str:
            """Fails."""
            raise ValueError("no such row")

        stage = wanted(call("boom") + final(**GIVEN), tools=[boom])
        assert ask(stage).output == SUNNY
        assert statuses(stage) == ["failed", "ok"]
        assert_laws(stage)

    def test_with_workers(self) -> None:
        """With calls that run at once the answer is taken when all of them are done."""
        stage = wanted(final(**GIVEN) + call("look") + call("look", city="b"), limits=Limits(max_parallel_tools=3))
        assert ask(stage).output == SUNNY
        assert ran(stage)[-1] == "final_answer ok"
        assert_laws(stage)

    def test_an_extension_that_fails_beside_it(self) -> None:
        """A failure at a call beside the answer fails the run when the batch is done."""
        stage = wanted(call("look") + final(**GIVEN), extensions=[Hooks(after_tool=lambda use, result: fail())])
        result = ask(stage)
        assert (result.status, statuses(stage)) == (RunStatus.FAILED, ["ok", "ok"])
        assert_laws(stage, again=False)

    def test_beside_a_tool_source(self) -> None:
        """Tools of a source are offered beside it, each turn anew; one that takes the name fails the run."""

        class Source:
            """Gives another tool each turn."""

            def tools(self, view: TurnView) -> Sequence[Tool]:
                """One tool, named after the turn."""
                return [tool(look, name=f"look_{view.turn}" if view.turn < 3 else "final_answer")]

        source: ToolSource = Source()
        stage = wanted(call("look_1"), final(**GIVEN))
        other = Stage(call("look_1"), final(**GIVEN))
        other.agent = type(other.agent)(other.model, tools=[source], transcript=other.transcript, extensions=[
            Hooks(observe=other.events.append),
        ])  # fmt: skip
        assert ask(other).output == SUNNY
        assert [[spec.name for spec in each.tools] for each in other.model.requests] == [
            ["final_answer", "look_1"], ["final_answer", "look_2"],
        ]  # fmt: skip
        other.script.replace(*[say("Hm.")] * 2, final(**GIVEN))
        result = ask(other, "again")
        assert isinstance(result.error, InvalidArgument)
        assert "final_answer" in str(result.error)
        assert_laws(other)
        assert_laws(stage)


class TestAroundIt:
    """Limits, queued messages, vetoes, guardrails."""

    def test_in_the_last_turn(self) -> None:
        """An answer by a call needs no further turn: with `max_turns=1` the run completes, other calls included."""
        for batch in (final(**GIVEN), call("look") + final(**GIVEN)):
            stage = wanted(batch, limits=Limits(max_turns=1, max_total_tokens=10**6))
            assert ask(stage).output == SUNNY
            assert_laws(stage)

    def test_a_wrong_one_in_the_last_turn(self) -> None:
        """One that does not fit would need another turn: the run is limited."""
        stage = wanted(final(city=1), limits=Limits(max_turns=1))
        error = ask(stage).error
        assert isinstance(error, LimitExceeded)
        assert error.limit == "max_turns"
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["steer", "follow_up", "before_settle"])
    def test_the_run_goes_on_after_it(self, kind: str) -> None:
        """What comes after an answer has the run go on; the value is the last one that was given."""
        left = ["and Bergen?"]

        def settle(view: TurnView) -> UserMessage | None:
            return UserMessage(left.pop()) if left and kind == "before_settle" else None

        def queue(view: TurnView, message: Any) -> Accept:
            if left and kind != "before_settle":
                getattr(stage.agent, kind)(left.pop())
            return Accept()

        stage = wanted(final(**GIVEN), final(**OTHER), extensions=[Hooks(before_settle=settle, check_answer=queue)])
        assert ask(stage).output == Weather("Bergen", 12)
        assert stage.history[3] == "U and Bergen?"
        assert statuses(stage) == ["ok", "ok"]
        assert_laws(stage)

    def test_the_run_goes_on_and_gives_none(self) -> None:
        """An answer that was followed by a message counts no more: the run has to come to another one."""
        left = ["and Bergen?"]
        settle = Hooks(before_settle=lambda view: UserMessage(left.pop()) if left else None)
        stage = wanted(final(**GIVEN), say("Rain."), final(**OTHER), extensions=[settle])
        assert ask(stage).output == Weather("Bergen", 12)
        assert len(stage.asked) == 3
        assert_laws(stage)

    @pytest.mark.parametrize("redact", [True, False])
    def test_a_guardrail(self, redact: bool) -> None:
        """An answer that a guardrail rejects gives no value."""
        guard = Hooks(check_answer=lambda view, message: Reject("no", redact) if message.tool_calls else Accept())
        stage = wanted(final(**GIVEN), extensions=[guard])
        result = ask(stage)
        assert isinstance(result.error, AnswerRejected)
        assert statuses(stage) == ([] if redact else ["not_run"])
        with pytest.raises(Exception, match="rejected"):
            result.output  # noqa: B018  # the property raises
        assert_laws(stage)


class TestWaiting:
    """A call of the same message waits for a person."""

    def asked(self, batch: Any, *more: Any) -> Stage:
        """A stage whose `look` needs an approval."""
        return wanted(batch, *more, extensions=[asks("look")])

    def test_the_answer_stands_behind(self) -> None:
        """An answer behind the call that waits is taken when the batch goes on, without another request."""
        stage = self.asked(call("look") + final(**GIVEN))
        result = ask(stage)
        assert (waits_for(result), statuses(stage)) == (["look"], [])
        with pytest.raises(InvalidState, match="waiting"):
            result.output  # noqa: B018  # the property raises
        done = stage.agent.run(answers=answers(result, look=YES), output=Weather)
        assert (done.output, len(stage.asked), ran(stage)) == (SUNNY, 1, ["look ok", "final_answer ok"])
        assert_laws(stage)

    def test_the_answer_stands_before(self) -> None:
        """An answer before the call that waits is too early: it is not taken, and can be given again."""
        stage = self.asked(final(**GIVEN) + call("look"), final(**OTHER))
        result = ask(stage)
        assert (waits_for(result), ran(stage)) == (["look"], ["final_answer not_run"])
        done = stage.agent.run(answers=answers(result, look=NO), output=Weather)
        assert done.output == Weather("Bergen", 12)
        assert ran(stage) == ["final_answer not_run", "look blocked", "final_answer ok"]
        assert_laws(stage)

    def test_nobody_asks_for_a_value_any_more(self) -> None:
        """A run that goes on without `output` does not know the tool: the model is told, and answers in text."""
        stage = self.asked(call("look") + final(**GIVEN), say("Sunny."))
        done = stage.run(None, answers=answers(ask(stage), look=YES))
        assert (done.text, ran(stage)) == ("Sunny.", ["look ok", "final_answer not_run"])
        assert_laws(stage)

    def test_settling_after_it(self) -> None:
        """Where the batch that went on gave the value, an extension still may have the run go on."""
        seen: list[Any] = []

        def settle(view: TurnView) -> UserMessage | None:
            seen.append(view.result and view.result.message and len(view.result.message.tool_calls))
            return UserMessage("and Bergen?") if len(seen) == 1 else None

        stage = wanted(
            call("look") + final(**GIVEN), final(**OTHER), extensions=[asks("look"), Hooks(before_settle=settle)]
        )
        done = stage.agent.run(answers=answers(ask(stage), look=YES), output=Weather)
        assert (done.output, seen) == (Weather("Bergen", 12), [2, 1])
        assert_laws(stage)
