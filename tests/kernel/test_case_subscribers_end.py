"""Cases of subscribers and ends: of runs that follow each other, of the agent, of their own queue, and interrupts."""

from __future__ import annotations

import gc
import time
from collections import Counter
from itertools import groupby
from threading import Event as Flag
from weakref import ref

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    Busy,
    Done,
    Event,
    EventStream,
    Hooks,
    MessageEnd,
    MessageStart,
    RunStatus,
    SubscriptionOverflow,
    TextDelta,
)
from gotato_testkit import Do, EchoModel, FakeTool, ScriptedModel, Stall, call, say

from ..effort import by_profile
from .controls import on
from .hosts import PATIENCE_S, Host, in_thread
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage
from .test_case_subscribers import At, assert_one_run, read

STEP = by_profile(dev=11, ci=2, nightly=1)
"""Every which line is interrupted."""


class TestOrder:
    """Runs that follow each other at once."""

    def test_the_end_of_one_before_the_start_of_the_next(self) -> None:
        """Under threads that fight for the agent each run is told whole, and all of it before anything of the next."""
        agent = Agent(EchoModel())
        first = agent.subscribe(maxsize=10_000_000)  # they fight on while the visitor is kept waiting
        visited = Flag()

        def fight() -> int:
            ran = 0
            while ran < 40 or not visited.is_set():
                try:
                    agent.run("go")
                    ran += 1
                except Busy:
                    time.sleep(0)
            return ran

        def come_and_go() -> list[list[Event]]:
            got: list[list[Event]] = []
            for _ in range(10):
                seen: list[Event] = []
                with agent.subscribe() as stream:
                    while not seen or not isinstance(seen[-1], AgentEnd):
                        event = stream.get(timeout=PATIENCE_S)
                        assert event is not None
                        seen.append(event)
                got.append(seen)
            visited.set()
            return got

        fighters, visitor = [Host(fight) for _ in range(4)], Host(come_and_go)
        visits = visitor.join()
        count = sum(host.join() for host in fighters)
        runs = [list(events) for _, events in groupby(read(first), key=lambda event: event.run_id)]
        assert len(runs) == len({run[0].run_id for run in runs}) == count
        for run in runs:
            assert_one_run(run, is_whole=True)
        for seen in visits:
            assert_one_run(seen)
        assert_laws(Stage(say("Done.")))

    def test_a_slow_one_holds_nobody_up(self) -> None:
        """A queue that is full costs the run nothing; its reader gets what was queued, and then the overflow."""
        stage = Stage(call("a"), say("Done."), tools=[FakeTool("a", "a")])
        slow, quick = stage.agent.subscribe(maxsize=1), stage.agent.subscribe()
        assert stage.run().ok
        assert slow.get(timeout=0) == stage.events[0]
        for _ in range(2):
            with pytest.raises(SubscriptionOverflow):
                slow.get(timeout=0)
        assert read(quick) == stage.events
        stage.script.replace(say("Again."))
        again = stage.agent.subscribe()
        assert stage.run().ok
        assert_one_run(read(again), is_whole=True)
        assert_laws(stage)


def test_whoever_comes_in_the_midst_of_an_answer() -> None:
    """An answer that began while nobody listened is told to have begun, as the assistant's, before it ends."""
    come: list[EventStream] = []
    agent = Agent(ScriptedModel([[TextDelta("Hello."), Do(lambda: come.append(agent.subscribe())), Done()]]))
    agent.run("hi")
    agent.close()
    start, end, *_ = [event for event in come[0] if isinstance(event, MessageStart | MessageEnd)]
    assert isinstance(start, MessageStart)
    assert (start.role, end.kind) == ("assistant", "message_end")


class TestTheEndOfTheAgent:
    """The agent is closed, or nobody has it any more."""

    @pytest.mark.parametrize("ran", [False, True], ids=["before a run", "after a run"])
    def test_closed(self, ran: bool) -> None:
        """Every queue ends, those that wait and those that come later; what is queued can still be read."""
        stage = Stage(say("Done."))
        streams = [stage.agent.subscribe() for _ in range(2)]
        waiting = Host(lambda: list(streams[1]))
        if ran:
            stage.run()
        stage.agent.close()
        assert waiting.join() == stage.events
        assert list(streams[0]) == stage.events
        assert list(stage.agent.subscribe()) == []
        assert stage.agent.subscribe().get() is None
        assert_laws(stage)

    def test_closed_while_it_runs(self) -> None:
        """The end of the run comes first, then the end of the queue; whoever comes meanwhile gets both."""
        late: list[EventStream] = []

        def close() -> None:
            assert reading.wait(PATIENCE_S)
            stage.agent.steer("hurry")
            stage.agent.close()

        reading = Flag()
        come = on("message_end", lambda: late.append(stage.agent.subscribe()), number=2)
        stage = Stage([TextDelta("Work"), Do(reading.set), Stall()], extensions=[come])
        stream = stage.agent.subscribe()
        reader, closer = Host(lambda: list(stream)), Host(close)
        result = stage.run()
        closer.join()
        assert reader.join() == stage.events
        assert [event.kind for event in late[0]][-1] == "agent_end"
        assert [each.text for each in result.undelivered] == ["hurry"]
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["agent_start", "message_update", "tool_execution_start", "turn_end", "agent_end"])
    def test_closed_from_inside(self, kind: str) -> None:
        """A close from within the run keeps its end from nobody."""

        def close() -> None:
            stage.agent.close()

        stage = Stage(say("One ") + call("a"), say("Two."), tools=[FakeTool("a")], extensions=[on(kind, close)])
        stream = stage.agent.subscribe()
        stage.run()
        assert list(stream) == stage.events
        assert list(stage.agent.subscribe()) == []
        assert_laws(stage)

    def test_closed_as_a_run_is_refused(self) -> None:
        """A close that meets a run which is then refused leaves no reader waiting."""

        def refuse() -> None:
            agent.close()
            raise Busy("another agent has this transcript", run_id="r-1", since=0.0)

        agent = Agent(ScriptedModel([]), transcript=At("begin_run", refuse))
        stream = agent.subscribe()
        with pytest.raises(Busy):
            agent.run("go")
        assert in_thread(lambda: list(stream)) == []
        assert agent.status == "closed"
        assert_laws(Stage(say("Done.")))

    @pytest.mark.parametrize("then", ["read", "closed"])
    def test_closed_while_a_stream_stands(self, then: str) -> None:
        """The queue of an agent that was closed under an open stream ends where that stream does."""
        stage = Stage(say("One two three."))
        stream = stage.agent.subscribe()
        running = stage.agent.stream("count", check=False)
        next(running)
        stage.agent.close()
        list(running) if then == "read" else running.close()
        assert running.result.status is RunStatus.CANCELLED
        assert list(stream) == stage.events
        assert_laws(stage)

    @pytest.mark.parametrize("state", ["idle", "ran", "stream dropped"])
    def test_dropped(self, state: str) -> None:
        """An agent that nobody has any more ends its queues: no reader waits for ever."""
        agents = [Agent(ScriptedModel([say("Done.")]))]
        stream = agents[0].subscribe()
        reader = Host(lambda: list(stream))
        if state == "ran":
            agents[0].run("go")
        elif state == "stream dropped":
            running = agents[0].stream("go")
            next(running)
            with pytest.warns(ResourceWarning, match="dropped"):
                del running
        agents.clear()
        gc.collect()
        kinds = [event.kind for event in reader.join()]
        assert ("agent_end" in kinds) == (state == "ran")
        assert_laws(Stage(say("Done.")))

    def test_a_subscriber_keeps_no_agent(self) -> None:
        """A queue that is kept, with what is in it, does not keep its agent."""
        agent = Agent(ScriptedModel([say("Done.")]))
        stream, kept = agent.subscribe(), ref(agent)
        agent.run("go")
        del agent
        gc.collect()
        assert kept() is None
        assert_one_run(read(stream), is_whole=True)
        assert_laws(Stage(say("Done.")))


def entered_by(agent: Agent, entry: str) -> None:
    """The next entry after an interrupt."""
    if entry == "run":
        agent.run("once more")
    elif entry == "wait_idle":
        assert agent.wait_idle(timeout=0) is True
    else:
        agent.close()


@pytest.mark.parametrize("entry", ["run", "wait_idle", "close"])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
def test_interrupts_lose_no_end(watched: bool, entry: str) -> None:
    """Ctrl-C before any line of the end of a run: after the next entry each subscriber has had `agent_end`, once."""
    number, interrupts = 1 - STEP, 0
    while True:
        number += STEP
        lines = LastLines({number: _interrupt})
        model = ScriptedModel([[TextDelta("Fine."), Do(lines.arm_once), *say()], say("Again.")])
        seen: list[Event] = []
        agent = Agent(model, extensions=[Hooks(observe=seen.append)] if watched else [])
        streams = [agent.subscribe(), agent.subscribe()]
        try:
            with lines.watching():
                agent.run("go")
        except KeyboardInterrupt:
            interrupts += 1
        if number > lines.count:
            break
        entered_by(agent, entry)
        told = [read(stream) for stream in streams]
        assert told[0] == told[1]
        assert not watched or told[0] == seen
        ends = Counter(event.run_id for event in told[0] if isinstance(event, AgentEnd))
        assert ends == Counter({event.run_id for event in told[0]})
        assert len(ends) == (2 if entry == "run" else 1)
        for _, events in groupby(told[0], key=lambda event: event.run_id):
            assert_one_run(list(events), is_whole=True)
    assert interrupts > 150 / STEP
    assert_laws(Stage(say("Done.")))


def _interrupt() -> None:
    raise KeyboardInterrupt
