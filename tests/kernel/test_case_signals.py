"""Cases of signal handlers: they cancel in every wait of the kernel, and may call any method at any line of a run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from threading import Barrier
from threading import Event as Flag
from types import FrameType

import pytest

from gotato_py import (
    Agent,
    AgentClosed,
    Busy,
    InvalidState,
    Limits,
    NotRunning,
    Overloaded,
    RetryPolicy,
    RunStatus,
    TextDelta,
    ToolContext,
)
from gotato_testkit import Do, FakeTool, Raise, Stall, call, say

from ..effort import by_profile
from .controls import on
from .hosts import PATIENCE_S, SOON_S, Host
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage
from .workers import Grace, Hanging, until

STEP = by_profile(dev=131, ci=31, nightly=1)
"""Every which line is tried."""


class Handler:
    """A handler of SIGUSR1 that acts in the main thread, and somebody who sends that signal a moment after `send`."""

    def __init__(self) -> None:
        self.act: Callable[[], object] = lambda: None
        self.acted: list[object] = []
        self._at: list[float] = []
        self._senders: list[Host[None]] = []

    @contextmanager
    def installed(self) -> Generator[None, None, None]:
        """Within this it handles the signal; behind it, the wait has to have ended at once."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            self._at.append(time.monotonic())
            self.acted.append(self.act())

        before = signal.signal(signal.SIGUSR1, on_signal)
        try:
            yield
            assert time.monotonic() - self._at[0] < SOON_S
        finally:
            for sender in self._senders:
                sender.join()
            signal.signal(signal.SIGUSR1, before)

    def send(self) -> None:
        """Has it sent, in a moment, by another thread: mostly whoever calls this is waiting by then."""

        def send() -> None:
            time.sleep(0.03)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

        self._senders.append(Host(send))


def wait_for_ever(use: ToolContext[object]) -> str:
    """Waits until its scope ends."""
    assert use.scope.wait(PATIENCE_S)
    return "stopped"


class TestCancelInAWait:
    """A signal handler of the main thread calls `agent.cancel`."""

    def cancelled(self, stage: Stage, handler: Handler) -> None:
        """Runs in the main thread; the handler cancels, and the run has ended at once."""
        handler.act = lambda: stage.agent.cancel("by signal")
        stage.threads |= set(threading.enumerate())
        with handler.installed():
            result = stage.run()
        assert result.status is RunStatus.CANCELLED
        assert handler.acted == [True]

    def test_while_the_model_stalls(self) -> None:
        """The wait for the next event of the model ends, and what was said is kept."""
        handler = Handler()
        stage = Stage([TextDelta("One"), Do(handler.send), Stall()])
        self.cancelled(stage, handler)
        assert stage.history == ["U do it", "A One cancelled"]
        assert_laws(stage)

    def test_in_the_wait_before_an_attempt(self) -> None:
        """The wait between two attempts ends."""
        handler = Handler()
        stage = Stage(
            Raise(Overloaded("busy")), say("Late."), retry=RetryPolicy(base=30.0),
            extensions=[on("model_retry", handler.send)],
        )  # fmt: skip
        self.cancelled(stage, handler)
        assert stage.history == ["U do it"]
        assert_laws(stage)

    def test_in_a_tool(self) -> None:
        """A tool that waits by its scope is woken, and its result is kept."""
        handler = Handler()
        sends = on("tool_execution_start", handler.send)
        stage = Stage(call("wait_for_ever"), tools=[wait_for_ever], extensions=[sends])
        self.cancelled(stage, handler)
        assert stage.history[2:] == ["R call_1 ok"]
        assert_laws(stage)

    def test_in_the_wait_for_workers(self) -> None:
        """The wait for tools on worker threads ends; those that heed their scope still give their results."""
        handler = Handler()
        both_work = Barrier(2, handler.send)

        def heed(use: ToolContext[object]) -> str:
            """Waits for the end, and has the signal sent when both do."""
            both_work.wait(PATIENCE_S)
            return wait_for_ever(use)

        stage = Stage(call("heed") + call("heed"), tools=[heed], limits=Limits(max_parallel_tools=2))
        with Grace() as grace:
            self.cancelled(stage, handler)
        assert sorted(stage.history[2:]) == ["R call_1 ok", "R call_2 ok"] or grace.over
        assert_laws(stage)

    def test_in_the_wait_for_a_worker_that_hangs(self) -> None:
        """So it does where a tool heeds nothing: that is given up."""
        handler = Handler()
        with Hanging(timeout=PATIENCE_S) as hang:
            stage = Stage(call("hang"), tools=[hang], extensions=[on("tool_execution_start", handler.send)])
            self.cancelled(stage, handler)
            assert stage.history[2:] == ["R call_1 cancelled"]
            assert [each.tool for each in stage.agent.abandoned] == ["hang"]
            hang.let_go()
        until(lambda: not stage.agent.abandoned)
        assert_laws(stage)

    def test_in_the_reader_of_a_stream(self) -> None:
        """`next` of a stream comes back with the end of the run."""
        handler = Handler()
        stage = Stage([TextDelta("One"), Do(handler.send), Stall()])
        handler.act = lambda: stage.agent.cancel("by signal")
        with handler.installed(), stage.agent.stream("do it", check=False) as stream:
            assert [event.kind for event in stream][-1] == "agent_end"
        assert stream.result.status is RunStatus.CANCELLED
        assert_laws(stage)

    def other_thread_runs(self, stage: Stage, handler: Handler) -> Host[object]:
        """A run in another thread that stalls; the signal comes when the main thread waits for it."""
        going = Flag()
        stage.script.replace([TextDelta("One"), Do(going.set), Stall()])
        host: Host[object] = Host(lambda: stage.run().status)
        assert going.wait(PATIENCE_S)
        handler.act = lambda: stage.agent.cancel("by signal")
        handler.send()
        return host

    def test_in_wait_idle(self) -> None:
        """`wait_idle` returns as soon as the run of the other thread has ended by that."""
        handler, stage = Handler(), Stage()
        with handler.installed():
            host = self.other_thread_runs(stage, handler)
            assert stage.agent.wait_idle() is True
        assert (host.join(), handler.acted) == (RunStatus.CANCELLED, [True])
        assert_laws(stage)

    def test_in_the_get_of_a_subscriber(self) -> None:
        """`EventStream.get` in the main thread gets what follows, to the end."""
        handler, stage = Handler(), Stage()
        stream = stage.agent.subscribe()
        with handler.installed():
            host = self.other_thread_runs(stage, handler)
            while (event := stream.get()) is not None and event.kind != "agent_end":
                pass
        assert (host.join(), handler.acted) == (RunStatus.CANCELLED, [True])
        assert_laws(stage)

    def test_in_close(self) -> None:
        """`close` has cancelled already; it returns as soon as what the handler does lets the run end."""
        handler, free = Handler(), Flag()

        def stuck(use: ToolContext[object]) -> None:
            """Hangs, and has the signal sent when it is told to stop."""
            assert use.scope.wait(PATIENCE_S)
            handler.send()
            assert free.wait(PATIENCE_S)

        stage = Stage(call("stuck"), tools=[stuck])

        def act() -> bool:
            free.set()
            return stage.agent.cancel("by signal")

        handler.act = act
        with handler.installed():
            host = Host(stage.run)
            while stage.agent.status != "running":
                time.sleep(0)
            stage.agent.close()
        assert (host.join().status, stage.agent.status) == (RunStatus.CANCELLED, "closed")
        assert handler.acted == [False]
        assert_laws(stage)


def refused(*errors: type[Exception]) -> Callable[[Callable[[], object]], None]:
    """Does something that may be refused with one of these."""

    def do(act: Callable[[], object]) -> None:
        try:
            act()
        except errors:
            pass

    return do


ACTS: dict[str, Callable[[Agent], object]] = {
    "cancel": lambda agent: agent.cancel(),
    "close": lambda agent: agent.close(),
    "steer": lambda agent: refused(NotRunning)(lambda: agent.steer("hurry")),
    "follow_up": lambda agent: refused(NotRunning)(lambda: agent.follow_up("and then")),
    "withdraw": lambda agent: agent.withdraw("m-1"),
    "subscribe": lambda agent: agent.subscribe().close(),
    "wait_idle": lambda agent: refused(InvalidState)(lambda: agent.wait_idle(0)),
    "run": lambda agent: refused(Busy, AgentClosed)(lambda: agent.run("me too", check=False)),
    "status": lambda agent: (agent.status, agent.abandoned, repr(agent)),
}


@pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", ACTS)
def test_a_handler_may_call_anything_at_any_line(name: str, streaming: bool) -> None:
    """Before any line of a run a handler may call any method: that comes back, and so does the run; all laws hold."""
    number = 1
    while True:
        number += STEP
        acts: dict[int, Callable[[], object]] = {}
        stage = Stage(call("a"), say("Done."), say("And."), say("So."), tools=[FakeTool("a", "a")])
        acts[number] = partial(ACTS[name], stage.agent)
        lines = LastLines(acts)
        with stage.agent.subscribe() as stream:
            try:
                with lines.watching():
                    lines.arm_once()
                    list(stage.agent.stream("do it", check=False)) if streaming else stage.run()
            except AgentClosed:
                assert name == "close"
            seen = list(iter(partial(stream.get, 0), None))
        if number > lines.count:
            break
        assert seen == stage.events
        assert_laws(stage)
    assert number > 500
