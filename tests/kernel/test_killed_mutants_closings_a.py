"""What no other test would notice of how a run is closed that was interrupted, or whose transcript fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import pytest

from gotato_py import (
    Agent,
    Approve,
    AssistantMessage,
    Done,
    ErrorCode,
    Hooks,
    MemoryTranscript,
    Message,
    MessageView,
    ModelEvent,
    RunRecord,
    RunStatus,
    StopReason,
    TextDelta,
    ToolCall,
    ToolExecutionEnd,
    ToolMessage,
    ToolResultCommitted,
    ToolResultStatus,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import Do, FakeTool, ManualClock, Return, ScriptedModel, call, say

from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)
TWO = call("a") + call("b")


class SoftTimeLimit(RuntimeError):
    """What a task queue raises in the middle of a task."""


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class Interrupted(MemoryTranscript):
    """An interrupt comes when the first message of a kind has been kept, before `append` has returned."""

    def __init__(self, kind: Callable[[Message], bool], raises: BaseException) -> None:
        super().__init__()
        self._kind = kind
        self._raises = [raises]

    def append(self, message: M) -> M:
        """Keeps the message."""
        kept = super().append(message)
        if self._raises and self._kind(message):
            raise self._raises.pop()
        return kept


class TestRightBehindACommit:
    """Ctrl-C comes when a message is in the transcript, and the run does not know it yet."""

    def test_an_answer(self) -> None:
        """The answer is the run's: it was whole."""
        transcript = Interrupted(lambda message: isinstance(message, AssistantMessage), KeyboardInterrupt())
        stage = Stage(say("One two three."), transcript=transcript)
        stream = stage.agent.stream("count", check=False)
        with pytest.raises(KeyboardInterrupt):
            list(stream)
        result = stream.result
        assert (result.status, result.text, result.message) == (
            RunStatus.CANCELLED,
            "One two three.",
            stage.messages[-1],
        )
        assert list(result.new_messages) == stage.messages
        assert "message_discarded" not in stage.kinds
        assert_laws(stage)

    def test_a_result(self) -> None:
        """It is in `new_messages`, once, and before those with which the closing answers the other calls."""
        transcript = Interrupted(lambda message: isinstance(message, ToolMessage), KeyboardInterrupt())
        stage = Stage(TWO, tools=[FakeTool("a"), FakeTool("b")], transcript=transcript)
        stream = stage.agent.stream("do it", check=False)
        with pytest.raises(KeyboardInterrupt):
            list(stream)
        assert list(stream.result.new_messages) == stage.messages
        assert stage.statuses == [ToolResultStatus.OK, ToolResultStatus.NOT_RUN]
        assert_laws(stage)

    def test_a_steer(self) -> None:
        """It was delivered: it is not told to be undelivered."""
        transcript = Interrupted(lambda message: message.id == "s-1", KeyboardInterrupt())
        steer = Do(lambda: [stage.agent.steer(UserMessage("hurry", id=name)) for name in ("s-1", "s-2")])
        stage = Stage(call("a"), tools=[FakeTool("a", steer)], transcript=transcript)
        stream = stage.agent.stream("do it", check=False)
        with pytest.raises(KeyboardInterrupt):
            list(stream)
        assert stage.messages[-1].id == "s-1"
        assert [message.id for message in stream.result.undelivered] == ["s-2"]
        assert_laws(stage)


class Closing:
    """A model's stream; Ctrl-C comes as it is closed, before it has done anything for that."""

    def __init__(self) -> None:
        self.closes: list[str] = []
        self._events: Iterator[ModelEvent] = iter([TextDelta("One "), Done(StopReason.END_TURN)])

    def __iter__(self) -> Iterator[ModelEvent]:
        return self

    def __next__(self) -> ModelEvent:
        return next(self._events)

    def close(self) -> None:
        """Releases the connection."""
        self.closes.append("closed" if self.closes else "interrupted")
        if self.closes == ["interrupted"]:
            interrupt()


def test_the_models_stream_is_closed_once_more() -> None:
    """A model's stream whose closing Ctrl-C has cut off is closed by the closing of the run."""
    speaking = Closing()
    stage = Stage(Return(speaking))
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert speaking.closes == ["interrupted", "closed"]
    assert_laws(stage)


class Unreadable(MemoryTranscript):
    """A transcript that cannot be read for as long as it is broken."""

    broken = False

    @property
    def messages(self) -> MessageView:
        """The messages."""
        if self.broken:
            raise OSError("gone")
        return super().messages


class TestAFailingTranscript:
    """The transcript fails while a run is closed."""

    def test_a_tool_that_ran(self) -> None:
        """A tool that Ctrl-C ended is told to have ended, though the transcript cannot say any more what is open."""
        transcript = Unreadable()

        def stop() -> None:
            transcript.broken = True
            interrupt()

        def repaired(event: object) -> None:
            transcript.broken = transcript.broken and getattr(event, "kind", "") != "agent_end"

        events: list[Any] = []
        agent = Agent(
            ScriptedModel([call("a"), say("Done.")]),
            tools=[FakeTool("a", Do(stop))],
            transcript=transcript,
            extensions=[Hooks(observe=events.append), Hooks(observe=repaired)],
        )
        with pytest.raises(KeyboardInterrupt):
            agent.run("do it")
        ended = [event for event in events if isinstance(event, ToolExecutionEnd)]
        assert [(event.name, event.status) for event in ended] == [("a", ToolResultStatus.CANCELLED)]
        assert events[-1].status is RunStatus.FAILED
        assert agent.run("again").text == "Done."

    def test_it_fails_the_run(self) -> None:
        """A cancelled run whose calls cannot be closed has failed: `store_failure` is what its host must see."""
        cancel = Do(lambda: stage.agent.cancel("too dear"))
        stage = Stage(TWO, tools=[FakeTool("a", cancel), FakeTool("b")], transcript=Refusing(OSError("full")))
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert result.error is not None
        assert result.error.code is ErrorCode.STORE_FAILURE
        assert_laws(stage, repair=True)

    def test_it_is_interrupted(self) -> None:
        """An interrupt that is an ordinary exception comes out of the closing as it is; the next entry closes."""
        cancel = Do(lambda: stage.agent.cancel("too dear"))
        transcript = Refusing(SoftTimeLimit())
        tools = [FakeTool("a", cancel), FakeTool("b")]
        stage = Stage(TWO, tools=tools, transcript=transcript, interrupts=[SoftTimeLimit])
        with pytest.raises(SoftTimeLimit):
            stage.run()
        assert stage.agent.wait_idle(0)
        assert stage.statuses == [ToolResultStatus.OK, ToolResultStatus.NOT_RUN]
        assert_laws(stage)

    def test_it_is_interrupted_behind_a_commit(self) -> None:
        """A result with which the closing of a cancelled run has closed a call is told by the next entry, where Ctrl-C
        came between the two."""
        cancel = Do(lambda: stage.agent.cancel("too dear"))
        second = Interrupted(
            lambda message: isinstance(message, ToolMessage) and not message.result.executed, KeyboardInterrupt()
        )
        stage = Stage(TWO, tools=[FakeTool("a", cancel), FakeTool("b")], transcript=second)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.agent.wait_idle(0)
        told = [event.message for event in stage.events if isinstance(event, ToolResultCommitted)]
        assert told == stage.results
        assert_laws(stage)

    def test_with_half_an_answer(self) -> None:
        """Half an answer that cannot be kept is taken back from those to whom it was shown."""
        stage = Stage([TextDelta("One "), Do(interrupt)], transcript=Refusing(OSError("full"), AssistantMessage))
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.kinds[-3:] == ["message_discarded", "turn_end", "agent_end"]
        assert_laws(stage)


class Refusing(MemoryTranscript):
    """A transcript that refuses the first message of a type: of results the second."""

    def __init__(self, error: Exception, refuses: type[Message] = ToolMessage) -> None:
        super().__init__()
        self._errors = [error]
        self._refuses = refuses
        self._spared = int(refuses is ToolMessage)

    def append(self, message: M) -> M:
        """Keeps the message."""
        refused = isinstance(message, self._refuses)
        if refused and self._spared:
            self._spared -= 1
        elif refused and self._errors:
            raise self._errors.pop()
        return super().append(message)


class Plain:
    """A transcript with nothing but what every transcript has."""

    def __init__(self) -> None:
        self._inner = MemoryTranscript()

    @property
    def messages(self) -> Sequence[Message]:
        """The messages."""
        return self._inner.messages

    @property
    def started(self) -> Collection[str]:
        """The keys of the calls that were started."""
        return self._inner.started

    @property
    def waiting(self) -> Sequence[WaitingCall]:
        """The calls that wait."""
        return self._inner.waiting

    def append(self, message: M) -> M:
        """Keeps a message."""
        return self._inner.append(message)

    def mark_started(self, key: str) -> None:
        """Marks a call that starts."""
        self._inner.mark_started(key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Marks the calls that wait."""
        self._inner.mark_waiting(calls)


def test_a_transcript_that_wants_no_records() -> None:
    """A transcript without the optional members is as good as any other."""
    stage = Stage(call("a"), say("Done."), tools=[FakeTool("a")], transcript=Plain())
    assert stage.run().text == "Done."
    assert_laws(stage)


class Recording(MemoryTranscript):
    """A transcript that keeps the records of its runs, and acts when it gets one."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.records: list[RunRecord] = []
        self._act = act

    def end_run(self, record: RunRecord) -> None:
        """Keeps the record."""
        self.records.append(record)
        self._act()


class Interrupting(ManualClock):
    """A clock at which Ctrl-C comes, once, where somebody has armed it."""

    armed = False

    def time(self) -> float:
        """Seconds."""
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        return super().time()


class TestTheRecord:
    """What a transcript is told of a run."""

    def test_once(self) -> None:
        """A run that is recorded, and interrupted before its end is told, is not recorded again by the next entry."""
        clock = Interrupting()

        def arm() -> None:
            clock.armed = len(transcript.records) == 1

        transcript = Recording(arm)
        stage = Stage(say("Done."), transcript=transcript, clock=clock)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert "agent_end" not in stage.kinds
        assert_laws(stage, repair=True)
        assert len({record.run_id for record in transcript.records}) == len(transcript.records) == 2

    @pytest.mark.parametrize("seconds", [0.0, 2.0])
    def test_its_time(self, seconds: float) -> None:
        """The seconds in it count from the beginning of the run, and are 0 where the clock did not move."""
        clock, transcript = ManualClock(), Recording()
        clock.advance(5.0)
        stage = Stage([Do(lambda: clock.advance(seconds)), *say("Done.")], transcript=transcript, clock=clock)
        stage.run()
        assert [record.elapsed_s for record in transcript.records] == [seconds]
        assert_laws(stage)


def test_calls_behind_one_that_was_started_wait_no_more() -> None:
    """An approved call in which a process ended is told to have been cut off, and those behind it are not run."""
    asking = AssistantMessage(tool_calls=[ToolCall("c0", "a"), ToolCall("c1", "b")], id="m-1")
    transcript = MemoryTranscript([UserMessage("do it", id="u-1"), asking])
    transcript.mark_waiting([WaitingCall("m-1:0", "c0", "a", {}, "may it?", decision=Approve())])
    transcript.mark_started("m-1:0")
    stage = Stage(say("Done."), tools=[FakeTool("a"), FakeTool("b")], transcript=transcript)
    assert stage.run(None).text == "Done."
    assert stage.statuses == [ToolResultStatus.CANCELLED, ToolResultStatus.NOT_RUN]
    assert_laws(stage)


class Forgetful(MemoryTranscript):
    """A transcript that shows nothing any more once it is told to forget."""

    forgets = False

    @property
    def messages(self) -> MessageView:
        """What it holds, or nothing."""
        return MessageView([], 0) if self.forgets else super().messages


def test_a_transcript_that_lost_everything_does_not_keep_a_run_open() -> None:
    """A run whose transcript is suddenly empty ends with what ended it, and lets the agent go."""
    transcript = Forgetful()

    def lose() -> None:
        transcript.forgets = True
        agent.cancel("enough")

    agent = Agent(ScriptedModel([[TextDelta("Half an "), Do(lose), TextDelta("answer")]]), transcript=transcript)
    result = agent.run("hi", check=False)
    assert (result.status, agent.status) == ("cancelled", "idle")
