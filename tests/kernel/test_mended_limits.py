"""Faults of limits that were found once: the exact border, and what a limit of 0 or 1 means."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_py import Agent, ContextBuilt, Limits, RunResult, RunStatus, TurnStart, Usage
from gotato_testkit import EventRecorder, FakeTool, ScriptedModel, call, outline, say

EIGHT = Usage(6, 2)


def limit_of(result: RunResult[Any]) -> str:
    """The limit that ended the run, or ""."""
    return str(getattr(result.error, "limit", "")) if result.status is RunStatus.LIMITED else ""


class TestTotalTokens:
    """`max_total_tokens` at its exact border."""

    @pytest.mark.parametrize(("most", "asked"), [(8, 1), (9, 2), (16, 2), (17, 3)])
    def test_reached_exactly(self, most: int, asked: int) -> None:
        """A run that has used all of it does not ask again."""
        model = ScriptedModel([call("look") + say("", usage=EIGHT)] * 5)
        agent = Agent(model, tools=[FakeTool("look", 1, 2, 3)], limits=Limits(max_total_tokens=most))
        result = agent.run("go", check=False)
        assert (limit_of(result), len(model.requests)) == ("max_total_tokens", asked)

    def test_a_finished_answer_is_one(self) -> None:
        """An answer that uses up the last token completes the run."""
        model = ScriptedModel([say("Hello.", usage=EIGHT)])
        assert Agent(model, limits=Limits(max_total_tokens=8)).run("hi").text == "Hello."


class TestTranscriptBytes:
    """`max_transcript_bytes` looks at a message before it is committed."""

    @pytest.mark.parametrize(("size", "fits"), [(10, True), (11, False)])
    def test_the_first_message(self, size: int, fits: bool) -> None:
        """A user message that would not fit ends the run as limited, and nothing is committed or asked."""
        model = ScriptedModel([say("")])
        agent = Agent(model, limits=Limits(max_transcript_bytes=10))
        result = agent.run("x" * size, check=False)
        assert limit_of(result) == "max_transcript_bytes"
        assert (len(agent.transcript.messages), len(model.requests)) == ((1, 0) if fits else (0, 0))

    def test_a_later_message(self) -> None:
        """What is there already counts."""
        model = ScriptedModel([say("four"), say("never")])
        agent = Agent(model, limits=Limits(max_transcript_bytes=10))
        assert agent.run("four").ok
        assert limit_of(agent.run("xyz", check=False)) == "max_transcript_bytes"
        assert [each.text for each in agent.transcript.messages] == ["four", "four"]


class TestNoneIsAdmitted:
    """A limit of 0 admits none, one of 1 admits one."""

    @pytest.mark.parametrize("limit", ["max_repeated_calls", "max_parallel_tools", "max_tool_calls"])
    def test_a_limit_of_zero_runs_no_tool(self, limit: str) -> None:
        """The first call gets a `not_run` result, and the run ends by that limit's name."""
        look = FakeTool("look")
        given: dict[str, Any] = {limit: 0}
        agent = Agent(ScriptedModel([call("look"), say("never")]), tools=[look], limits=Limits(**given))
        result = agent.run("go", check=False)
        assert (limit_of(result), look.uses, result.metrics.tool_calls) == (limit, [], 0)
        assert outline(agent.transcript.messages)[-1].startswith("tool look: not_run")

    def test_max_repeated_calls_of_one(self) -> None:
        """One call runs without a warning; the same again with the same result ends the run."""
        look = FakeTool("look", "same")
        model = ScriptedModel([call("look"), call("look"), say("never")])
        agent = Agent(model, tools=[look], limits=Limits(max_repeated_calls=1))
        result = agent.run("go", check=False)
        assert (limit_of(result), len(look.uses), len(model.requests)) == ("max_repeated_calls", 2, 2)
        results = [each.text for each in agent.transcript.messages if each.role == "tool"]
        assert results == ["same", "same"]

    def test_max_repeated_calls_of_one_and_other_results(self) -> None:
        """The same call with another result each time goes on."""
        model = ScriptedModel([call("look"), call("look"), say("done")])
        agent = Agent(model, tools=[FakeTool("look", "a", "b")], limits=Limits(max_repeated_calls=1))
        assert agent.run("go").text == "done"


class TestWrapUp:
    """The last request after a limit."""

    def test_it_announces_its_context(self) -> None:
        """It is a turn as any other: each `turn_start` is followed by the `context_built` of its request."""
        events = EventRecorder()
        model = ScriptedModel([call("look"), say("So far.")])
        limits = Limits(max_turns=1, wrap_up=True)
        result = Agent(model, tools=[FakeTool("look")], limits=limits, extensions=[events]).run("go", check=False)
        assert (limit_of(result), result.text) == ("max_turns", "So far.")
        built = events.of(ContextBuilt)
        assert [told.messages for told in built] == [len(each.messages) for each in model.requests]
        assert [told.tools for told in built] == [1, 0]
        assert [told.turn for told in built] == [told.turn for told in events.of(TurnStart)] == [1, 2]
        assert len({told.prefix_hash for told in built}) == 2

    def test_no_turn_at_all(self) -> None:
        """With `max_turns=0` nothing is sent, whatever `wrap_up` says: there is nothing to wrap up."""
        model = ScriptedModel([say("never")])
        result = Agent(model, limits=Limits(max_turns=0, wrap_up=True)).run("go", check=False)
        assert (limit_of(result), result.message, model.requests) == ("max_turns", None, [])
