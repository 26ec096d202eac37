"""Cases of lifetime: an agent that is closed while it runs, or never, and streams that nobody reads to their end."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest

import gotato_py
import gotato_testkit
from gotato_py import AgentClosed, Cancelled, Event, Hooks, RunResult, RunStatus, TextDelta
from gotato_testkit import Do, Stall, call, say

from .hosts import SOON_S
from .laws import assert_laws
from .stage import Stage

ROOTS = [str(Path(module.__file__ or "").parents[1]) for module in (gotato_py, gotato_testkit)]


def save() -> str:
    """Saves."""
    return "saved"


def assert_closed(stage: Stage, result: RunResult[None]) -> None:
    """The run that was closed is cancelled, says so, and nothing further can be run."""
    assert result.status is RunStatus.CANCELLED
    assert isinstance(result.error, Cancelled)
    assert "closed" in str(result.error)
    assert stage.agent.status == "closed"
    with pytest.raises(AgentClosed):
        stage.agent.run("again")
    with pytest.raises(AgentClosed):
        stage.agent.stream("again")
    assert stage.agent.cancel() is False


class TestC32CloseWhileRunning:
    """`close` is called while the agent runs."""

    def test_c32_from_another_thread_in_a_model_call(self) -> None:
        """`close` cancels the run and returns when it has ended, everything stored."""
        reading = Flag()
        status_after: list[str] = []

        def close() -> None:
            reading.wait()
            stage.agent.close()
            status_after.extend([stage.agent.status, stage.kinds[-1]])

        stage = Stage([TextDelta("Work"), Do(reading.set), Stall()])
        other = Thread(target=close)
        other.start()
        result = stage.run()
        other.join()
        assert status_after == ["closed", "agent_end"]
        assert stage.history == ["U do it", "A Work cancelled"]
        assert_closed(stage, result)
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["agent_start", "message_update", "tool_execution_start", "turn_end"])
    def test_c32_from_an_observer(self, kind: str) -> None:
        """From inside the run `close` returns at once, and the run ends as soon as it can."""

        def observe(event: Event) -> None:
            if event.kind == kind:
                began = time.monotonic()
                stage.agent.close()
                took.append(time.monotonic() - began)

        took: list[float] = []
        stage = Stage(say("One ") + call("save"), say("Two."), tools=[save], extensions=[Hooks(observe=observe)])
        result = stage.run()
        assert max(took) < SOON_S
        assert len(stage.asked) <= 1
        assert_closed(stage, result)
        assert_laws(stage)

    def test_c32_from_a_tool(self) -> None:
        """The tool that closes its agent is heard: its real result is kept, and nothing starts after it."""

        def quit_now() -> str:
            """Closes the agent."""
            stage.agent.close()
            assert stage.agent.status == "running"
            return "closing"

        stage = Stage(call("quit_now") + call("save"), tools=[quit_now, save])
        result = stage.run()
        assert stage.history[2:] == ["R call_1 ok", "R call_2 not_run"]
        assert_closed(stage, result)
        assert_laws(stage)

    def test_c32_twice_and_after(self) -> None:
        """Closing again, or an agent that never ran, does nothing."""
        stage = Stage(say("Done."))
        with stage.agent as agent:
            assert agent.run("do it").text == "Done."
            agent.close()
        stage.agent.close()
        assert stage.agent.status == "closed"
        assert stage.kinds.count("agent_end") == 1
        assert_laws(stage)
        idle = Stage()
        idle.agent.close()
        assert idle.agent.status == "closed"
        assert_laws(idle)

    def test_c32_at_the_end_of_the_run(self) -> None:
        """A close at `agent_end` comes too late for this run, which stays completed."""
        close = Hooks(observe=lambda event: stage.agent.close() if event.kind == "agent_end" else None)
        stage = Stage(say("Done."), extensions=[close])
        assert stage.run().status is RunStatus.COMPLETED
        assert stage.agent.status == "closed"
        assert_laws(stage)

    def test_c32_with_a_stream_open(self) -> None:
        """Closing in the thread of an open stream returns at once; the stream then ends, cancelled and closed."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count", check=False)
        next(stream)
        began = time.monotonic()
        stage.agent.close()
        assert time.monotonic() - began < SOON_S
        assert [event.kind for event in stream][-1] == "agent_end"
        assert_closed(stage, stream.result)
        assert_laws(stage)

    def test_c32_with_a_stream_that_was_never_entered(self) -> None:
        """A stream that was made before the close and not begun cannot begin after it."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count")
        stage.agent.close()
        with pytest.raises(AgentClosed):
            next(stream)
        assert (stage.history, stage.events) == ([], [])
        assert_laws(stage)

    @pytest.mark.parametrize(
        "last",
        [
            "agent.run('hi')",
            "stream = agent.stream('hi')",
            "stream = agent.stream('hi'); next(stream)",
            "Thread(target=lambda: agent.run('hi', check=False), daemon=True).start(); reading.wait()",
        ],
        ids=["after a run", "stream made", "stream open", "running in a daemon thread"],
    )
    def test_c32_at_interpreter_exit(self, last: str) -> None:
        """A program that never closes its agent exits at once, with status 0 and nothing on stderr."""
        program = f"""
            from threading import Event, Thread
            from gotato_py import Agent, TextDelta
            from gotato_testkit import Do, ScriptedModel, Stall, say
            reading = Event()
            stall = [TextDelta("a"), Do(reading.set), Stall()]
            agent = Agent(ScriptedModel([stall if {"Thread" in last} else say("Hello there.")]))
            {last}
            print("end", agent.status)
        """
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {ROOTS!r}\n" + textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("end ")
        assert time.monotonic() - began < 10
        stage = Stage()
        assert_laws(stage)
