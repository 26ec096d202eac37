"""Cases of waiting until an agent is idle: from outside, from inside, and as a run ends."""

from __future__ import annotations

from functools import partial
from math import inf, nan
from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    InvalidArgument,
    InvalidState,
    Limits,
    RunResult,
    RunStatus,
    TextDelta,
)
from gotato_testkit import Do, EchoModel, FakeTool, call, say

from .controls import on
from .hosts import PATIENCE_S, SOON_S, Host, in_thread, took
from .interrupts import interrupted
from .laws import assert_laws
from .stage import Stage


class Held:
    """A run in another thread that goes on until it is let go."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._going, self._free = Flag(), Flag()
        stage.script.replace([TextDelta("Wait"), Do(self._hold), *say(" a bit.")])
        self.host = Host(stage.run)
        assert self._going.wait(PATIENCE_S)

    def _hold(self) -> None:
        self._going.set()
        assert self._free.wait(PATIENCE_S)

    def let_go(self) -> None:
        """Lets the run end."""
        self._free.set()


class TestTimeouts:
    """How long `wait_idle` waits."""

    @pytest.mark.parametrize("timeout", [None, 0, 0.0, 5, inf])
    def test_an_idle_agent(self, timeout: float | None) -> None:
        """An agent that is idle is so at once, before a run, after it and when it is closed."""
        stage = Stage(say("Done."))
        assert stage.agent.wait_idle(timeout) is True
        stage.run()
        assert stage.agent.wait_idle(timeout=timeout) is True
        assert_laws(stage)
        stage.agent.close()
        assert stage.agent.wait_idle(timeout) is True

    def test_a_running_agent(self) -> None:
        """With a timeout it waits that long and returns False; without one it returns when the run has ended."""
        stage = Stage()
        held = Held(stage)
        assert stage.agent.wait_idle(0) is False
        assert 0.05 <= took(lambda: stage.agent.wait_idle(0.05)) < SOON_S
        waiters = [Host(lambda timeout=timeout: stage.agent.wait_idle(timeout)) for timeout in (None, 60.0, inf)]  # type: ignore[misc]
        assert [waiter.thread.is_alive() for waiter in waiters] == [True] * 3
        held.let_go()
        assert [waiter.join() for waiter in waiters] == [True] * 3
        assert held.host.join().ok
        assert_laws(stage)

    @pytest.mark.parametrize("wrong", [-1, -0.001, nan, "5", True])
    def test_wrong_timeouts(self, wrong: Any) -> None:
        """A negative timeout, or what is no number, is refused, whether the agent runs or not."""
        stage = Stage()
        with pytest.raises(InvalidArgument, match="wait_idle"):
            stage.agent.wait_idle(wrong)
        held = Held(stage)
        with pytest.raises(InvalidArgument, match="wait_idle"):
            stage.agent.wait_idle(wrong)
        held.let_go()
        assert held.host.join().ok
        assert_laws(stage)

    def test_ctrl_c(self) -> None:
        """Ctrl-C ends the wait and comes out; the run in the other thread goes on."""
        stage = Stage()
        held = Held(stage)
        assert interrupted(lambda: stage.agent.wait_idle(PATIENCE_S), 0.03) == (1, True)
        held.let_go()
        assert held.host.join().text == "Wait a bit."
        assert_laws(stage)


class TestFromInside:
    """The run itself would have to end first."""

    def assert_refused(self, stage: Stage) -> None:
        """It is refused whatever the timeout, and at once."""
        for timeout in (None, 0, 5.0):
            with pytest.raises(InvalidState, match="inside"):
                stage.agent.wait_idle(timeout)

    @pytest.mark.parametrize("kind", ["agent_start", "message_update", "tool_execution_start", "turn_end", "agent_end"])
    def test_from_an_observer(self, kind: str) -> None:
        """An observer, also of the very end, cannot wait for its own run."""
        checked: list[bool] = []

        def look() -> None:
            self.assert_refused(stage)
            checked.append(True)

        stage = Stage(say("On it. ") + call("a"), say("Done."), tools=[FakeTool("a", "a")], extensions=[on(kind, look)])
        assert stage.run().ok
        assert checked
        assert_laws(stage)

    @pytest.mark.parametrize("parallel", [1, 2], ids=["caller's thread", "worker"])
    def test_from_a_tool(self, parallel: int) -> None:
        """Neither can a tool, in the run's thread or on a worker."""
        look = FakeTool("a", Do(lambda: self.assert_refused(stage)))
        stage = Stage(call("a"), say("Done."), tools=[look], limits=Limits(max_parallel_tools=parallel))
        assert stage.run().ok
        assert stage.history[2] == "R call_1 ok"
        assert_laws(stage)

    def test_from_the_reader_of_a_stream(self) -> None:
        """The thread that reads a stream would wait for itself; another one waits, and then has it."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count")
        next(stream)
        self.assert_refused(stage)
        assert in_thread(lambda: stage.agent.wait_idle(0.01)) is False
        waiter = Host(stage.agent.wait_idle)
        assert stream.result.ok
        assert waiter.join() is True
        assert_laws(stage)


def run_one(agent: Agent, going: Flag) -> RunResult[None]:
    """Runs the agent, and says when it has it."""
    with agent.stream("yours") as stream:
        going.set()
        return stream.result


class TestWhileItEnds:
    """The run ends just then."""

    def test_in_another_thread(self) -> None:
        """Whoever has waited can run at once, 400 times: `wait_idle` returns after the last step of the end."""
        for _ in range(20):
            agent = Agent(EchoModel())
            for _ in range(20):
                going = Flag()
                host = Host(partial(run_one, agent, going))
                assert going.wait(PATIENCE_S)
                assert agent.wait_idle(PATIENCE_S) is True
                assert agent.run("mine").ok
                assert host.join().ok
        assert_laws(Stage(say("Done.")))

    def test_a_stream_is_dropped_in_another_thread(self) -> None:
        """Whoever waits closes the run that a dropped stream left, in his own thread, and is told that all is quiet."""
        stage = Stage(say("One two three."))
        streams = [stage.agent.stream("count")]
        next(streams[0])
        waiter = Host(stage.agent.wait_idle)
        with pytest.warns(ResourceWarning, match="dropped"):
            in_thread(streams.clear)
        assert waiter.join() is True
        last = stage.events[-1]
        assert isinstance(last, AgentEnd)
        assert last.status is RunStatus.CANCELLED
        assert_laws(stage)
