"""Worker tools by a manual clock, and under a stream that is closed, dropped or read slowly."""

from __future__ import annotations

import threading
import time

import pytest

from gotato_py import Limits, RunStatus, ToolContext, ToolExecutionEnd, ToolExecutionStart, tool
from gotato_testkit import FakeTool, ManualClock, SequentialIds, Stall, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import (
    PATIENCE_S,
    SOON_S,
    Grace,
    Hanging,
    batch,
    beside,
    cancelling,
    fine,
    in_other_thread,
    until,
    wait_for_end,
    within,
)

TWO = Limits(max_parallel_tools=2)


class TestManualClock:
    """Scopes go by the agent's clock, threads that hang by the machine's."""

    def test_waits_move_manual_time(self) -> None:
        """`use.scope.wait` on a worker moves the clock instead of waiting, and a timeout passes by that clock."""
        clock = ManualClock()

        @tool(timeout=30)
        def patient(use: ToolContext[object]) -> str:
            """Waits in bounds."""
            return f"ended: {use.scope.wait(20)}"

        @tool(timeout=30)
        def slow(use: ToolContext[object]) -> None:
            """Waits too long."""
            use.scope.wait(60)
            use.scope.check()

        stage = Stage(batch("patient", "slow"), say("Done."), tools=[patient, slow], clock=clock)
        with within(SOON_S):
            assert stage.run().ok
        assert stage.statuses == ["ok", "timed_out"]
        assert clock.monotonic() == 50
        ends = [event.elapsed for event in stage.events if isinstance(event, ToolExecutionEnd)]
        assert ends == [20, 30]
        assert_laws(stage)

    def test_a_hung_thread_is_given_up_in_real_time(self) -> None:
        """A tool that hangs moves no manual time, but its timeout passes all the same; one that waits for the end of
        its scope is `timed_out` as well."""
        clock = ManualClock()

        @tool(timeout=0.05)
        def listen(use: ToolContext[object]) -> None:
            """Waits for the end in its own way."""
            wait_for_end(use)
            use.scope.check()

        with Hanging(timeout=0.05) as hang:
            stage = Stage(batch("hang", "listen"), say("Done."), tools=[hang, listen], clock=clock)
            assert stage.run().ok
            assert clock.monotonic() == 0
            assert stage.statuses == ["timed_out", "timed_out"]
            assert [each.tool for each in stage.agent.abandoned] == ["hang"]
            assert_laws(stage)

    def test_the_run_ends_by_manual_time(self) -> None:
        """A worker that waits past the end of the run ends it, and a clock moved by another thread does too."""
        clock = ManualClock()

        def wait(use: ToolContext[object]) -> str:
            """Waits."""
            return f"ended: {use.scope.wait(60)}"

        stage = Stage(call("wait"), say("never"), tools=[wait], clock=clock, limits=TWO)
        with Grace() as grace:
            assert stage.run(timeout=5).status is RunStatus.DEADLINE_EXCEEDED
        assert clock.monotonic() == 5
        assert stage.statuses == ["ok"] or grace.over
        assert_laws(stage)

        with Hanging() as hang:
            other = ManualClock(auto=False)
            stage = Stage(call("hang"), say("never"), tools=[hang], clock=other, limits=TWO)

            def move() -> None:
                hang.wait_for_starts()
                other.advance(60)

            with beside(move), within(SOON_S):
                assert stage.run(timeout=50).status is RunStatus.DEADLINE_EXCEEDED
            assert stage.statuses == ["timed_out"]
            assert_laws(stage)

    def test_the_same_script_gives_the_same_events(self) -> None:
        """With a manual clock and sequential ids the events of worker tools are equal, run for run."""

        def played() -> Stage:
            tools = [FakeTool(name, name, timeout=5, sequential=True) for name in "ab"]
            stage = Stage(
                batch("a", "b"), say("Done."), tools=tools, clock=ManualClock(), ids=SequentialIds(), limits=TWO
            )
            assert stage.run().ok
            return stage

        first, second = played(), played()
        assert [event.to_dict() for event in first.events] == [event.to_dict() for event in second.events]
        assert_laws(first)
        assert_laws(second)


class TestStreams:
    """A stream stands in the middle of a parallel batch."""

    @pytest.mark.parametrize("heeds", [True, False], ids=["heeds its scope", "hangs"])
    @pytest.mark.parametrize("at", [ToolExecutionStart, ToolExecutionEnd])
    def test_c34_closed_in_the_middle(self, heeds: bool, at: type[ToolExecutionStart] | type[ToolExecutionEnd]) -> None:
        """Closing it cancels the run and closes it before `close` returns: real results kept, the others cancelled."""

        with Hanging("a") as hang:
            tools = [FakeTool("a", Stall()) if heeds else hang, fine("b"), fine("c")]
            stage = Stage(batch("a", "b", "c"), tools=tools, limits=TWO)
            with Grace() as grace, stage.agent.stream("do it", check=False) as stream:
                for event in stream:
                    if isinstance(event, at) and event.name == "b":
                        if not heeds:
                            hang.wait_for_starts()
                        break
            assert stream.result.status is RunStatus.CANCELLED
            assert stage.agent.status == "idle"
            statuses = {each.result.call_id: each.result.status.value for each in stage.results}
            assert statuses["call_1"] == "cancelled"
            assert statuses["call_2"] == ("ok" if at is ToolExecutionEnd else "cancelled")
            assert statuses["call_3"] == "not_run"
            if heeds:
                assert stage.agent.abandoned == () or grace.over
                until(lambda: stage.agent.abandoned == ())
            else:
                assert len(stage.agent.abandoned) == 1
            assert_laws(stage)

    def test_c34_dropped_in_the_middle(self) -> None:
        """A dropped stream ends the scope of its workers; the next entry closes the run."""
        stage = Stage(batch("a", "b"), tools=[FakeTool("a", Stall()), fine("b")], limits=TWO)
        stream = stage.agent.stream("do it")
        for event in stream:
            if isinstance(event, ToolExecutionEnd):
                break
        with pytest.warns(ResourceWarning, match="dropped"):
            del stream
        assert_laws(stage, repair=True)
        assert stage.history[2:4] == ["R call_2 ok", "R call_1 cancelled"]

    def test_a_reader_that_takes_its_time(self) -> None:
        """Workers go on while their stream stands still; what was done meanwhile is kept, though it took too long."""
        workers: list[threading.Thread] = []

        @tool(timeout=0.05)
        def work() -> str:
            """Takes longer than it may."""
            workers.append(threading.current_thread())
            time.sleep(0.1)
            return "done"

        stage = Stage(batch("work", "fine"), say("Done."), tools=[work, fine()], limits=TWO)
        with stage.agent.stream("do it") as stream:
            for event in stream:
                if isinstance(event, ToolExecutionStart) and event.name == "fine":
                    until(lambda: workers)
                    workers[0].join(PATIENCE_S)
        assert sorted(stage.history[2:4]) == ["R call_1 ok", "R call_2 ok"]
        assert_laws(stage)

    def test_closed_from_another_thread(self) -> None:
        """`close` from elsewhere only cancels; the reader's thread closes the run."""
        with Hanging() as hang:
            stage = Stage(call("hang"), tools=[hang], limits=TWO)
            stream = stage.agent.stream("do it", check=False)

            def close() -> None:
                hang.wait_for_starts()
                in_other_thread(stream.close)

            with cancelling(stage, close):
                assert not [event for event in stream if event.kind == "turn_end" and event.turn > 1]
            assert stream.result.status is RunStatus.CANCELLED
            assert stage.statuses == ["cancelled"]
            assert_laws(stage)
