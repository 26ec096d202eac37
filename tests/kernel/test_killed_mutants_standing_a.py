"""What no other test would notice of a stream: where the run stands while it is not read, and how it is left there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from gotato_py import Done, EventStream, Hooks, ModelEvent, RunStatus, StopReason, TextDelta, ToolExecutionEnd, TurnView
from gotato_testkit import Do, FakeTool, ManualClock, Return, call, say

from .laws import assert_laws
from .stage import Stage


class TestItStandsAtItsEvents:
    """Nothing is done behind an event before the next one is asked for: whoever reads it may still close the stream."""

    def test_at_the_message(self) -> None:
        """When a stream gives the user's message, its first turn has not begun."""
        stage = Stage(say("Done."))
        with stage.agent.stream("go", check=False) as stream:
            assert [next(stream).kind, next(stream).kind] == ["agent_start", "message_end"]
            assert stage.kinds == ["agent_start", "message_end"]
        assert (stream.result.status, stage.asked) == (RunStatus.CANCELLED, [])
        assert_laws(stage)

    def test_at_the_message_though_a_steer_waits(self) -> None:
        """A steer that an extension queued before the run is delivered when the stream is read on."""
        steer = Hooks(before_run=lambda view: stage.agent.steer("hurry"))
        stage = Stage(say("Done."), extensions=[steer])
        with stage.agent.stream("go", check=False) as stream:
            assert [next(stream).kind, next(stream).kind] == ["agent_start", "message_end"]
            assert stage.history == ["U go"]
            assert "".join(stream.text) == "Done."
        assert_laws(stage, again=False)

    def test_at_the_end_of_a_turn(self) -> None:
        """When a stream gives the end of a turn, nobody has been asked yet whether the run is to stop."""
        asked: list[int] = []
        stop = Hooks(should_stop=lambda view: asked.append(view.turn))
        stage = Stage(call("ping"), say("Done."), tools=[FakeTool("ping")], extensions=[stop])
        with stage.agent.stream("go", check=False) as stream:
            assert next(event for event in stream if event.kind == "turn_end") == stage.events[-1]
            assert asked == []
            assert next(event for event in stream if event.kind == "turn_start").turn == 2
            assert asked == [1]
        assert_laws(stage)

    def test_at_a_steer(self) -> None:
        """When a stream gives a steer that was delivered, the turn that is to answer it has not begun."""
        steer = Do(lambda: stage.agent.steer("hurry"))
        stage = Stage(call("ping"), say("Done."), tools=[FakeTool("ping", steer)])
        with stage.agent.stream("go", check=False) as stream:
            assert next(event for event in stream if event.kind == "control_delivered") == stage.events[-1]
        assert (stream.result.metrics.turns, len(stage.asked)) == (1, 1)
        assert_laws(stage)


class TestItIsLeftThere:
    """A stream that is closed or dropped at an event."""

    def test_a_tool_that_had_only_been_announced(self) -> None:
        """A tool at whose start a stream was closed is told to have ended, with no exception: none was raised."""
        stage = Stage(call("ping"), tools=[FakeTool("ping")])
        with stage.agent.stream("go", check=False) as stream:
            next(event for event in stream if event.kind == "tool_execution_start")
        assert [event.exception for event in stage.events if isinstance(event, ToolExecutionEnd)] == [""]
        assert_laws(stage)

    def test_the_warning_names_the_line(self) -> None:
        """The warning that a stream was dropped is about the line that dropped it."""
        stage = Stage(say("Done."))
        streams = [stage.agent.stream("go")]
        next(streams[0])
        with pytest.warns(ResourceWarning, match="dropped") as caught:
            streams.clear()
        assert [warning.filename for warning in caught] == [__file__]
        assert_laws(stage, repair=True)

    def test_an_interrupt_while_a_dropped_stream_ends(self) -> None:
        """An interrupt that comes while a dropped stream closes its model is reported as what it is, and the run behind
        it is closed: no event is given to a stream that nobody holds."""

        def speaking() -> Iterator[ModelEvent]:
            try:
                yield TextDelta("One ")
                yield Done(StopReason.END_TURN)
            finally:
                raise KeyboardInterrupt

        stage = Stage(Return(speaking()))
        streams = [stage.agent.stream("count", check=False)]
        while next(streams[0]).kind != "message_update":
            pass
        lost: list[type[BaseException] | None] = []
        before, sys.unraisablehook = sys.unraisablehook, lambda raised: lost.append(raised.exc_type)
        try:
            streams.clear()
            gc.collect()
        finally:
            sys.unraisablehook = before
        assert lost == [KeyboardInterrupt]
        assert (stage.agent.status, stage.kinds[-1]) == ("idle", "agent_end")
        assert_laws(stage)

    def test_a_clock_that_fails_while_a_closed_stream_ends(self) -> None:
        """An error while a closed stream ends is the outcome of its run: `close` raises nothing."""
        clock = Stopping()
        stage = Stage(say("One two."), clock=clock)
        stream = stage.agent.stream("count", check=False)
        while next(stream).kind != "message_update":
            pass
        clock.stops = True
        stream.close()
        assert stage.kinds[-1] == "agent_end"
        assert stream.result.status is RunStatus.FAILED
        assert_laws(stage)


class Stopping(ManualClock):
    """A clock that fails to be read, once."""

    stops = False

    def monotonic(self) -> float:
        """Seconds, or a failure."""
        if self.stops:
            self.stops = False
            raise ValueError("the clock has stopped")
        return super().monotonic()


class TestLateListeners:
    """Somebody subscribes while a run goes on."""

    def test_in_the_middle_of_an_answer(self) -> None:
        """Who comes in the middle of an answer gets its start before its end."""
        join = Do(lambda: streams.append(stage.agent.subscribe()))
        stage = Stage()
        stage.agent = type(stage.agent)(stage.model)  # nobody else listens
        stage.script.replace([join, *say("Done.")])
        streams = [stage.agent.subscribe()]
        streams.pop().close()
        assert stage.agent.run("go").text == "Done."
        with streams[0] as stream:
            kinds = [event.kind for event in iter(lambda: stream.get(timeout=0), None)]
        assert kinds == ["message_start", "message_end", "agent_end"]

    def test_where_the_run_settles(self) -> None:
        """Who comes behind the last message of a run gets the run's end alone: what was before he came is past."""

        def join(view: TurnView) -> None:
            streams.append(agent.subscribe())

        streams: list[EventStream] = []
        stage = Stage(say("Done."))
        agent = type(stage.agent)(stage.model, extensions=[Hooks(before_settle=join)])
        agent.run("go")
        with streams[0] as stream:
            kinds = [event.kind for event in iter(lambda: stream.get(timeout=0), None)]
        assert kinds == ["agent_end"]
