"""Cases of Ctrl-C in whatever a run calls: tools, the model, observers, the transcript, the waits."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

import gotato_py
from gotato_py import Event, Hooks, MemoryTranscript, Message, RetryPolicy, RunResult, TextDelta
from gotato_testkit import Do, Raise, Stall, call, say, think

from .interrupts import interrupted
from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


def save(n: int) -> str:
    """Saves."""
    return f"saved {n}"


def interrupt(*_: object) -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def script() -> list[Any]:
    """Two turns: an answer with a call, and text."""
    return [think("Hm.", signature="s") + say("On it. ") + call("save", n=1), say("Done.")]


EVENTS = 20
"""How many events the script makes."""


def run_of(stage: Stage) -> RunResult[None]:
    """The script as a run."""
    return stage.run()


def stream_of(stage: Stage) -> RunResult[None]:
    """The script as a stream, read to its end."""
    with stage.agent.stream("do it", check=False) as stream:
        for _ in stream:
            pass
    return stream.result


class Interrupting(MemoryTranscript):
    """A transcript in which Ctrl-C comes at one of its calls, before or after it did its work."""

    def __init__(self, point: str, number: int, *, after: bool) -> None:
        super().__init__()
        self._next = {point: number}
        self._after = after

    def _perhaps(self, point: str, *, after: bool) -> None:
        if point in self._next and after is self._after:
            self._next[point] -= 1
            if self._next[point] == 0:
                raise KeyboardInterrupt

    def append(self, message: M) -> M:
        """Commits a message."""
        self._perhaps("append", after=False)
        kept = super().append(message)
        self._perhaps("append", after=True)
        return kept

    def mark_started(self, key: str) -> None:
        """Marks a call."""
        self._perhaps("mark_started", after=False)
        super().mark_started(key)
        self._perhaps("mark_started", after=True)


class TestC33FromACallback:
    """`KeyboardInterrupt` is raised inside something that the run calls."""

    def test_c33_in_a_tool(self) -> None:
        """From a tool it ends the run: the call is closed as started, effect unknown, and the same interrupt raised."""
        raised = KeyboardInterrupt("from the tool")

        def stop(n: int) -> None:
            """Is interrupted."""
            raise raised

        stage = Stage(call("stop", n=1) + call("stop", n=2), tools=[stop])
        with pytest.raises(KeyboardInterrupt) as caught:
            stage.agent.run("do it")
        assert caught.value is raised
        assert stage.history[2:] == ["R call_1 cancelled", "R call_2 not_run"]
        assert stage.events[-1].to_dict()["status"] == "cancelled"
        assert_laws(stage)

    @pytest.mark.parametrize("place", range(4))
    def test_c33_in_the_model(self, place: int) -> None:
        """It ends the run from the model's stream: what was said is kept, calls are not."""
        events: list[Any] = list(say("On it. ") + call("save", n=1))
        stage = Stage([*events[:place], Do(interrupt), *events[place:]], tools=[save])
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert not stage.effects
        assert stage.kinds[-1] == "agent_end"
        assert_laws(stage)

    def test_c33_in_the_call_of_the_model(self) -> None:
        """It ends the run from `stream` itself."""
        stage = Stage(Raise(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert (stage.history, stage.kinds[-1]) == (["U do it"], "agent_end")
        assert_laws(stage)

    @pytest.mark.parametrize("go", [run_of, stream_of])
    @pytest.mark.parametrize("number", range(1, EVENTS + 1))
    def test_c33_in_an_observer(self, number: int, go: Callable[[Stage], object]) -> None:
        """It ends the run from the observer of any event; the others get that event too, and every one after it."""
        seen: list[Event] = []

        def observe(event: Event) -> None:
            seen.append(event)
            if len(seen) == number:
                raise KeyboardInterrupt

        stage = Stage(*script(), tools=[save], extensions=[Hooks(observe=observe)])
        with pytest.raises(KeyboardInterrupt):
            go(stage)
        assert seen == stage.events
        assert stage.kinds[-1] == "agent_end"
        assert_laws(stage)
        assert seen == stage.events

    @pytest.mark.parametrize("go", [run_of, stream_of])
    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("number", range(1, 5))
    @pytest.mark.parametrize("point", ["append", "mark_started"])
    def test_c33_in_the_transcript(self, point: str, number: int, after: bool, go: Callable[[Stage], object]) -> None:
        """From any commit it ends the run, before it was done or after: what is committed is told, and nothing else."""
        transcript = Interrupting(point, number, after=after)
        stage = Stage(*script(), tools=[save], transcript=transcript)
        comes = number <= (1 if point == "mark_started" else 4)
        with pytest.raises(KeyboardInterrupt) if comes else _nothing():
            go(stage)
        assert stage.kinds[-1] == "agent_end"
        told = [event.to_dict()["message"]["id"] for event in stage.events if "message" in event.to_dict()]
        assert told == [message.id for message in stage.messages]
        assert_laws(stage)

    def test_c33_in_the_wait_before_an_attempt(self) -> None:
        """It ends the run from the wait between two attempts, at once."""
        stage = Stage(Raise(gotato_py.Overloaded("busy")), say("Late."), retry=RetryPolicy(base=30.0))
        assert interrupted(stage.run, 0.02, ready=lambda: "model_retry" in stage.kinds) == (1, True)
        assert (stage.history, stage.kinds[-1]) == (["U do it"], "agent_end")
        assert_laws(stage)

    def test_c33_while_the_model_stalls(self) -> None:
        """It ends a model call that waits, and what was said is kept."""
        stage = Stage([TextDelta("Hello"), Stall()])
        assert interrupted(stage.run, 0.02, ready=lambda: "message_update" in stage.kinds) == (1, True)
        assert stage.history == ["U do it", "A Hello cancelled"]
        assert_laws(stage)

    def test_c33_another_type_that_is_to_interrupt(self) -> None:
        """The types in `interrupts` end the run as Ctrl-C does; another agent takes the same type for a failed call."""

        class SoftTimeLimit(Exception):  # named as task queues name theirs
            """As a task queue raises it."""

        def stop() -> None:
            """Runs out of time."""
            raise SoftTimeLimit

        stage = Stage(call("stop"), tools=[stop], interrupts=[SoftTimeLimit])
        with pytest.raises(SoftTimeLimit):
            stage.run()
        assert stage.history[-1] == "R call_1 cancelled"
        assert_laws(stage)
        other = Stage(call("stop"), say("I see."), tools=[stop])
        assert other.run().text == "I see."
        assert other.history[2] == "R call_1 failed"
        assert_laws(other)


@contextmanager
def _nothing() -> Generator[None, None, None]:
    yield
