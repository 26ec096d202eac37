"""Cases of streams that nobody reads to their end: closed, dropped, never begun, left by an exception."""

from __future__ import annotations

import gc
import warnings
from threading import Thread, get_ident
from typing import TypeVar

import pytest

from gotato_py import (
    AgentStart,
    Busy,
    Event,
    Hooks,
    InvalidArgument,
    InvalidState,
    MemoryTranscript,
    Message,
    RunCancelled,
    RunStatus,
)
from gotato_testkit import call, say

from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


def save() -> str:
    """Saves."""
    return "saved"


class ThreadNoting(MemoryTranscript):
    """A transcript that notes which thread commits."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def append(self, message: M) -> M:
        """Notes the thread and commits."""
        self.threads.append(get_ident())
        return super().append(message)


class TestC34ClosedEarly:
    """The stream is closed before its run has ended."""

    @pytest.mark.parametrize("count", range(1, 14))
    def test_c34_after_so_many_events(self, count: int) -> None:
        """Wherever the reader stops, `close` cancels the run, closes its calls, and the agent is free on return."""
        stage = Stage(say("On it. ") + call("save") + call("save"), say("Done."), tools=[save])
        stream = stage.agent.stream("go")
        for _ in range(count):
            next(stream)
        seen = len(stage.events)
        stream.close()
        assert stage.agent.status == "idle"
        assert stage.kinds[-1] == "agent_end"
        assert len(stage.events) > seen
        assert list(stream) == []
        with pytest.raises(RunCancelled):
            _ = stream.result
        assert_laws(stage)

    def test_c34_leaving_the_with(self) -> None:
        """Leaving the `with` early raises nothing of the outcome; `.result` still does."""
        stage = Stage(say("One two three."))
        with stage.agent.stream("count") as stream:
            for event in stream:
                if event.kind == "message_update":
                    break
        assert stage.agent.status == "idle"
        assert stage.history == ["U count", "A One  cancelled"]
        with pytest.raises(RunCancelled):
            _ = stream.result
        assert_laws(stage)

    def test_c34_an_exception_in_the_body(self) -> None:
        """An exception in the reader's body goes its way, unchanged, and the run is closed behind it."""
        stage = Stage(say("One two three."))

        def read() -> None:
            with stage.agent.stream("count") as stream:
                for event in stream:
                    if event.kind == "message_update":
                        raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            read()
        assert (stage.agent.status, stage.kinds[-1]) == ("idle", "agent_end")
        assert stage.history == ["U count", "A One  cancelled"]
        assert_laws(stage)

    def test_c34_check_false(self) -> None:
        """Without `check` the result of a closed stream is a value."""
        stage = Stage(say("One two three."))
        with stage.agent.stream("count", check=False) as stream:
            next(stream)
        assert stream.result.status is RunStatus.CANCELLED
        assert_laws(stage)

    def test_c34_after_its_end(self) -> None:
        """Closing a stream that was read to its end changes nothing."""
        stage = Stage(say("One two three."))
        with stage.agent.stream("count") as stream:
            assert "".join(stream.text) == "One two three."
        stream.close()
        assert stream.result.text == "One two three."
        assert stage.kinds.count("agent_end") == 1
        assert_laws(stage)

    def test_c34_twice_and_from_an_observer(self) -> None:
        """Closing from within the run only cancels it; it ends where it is read."""
        closing = Hooks(observe=lambda event: stream.close() if event.kind == "message_update" else None)
        stage = Stage(say("One two three."), extensions=[closing])
        stream = stage.agent.stream("count", check=False)
        kinds = [event.kind for event in stream]
        assert kinds[-1:] in (["agent_end"], [])
        assert stage.kinds[-1] == "agent_end"
        stream.close()
        assert stream.result.status is RunStatus.CANCELLED
        assert_laws(stage)

    def test_c34_reading_what_is_left(self) -> None:
        """`.result` runs the rest of a run that was read half."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count")
        assert isinstance(next(stream), AgentStart)
        assert stream.result.text == "One two three."
        assert_laws(stage)


class TestC34NeverBegun:
    """The stream is made and never iterated."""

    def test_c34_nothing_happened(self) -> None:
        """Nothing is committed, announced or taken, and dropping it warns of nothing."""
        stage = Stage(say("One two three."))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stream = stage.agent.stream("count")
            assert stage.agent.status == "idle"
            del stream
            gc.collect()
        assert (stage.history, stage.events, stage.asked) == ([], [], [])
        assert_laws(stage)

    def test_c34_closed_unread(self) -> None:
        """Closed before its first event it has no result, and says so."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count")
        stream.close()
        assert list(stream) == []
        with pytest.raises(InvalidState):
            _ = stream.result
        assert (stage.history, stage.events) == ([], [])
        assert_laws(stage)

    def test_c34_two_streams(self) -> None:
        """Of two streams the first that is read takes the agent; the other is `Busy` until it ends, and then runs."""
        stage = Stage(say("One."), say("Two."))
        first, second = stage.agent.stream("first"), stage.agent.stream("second")
        next(second)
        with pytest.raises(Busy) as raised:
            next(first)
        assert raised.value.run_id == stage.events[0].run_id
        assert second.result.text == "One."
        assert stage.history == ["U second", "A One. end_turn"]
        assert_laws(stage)

    def test_c34_misuse_raises_at_once(self) -> None:
        """Arguments are checked when `stream` is called, not when it is read."""
        stage = Stage()
        with pytest.raises(InvalidArgument):
            stage.agent.stream("")
        with pytest.raises(InvalidArgument):
            stage.agent.stream("hi", timeout=-1)
        assert_laws(stage)


def drop_after(stage: Stage, count: int) -> None:
    """Reads some events of a stream and drops it in another thread."""
    streams = [stage.agent.stream("go")]
    for _ in range(count):
        next(streams[0])

    def drop_in_another_thread() -> None:
        other = Thread(target=streams.clear)
        other.start()
        other.join()

    with pytest.warns(ResourceWarning, match="dropped"):
        drop_in_another_thread()


class TestC34Dropped:
    """The stream is read half and dropped."""

    @pytest.mark.parametrize("count", range(1, 12))
    def test_c34_in_another_thread(self, count: int) -> None:
        """A dropped stream warns and commits nothing in the thread that drops it; the next entry closes its run."""
        transcript = ThreadNoting()
        stage = Stage(say("On it. ") + call("save"), say("Done."), tools=[save], transcript=transcript)
        drop_after(stage, count)
        assert stage.kinds.count("agent_end") == 0
        assert_laws(stage, repair=True)
        assert set(transcript.threads) == {get_ident()}
        first = [event for event in stage.events if event.run_id == stage.events[0].run_id]
        assert first[-1].to_dict()["status"] == "cancelled"

    def test_c34_then_the_agent_is_closed(self) -> None:
        """`close` is an entry too: it closes the run that a dropped stream left."""
        stage = Stage(say("On it. ") + call("save"), say("Done."), tools=[save])
        drop_after(stage, 5)
        stage.agent.close()
        assert (stage.agent.status, stage.kinds[-1]) == ("closed", "agent_end")
        assert_laws(stage)

    def test_c34_by_break(self) -> None:
        """A `break` without `with` leaves the run open while the stream lives: `Busy`, and it can be read on."""
        stage = Stage(say("One two three."))
        stream = stage.agent.stream("count")
        for event in stream:
            if event.kind == "message_update":
                break
        assert stage.agent.status == "running"
        with pytest.raises(Busy):
            stage.run("again")
        assert stream.result.text == "One two three."
        assert_laws(stage)

    def test_c34_in_a_cycle(self) -> None:
        """A stream that is garbage in a cycle is found by the collector, which warns and sets the flag only."""
        stage = Stage(say("One two three."))
        cycle: list[object] = [stream := stage.agent.stream("count")]
        cycle.append(cycle)
        next(stream)
        seen = list(stage.events)
        del cycle, stream
        with pytest.warns(ResourceWarning, match="dropped"):
            gc.collect()
        assert (stage.events, stage.agent.status) == (seen, "idle")
        assert_laws(stage, repair=True)

    def test_c34_while_an_event_is_read(self) -> None:
        """The other observers and the transcript of a dropped run are as of a cancelled one."""
        ends: list[Event] = []
        stage = Stage(say("One two three."), extensions=[Hooks(observe=ends.append)])
        streams = [stage.agent.stream("count")]
        while next(streams[0]).kind != "message_update":
            pass
        with pytest.warns(ResourceWarning, match="dropped"):
            streams.clear()
        assert_laws(stage, repair=True)
        assert stage.history[:2] == ["U count", "A One  cancelled"]
        assert ends == stage.events
