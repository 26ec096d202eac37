"""Interrupts while tools run on worker threads: raised by a tool, by real signals, and at every line of the kernel."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from gotato_py import (
    Event,
    Hooks,
    Limits,
    RunStatus,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    Usage,
    tool,
)
from gotato_testkit import FakeTool, Stall, say

from ..effort import by_profile
from .interrupts import LineInterrupt, interrupted
from .laws import assert_laws
from .stage import Stage
from .workers import (
    PATIENCE_S,
    SOON_S,
    Grace,
    Hanging,
    InOrder,
    batch,
    failing,
    fine,
    on_alarm,
    until,
    within,
)

THREE = Limits(max_parallel_tools=3)
MOMENTS = 200
"""Random moments, half of them for each of the two ways to run."""
STEP = by_profile(dev=53, ci=11, nightly=1)
"""Every how many lines of the kernel an interrupt is tried."""


class SoftTimeLimit(RuntimeError):  # named as task queues name theirs
    """Raised by a task queue when time is running out; of the kind that also says that there is no thread left."""


class TestRaisedByAWorker:
    """A tool on a worker thread raises what ends the run."""

    @pytest.mark.parametrize("raised", [KeyboardInterrupt("from the tool"), SoftTimeLimit("from the tool")])
    @pytest.mark.parametrize("streamed", [False, True])
    def test_c33_it_comes_out_unchanged_and_the_run_is_closed(self, raised: BaseException, streamed: bool) -> None:
        """It is raised when its result is taken; what the others had answered is kept, and nothing further starts."""
        order = InOrder("a", "stop", "b")
        alone = FakeTool("alone", sequential=True)
        stage = Stage(
            batch("a", "stop", "b", "alone"),
            say("never"),
            tools=[order.tool("a"), order.tool("stop", raised), order.tool("b"), alone],
            extensions=[order],
            interrupts=[SoftTimeLimit],
            limits=THREE,
        )
        with pytest.raises(type(raised)) as caught:
            list(stage.agent.stream("do it")) if streamed else stage.agent.run("do it")
        assert caught.value is raised
        statuses = {each.result.call_id: each.result.status.value for each in stage.results}
        assert statuses["call_1"] == "ok"
        assert statuses["call_2"] == "cancelled"
        assert statuses["call_4"] == "not_run"
        assert stage.events[-1].to_dict()["status"] == "cancelled"
        assert_laws(stage)

    def test_c33_what_is_done_is_kept(self) -> None:
        """Siblings that ended before the run looked have their real results and failures, and their usage counts."""
        all_work = threading.Event()
        stopped: list[threading.Thread] = []
        working: list[threading.Thread] = []

        def stop() -> None:
            """Is interrupted."""
            stopped.append(threading.current_thread())
            assert all_work.wait(PATIENCE_S)
            raise KeyboardInterrupt

        def work(use: ToolContext[object]) -> str:
            """Works until the other has been interrupted."""
            working.append(threading.current_thread())
            if use.index == 2:
                use.progress("the last one")
            until(lambda: stopped)
            stopped[0].join(PATIENCE_S)
            use.charge(Usage(9, 3))
            if use.index == 2:
                raise ValueError("no such row")
            return "done"

        def hold(event: Event) -> None:
            if isinstance(event, ToolExecutionUpdate):
                until(lambda: len(working) == 2)
                all_work.set()
                for each in working:
                    each.join(PATIENCE_S)

        stage = Stage(batch("stop", "work", "work"), tools=[work, stop], extensions=[Hooks(observe=hold)], limits=THREE)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.history[2:] == ["R call_1 cancelled", "R call_2 ok", "R call_3 failed"]
        ends = {event.call_id: event.exception for event in stage.events if isinstance(event, ToolExecutionEnd)}
        assert ends == {"call_1": "KeyboardInterrupt", "call_2": "", "call_3": "ValueError"}
        assert stage.events[-1].to_dict()["usage"] == {"input_tokens": 18, "output_tokens": 6}
        assert_laws(stage)

    def test_c33_a_sibling_that_heeds_its_scope_ends_with_the_run(self) -> None:
        """It has the grace to stop by itself: no thread is left, and what it returns then is kept."""

        heeds = threading.Event()

        def heed(use: ToolContext[object]) -> str:
            """Waits for the end."""
            heeds.set()
            use.scope.wait(PATIENCE_S)
            return "stopped in an orderly way"

        def stop() -> None:
            """Is interrupted."""
            assert heeds.wait(PATIENCE_S)
            raise KeyboardInterrupt

        stage = Stage(batch("heed", "stop"), tools=[heed, stop], limits=THREE)
        with pytest.raises(KeyboardInterrupt), within(SOON_S), Grace() as grace:
            stage.run()
        assert_none_was_given_up(stage, grace)
        assert stage.history[2:] == ["R call_1 ok", "R call_2 cancelled"] or grace.over
        assert_laws(stage)

    def test_c33_a_sibling_that_hangs_is_given_up(self) -> None:
        """The interrupt comes out within the grace, and the hung call is listed."""
        with Hanging() as hang:

            def stop() -> None:
                """Is interrupted while the other hangs."""
                hang.wait_for_starts()
                raise KeyboardInterrupt

            stage = Stage(batch("hang", "stop"), tools=[hang, stop], limits=THREE)
            with pytest.raises(KeyboardInterrupt), within(SOON_S):
                stage.run()
            assert [each.tool for each in stage.agent.abandoned] == ["hang"]
            assert stage.statuses == ["cancelled", "cancelled"]
            assert_laws(stage)

    def test_c33_two_interrupts(self) -> None:
        """The one that is taken first comes out; the other call is closed like it."""
        first, second = KeyboardInterrupt(1), KeyboardInterrupt(2)
        stage = Stage(batch("a", "b"), tools=[failing("a", first), failing("b", second)], limits=THREE)
        with pytest.raises(KeyboardInterrupt) as caught:
            stage.run()
        assert caught.value in {first, second}
        assert stage.statuses == ["cancelled", "cancelled"]
        assert_laws(stage)

    def test_c33_an_interrupt_that_is_none_to_this_agent(self) -> None:
        """A type that the agent does not know fails the call alone."""
        stage = Stage(
            batch("stop", "fine"), say("I see."), tools=[failing("stop", SoftTimeLimit()), fine()], limits=THREE
        )
        assert stage.run().text == "I see."
        assert sorted(stage.statuses) == ["failed", "ok"]
        assert_laws(stage)


def working(use: ToolContext[object]) -> str:
    """Works a little, tells of it, and heeds its scope."""
    use.progress("at it")
    use.scope.wait(0.0005 * (use.index % 3))
    return f"done {use.index}"


def staged() -> Stage:
    """A stage where something was said before, set for a batch of six, three at a time, and an answer."""
    work = tool(working)
    stage = Stage(
        say("Before."),
        batch(*["working"] * 6),
        say("Done."),
        tools=[work],
        limits=THREE,
        extensions=[Hooks(after_tool=lambda use, result: result)],
        interrupts=[SoftTimeLimit],
    )
    assert stage.run("hello").text == "Before."
    return stage


def run_of(stage: Stage) -> object:
    """The script as a run."""
    return stage.run()


def stream_of(stage: Stage) -> object:
    """The script as a stream, read to its end."""
    with stage.agent.stream("do it", check=False) as stream:
        for _ in stream:
            pass
    return stream.result


def taken_by(go: Callable[[Stage], object]) -> float:
    """The seconds that an undisturbed run takes here."""
    stage = staged()
    began = time.perf_counter()
    go(stage)
    return time.perf_counter() - began


def assert_none_was_given_up(stage: Stage, grace: Grace) -> None:
    """Every tool had ended, or had never begun, if the machine left it its grace; it ends in any case."""
    assert stage.agent.abandoned == () or grace.over
    until(lambda: not stage.agent.abandoned)


# A second interrupt may hit the finaliser of what the first one dropped, where Python can only report it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("go", [run_of, stream_of])
def test_c33_by_real_signals(go: Callable[[Stage], object]) -> None:
    """Wherever Ctrl-C comes while workers run, and in a third of the cases a second one, it comes out, every call has
    its one result, no thread is left, and the next run works."""
    dice = random.Random(59)
    took = min(taken_by(go) for _ in range(5))
    hits = 0
    for number in range(MOMENTS // 2):
        stage = staged()
        second = [dice.uniform(0.00001, 0.002)] if number % 3 == 0 else []
        with Grace() as grace:
            came = interrupted(lambda stage=stage: go(stage), dice.uniform(0.00001, took), *second)  # type: ignore[misc]
            assert_laws(stage, repair=True, lost_streams=came.raised)  # made by the script and not given out yet
        assert came.came_out == (came.raised > 0)
        hits += came.raised
        assert_none_was_given_up(stage, grace)
    assert hits > MOMENTS / 8


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("go", "kind"), [(run_of, KeyboardInterrupt), (run_of, SoftTimeLimit), (stream_of, SoftTimeLimit)]
)
def test_c33_at_the_lines_of_the_kernel(go: Callable[[Stage], object], kind: type[BaseException]) -> None:
    """Before any line that the thread of the run executes an interrupt comes out as it is, and the next run closes what
    it left open."""
    number = 0
    swallowed: list[str] = []
    broken: list[str] = []
    for number in range(1, 100_000, STEP):
        stage, line = staged(), LineInterrupt(number, kind)
        grace = Grace()
        came_out = line(lambda stage=stage: go(stage))  # type: ignore[misc]  # bound at once
        if not line.where:
            break
        if not came_out:
            swallowed.append(line.where)
        try:
            with grace:
                assert_laws(stage, repair=True)
            assert_none_was_given_up(stage, grace)
        except AssertionError as error:
            broken.append(f"{line.where}: {error}".splitlines()[0])
    assert number > 20 * STEP
    assert (swallowed, broken) == ([], [])


class TestSignalHandler:
    """A signal handler cancels instead of raising."""

    @pytest.mark.parametrize("after", [0.0, 0.0003, 0.001, 0.003, 0.01])
    def test_cancel_from_a_signal_handler(self, after: float) -> None:
        """`cancel` in a handler of the thread that waits for its workers ends the run; it does not dead-lock."""
        stall = FakeTool("stall", Stall())
        stage = Stage(batch("stall", "fine"), say("never"), tools=[stall, fine()], limits=THREE)

        def handle(number: int, frame: FrameType | None) -> None:
            if not stall.uses:  # on a slow machine the run has not come so far
                signal.setitimer(signal.ITIMER_REAL, 0.001)
            else:
                assert stage.agent.cancel("by a signal")

        with on_alarm(handle, 0.001 + after), within(SOON_S):
            result = stage.run()
        assert (result.status, str(result.error)) == (RunStatus.CANCELLED, "by a signal")
        assert {each.result.call_id: each.result.status for each in stage.results}["call_1"] == "cancelled"
        assert_laws(stage)
