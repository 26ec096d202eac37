"""Cases of limits and failures in the middle of a parallel batch: what runs already keeps its real result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from gotato_py import (
    Cancelled,
    ExtensionFailure,
    Hooks,
    Limits,
    MemoryTranscript,
    Message,
    RunResult,
    RunStatus,
    StoreFailure,
    ToolContext,
    ToolExecutionUpdate,
    ToolMessage,
    ToolResult,
    Usage,
)
from gotato_testkit import FakeTool, say

from .laws import assert_laws
from .stage import Stage
from .workers import InOrder, Slow, batch, fine, until, wait_for_end

M = TypeVar("M", bound=Message)


def limit_of(result: RunResult[None]) -> str:
    """The limit that ended the run."""
    assert result.status is RunStatus.LIMITED
    return str(getattr(result.error, "limit", ""))


class TestC43CallsLeft:
    """The number of calls is used up while some of a batch run."""

    @pytest.mark.parametrize("wrap_up", [False, True])
    def test_c43_calls_are_used_up_at_the_second_of_three(self, wrap_up: bool) -> None:
        """The one that runs keeps its real result, the others are `not_run`; `wrap_up` shows the model all of them."""
        stage = Stage(
            batch("slow", "fine", "fine"),
            say("That is what I have."),
            tools=[Slow(0.4), fine()],  # longer than the grace
            limits=Limits(max_tool_calls=1, max_parallel_tools=3, wrap_up=wrap_up),
        )
        result = stage.run()
        assert limit_of(result) == "max_tool_calls"
        assert stage.history[2:5] == ["R call_1 ok", "R call_2 not_run", "R call_3 not_run"]
        assert stage.results[0].text == "slowly done"
        assert result.text == ("That is what I have." if wrap_up else "")
        assert_laws(stage, again=not wrap_up)

    def test_c43_turns_are_used_up(self) -> None:
        """Calls whose results no turn would see do not start."""
        stage = Stage(batch("fine", "fine"), tools=[fine()], limits=Limits(max_turns=1, max_parallel_tools=3))
        assert limit_of(stage.run()) == "max_turns"
        assert stage.statuses == ["not_run", "not_run"]
        assert_laws(stage)

    def test_c43_tokens_that_workers_charge(self) -> None:
        """Usage that tools charge from their threads adds up, and ends the run at the next turn."""

        def spend(use: ToolContext[object]) -> str:
            """Spends."""
            use.charge(Usage(40, 10))
            return f"spent {use.index}"

        stage = Stage(
            batch("spend", "spend", "spend"), tools=[spend], limits=Limits(max_total_tokens=100, max_parallel_tools=3)
        )
        result = stage.run()
        assert limit_of(result) == "max_total_tokens"
        assert (stage.statuses, result.usage) == (["ok"] * 3, Usage(120, 30))
        assert_laws(stage)


class TestC42Circles:
    """The same call again and again, several times in one answer."""

    def test_c42_the_same_call_in_parallel(self) -> None:
        """The one that reaches the limit carries a warning; further ones end the run when all have their results."""

        def slow() -> str:
            """Ends last, and later than any grace would."""
            until(lambda: len(stage.results) == 6)
            time.sleep(0.4)
            return "slowly done"

        stage = Stage(
            batch("fine", "fine", "fine"),
            batch("fine", "fine", "fine", "slow"),
            tools=[fine(), slow],
            limits=Limits(max_repeated_calls=4, max_parallel_tools=4),
        )
        assert limit_of(stage.run()) == "max_repeated_calls"
        assert stage.statuses == ["ok"] * 7
        assert ["warn" if "do something else" in each.text.lower() else "" for each in stage.results[:4]] == [
            "",
            "",
            "",
            "warn",
        ]
        assert stage.results[-1].text == "slowly done"
        assert_laws(stage)


class FailingOnce(MemoryTranscript):
    """A transcript that fails at the first result that this describes, or at every one of them."""

    def __init__(self, fails: Callable[[ToolMessage], bool], times: int) -> None:
        super().__init__()
        self._fails = fails
        self._left = times

    def append(self, message: M) -> M:
        """Commits, or fails."""
        if self._left and isinstance(message, ToolMessage) and self._fails(message):
            self._left -= 1
            raise OSError("disk full")
        return super().append(message)


class TestC52StoreFails:
    """A result of a parallel batch cannot be committed."""

    @pytest.mark.parametrize("times", [1, 2])
    def test_c52_the_others_keep_their_results(self, times: int) -> None:
        """No further call starts, those that run are waited for, and the run fails; what can be committed at its end
        is, and the next run closes the rest."""
        transcript = FailingOnce(lambda message: message.text == "a", times)
        order = InOrder("a", "slow")
        stage = Stage(
            batch("a", "slow", "fine"),
            say("never"),
            tools=[order.tool("a"), Slow(0.4), fine()],
            extensions=[order],
            transcript=transcript,
            limits=Limits(max_parallel_tools=2),
        )
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert isinstance(result.error, StoreFailure)
        assert not [key for key in stage.effects if key.endswith(":2")]
        assert stage.results[0].text == "slowly done"
        assert_laws(stage, repair=times > 1)
        told = sorted(stage.history[2:5])
        assert told == [f"R call_1 {'ok' if times == 1 else 'cancelled'}", "R call_2 ok", "R call_3 not_run"]


class TestHooksAmongWorkers:
    """Extensions that look at the results of parallel calls."""

    def test_after_tool_sees_every_outcome_in_the_thread_of_the_run(self) -> None:
        """It is asked once for each, may change it, and its failure ends the run when the batch is done."""
        seen: list[str] = []

        def look(use: ToolContext[object], result: ToolResult) -> ToolResult:
            seen.append(f"{use.name} {result.status}")
            if use.name == "a":
                raise KeyError("look")
            return result

        order = InOrder("b", "a", "c")
        stage = Stage(
            batch("a", "b", "c", "unknown"),
            say("never"),
            tools=[order.tool("a"), order.tool("b", ValueError("no")), order.tool("c")],
            extensions=[order, Hooks(after_tool=look)],
            limits=Limits(max_parallel_tools=4),
        )
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert isinstance(result.error, ExtensionFailure)
        assert seen == ["unknown not_run", "b failed", "a ok", "c ok"]
        assert stage.history[2:6] == ["R call_4 not_run", "R call_2 failed", "R call_1 ok", "R call_3 ok"]
        assert_laws(stage, again=False)

    def test_after_tool_is_asked_for_those_that_an_abort_ends(self) -> None:
        """What is cancelled passes through `after_tool` too, and the usage that it charged before counts."""
        seen: list[str] = []

        def stall(use: ToolContext[object]) -> None:
            """Waits for the end."""
            use.charge(Usage(7, 2))
            wait_for_end(use, lambda: use.progress("waiting"))
            raise Cancelled("as told")

        def look(use: ToolContext[object], result: ToolResult) -> ToolResult:
            seen.append(f"{use.name} {result.status}")
            return result

        def abort(event: object) -> None:
            if isinstance(event, ToolExecutionUpdate):
                stage.cancel()

        stage = Stage(
            batch("stall", "alone"),
            say("never"),
            tools=[stall, FakeTool("alone", sequential=True)],
            extensions=[Hooks(after_tool=look, observe=abort)],
            limits=Limits(max_parallel_tools=4),
        )
        result = stage.run()
        assert result.status is RunStatus.CANCELLED
        assert seen == ["stall cancelled"]
        assert result.usage == Usage(7, 2)
        assert stage.statuses == ["cancelled", "not_run"]
        assert_laws(stage)
