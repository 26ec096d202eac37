"""What no other test would notice of worker tools: a run that goes on in a thread other than the main one.

There nothing wakes it but the ends that it has reckoned with; in the main thread it looks again all the time.
"""

from __future__ import annotations

import threading
import time

from gotato_py import Limits, RunResult, RunStatus, ToolContext, tool
from gotato_testkit import FakeTool, ManualClock, call, say

from .hosts import Host, in_thread
from .laws import assert_laws
from .stage import Stage
from .workers import Hanging

TWO = Limits(max_parallel_tools=2)
SOON_S = 5.0
"""Real seconds within which a run has to end whose tools hang for twice as long."""


def soon(host: Host[RunResult[None]], began: float) -> RunResult[None]:
    """What the run came to, before its tools have ended by themselves."""
    result = host.join()
    assert time.monotonic() - began < SOON_S
    return result


def test_the_time_of_the_run() -> None:
    """The end of the run's time is noticed while its tools hang."""
    began = time.monotonic()
    with Hanging() as hang:
        stage = Stage(call("hang") + call("hang"), tools=[hang], limits=TWO)
        host = Host(lambda: stage.run(timeout=0.1))
        assert soon(host, began).status is RunStatus.DEADLINE_EXCEEDED
        assert_laws(stage)


def test_a_cancel() -> None:
    """A cancel from elsewhere is noticed while its tools hang."""
    began = time.monotonic()
    with Hanging() as hang:
        stage = Stage(call("hang") + call("hang"), tools=[hang], limits=TWO)
        host = Host(stage.run)
        hang.wait_for_starts(2)
        stage.cancel()
        assert soon(host, began).status is RunStatus.CANCELLED
        assert_laws(stage)


def test_a_clock_that_is_moved() -> None:
    """The end of its time by another clock, moved by somebody else, is noticed while its tools hang."""
    began = time.monotonic()
    clock = ManualClock()
    with Hanging() as hang:
        stage = Stage(call("hang") + call("hang"), tools=[hang], limits=TWO, clock=clock)
        host = Host(lambda: stage.run(timeout=60.0))
        hang.wait_for_starts(2)
        clock.advance(61.0)
        assert soon(host, began).status is RunStatus.DEADLINE_EXCEEDED
        assert_laws(stage)


def test_a_timeout_of_a_later_call() -> None:
    """The timeout of a call that starts while others have none, and are waited for already, is noticed."""
    ended = threading.Event()

    @tool
    def patient() -> str:
        """Waits for the last one."""
        return f"{ended.wait(2 * SOON_S)}"

    @tool(timeout=0.05)
    def late(use: ToolContext[object]) -> None:
        """Waits for the end of its time, as it is told."""
        use.scope.on_end(ended.set)
        ended.wait(2 * SOON_S)
        use.scope.check()

    stage = Stage(
        call("patient") + call("quick") + call("late"),
        say("Done."),
        tools=[patient, FakeTool("quick"), late],
        limits=TWO,
    )
    began = time.monotonic()
    assert in_thread(stage.run).text == "Done."
    assert time.monotonic() - began < SOON_S
    assert sorted(stage.statuses) == ["ok", "ok", "timed_out"]
    assert_laws(stage)
