"""What no other test would notice of worker threads: how their run waits for them, how they begin, and how they end."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest

from gotato_py import (
    Allow,
    Event,
    Hooks,
    InvalidState,
    Limits,
    Scope,
    SystemClock,
    ToolContext,
    ToolExecutionUpdate,
    tool,
)
from gotato_testkit import say

from .hosts import in_thread
from .laws import assert_laws
from .stage import Stage
from .workers import PATIENCE_S, Grace, Hanging, batch, failing, fine, until

TWO = Limits(max_parallel_tools=2)
THREE = Limits(max_parallel_tools=3)


class SoftTimeLimit(RuntimeError):
    """An interrupt of the host's, of the kind that also says that there is no thread left."""


class CountingClock(SystemClock):
    """The machine's clock; counts how often it is asked for the time."""

    asked = 0

    def __init__(self) -> None:
        def monotonic() -> float:
            self.asked += 1
            return time.monotonic()

        self.monotonic = monotonic  # type: ignore[misc,assignment,unused-ignore]


class LastStep:
    """What a tool leaves to its thread, which acts when it drops that: in its last steps, behind the tool's end."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def __del__(self) -> None:
        self._act()


@contextmanager
def raising(error: BaseException, *, at: str) -> Generator[None, None, None]:
    """Meanwhile the error is raised, once, in place of the first call of a built-in function of that name."""

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and getattr(argument, "__name__", "") == at:
            sys.setprofile(None)
            raise error

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


class TestTheirRunWaits:
    """The thread of the run has nothing to do but to wait."""

    def test_it_sleeps(self) -> None:
        """It does not ask what time it is all the time."""

        @tool
        def work() -> str:
            """Takes its time."""
            time.sleep(0.05)
            return "done"

        clock = CountingClock()
        stage = Stage(batch("work"), say("Done."), tools=[work], limits=TWO, clock=clock)
        assert in_thread(lambda: stage.run(timeout=60.0)).text == "Done."
        assert clock.asked < 200
        assert_laws(stage)

    def test_it_looks_again_in_the_main_thread(self) -> None:
        """There a signal may have come right before it fell asleep, whose handler runs only when it wakes."""

        @tool
        def work() -> str:
            """Works until the run has looked twice: a look asks at most three times."""
            before = clock.asked
            until(lambda: clock.asked > before + 3)
            return "seen"

        clock = CountingClock()
        stage = Stage(batch("work"), say("Done."), tools=[work], limits=TWO, clock=clock)
        assert stage.run(timeout=60.0).text == "Done."
        assert stage.results[0].result.text == "seen"
        assert_laws(stage)

    def test_the_grace_is_slept_through(self) -> None:
        """A run that was interrupted waits for the tool that hangs, and needs no processor for that."""
        with Hanging() as hang:
            stage = Stage(batch("hang", "stop"), tools=[hang, failing("stop", KeyboardInterrupt())], limits=TWO)
            began = time.thread_time()
            with pytest.raises(KeyboardInterrupt):
                stage.run()
            assert time.thread_time() - began < 0.15
            assert_laws(stage)

    def test_a_result_that_is_taken_late(self) -> None:
        """A call that has ended in its time keeps its result, however long the run is busy elsewhere."""
        told, looked = threading.Event(), threading.Event()
        workers: list[threading.Thread] = []

        @tool
        def talk(use: ToolContext[object]) -> str:
            """Tells something, which the run looks at before anything else."""
            use.progress("half way")
            told.set()
            looked.wait(PATIENCE_S)
            return "done"

        @tool(timeout=0.05)
        def quick() -> str:
            """Ends at once, when that has been told."""
            workers.append(threading.current_thread())
            told.wait(PATIENCE_S)
            return "in time"

        def hold_back(use: ToolContext[object]) -> Allow:
            if use.name == "fine":
                until(lambda: workers)
                workers[0].join(PATIENCE_S)
                time.sleep(0.06)  # the time of that one has passed
            return Allow()

        def look(event: Event) -> None:
            if isinstance(event, ToolExecutionUpdate):
                time.sleep(0.26)  # and its grace
                looked.set()

        hooks = Hooks(before_tool=hold_back, observe=look)
        tools = [talk, quick, fine()]
        stage = Stage(batch("talk", "quick", "fine"), say("Done."), tools=tools, extensions=[hooks], limits=THREE)
        assert stage.run().text == "Done."
        assert {message.result.call_id: message.result.text for message in stage.results}["call_2"] == "in time"
        assert_laws(stage)


class TestTheyBegin:
    """A thread is to be started for a call."""

    def test_an_interrupt_that_could_say_that_there_is_no_thread(self) -> None:
        """It comes out of the run as any other, and a call whose thread has not begun is not one that still runs."""
        stage = Stage(batch("fine", "fine"), tools=[fine()], interrupts=[SoftTimeLimit], limits=TWO)
        with raising(SoftTimeLimit(), at="start_new_thread"), pytest.raises(SoftTimeLimit):
            stage.run()
        assert stage.agent.abandoned == ()
        assert not stage.effects
        assert_laws(stage)

    def test_one_that_gets_no_thread_beside_one_that_asks(self) -> None:
        """A tool may use its agent while the result of a call that got no thread has not been taken."""
        asked = threading.Event()

        @tool
        def look() -> str:
            """Asks the agent something that depends on who asks."""
            try:
                stage.agent.wait_idle()
            except InvalidState:
                return "it knows me"
            finally:
                asked.set()
            return "it was idle"

        def hold_back(use: ToolContext[object]) -> Allow:
            if use.index == 2:
                asked.wait(PATIENCE_S)
            return Allow()

        hooks = Hooks(before_tool=hold_back)
        stage = Stage(
            batch("fine", "look", "fine"), say("Done."), tools=[look, fine()], extensions=[hooks], limits=THREE
        )
        with raising(RuntimeError("no room"), at="start_new_thread"):
            assert stage.run().text == "Done."
        texts = {message.result.call_id: message.result.text for message in stage.results}
        assert (texts["call_2"], texts["call_3"]) == ("it knows me", "fine is done")
        assert "no room" in texts["call_1"]
        assert_laws(stage)


class TestTheyEnd:
    """A tool has ended, and its thread has not yet."""

    def test_a_thread_that_takes_a_moment_longer(self) -> None:
        """The run waits for it: none is left behind."""
        kept = threading.local()
        workers: list[threading.Thread] = []

        @tool
        def work() -> str:
            """Leaves something behind."""
            workers.append(threading.current_thread())
            kept.last = LastStep(lambda: time.sleep(0.05))
            return "done"

        stage = Stage(batch("work"), say("Done."), tools=[work], limits=TWO)
        with Grace() as grace:
            assert stage.run().text == "Done."
        assert [worker.is_alive() for worker in workers] == [False] or grace.over
        assert_laws(stage)

    def test_a_thread_that_takes_a_moment_longer_when_the_run_is_interrupted(self) -> None:
        """The run waits for it there, too."""
        kept = threading.local()
        workers: list[threading.Thread] = []

        @tool
        def heed(use: ToolContext[object]) -> str:
            """Waits for the end, and leaves something behind."""
            workers.append(threading.current_thread())
            kept.last = LastStep(lambda: time.sleep(0.05))
            use.scope.wait(PATIENCE_S)
            return "stopped"

        stage = Stage(batch("heed", "stop"), tools=[heed, failing("stop", KeyboardInterrupt())], limits=TWO)
        with Grace() as grace, pytest.raises(KeyboardInterrupt):
            stage.run()
        assert [worker for worker in workers if worker.is_alive()] == [] or grace.over
        assert_laws(stage)

    def test_a_scope_that_outlives_its_runs(self) -> None:
        """It keeps nothing of a run that had workers and has ended."""
        seen: list[weakref.ref[Scope]] = []

        def look(use: ToolContext[object]) -> Allow:
            seen.append(weakref.ref(use.scope))
            return Allow()

        def play() -> None:
            stage = Stage(batch("fine", "fine"), say("Done."), tools=[fine()], extensions=[hooks], limits=TWO)
            assert stage.run(scope=outer).text == "Done."
            assert_laws(stage)

        def are_gone() -> bool:
            gc.collect()
            return [scope() for scope in seen] == [None, None]

        hooks, outer = Hooks(before_tool=look), Scope()
        play()
        until(are_gone)  # a worker that has ended may still be on its way out, and holds what it was given

    def test_a_thread_that_hangs_in_its_last_steps(self) -> None:
        """A call that was given up is listed until its thread is gone, not only until its tool has ended."""
        kept = threading.local()
        late, entered, free = threading.Event(), threading.Event(), threading.Event()

        def linger() -> None:
            entered.set()
            free.wait(PATIENCE_S)

        @tool(timeout=0.02)
        def hang() -> str:
            """Hangs, and leaves something behind that hangs too."""
            kept.last = LastStep(linger)
            late.wait(PATIENCE_S)
            return "too late"

        stage = Stage(batch("hang"), say("Done."), tools=[hang])
        assert stage.run().text == "Done."
        late.set()
        assert entered.wait(PATIENCE_S)
        assert [each.tool for each in stage.agent.abandoned] == ["hang"]
        free.set()
        until(lambda: not stage.agent.abandoned)
        assert_laws(stage)

    def test_an_interrupt_while_somebody_asks(self) -> None:
        """Ctrl-C while the abandoned calls are asked for does not make one of them look as if it had ended."""
        with Hanging(timeout=0.02) as hang:
            stage = Stage(batch("hang"), say("Done."), tools=[hang])
            assert stage.run().text == "Done."
            with raising(KeyboardInterrupt(), at="acquire"), suppress(KeyboardInterrupt):
                assert stage.agent.abandoned
            assert [each.tool for each in stage.agent.abandoned] == ["hang"]
            assert_laws(stage)
