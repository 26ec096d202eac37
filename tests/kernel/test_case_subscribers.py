"""Cases of subscribers: they come and go at any moment, and each gets the end of every run that he joined, once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    Event,
    EventStream,
    Hooks,
    InvalidArgument,
    MemoryTranscript,
    RunRecord,
    RunResult,
)
from gotato_testkit import Do, FakeTool, ScriptedModel, call, say

from ..effort import by_profile
from .callers import Elsewhere
from .hosts import PATIENCE_S, Host, in_thread
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage

STEP = by_profile(dev=23, ci=3, nightly=1)
"""Every which line is tried."""
STEPS = (say("On it. ") + call("a"), say("Done."))


def read(stream: EventStream) -> list[Event]:
    """What is queued."""
    return list(iter(lambda: stream.get(timeout=0), None))


def assert_one_run(got: Sequence[Event], *, is_whole: bool = False) -> None:
    """Events of one run, in their order, of which the last, and only the last, is its end."""
    assert len({event.run_id for event in got}) == 1
    assert all(a.sequence < b.sequence for a, b in pairwise(got))
    assert [event.kind for event in got].count("agent_end") == 1
    assert isinstance(got[-1], AgentEnd)
    if is_whole:
        assert [event.sequence for event in got] == list(range(1, len(got) + 1))


class TestJoining:
    """Somebody subscribes."""

    def test_before_between_and_after(self) -> None:
        """A subscriber gets every event from then on, as observers do; who comes between two runs gets the second."""
        stage = Stage(*STEPS, say("Again."), tools=[FakeTool("a", "a")])
        first = stage.agent.subscribe()
        stage.run()
        half = len(stage.events)
        second = stage.agent.subscribe()
        stage.run("again")
        assert read(stage.agent.subscribe()) == []
        assert read(first) == stage.events
        assert read(second) == stage.events[half:]
        assert_laws(stage)

    @pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
    @pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
    def test_during_a_run_at_every_event(self, elsewhere: bool, streaming: bool) -> None:
        """One who comes at an event gets all that follow it, and the end; the same as the observers get."""
        number = 0
        while True:
            number += 1
            streams: list[EventStream] = []
            stage = joined_at(number, streams, elsewhere)
            if streaming:
                with stage.agent.stream("do it") as stream:
                    list(stream)
            else:
                stage.run()
            if not streams:
                break
            got = read(streams[0])
            assert got == stage.events[number:] or number == len(stage.events)
            assert_one_run(got)
            assert_laws(stage)
        assert number > 12

    def test_from_a_hook_of_a_run_that_nobody_watched(self) -> None:
        """Where nobody listened before, the events begin with the one after the join; turns and tools stay paired."""
        got: list[list[str]] = []
        for point in ("before_run", "before_turn", "should_stop", "before_settle"):
            streams: list[EventStream] = []
            agent, hook = watched_from(point, streams)
            assert agent.run("do it").text == "Done."
            events = read(streams[0])
            assert_one_run(events, is_whole=True)
            got.append([event.kind for event in events])
            assert hook
        assert got[0][:3] == ["message_end", "turn_start", "context_built"]
        assert got[1][:2] == ["context_built", "message_start"]
        assert got[2][:2] == ["turn_start", "context_built"]
        assert got[3] == ["agent_end"]
        assert_laws(Stage(say("Done.")))

    def test_as_the_end_is_recorded(self) -> None:
        """Who joins a run that nobody watched as it settles gets its end, the only thing that is left to tell."""
        streams: list[EventStream] = []
        transcript = At("end_run", lambda: streams.append(agent.subscribe()))
        agent = Agent(ScriptedModel([say("Done.")]), transcript=transcript)
        assert agent.run("do it").text == "Done."
        assert [event.kind for event in read(streams[0])] == ["agent_end"]
        assert_laws(Stage(say("Done.")))

    def test_many_at_once(self) -> None:
        """Threads that subscribe at the same moment of a run all get the rest of it."""
        streams: list[EventStream] = []

        def come() -> None:
            hosts = [Host(lambda: streams.append(stage.agent.subscribe())) for _ in range(20)]
            for host in hosts:
                host.join()

        stage = Stage(*STEPS, tools=[FakeTool("a", Do(come))])
        stage.run()
        start = stage.kinds.index("tool_execution_start") + 1
        assert [read(stream) for stream in streams] == [stage.events[start:]] * 20
        assert_laws(stage)

    @pytest.mark.parametrize("wrong", [0, -1, 1.5, "9", None, True])
    def test_a_wrong_size(self, wrong: Any) -> None:
        """A queue of no size is refused, and nobody has come."""
        stage = Stage(say("Done."))
        with pytest.raises(InvalidArgument):
            stage.agent.subscribe(wrong)
        assert stage.run().ok
        assert_laws(stage)


def joined_at(number: int, streams: list[EventStream], elsewhere: bool) -> Stage:
    """A stage to whose agent somebody subscribes at the event of that number."""

    def observe(event: Event) -> None:
        if event.sequence == number and not streams:
            streams.append(in_thread(stage.agent.subscribe) if elsewhere else stage.agent.subscribe())

    stage = Stage(*STEPS, tools=[FakeTool("a", "a")], extensions=[Hooks(observe=observe)])
    return stage


def watched_from(point: str, streams: list[EventStream]) -> tuple[Agent, list[str]]:
    """An agent without observers to which a hook subscribes when it is asked at that point for the first time."""
    asked: list[str] = []

    def ask(*_: object) -> None:
        if not asked:
            asked.append(point)
            streams.append(agent.subscribe())

    hooks: dict[str, Any] = {point: ask}
    agent = Agent(ScriptedModel(STEPS), tools=[FakeTool("a", "a")], extensions=[Hooks(**hooks)])
    return agent, asked


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_joining_at_every_line(where: str, watched: bool) -> None:
    """Whoever subscribes while a run has the agent gets the end of that run, once; whoever comes later gets nothing."""
    number, joined = 0, 0
    with Elsewhere() as thread:
        while True:
            number += STEP
            agent, came = crowded(watched)
            lines = LastLines({number: came.act if where == "here" else partial(thread.begin, came.act)})
            with lines.watching():
                lines.arm_once()
                assert agent.run("do it").text == "Done."
            if number > lines.count:
                break
            if where == "elsewhere":
                thread.join()
            got = read(came.streams[0])
            if got:
                assert_one_run(got)
            assert got or came.status != "running"
            joined += bool(got)
    assert joined > 0.9 * number / STEP
    assert_laws(Stage(say("Done.")))


class Coming:
    """Somebody who subscribes, and looks at the agent then."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.streams: list[EventStream] = []
        self.status = ""

    def act(self) -> None:
        """Subscribes."""
        self.streams.append(self._agent.subscribe())
        self.status = self._agent.status


def crowded(watched: bool) -> tuple[Agent, Coming]:
    """An agent, watched by an observer or not, and somebody who may subscribe."""
    observers = [Hooks(observe=lambda event: None)] if watched else []
    agent = Agent(ScriptedModel(STEPS), tools=[FakeTool("a", "a")], extensions=observers)
    return agent, Coming(agent)


class At(MemoryTranscript):
    """A transcript that acts as it is told that a run begins, or that it has ended."""

    def __init__(self, point: str, act: Callable[[], object]) -> None:
        super().__init__()
        self._acts = {point: act}

    def begin_run(self, run_id: str) -> None:
        """Acts before the run has begun."""
        self._acts.get("begin_run", bool)()

    def end_run(self, record: RunRecord) -> None:
        """Acts while the run is settling."""
        self._acts.get("end_run", bool)()


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("point", ["begin_run", "end_run"])
def test_a_run_that_begins_or_ends_as_somebody_joins(point: str, watched: bool) -> None:
    """Before any line of `subscribe` the run may go on to its end: whoever has joined gets that, once."""
    number = 0
    while True:
        number += 1
        there, go_on = Flag(), Flag()
        transcript = At(point, partial(hold, there, go_on))
        observers = [Hooks(observe=lambda event: None)] if watched else []
        agent = Agent(ScriptedModel([say("Done.")]), transcript=transcript, extensions=observers)
        runner = Host(partial(agent.run, "go"))
        assert there.wait(PATIENCE_S)
        joining: list[bool] = []
        lines = LastLines({number: partial(let_go, agent, go_on, runner, joining)})
        with lines.watching():
            lines.arm_once()
            stream = agent.subscribe()
        go_on.set()
        assert runner.join().ok
        got = read(stream)
        if got:
            assert_one_run(got)
        assert got or joining == [False]
        if number > lines.count:
            break
    assert number > 10
    assert_laws(Stage(say("Done.")))


def hold(there: Flag, go_on: Flag) -> None:
    """Says that it is there, and waits until it may go on."""
    there.set()
    assert go_on.wait(PATIENCE_S)


def let_go(agent: Agent, go_on: Flag, runner: Host[RunResult[None]], joining: list[bool]) -> None:
    """Lets the run go on, to its end if nothing holds it up; notes whether this thread is just joining it."""
    lock: Any = agent._slot._audience(os.getpid()).lock  # the type stubs do not have the method that Condition uses
    joining.append(lock._is_owned())
    go_on.set()
    runner.thread.join(0.02)
