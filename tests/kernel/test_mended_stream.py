"""Faults of streams and of closing that were found once: they hung, fell silent, or raised the wrong thing."""

from __future__ import annotations

import time
from threading import Event as Flag
from threading import Thread

import pytest

from gotato_py import Agent, AgentClosed, Busy, InvalidState, RunStatus, RunStream, TextDelta
from gotato_testkit import Do, EventRecorder, ScriptedModel, Step, say

from .hosts import PATIENCE_S, SOON_S


class TestClose:
    """`close` returns at once where waiting could not help."""

    def test_from_inside_a_run_that_another_thread_drives(self) -> None:
        """Inside is told by the thread that drives the run now, not by the one that made the stream."""
        took: list[float] = []

        def close() -> None:
            began = time.monotonic()
            agent.close()
            took.append(time.monotonic() - began)

        step: Step = [TextDelta("One"), Do(close), *say(" two.")]
        agent = Agent(ScriptedModel([step]))
        stream = agent.stream("count", check=False)
        next(stream)  # the creator takes the agent, the other thread goes on
        reader = Thread(target=lambda: list(stream))
        reader.start()
        reader.join()
        assert took[0] < SOON_S
        assert (stream.result.status, agent.status) == (RunStatus.CANCELLED, "closed")

    def test_from_another_thread_while_the_stream_stands(self) -> None:
        """A run that stands at an event is not waited for: it ends where it is read on."""
        events = EventRecorder()
        agent = Agent(ScriptedModel([say("One two three.")]), extensions=[events])
        stream = agent.stream("count", check=False)
        next(stream)
        began = time.monotonic()
        closer = Thread(target=agent.close)
        closer.start()
        closer.join()
        assert time.monotonic() - began < SOON_S
        list(stream)
        assert (stream.result.status, agent.status) == (RunStatus.CANCELLED, "closed")
        assert events.kinds.count("agent_end") == 1

    def test_the_creator_waits_for_the_thread_that_drives(self) -> None:
        """Where another thread is inside the run, the creator of its stream waits for the end of it."""
        inside, closing = Flag(), Flag()

        def hold() -> None:
            inside.set()
            closing.wait(PATIENCE_S)

        events = EventRecorder()
        step: Step = [TextDelta("One"), Do(hold), *say(" two.")]
        agent = Agent(ScriptedModel([step]), extensions=[events])
        stream = agent.stream("count", check=False)
        next(stream)
        reader = Thread(target=lambda: list(stream))
        reader.start()
        assert inside.wait(PATIENCE_S)
        opener = Thread(target=lambda: (time.sleep(0.02), closing.set()))  # type: ignore[func-returns-value]
        opener.start()
        agent.close()
        ended = events.kinds.count("agent_end")
        opener.join()
        reader.join()
        assert (ended, agent.status) == (1, "closed")


class TestARefusedStream:
    """A stream that did not get the agent."""

    def refused(self) -> tuple[Agent, RunStream[None], RunStream[None]]:
        """An agent, the stream that has it, and one that met it busy."""
        agent = Agent(ScriptedModel([say("One two three."), say("Four.")]))
        has_it, refused = agent.stream("count"), agent.stream("me too")
        next(has_it)
        with pytest.raises(Busy):
            next(refused)
        return agent, has_it, refused

    def test_it_stays_refused(self) -> None:
        """Busy is raised again by every later `next`: the stream never looks as if it had ended well."""
        agent, has_it, refused = self.refused()
        list(has_it)
        for _ in range(2):
            with pytest.raises(Busy):
                next(refused)
        with pytest.raises(Busy):
            list(refused)
        assert agent.run("again").text == "Four."

    def test_its_result_is_the_refusal(self) -> None:
        """`.result` and `.text` raise Busy too."""
        _, has_it, refused = self.refused()
        list(has_it)
        with pytest.raises(Busy):
            _ = refused.result
        with pytest.raises(Busy):
            "".join(refused.text)

    def test_its_with_is_refused(self) -> None:
        """Entering raises Busy, and closing it does no harm to the run that has the agent."""
        agent = Agent(ScriptedModel([say("One two three.")]))
        has_it, refused = agent.stream("count"), agent.stream("me too")
        next(has_it)
        with pytest.raises(Busy), refused:
            pass
        refused.close()
        assert "".join(has_it.text) == "One two three."
        assert agent.status == "idle"

    def test_a_closed_agent(self) -> None:
        """AgentClosed stays as well."""
        agent = Agent(ScriptedModel([]))
        stream = agent.stream("hi")
        agent.close()
        for _ in range(2):
            with pytest.raises(AgentClosed):
                next(stream)
        with pytest.raises(AgentClosed):
            _ = stream.result


def test_entering_a_closed_stream() -> None:
    """`with` on a stream that was closed before is InvalidState, not StopIteration, and takes nothing."""
    agent = Agent(ScriptedModel([say("Fine.")]))
    stream = agent.stream("hi")
    stream.close()
    with pytest.raises(InvalidState, match="closed before"), stream:
        pass
    assert (agent.status, len(agent.transcript.messages)) == ("idle", 0)
    assert agent.run("hi").text == "Fine."
