"""Cases of parallel calls: their order, their cap, tools that run alone, calls that cannot run, aborts in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    Allow,
    Approve,
    Ask,
    Block,
    Deny,
    Hooks,
    Limits,
    RunStatus,
    ToolContext,
    ToolExecutionEnd,
    ToolMessage,
    ToolResultStatus,
    tool,
)
from gotato_testkit import FakeTool, Stall, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import PATIENCE_S, AtCommits, Floor, Grace, Hanging, InOrder, batch, fine, until


def shown(stage: Stage) -> list[str]:
    """The results in the last request, each by the id of its call and its status."""
    messages = stage.model.requests[-1].messages
    return [f"{each.result.call_id} {each.result.status}" for each in messages if isinstance(each, ToolMessage)]


class TestC23OutOfOrder:
    """Parallel calls end in another order than they began, and one fails."""

    def test_c23_results_are_committed_as_they_finish(self) -> None:
        """Each result is committed when its call ends; a failure cancels nothing; requests show the order of calls."""
        order = InOrder("c", "b", "a")
        tools = [order.tool("a"), order.tool("b", ValueError("no such row")), order.tool("c")]
        stage = Stage(
            batch("a", "b", "c"), say("Done."), tools=tools, extensions=[order], limits=Limits(max_parallel_tools=3)
        )
        assert stage.run().text == "Done."
        assert stage.history[2:5] == ["R call_3 ok", "R call_2 failed", "R call_1 ok"]
        ends = [(event.name, event.exception) for event in stage.events if isinstance(event, ToolExecutionEnd)]
        assert ends == [("c", ""), ("b", "ValueError"), ("a", "")]
        assert shown(stage) == ["call_1 ok", "call_2 failed", "call_3 ok"]
        assert_laws(stage)

    def test_c15_equal_ids_in_parallel(self) -> None:
        """Calls with one id, or a blank one, keep their results apart by their keys."""
        order = InOrder("c", "b", "a")
        answer = call("a", call_id="x") + call("b", call_id="x") + call("c", call_id=" ")
        tools = [order.tool(name) for name in "abc"]
        stage = Stage(answer, say("Done."), tools=tools, extensions=[order], limits=Limits(max_parallel_tools=3))
        assert stage.run().ok
        assert [each.text for each in stage.results] == ["c", "b", "a"]
        assert [each.text for each in stage.model.requests[-1].messages[2:]] == ["a", "b", "c"]
        assert_laws(stage)


class TestC24Stall:
    """One of the parallel calls stalls, and the host aborts."""

    @pytest.mark.parametrize("heeds", [True, False], ids=["heeds its scope", "hangs"])
    def test_c24_abort_while_one_stalls(self, heeds: bool) -> None:
        """What has finished is kept, what stalls is cancelled with its effect unknown, and the next run knows both."""

        def cancel() -> None:
            if not heeds:
                hang.wait_for_starts()
            stage.cancel()

        with Hanging("a") as hang:
            stalled = FakeTool("a", Stall()) if heeds else hang
            abort = AtCommits(2, cancel)
            stage = Stage(
                batch("a", "b", "c"),
                say("never"),
                tools=[stalled, fine("b"), fine("c")],
                extensions=[abort],
                limits=Limits(max_parallel_tools=3),
            )
            with Grace() as grace:
                assert stage.run().status is RunStatus.CANCELLED
            assert sorted(stage.history[2:4]) == ["R call_2 ok", "R call_3 ok"]
            assert stage.history[4:] == ["R call_1 cancelled"]
            assert "effect is unknown" in stage.results[-1].text
            if heeds:
                assert stage.agent.abandoned == () or grace.over
                until(lambda: stage.agent.abandoned == ())
            else:
                assert len(stage.agent.abandoned) == 1
            stage.script.replace(say("I see."))
            assert stage.run("and now?").text == "I see."
            assert shown(stage) == ["call_1 cancelled", "call_2 ok", "call_3 ok"]
            assert_laws(stage)


class TestC25Cap:
    """More calls than may run at once, one that runs alone, and an abort with calls still queued."""

    def forty(self, floor: Floor, act: Callable[[ToolContext[object]], object]) -> tuple[Any, list[Any]]:
        """Forty calls, the sixth of them alone, and their tools."""

        def work(use: ToolContext[object]) -> str:
            """Works."""
            return floor.step(f"work {use.index}", lambda: act(use))

        @tool(sequential=True)
        def alone(use: ToolContext[object]) -> str:
            """Works alone."""
            return floor.step("alone", lambda: act(use))

        return batch(*["work"] * 5, "alone", *["work"] * 34), [work, alone]

    def test_c25_never_more_than_the_cap(self) -> None:
        """Never more than eight run at once, and the sequential one runs alone, in the caller's thread."""
        floor = Floor()
        answer, tools = self.forty(floor, lambda use: use.scope.wait(0.002))
        stage = Stage(answer, say("Done."), tools=tools, limits=Limits(max_parallel_tools=8))
        assert stage.run().text == "Done."
        assert stage.statuses == ["ok"] * 40
        assert floor.most <= 8
        assert floor.together == []
        assert floor.threads.pop("alone") == threading.get_ident()
        assert threading.get_ident() not in floor.threads.values()
        assert_laws(stage)

    def test_c25_abort_when_ten_have_finished(self) -> None:
        """Nothing new starts: those that never started are `not_run`, the others `ok` or `cancelled`; forty results."""
        floor = Floor()

        def act(use: ToolContext[object]) -> None:
            use.scope.wait(0.002)
            use.scope.check()

        answer, tools = self.forty(floor, act)
        abort = AtCommits(10, lambda: stage.cancel())  # noqa: PLW0108  # the stage is made below
        stage = Stage(answer, say("never"), tools=tools, extensions=[abort], limits=Limits(max_parallel_tools=8))
        assert stage.run().status is RunStatus.CANCELLED
        assert len(stage.statuses) == 40
        assert set(stage.statuses) <= {"ok", "cancelled", "not_run"}
        assert stage.statuses.count(ToolResultStatus.OK) >= 10
        assert stage.statuses.count(ToolResultStatus.NOT_RUN) >= 40 - 18
        started = {each.result.key for each in stage.results if each.result.status != "not_run"}
        assert started == set(stage.effects)
        assert floor.together == []
        assert_laws(stage)

    def test_c25_one_after_another(self) -> None:
        """Without parallel calls an abort after the first leaves the second `not_run`."""
        abort = AtCommits(1, lambda: stage.cancel())  # noqa: PLW0108  # the stage is made below
        stage = Stage(batch("fine", "fine"), say("never"), tools=[fine()], extensions=[abort])
        assert stage.run().status is RunStatus.CANCELLED
        assert stage.statuses == ["ok", "not_run"]
        assert_laws(stage)

    @pytest.mark.parametrize("cap", [8, None])
    def test_c25_as_many_as_may_run_at_once(self, cap: int | None) -> None:
        """A batch as large as the cap runs at once; `max_parallel_tools=None` is unlimited."""
        count = cap or 40
        together = threading.Barrier(count)

        def meet(use: ToolContext[object]) -> str:
            """Waits for the others."""
            together.wait(PATIENCE_S)
            return f"met as {use.index}"

        answer = batch(*["meet"] * count)
        stage = Stage(answer, say("Done."), tools=[meet], limits=Limits(max_parallel_tools=cap))
        assert stage.run().ok
        assert stage.statuses == ["ok"] * count
        assert_laws(stage)

    @pytest.mark.parametrize("timeout", [None, 5.0])
    def test_c25_a_cap_of_none_at_all(self, timeout: float | None) -> None:
        """`max_parallel_tools=0` admits no tool, on whichever thread it would run."""
        stage = Stage(call("fine"), tools=[FakeTool("fine", timeout=timeout)], limits=Limits(max_parallel_tools=0))
        assert getattr(stage.run().error, "limit", "") == "max_parallel_tools"
        assert stage.statuses == ["not_run"]
        assert not stage.effects
        assert_laws(stage)

    @pytest.mark.parametrize("parallel", [1, 4])
    def test_c25_tools_with_a_timeout(self, parallel: int) -> None:
        """A timeout moves a tool to a worker; it runs alone if it is sequential, or where one tool runs at a time."""
        floor = Floor()

        @tool(timeout=PATIENCE_S, sequential=parallel > 1)
        def alone(use: ToolContext[object]) -> str:
            """Works alone."""
            return floor.step("alone", lambda: use.scope.wait(0.005))

        @tool
        def work(use: ToolContext[object]) -> str:
            """Works."""
            return floor.step("work", lambda: use.scope.wait(0.005))

        stage = Stage(
            batch("work", "alone", "alone", "work"),
            say("Done."),
            tools=[alone, work],
            limits=Limits(max_parallel_tools=parallel),
        )
        assert stage.run().ok
        assert stage.history[2:6] == [f"R call_{n} ok" for n in range(1, 5)]
        assert floor.together == []
        assert floor.threads["alone"] != threading.get_ident()
        assert (floor.threads["work"] == threading.get_ident()) is (parallel == 1)
        assert_laws(stage)


class TestC13AmongOthers:
    """Calls in a parallel batch that cannot run, or may not."""

    def test_c13_c14_calls_that_cannot_run(self) -> None:
        """They are `not_run` at once, no gate is asked about them, and the others run."""
        asked: list[str] = []

        def add(a: int, b: int) -> int:
            """Adds."""
            return a + b

        def gate(use: ToolContext[object]) -> Allow:
            asked.append(use.call_id)
            return Allow()

        stage = Stage(
            call("add", a=1, b=2) + call("serch") + call("add", a="1", b=2) + call("add", a=3, b=4),
            say("Done."),
            tools=[add],
            extensions=[Hooks(before_tool=gate)],
            limits=Limits(max_parallel_tools=4),
        )
        assert stage.run().ok
        assert shown(stage) == ["call_1 ok", "call_2 not_run", "call_3 not_run", "call_4 ok"]
        assert asked == ["call_1", "call_4"]
        assert_laws(stage)

    def test_c36_a_gate_in_the_middle_of_a_batch(self) -> None:
        """A blocked call, and one whose gate fails, stop none of the others."""

        def gate(use: ToolContext[object]) -> Allow | Block:
            if use.name == "b":
                raise KeyError("gate")
            return Block("not today") if use.name == "c" else Allow()

        stage = Stage(
            batch("a", "b", "c", "d"),
            say("Done."),
            tools=[fine(name) for name in "abcd"],
            extensions=[Hooks(before_tool=gate)],
            limits=Limits(max_parallel_tools=4),
        )
        assert stage.run().ok
        assert shown(stage) == ["call_1 ok", "call_2 blocked", "call_3 blocked", "call_4 ok"]
        assert_laws(stage)

    def test_c56_a_question_in_the_middle_of_a_batch(self) -> None:
        """What ran before the question has its result when the run waits; on the answers the rest runs, in parallel."""

        def gate(use: ToolContext[object]) -> Allow | Ask:
            return Ask(f"{use.name}?") if use.name in {"c", "d"} else Allow()

        stage = Stage(
            batch("a", "b", "c", "d", "e"),
            say("Done."),
            tools=[fine(name) for name in "abcde"],
            extensions=[Hooks(before_tool=gate)],
            limits=Limits(max_parallel_tools=4),
        )
        waiting = stage.run()
        assert waiting.status is RunStatus.WAITING
        assert sorted(stage.history[2:]) == ["R call_1 ok", "R call_2 ok"]
        first, second = (each.key for each in waiting.waiting)
        assert stage.agent.run(answers={first: Approve(), second: Deny()}).text == "Done."
        assert shown(stage) == ["call_1 ok", "call_2 ok", "call_3 ok", "call_4 blocked", "call_5 ok"]
        assert_laws(stage)
