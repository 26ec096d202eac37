"""Cases of tools that hang and ignore cancellation: given up, listed, capped, and what they say later is dropped."""

from __future__ import annotations

import time

import pytest

from gotato_py import (
    AbandonedCall,
    DeadlineExceeded,
    Limits,
    RunStatus,
    ToolContext,
    Usage,
    tool,
)
from gotato_testkit import call, say

from .controls import on
from .laws import assert_laws
from .stage import Stage
from .workers import SOON_S, Hanging, LateClock, cancelling, fine, until, wait_for_end, within


class TestC21Timeout:
    """A tool does not answer within its timeout, whatever is done to stop it."""

    @pytest.mark.parametrize("parallel", [1, 3])
    @pytest.mark.parametrize("sequential", [False, True])
    def test_c21_a_hung_tool_is_given_up_and_its_siblings_are_fine(self, parallel: int, sequential: bool) -> None:
        """It is `timed_out`, effect unknown; its siblings have their results, and the run goes on."""
        with Hanging(timeout=0.2, sequential=sequential) as hang:
            stage = Stage(
                call("fine") + call("hang") + call("fine"),
                say("I see."),
                tools=[hang, fine()],
                limits=Limits(max_parallel_tools=parallel),
            )
            began = time.time()
            with within(SOON_S):
                assert stage.run().text == "I see."
            hung = next(each.result for each in stage.results if each.result.call_id == "call_2")
            assert sorted(stage.statuses) == ["ok", "ok", "timed_out"]
            assert hung.error == "no answer in 0.2 s; it may still be running"
            assert hung.executed is None
            assert "effect is unknown" in stage.model.requests[1].messages[-2].text
            (abandoned,) = stage.agent.abandoned
            assert abandoned == AbandonedCall("hang", hung.key, "call_2", hang.uses[0].run_id, abandoned.started_at)
            assert began <= abandoned.started_at <= time.time()
            assert_laws(stage)
        until(lambda: stage.agent.abandoned == ())
        assert_laws(stage)

    def test_c21_the_limit_and_the_timeout_of_the_tool_both_bound_it(self) -> None:
        """`limits.tool_timeout` bounds every tool; of it and the tool's own timeout the nearer counts."""
        for own, limit in ((None, 0.05), (60.0, 0.05), (0.05, 60.0)):
            with Hanging(timeout=own) as hang:
                stage = Stage(call("hang"), say("I see."), tools=[hang], limits=Limits(tool_timeout=limit))
                with within(SOON_S):
                    stage.run()
                assert stage.results[0].result.error == "no answer in 0.05 s; it may still be running"
                assert_laws(stage)

    @pytest.mark.parametrize(("own", "limit"), [(0.0, None), (None, 0.0), (5.0, 0)])
    def test_c21_without_any_time_it_does_not_start(self, own: float | None, limit: float | None) -> None:
        """0 s have passed before the tool starts: it is not run, the run goes on."""
        with Hanging(timeout=own) as hang:
            stage = Stage(call("hang"), say("I see."), tools=[hang], limits=Limits(tool_timeout=limit))
            assert stage.run().text == "I see."
            assert stage.statuses == ["not_run"]
            assert not hang.uses
            assert "tool_execution_start" not in stage.kinds
            assert_laws(stage)

    def test_c21_a_tool_that_heeds_its_scope_is_not_abandoned(self) -> None:
        """Its scope ends with its time: what it raises is `timed_out`, what it returns in the grace is its result."""

        @tool(timeout=0.05)
        def heed(use: ToolContext[object]) -> str:
            """Stops when it is told to."""
            wait_for_end(use)
            use.scope.check()
            return "never"

        @tool(timeout=0.05)
        def hurry(use: ToolContext[object]) -> str:
            """Returns what it has."""
            wait_for_end(use)
            use.charge(Usage(3, 1))
            return f"half of it: {use.scope.reason}"

        stage = Stage(call("heed") + call("hurry"), say("I see."), tools=[heed, hurry])
        result = stage.run()
        assert stage.statuses == ["timed_out", "ok"]
        assert stage.results[1].text == "half of it: deadline exceeded"
        assert result.usage == Usage(3, 1)
        assert stage.agent.abandoned == ()
        assert_laws(stage)

    @pytest.mark.parametrize("timeout", [None, 60.0], ids=["in the thread of the run", "beside it"])
    def test_c21_what_comes_late_is_dropped(self, timeout: float | None) -> None:
        """Progress, usage and result of a call that was given up reach neither transcript nor events nor usage."""
        with Hanging(timeout=0.05) as hang:

            @tool(timeout=timeout)
            def late() -> str:
                """Lets the hung one speak."""
                hang.let_go()
                until(lambda: stage.agent.abandoned == ())
                return "it has spoken"

            stage = Stage(call("hang") + call("late"), say("I see."), tools=[hang, late])
            result = stage.run()
            assert result.usage == Usage()
            assert stage.statuses == ["timed_out", "ok"]
            assert "tool_execution_update" not in stage.kinds
            assert_laws(stage)
            assert stage.statuses == ["timed_out", "ok"]
            assert stage.events[-1].to_dict()["usage"] == {}

    def test_c21_what_came_in_time_is_kept(self) -> None:
        """Progress and usage from before a call was given up count."""

        with Hanging(timeout=0.05) as hang:

            @tool(timeout=0.05)
            def work(use: ToolContext[object]) -> object:
                """Begins well."""
                use.progress("began")
                use.charge(Usage(5, 1))
                return hang.execute(use)

            # The run, which is about to start another call, looks at the time when this one has begun.
            begun = on("tool_execution_start", hang.wait_for_starts, number=2)
            stage = Stage(
                call("work") + call("fine"),
                say("I see."),
                tools=[work, fine()],
                extensions=[begun],
                limits=Limits(max_parallel_tools=2),
            )
            result = stage.run()
            assert result.usage == Usage(5, 1)
            assert [event.to_dict()["text"] for event in stage.events if event.kind == "tool_execution_update"] == [
                "began"
            ]
            assert_laws(stage)


class TestC21Abort:
    """The host aborts, or the time of the run is over, while a tool hangs."""

    def test_c21_abort_of_a_worker_tool(self) -> None:
        """The run ends within the grace: the hung call `cancelled`, the results of the others kept."""
        with Hanging() as hang:
            stage = Stage(
                call("fine") + call("hang"),
                say("never"),
                tools=[hang, fine()],
                limits=Limits(max_parallel_tools=2),
            )

            def when() -> None:
                hang.wait_for_starts()
                until(lambda: stage.statuses)

            with cancelling(stage, when), within(SOON_S):
                assert stage.run().status is RunStatus.CANCELLED
            assert stage.history[2:] == ["R call_1 ok", "R call_2 cancelled"]
            assert "effect is unknown" in stage.results[-1].text
            assert [each.tool for each in stage.agent.abandoned] == ["hang"]
            assert_laws(stage)

    def test_c21_abort_of_a_plain_tool(self) -> None:
        """`cancel` returns at once, the run when the tool does: its real result is kept, nothing further starts."""
        with Hanging() as hang:
            stage = Stage(call("hang") + call("fine"), say("never"), tools=[hang, fine()])

            def when() -> None:
                hang.wait_for_starts()
                with within(SOON_S):
                    stage.cancel()
                assert stage.agent.status == "running"
                hang.let_go()

            with cancelling(stage, when):
                result = stage.run()
            assert result.status is RunStatus.CANCELLED
            assert stage.history[2:] == ["R call_1 ok", "R call_2 not_run"]
            assert (result.usage, stage.agent.abandoned) == (Usage(1000, 1000), ())
            assert_laws(stage)

    @pytest.mark.parametrize("own", [None, 60.0])
    def test_c21_the_time_of_the_run_is_over(self, own: float | None) -> None:
        """A deadline of the run gives a hung worker up as well, and says whose time has passed."""
        with Hanging(timeout=own) as hang:
            clock = LateClock()
            start = on("tool_execution_start", clock.start)
            stage = Stage(
                call("hang"),
                say("never"),
                tools=[hang],
                extensions=[start],
                limits=Limits(max_parallel_tools=2),
                clock=clock,
            )
            result = stage.run(timeout=0.1)
            assert result.status is RunStatus.DEADLINE_EXCEEDED
            assert isinstance(result.error, DeadlineExceeded)
            assert stage.statuses == ["timed_out"]
            assert stage.results[0].result.error == "the time of the run has passed; it may still be running"
            assert_laws(stage)


class TestC21Cap:
    """Too many threads hang already."""

    def test_c21_no_further_one_is_put_at_that_risk(self) -> None:
        """With `max_abandoned` of them alive the run is `limited` before another worker starts; plain tools may run."""
        with Hanging(timeout=0.02) as hang:
            stage = Stage(
                *[call("hang"), say("One.")] * 2,
                call("fine") + call("hang") + call("fine"),
                tools=[hang, fine()],
                limits=Limits(max_abandoned=2),
            )
            for _ in range(2):
                stage.run().raise_for_status()
            assert len(stage.agent.abandoned) == 2
            result = stage.run()
            assert (result.status, getattr(result.error, "limit", "")) == (RunStatus.LIMITED, "max_abandoned")
            assert stage.statuses[2:] == ["ok", "not_run", "not_run"]
            assert len(hang.uses) == 2
            assert_laws(stage)
            hang.let_go()
            until(lambda: stage.agent.abandoned == ())
            stage.script.replace(call("hang"), say("Again."))
            assert stage.run().text == "Again."
            assert_laws(stage)

    def test_c21_the_cap_within_a_batch(self) -> None:
        """Siblings that are running when the cap is reached keep their real results."""
        with Hanging(timeout=0.02) as hang:

            def slow() -> str:
                """Ends when the other is given up and, were it given a grace, that would be over."""
                until(lambda: stage.agent.abandoned)
                time.sleep(0.4)
                return "slowly done"

            stage = Stage(
                call("slow") + call("hang") + call("hang") + call("fine"),
                say("never"),
                tools=[slow, hang, fine()],
                limits=Limits(max_abandoned=1, max_parallel_tools=2),
            )
            result = stage.run()
            assert getattr(result.error, "limit", "") == "max_abandoned"
            assert sorted(stage.history[2:]) == [
                "R call_1 ok",
                "R call_2 timed_out",
                "R call_3 not_run",
                "R call_4 not_run",
            ]
            assert_laws(stage)

    def test_c21_a_cap_of_none_at_all(self) -> None:
        """`max_abandoned=0` admits no worker tool, since any could hang."""
        stage = Stage(call("slow"), tools=[Hanging("slow", timeout=5)], limits=Limits(max_abandoned=0))
        assert getattr(stage.run().error, "limit", "") == "max_abandoned"
        assert stage.statuses == ["not_run"]
        assert_laws(stage)
