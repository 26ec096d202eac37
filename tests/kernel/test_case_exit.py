"""Cases of agents that nobody closes: the program ends, or the collector finds what nobody has any more."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from functools import partial
from threading import Event as Flag

import pytest

from gotato_py import AgentEnd, Busy, NotRunning, RunStatus
from gotato_testkit import FakeTool, call, say

from .hosts import PATIENCE_S, SOON_S, Host, in_thread
from .laws import assert_laws
from .programs import seconds_to_exit
from .stage import Stage

HEAD = """
from gotato_py import *
from gotato_testkit import *
from threading import Event, Thread
import time

def in_background(act):
    Thread(target=act, daemon=True).start()

waiting = Event()
stall = [TextDelta("One"), Do(waiting.set), Stall()]
"""
PROGRAMS = {
    "nothing left": "agent = Agent(EchoModel()); agent.run('hi')",
    "an open stream": "agent = Agent(EchoModel()); stream = agent.stream('hi'); next(stream)",
    "an open stream, subscribed to": """
agent = Agent(EchoModel())
subscriber = agent.subscribe()
stream = agent.stream('hi')
next(stream)
""",
    "a reader that waits": """
agent = Agent(EchoModel())
subscriber = agent.subscribe()
agent.run('hi')
in_background(lambda: [waiting.set() for _ in subscriber])
waiting.wait()
""",
    "a reader of a run that stalls": """
agent = Agent(ScriptedModel([stall]))
subscriber = agent.subscribe()
in_background(lambda: list(subscriber))
in_background(lambda: agent.run('hi', check=False))
waiting.wait()
""",
    "somebody who waits until it is idle": """
agent = Agent(ScriptedModel([stall]))
in_background(lambda: agent.run('hi', check=False))
waiting.wait()
in_background(agent.wait_idle)
""",
    "a tool on a worker thread": """
def hang():
    "Hangs."
    waiting.set()
    time.sleep(60)
agent = Agent(ScriptedModel([call("hang"), say("I see.")]), tools=[hang], limits=Limits(tool_timeout=0.02))
agent.run('hi')
assert agent.abandoned
""",
}


@pytest.mark.parametrize("left", PROGRAMS)
def test_c32_the_interpreter_exits_at_once(left: str) -> None:
    """A program that leaves this behind exits at once, with status 0 and without a word."""
    assert seconds_to_exit(HEAD + PROGRAMS[left].strip() + "\n") < SOON_S
    assert_laws(Stage(say("Done.")))


@pytest.fixture
def _dropping_may_warn() -> Iterator[None]:
    """Of a dropped stream Python warns where it is dropped, which here is another thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


@pytest.mark.usefixtures("_dropping_may_warn")
class TestC34Collected:
    """A stream is dropped half read, in another thread than the one that read it."""

    @pytest.mark.parametrize("in_a_cycle", [False, True], ids=["dropped", "collected"])
    @pytest.mark.parametrize("count", range(1, 12, 2))
    def test_c34_with_subscribers_and_steers(self, count: int, in_a_cycle: bool) -> None:
        """From there on nobody can steer it; the next entry tells its end, to subscribers as to observers, once."""
        stage = Stage(say("On it. ") + call("a"), say("Done."), tools=[FakeTool("a", "a")])
        subscriber = stage.agent.subscribe()
        streams: list[object] = [stream := stage.agent.stream("go")]
        for _ in range(count):
            next(stream)
        stage.agent.follow_up("and then")
        if in_a_cycle:
            streams.append(streams)
            del stream
            gc.disable()
            del streams
            in_thread(gc.collect)
            gc.enable()
        else:
            del stream
            in_thread(streams.clear)
        told = list(stage.events)
        assert (stage.agent.status, stage.agent.cancel()) == ("idle", False)
        for control in (stage.agent.steer, stage.agent.follow_up):
            with pytest.raises(NotRunning):
                control("too late")
        assert list(iter(partial(subscriber.get, 0), None)) == told
        assert stage.agent.wait_idle() is True
        last = stage.events[-1]
        assert isinstance(last, AgentEnd)
        assert last.status is RunStatus.CANCELLED
        assert list(iter(partial(subscriber.get, 0), None)) == stage.events[len(told) :]
        assert "U and then" not in stage.history
        assert_laws(stage)

    def test_c34_while_somebody_enters(self) -> None:
        """Where the next run begins just as the stream is dropped, it is `Busy` or closes what was left."""
        met: set[str] = set()
        for number in range(300):
            stage = Stage(say("On it. ") + call("a"), say("Done."), tools=[FakeTool("a", "a")])
            streams = [stage.agent.stream("go")]
            for _ in range(number % 12 + 1):
                next(streams[0])
            go = Flag()
            host = Host(lambda go=go, streams=streams: (go.wait(PATIENCE_S), streams.clear()))  # type: ignore[misc]
            stage.script.replace(say("Next."))
            go.set()
            try:
                assert stage.run("next").text == "Next."
                met.add("closed")
            except Busy:
                met.add("busy")
            host.join()
            assert stage.agent.wait_idle(PATIENCE_S) is True
            assert stage.kinds.count("agent_end") == len({event.run_id for event in stage.events})
            assert_laws(stage)
        assert met
