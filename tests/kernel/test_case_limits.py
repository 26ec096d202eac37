"""Cases of limits: loops that never end, and limits that are reached while calls are open."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from gotato_py import (
    Agent,
    InvalidArgument,
    LimitExceeded,
    Limits,
    RunLimited,
    RunResult,
    RunStatus,
    TextDelta,
    ToolContext,
    ToolResultStatus,
    Usage,
    UserMessage,
)
from gotato_testkit import ScriptedModel, Step, call, say

from .laws import assert_laws
from .stage import Stage, history


def ping(n: int = 0) -> str:
    """Always the same."""
    return "pong"


def pong(n: int = 0) -> str:
    """Always the same."""
    return "ping"


def limit_of(result: RunResult[Any]) -> str:
    """The name of the limit that ended the run."""
    assert result.status is RunStatus.LIMITED, result
    assert isinstance(result.error, LimitExceeded)
    return result.error.limit


def counting() -> Callable[[], str]:
    """A tool whose result changes every time."""
    numbers = count()

    def poll() -> str:
        """How far it is."""
        return f"{next(numbers)} %"

    return poll


class TestC42EndlessLoops:
    """The model calls tools for ever."""

    @pytest.mark.parametrize(
        "circle",
        [[call("ping", n=1)], [call("ping"), call("pong")], [call("ping"), call("ping", n=2), call("pong")]],
        ids=["A", "AB", "ABC"],
    )
    def test_c42_in_a_circle(self, circle: list[Step]) -> None:
        """The same calls with the same results end the run: after one warning in a result, all results present."""
        stage = Stage(*circle * 20, tools=[ping, pong])
        result = stage.run()
        assert limit_of(result) == "max_repeated_calls"
        most = Limits().max_repeated_calls
        assert most is not None
        assert most <= len(stage.asked) / len(circle) <= most + 1
        assert set(stage.statuses) == {ToolResultStatus.OK}
        plain = {"ping", "pong"}
        warned = [index for index, message in enumerate(stage.results) if message.text not in plain]
        assert len(warned) >= 1
        assert all(stage.results[index].text.startswith(("ping", "pong")) for index in warned)
        assert len(warned) <= len(circle)
        assert [line[0] for line in stage.history].count("U") == 1
        assert_laws(stage)

    def test_c42_with_a_growing_counter(self) -> None:
        """Calls whose arguments change are no circle; `max_turns`, which has a finite default, ends them."""
        stage = Stage(*[call("ping", n=number) for number in range(200)], tools=[ping])
        assert limit_of(stage.run()) == "max_turns"
        assert len(stage.asked) == Limits().max_turns == 100
        assert {message.text for message in stage.results[:-1]} == {"pong"}
        assert_laws(stage)

    def test_c42_a_poll_whose_result_changes(self) -> None:
        """The same call with results that change is legitimate: nothing warns, nothing ends."""
        stage = Stage(*[call("poll")] * 50, say("100 %."), tools=[counting()])
        assert stage.run().text == "100 %."
        assert [message.text for message in stage.results] == [f"{number} %" for number in range(50)]
        assert_laws(stage)

    def test_c42_the_order_of_arguments(self) -> None:
        """Arguments are compared as data: their order in the text makes no other call."""

        def pair(a: int, b: int) -> str:
            """Always the same."""
            return "pair"

        stage = Stage(*[call("pair", a=1, b=2), call("pair", b=2, a=1)] * 9, tools=[pair])
        assert limit_of(stage.run()) == "max_repeated_calls"
        assert len(stage.asked) <= 9
        assert_laws(stage)

    def test_c42_another_run_starts_anew(self) -> None:
        """What was repeated in one run is not held against the next."""
        stage = Stage(*[call("ping")] * 6, say("One."), *[call("ping")] * 6, say("Two."), tools=[ping])
        assert stage.run().text == "One."
        assert stage.run().text == "Two."
        assert_laws(stage)


class TestC43MaxTurns:
    """`max_turns` is reached."""

    STEPS = (call("ping", n=1), say("Still at it.") + call("ping", n=2), say("More.") + call("ping") + call("pong"))

    def test_c43_with_two_calls_open(self) -> None:
        """The calls of the last turn are not run; the result has the last text and every message."""
        stage = Stage(*self.STEPS, tools=[ping, pong], limits=Limits(max_turns=3))
        result = stage.run()
        assert limit_of(result) == "max_turns"
        assert result.text == "More."
        assert list(result.new_messages) == stage.messages
        assert stage.statuses[-2:] == [ToolResultStatus.NOT_RUN] * 2
        assert all("max_turns" in message.text for message in stage.results[-2:])
        assert sum(stage.effects.values()) == 2
        assert result.metrics.turns == 3
        assert_laws(stage)

    def test_c43_raised(self) -> None:
        """With `check` it is a `RunLimited` that holds the whole result and names the limit's error as its cause."""
        stage = Stage(*self.STEPS, tools=[ping, pong], limits=Limits(max_turns=2))
        with pytest.raises(RunLimited) as raised:
            stage.agent.run("do it")
        assert limit_of(raised.value.result) == "max_turns"
        assert raised.value.__cause__ is raised.value.result.error
        assert raised.value.result.text == "Still at it."
        assert_laws(stage)

    def test_c43_an_answer_in_the_last_turn(self) -> None:
        """A run that answers in its last turn is complete."""
        stage = Stage(call("ping"), say("Done."), tools=[ping], limits=Limits(max_turns=2))
        assert stage.run().text == "Done."
        assert_laws(stage)

    def test_c43_wrap_up(self) -> None:
        """With `wrap_up` there is one more request, without tools and with an instruction that is not stored."""
        limits = Limits(max_turns=3, wrap_up=True)
        stage = Stage(*self.STEPS, say("This is what I have."), tools=[ping, pong], limits=limits)
        result = stage.run()
        assert limit_of(result) == "max_turns"
        assert result.text == "This is what I have."
        last = stage.model.requests[-1]
        assert (len(stage.model.requests), last.tools) == (4, ())
        assert isinstance(last.messages[-1], UserMessage)
        assert stage.history[-3:] == ["R call_1 not_run", "R call_2 not_run", "A This is what I have. end_turn"]
        assert [line for line in stage.history if line.startswith("U")] == ["U do it"]
        assert_laws(stage)

    def test_c43_wrap_up_that_calls_a_tool(self) -> None:
        """Whatever the last request is answered with, no tool runs any more."""
        limits = Limits(max_turns=1, wrap_up=True)
        stage = Stage(call("ping"), call("ping"), tools=[ping], limits=limits)
        assert limit_of(stage.run()) == "max_turns"
        assert not stage.effects
        assert_laws(stage)

    def test_c43_none_at_all(self) -> None:
        """0 is a legal limit that admits nothing: the user's message is kept, and nothing is asked."""
        stage = Stage(limits=Limits(max_turns=0))
        assert limit_of(stage.run()) == "max_turns"
        assert (stage.history, stage.asked) == (["U do it"], [])
        assert_laws(stage, again=False)

    def test_c43_a_negative_limit(self) -> None:
        """A negative limit is refused where it is made."""
        with pytest.raises(InvalidArgument, match="max_turns"):
            Limits(max_turns=-1)
        stage = Stage()
        assert_laws(stage)


class TestC43OtherLimits:
    """Other limits are reached while calls are open."""

    def test_c43_max_tool_calls(self) -> None:
        """Calls up to the limit run, those behind it do not, and each has its result."""
        batch = call("ping", n=1) + call("ping", n=2) + call("ping", n=3)
        stage = Stage(batch, tools=[ping], limits=Limits(max_tool_calls=1))
        result = stage.run()
        assert limit_of(result) == "max_tool_calls"
        assert [status.value for status in stage.statuses] == ["ok", "not_run", "not_run"]
        assert (sum(stage.effects.values()), result.metrics.tool_calls) == (1, 1)
        assert_laws(stage)

    def test_c43_no_tool_calls_at_all(self) -> None:
        """With 0 no tool runs; answers without calls are as ever."""
        stage = Stage(call("ping"), tools=[ping], limits=Limits(max_tool_calls=0))
        assert limit_of(stage.run()) == "max_tool_calls"
        assert stage.statuses == [ToolResultStatus.NOT_RUN]
        assert not stage.effects
        assert_laws(stage)

    def test_c43_tokens(self) -> None:
        """Tokens used up by an answer with calls: the answer is kept, its calls are not run."""
        costly = say("Look.", usage=Usage(90, 20)) + call("ping")
        stage = Stage(costly, tools=[ping], limits=Limits(max_total_tokens=100))
        result = stage.run()
        assert limit_of(result) == "max_total_tokens"
        assert (result.text, result.usage.total_tokens) == ("Look.", 110)
        assert stage.statuses == [ToolResultStatus.NOT_RUN]
        assert_laws(stage)

    def test_c43_tokens_of_a_sub_agent(self) -> None:
        """What a tool charges counts into the run's tokens."""

        def delegate(use: ToolContext[object]) -> str:
            """Pays."""
            use.charge(Usage(100, 100))
            return "paid"

        stage = Stage(call("delegate"), tools=[delegate], limits=Limits(max_total_tokens=150))
        result = stage.run()
        assert limit_of(result) == "max_total_tokens"
        assert result.usage == Usage(100, 100)
        assert stage.statuses == [ToolResultStatus.OK]
        assert_laws(stage)

    def test_c43_the_limit_of_a_sub_agent(self) -> None:
        """A sub-agent's own limit is a failed result of the parent's call, and the parent goes on."""

        def delegate(use: ToolContext[object]) -> str:
            """Asks another agent."""
            child = Agent(ScriptedModel([call("ping")] * 3), tools=[ping], limits=Limits(max_turns=2))
            return child.run("help", scope=use.scope).text

        stage = Stage(call("delegate"), say("No help there."), tools=[delegate])
        assert stage.run().text == "No help there."
        assert stage.statuses == [ToolResultStatus.FAILED]
        assert "limited" in stage.results[0].text
        assert_laws(stage)

    def test_c43_an_answer_that_is_too_large(self) -> None:
        """An answer over `max_message_bytes` is not committed; what was shown of it is taken back."""
        stage = Stage([TextDelta("x" * 600), TextDelta("y" * 600)], limits=Limits(max_message_bytes=1000))
        assert limit_of(stage.run()) == "max_message_bytes"
        assert stage.history == ["U do it"]
        assert stage.kinds.count("message_discarded") == 1
        assert_laws(stage)

    def test_c43_a_message_that_is_too_large(self) -> None:
        """A user message over `max_message_bytes` is misuse: it raises and commits nothing."""
        stage = Stage(limits=Limits(max_message_bytes=1000))
        with pytest.raises(InvalidArgument, match="max_message_bytes"):
            stage.run("é" * 501)
        assert (stage.history, stage.events) == ([], [])
        assert_laws(stage)

    @pytest.mark.parametrize("limits", [Limits(max_messages=4), Limits(max_transcript_bytes=40)])
    def test_c43_a_full_transcript(self, limits: Limits) -> None:
        """A full transcript ends the run, with every call closed."""
        stage = Stage(*[call("ping", n=number) for number in range(9)], tools=[ping], limits=limits)
        assert limit_of(stage.run()) in {"max_messages", "max_transcript_bytes"}
        assert len(stage.asked) < 9
        assert [line[0] for line in history(stage.messages)].count("U") == 1
        assert_laws(stage, again=False)
