"""What no other test would notice of batches: what a stream sees of them when, and questions behind calls that run."""

from __future__ import annotations

import threading
import weakref

from gotato_py import (
    Allow,
    Ask,
    Event,
    Hooks,
    Limits,
    RunStatus,
    ToolCall,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResult,
    ToolResultCommitted,
    ToolResultStatus,
)
from gotato_py._abandoned import Abandoned, AbandonedCall
from gotato_py._crew import Job
from gotato_testkit import say

from .laws import assert_laws
from .stage import Stage
from .workers import batch, fine

TWO = Limits(max_parallel_tools=2)


def ask(use: ToolContext[object]) -> Allow | Ask:
    """A gate that asks a person about one tool."""
    return Ask("May it?") if use.name == "b" else Allow()


class TestStreams:
    """A stream stands at an event until the next one is asked for."""

    def test_at_a_start(self) -> None:
        """The start of a tool is seen before the tool does anything."""
        stage = Stage(batch("a"), say("Done."), tools=[fine("a")])
        with stage.agent.stream("do it", check=False) as stream:
            seen = [stage.effects.total() for event in stream if isinstance(event, ToolExecutionStart)]
        assert (seen, stage.effects.total()) == ([0], 1)
        assert_laws(stage)

    def test_left_at_a_result(self) -> None:
        """Where a stream is left at a result, nothing of the next call has begun: it is known not to have run."""
        stage = Stage(batch("a", "b"), tools=[fine("a"), fine("b")])
        with stage.agent.stream("do it", check=False) as stream:
            for event in stream:
                if isinstance(event, ToolResultCommitted):
                    break
        assert stage.statuses == ["ok", "not_run"]
        assert len(stage.transcript.started) == 1
        assert_laws(stage)


class TestAQuestionBehindCallsThatRun:
    """The calls before it end first, whatever comes of them."""

    def test_an_extension_fails_at_one_of_them(self) -> None:
        """The run has failed, and does not wait for a person."""

        def fail(use: ToolContext[object], result: ToolResult) -> ToolResult:
            raise ValueError

        hooks = Hooks(before_tool=ask, after_tool=fail)
        stage = Stage(batch("a", "b"), tools=[fine("a"), fine("b")], extensions=[hooks], limits=TWO)
        assert stage.run().status is RunStatus.FAILED
        assert stage.statuses == ["ok", "not_run"]
        assert_laws(stage, again=False)

    def test_the_run_is_cancelled_at_one_of_them(self) -> None:
        """The run is cancelled, and does not wait for a person."""

        def cancel(event: Event) -> None:
            if isinstance(event, ToolExecutionEnd):
                stage.cancel()

        hooks = Hooks(before_tool=ask, observe=cancel)
        stage = Stage(batch("a", "b"), tools=[fine("a"), fine("b")], extensions=[hooks], limits=TWO)
        assert stage.run().status is RunStatus.CANCELLED
        assert stage.statuses == ["ok", "not_run"]
        assert_laws(stage)


class TestAbandoned:
    """The list of calls that were given up."""

    def test_it_forgets_those_that_have_ended(self) -> None:
        """Where nobody ever asks for the list, it does not keep for ever what has ended."""
        abandoned = Abandoned()
        works = [self._add_ended(abandoned, f"m-{number}:0") for number in range(2)]
        assert [work() is None for work in works] == [True, False]

    def _add_ended(self, abandoned: Abandoned, key: str) -> weakref.ref[object]:
        def work() -> tuple[ToolResult, str]:
            return ToolResult("call_1", ToolResultStatus.OK), ""

        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        job = Job(ToolCall("call_1", "a"), "", ToolContext(), None, work, lambda error: work(), 0.0)
        job.thread, job.ended, job.given_up = thread, True, True
        abandoned.add(AbandonedCall("a", key, "call_1", "run-1", 0.0), job)
        return weakref.ref(work)
