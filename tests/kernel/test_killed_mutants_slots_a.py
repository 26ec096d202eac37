"""What no other test would notice of who has the agent: as a run takes it and lets it go, and once it is closed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from threading import Event as Flag
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any
from weakref import ref

import pytest

from gotato_py import Agent, AgentClosed, EventStream, MemoryTranscript, RunRecord, RunStatus, ToolContext, tool
from gotato_py._audience import Audience
from gotato_py._closing import close_run
from gotato_py._slot import Slot
from gotato_testkit import ScriptedModel, call, say

from .hosts import PATIENCE_S, Host, in_thread
from .interrupts import TraceFunction
from .laws import assert_laws
from .stage import Stage


class SoftTimeLimit(RuntimeError):
    """What a task queue raises in the middle of a task."""


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class AtLinesOf:
    """Acts before every line that a function executes, or before the n-th alone, as a signal handler would there. What
    traces already, goes on doing so, if it is Python: coverage's own tracer would put itself back in place of this."""

    def __init__(self, code: CodeType, act: Callable[[], object], nth: int = 0) -> None:
        self.lines = 0
        self._code = code
        self._act = act
        self._nth = nth
        self._others: Any = None  # Any: as sys.gettrace gives it

    def during(self, act: Callable[[], object]) -> None:
        """Acts under trace."""
        before = sys.gettrace()
        self._others = before if isinstance(before, FunctionType | MethodType) else None
        sys.settrace(self._enter)
        try:
            act()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        others: TraceFunction | None = None if self._others is None else self._others(frame, event, argument)
        if frame.f_code is not self._code:
            return others

        def step(frame: FrameType, event: str, argument: object) -> TraceFunction:
            nonlocal others
            others = None if others is None else others(frame, event, argument)
            if event == "line":
                self.lines += 1
                if self._nth in (0, self.lines):
                    self._act()
            return step

        return step


def told(stream: EventStream) -> list[str]:
    """The kinds of the events that a subscriber has got."""
    return [event.kind for event in iter(lambda: stream.get(timeout=0), None)]


def subscribed_at(code: CodeType, number: int, *, before: int) -> tuple[str, list[EventStream]]:
    """A run during which somebody subscribes at that line, beside so many who had before it: all of them, and the
    status of the agent when he came."""
    agent = Agent(ScriptedModel([say("Done.")]))
    streams = [agent.subscribe() for _ in range(before)]
    statuses = ["", ""]

    def come() -> None:
        statuses.append(agent.status)
        streams.append(agent.subscribe())

    AtLinesOf(code, come, number).during(lambda: agent.run("go"))
    return statuses[-1], streams


class TestTaken:
    """A run takes the agent."""

    def test_closed_meanwhile(self) -> None:
        """An agent that is closed as a run takes it, before any line of that, either refuses the run or ends it."""
        number = 0
        while True:
            number += 1
            stage = Stage(say("Done."))
            outcomes: list[object] = []

            def begin(stage: Stage = stage, outcomes: list[object] = outcomes) -> None:
                try:
                    outcomes.append(stage.run().status)
                except AgentClosed as error:
                    outcomes.append(error.operation)

            lines = AtLinesOf(Slot.begin.__code__, stage.agent.close, number)
            lines.during(begin)
            if lines.lines < number:
                break
            assert outcomes in (["Agent.run"], [RunStatus.CANCELLED]), number
            assert stage.agent.status == "closed"
            assert_laws(stage)
        assert number > 8

    def test_closed_while_another_goes_on(self) -> None:
        """A stream that is begun after the agent was closed is told so, not to come again when the agent is free."""
        stage = Stage(say("One two three."))
        late = stage.agent.stream("late")
        with stage.agent.stream("count", check=False) as stream:
            stage.agent.close()
            with pytest.raises(AgentClosed) as caught:
                next(late)
        assert caught.value.operation == "Agent.run"
        result = stream.result
        assert (result.status, result.error and result.error.message) == (RunStatus.CANCELLED, "the stream was closed")
        assert_laws(stage)

    def test_interrupted_as_the_transcript_begins_it(self) -> None:
        """An interrupt that is an ordinary exception, behind a transcript's `begin_run`, leaves a run that the next
        entry ends there: every run that a transcript has begun is ended in it."""
        transcript = Begun()
        stage = Stage(transcript=transcript, interrupts=[SoftTimeLimit])
        with pytest.raises(SoftTimeLimit):
            stage.run()
        assert stage.agent.wait_idle(0)
        assert len(transcript.begun) == 1
        assert transcript.ended == transcript.begun
        assert_laws(stage)


class Begun(MemoryTranscript):
    """A transcript that knows of its runs; time runs out as it begins the first."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.ended: list[str] = []

    def begin_run(self, run_id: str) -> None:
        """Begins a run."""
        self.begun.append(run_id)
        if len(self.begun) == 1:
            raise SoftTimeLimit

    def end_run(self, record: RunRecord) -> None:
        """Ends a run."""
        self.ended.append(record.run_id)


class TestLetGo:
    """A run lets the agent go."""

    def test_whoever_has_seen_the_end_finds_it_idle(self) -> None:
        """From the moment at which a subscriber has got the last event, nothing says that the agent is busy."""
        agent = Agent(ScriptedModel([say("Done.")]))
        said: list[tuple[str, bool]] = []
        with agent.subscribe() as stream:
            ended: list[str] = []

            def look() -> None:
                ended.extend(told(stream))
                if ended[-1:] == ["agent_end"]:
                    said.append((agent.status, agent.cancel()))

            AtLinesOf(Slot.release.__code__, look).during(lambda: agent.run("go"))
        assert set(said) == {("idle", False)}
        assert len(said) > 2

    def test_nothing_of_it_is_kept(self) -> None:
        """An idle agent keeps what its transcript holds, and nothing else of its last run: `deps` can be freed."""
        agent = Agent(ScriptedModel([say("Done.")]))
        deps = Begun()
        seen = ref(deps)
        agent.run("go", deps=deps)
        del deps
        gc.collect()
        assert seen() is None


class TestAtTheEnd:
    """Another thread uses the agent while a run tells its end to the subscribers."""

    @pytest.mark.parametrize(
        "act",
        [lambda agent: agent.run("again").ok, lambda agent: agent.wait_idle(0)],
        ids=["run", "wait_idle"],
    )
    def test_it_waits_for_that(self, act: Callable[[Agent], bool]) -> None:
        """It finds the agent free: it waits for the few steps that are left, and is not told `Busy`."""
        agent = Agent(ScriptedModel([say("Done."), say("And again.")]))
        at_the_lock, hosts = Flag(), list[Host[bool]]()

        def play() -> bool:
            outcomes: list[bool] = []
            try:
                AtLinesOf(Slot._audience.__code__, at_the_lock.set).during(lambda: outcomes.append(act(agent)))
            finally:
                at_the_lock.set()
            return outcomes[0]

        def come() -> None:
            if not hosts and agent._slot._leaving is not None:
                hosts.append(Host(play))
                assert at_the_lock.wait(PATIENCE_S)

        AtLinesOf(Slot.release.__code__, come).during(lambda: agent.run("go"))
        assert hosts.pop().join() is True

    def test_waiting_is_not_spinning(self) -> None:
        """A thread that waits for the agent executes next to nothing meanwhile."""
        stage = Stage(say("One two three."))
        lines = AtLinesOf(Slot.wait_idle.__code__, lambda: None)
        idle: list[bool] = []
        with stage.agent.stream("count", check=False):
            in_thread(lambda: lines.during(lambda: idle.append(stage.agent.wait_idle(0.02))))
        assert idle == [False]
        assert lines.lines < 50
        assert_laws(stage)

    def test_closing_is_not_spinning(self) -> None:
        """A thread that closes an agent whose tool takes its time executes next to nothing meanwhile; the tool learns
        why its scope has ended."""
        lines, hosts, reasons = AtLinesOf(Slot._end.__code__, lambda: None), list[Host[None]](), list[str]()

        @tool
        def work(use: ToolContext[None]) -> str:
            """Works on for a while when its scope has ended."""
            hosts.append(Host(lambda: lines.during(stage.agent.close)))
            assert use.scope.wait(PATIENCE_S)
            Flag().wait(0.02)
            reasons.append(use.scope.reason)
            return "done"

        stage = Stage(call("work"), tools=[work])
        assert stage.run().status is RunStatus.CANCELLED
        hosts.pop().join()
        assert reasons == ["closed"]
        assert lines.lines < 50
        assert_laws(stage)

    def test_closing_does_not_wait_for_a_reader(self) -> None:
        """A run that stands at an event of its stream ends when that is read on: `close` does not wait for it."""
        stage = Stage(say("One two three."))
        lines = AtLinesOf(Slot._end.__code__, lambda: None)
        with stage.agent.stream("count", check=False) as stream:
            in_thread(lambda: lines.during(stage.agent.close))
            assert [event.kind for event in stream][-1] == "agent_end"
        assert lines.lines < 20
        assert_laws(stage)


class TestSubscribers:
    """Who subscribes, or is interrupted, as a run begins or ends."""

    @pytest.mark.parametrize("function", [close_run, Slot.release, Audience.tell_end])
    def test_whoever_comes_while_it_ends(self, function: FunctionType) -> None:
        """Whoever subscribes while the agent is busy, before any line of the end of a run, gets that run's end."""
        number = 0
        for number in count(1):
            status, streams = subscribed_at(function.__code__, number, before=0)
            if not streams:
                break
            (kinds,) = map(told, streams)
            assert kinds[-1:] == ["agent_end"] or (kinds, status) == ([], "idle"), number
            assert kinds.count("agent_end") <= 1
        assert number > 1

    def test_whoever_comes_while_it_begins(self) -> None:
        """A signal handler that subscribes while a run takes up those who have, at any line, misses nothing."""
        number = 0
        for number in count(1):
            _, streams = subscribed_at(Audience.join.__code__, number, before=1)
            if len(streams) == 1:
                break
            first, second = map(told, streams)
            assert first == second, number
            assert (first[0], first[-1]) == ("agent_start", "agent_end")
        assert number > 4

    def test_interrupted_as_it_is_told(self) -> None:
        """Ctrl-C while a subscriber is told the end of a run comes out, and he has been told, once, nevertheless."""
        number = 0
        for number in count(1):
            agent = Agent(ScriptedModel([say("Done.")]))
            streams = [agent.subscribe(), agent.subscribe()]
            raising = AtLinesOf(Audience._push.__code__, interrupt, number)
            came_out = False
            try:
                raising.during(partial(agent.run, "go"))
            except KeyboardInterrupt:
                came_out = True
            assert [told(stream).count("agent_end") for stream in streams] == [1, 1], number
            assert came_out is (raising.lines >= number)
            if not came_out:
                break
        assert number > 2

    def test_a_run_that_never_began(self) -> None:
        """A run that was interrupted before it told its start tells no end either: a subscriber hears nothing of it."""
        stage = Stage(transcript=Begun(), interrupts=[SoftTimeLimit])
        with stage.agent.subscribe() as stream:
            with pytest.raises(SoftTimeLimit):
                stage.run()
            assert stage.agent.wait_idle(0)
            assert stream.get(timeout=0) is None
        assert stage.kinds == []
        assert_laws(stage)


class TestClosed:
    """An agent is closed."""

    def test_whoever_subscribes_then(self) -> None:
        """A subscription to a closed agent has ended."""
        stage = Stage()
        stage.agent.close()
        streams: list[EventStream] = [stage.agent.subscribe(), stage.agent.subscribe()]
        assert [list(stream) for stream in streams] == [[], []]
