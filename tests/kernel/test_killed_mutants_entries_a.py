"""What no other test would notice of how a run is entered: what is refused, and what the transcript holds already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    Compaction,
    GotatoError,
    Hooks,
    InvalidArgument,
    Limits,
    MemoryTranscript,
    Message,
    MessageEnd,
    RunStatus,
    StoreFailure,
    ToolCall,
    ToolResultStatus,
    TurnView,
    UserMessage,
)
from gotato_testkit import Do, FakeTool, ManualClock, Raise, ScriptedModel, call, say

from .laws import assert_laws
from .laws_of_waiting import asks
from .stage import Stage

M = TypeVar("M", bound=Message)
TASK = UserMessage("hi", id="task-1")


class TestRefused:
    """A message that cannot be one."""

    @pytest.mark.parametrize(
        ("operation", "act"),
        [
            ("Agent.run", lambda agent, given: agent.run(given)),
            ("Agent.stream", lambda agent, given: agent.stream(given)),
            ("Agent.steer", lambda agent, given: agent.steer(given)),
            ("Agent.follow_up", lambda agent, given: agent.follow_up(given)),
        ],
        ids=["run", "stream", "steer", "follow_up"],
    )
    @pytest.mark.parametrize("given", [42, "", "x" * 11])
    def test_it_says_what_and_where(self, operation: str, act: Callable[[Agent, Any], object], given: object) -> None:
        """The error calls it `message`, as the parameter is called, and names the operation; a stream is a run."""
        agent = Agent(ScriptedModel([]), limits=Limits(max_message_bytes=10))
        with pytest.raises(InvalidArgument, match=r"^message\b") as caught:
            act(agent, given)
        assert caught.value.operation == {"Agent.stream": "Agent.run"}.get(operation, operation)

    def test_by_a_transcript_that_cannot_be_read(self) -> None:
        """What a transcript raises as a run begins is a `StoreFailure`, which does not repeat its words."""
        error = OSError("secret")

        class Broken(MemoryTranscript):
            def begin_run(self, run_id: str) -> None:
                if errors:
                    raise errors.pop()

        errors = [error]
        stage = Stage(transcript=Broken())
        with pytest.raises(StoreFailure, match="could not be read") as caught:
            stage.run()
        assert (caught.value.cause, "secret" in str(caught.value), stage.history) == (error, False, [])
        assert_laws(stage)


class TestCapabilities:
    """What a model says that it can do."""

    def test_nothing_that_is_a_collection(self) -> None:
        """A model whose `capabilities` is no collection is asked for output by a call."""
        stage = Stage(call("final_answer", value=3))
        stage.model.capabilities = None  # type: ignore[assignment]  # such models exist
        assert stage.run(output=int).output == 3
        assert_laws(stage)


class Read(Sequence[Message]):
    """Messages that count how often one of them is read."""

    def __init__(self, inner: Sequence[Message], count: Callable[[int], object]) -> None:
        self._inner = inner
        self._count = count

    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[Message]:
        for message in self._inner:
            self._count(1)
            yield message

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        found = self._inner[index]
        self._count(len(found) if isinstance(found, Sequence) else 1)
        return found


class Counting(MemoryTranscript):
    """A transcript that counts how often a message of it is read."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(messages)
        self.reads: list[int] = []

    @property
    def messages(self) -> Any:  # Any: MemoryTranscript names its own kind of view
        """The messages, counted."""
        return Read(super().messages, self.reads.append)


class TestLongHistories:
    """A transcript of many messages."""

    def test_it_is_read_once(self) -> None:
        """The first run of an agent reads the history; the next reads what has come since, however long it is."""
        history: list[Message] = []
        for number in range(100):
            history += [UserMessage(f"{number}?", id=f"u-{number}"), AssistantMessage("Yes.", id=f"a-{number}")]
        transcript = Counting(history)
        agent = Agent(ScriptedModel([say("One."), say("Two.")]), transcript=transcript)
        agent.run("first")
        assert sum(transcript.reads) >= 200
        transcript.reads.clear()
        agent.run("second")
        assert sum(transcript.reads) < 50


class TestCompactedBefore:
    """A transcript that was compacted in a run before, or by another program."""

    def test_it_is_not_told_again(self) -> None:
        """Only what is compacted in this run is announced by it."""
        history: list[Message] = [TASK, AssistantMessage("Fine.", id="m-1")]
        transcript = MemoryTranscript(history)
        assert transcript.replace(Compaction(UserMessage("It went well."), "m-1"))
        stage = Stage(say("Done."), transcript=transcript, extensions=[Hooks(before_turn=lambda view: None)])
        stage.run()
        assert "session_compacted" not in stage.kinds
        assert_laws(stage)


class Interrupting(MemoryTranscript):
    """Ctrl-C comes when the first message has been kept, before `append` has returned."""

    interrupts = True

    def append(self, message: M) -> M:
        """Keeps the message."""
        kept = super().append(message)
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return kept


def test_the_very_first_message_is_told() -> None:
    """The first message of an empty transcript is announced, and in the result, though Ctrl-C came as it was kept."""
    stage = Stage(transcript=Interrupting())
    stream = stage.agent.stream("go", check=False)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    told = [event.message for event in stage.events if isinstance(event, MessageEnd)]
    assert told == list(stream.result.new_messages) == stage.messages
    assert stage.history == ["U go"]
    assert_laws(stage)


class TestDeliveredTwice:
    """A message whose id the transcript knows."""

    def test_while_a_later_one_waits(self) -> None:
        """A message that was passed over goes on to what waits now: nothing is superseded, nothing committed."""
        stage = Stage(call("pay"), tools=[FakeTool("pay")], extensions=[asks("pay")])
        stage.transcript.append(TASK)
        waits = stage.run("and?")
        assert waits.status is RunStatus.WAITING
        again = stage.run(TASK)
        assert (again.status, again.waiting, again.new_messages) == (RunStatus.WAITING, waits.waiting, ())

    def test_only_a_summary_stands_for_it(self) -> None:
        """An answer that carries the key with which a summary names what it stands for is no summary."""
        answer = AssistantMessage("Fine.", id="m-1", metadata={"last_user": "task-1"})
        stage = Stage(say("Done."), transcript=MemoryTranscript([UserMessage("before", id="u-0"), answer]))
        assert stage.run(TASK).text == "Done."
        assert_laws(stage)


class Source:
    """A tool source that counts how often it is asked."""

    def __init__(self) -> None:
        self.turns: list[int] = []

    def tools(self, view: TurnView) -> Sequence[Any]:
        """One tool."""
        self.turns.append(view.turn)
        return [FakeTool("ping")]


class TestGoingOn:
    """`run()` without a message."""

    def test_not_from_output(self) -> None:
        """A run that came to its output is finished: there is nothing to go on from."""
        stage = Stage(call("final_answer", value=3))
        assert stage.run(output=int).output == 3
        with pytest.raises(InvalidArgument, match="given as output, is finished"):
            stage.agent.run()
        assert_laws(stage)

    def test_from_what_came_behind_output(self) -> None:
        """Output that an earlier run came to is nobody's business: the run behind it is gone on with."""
        stage = Stage(call("final_answer", value=3), call("ping"), Raise(ValueError()), tools=[FakeTool("ping")])
        assert stage.run(output=int).output == 3
        assert stage.run("and?").status is RunStatus.FAILED
        stage.script.replace(say("Done."))
        assert stage.agent.run().text == "Done."
        assert_laws(stage)

    def test_from_calls_that_nobody_ran(self) -> None:
        """A process that ended between an answer and its calls is taken up there: they are told not to have run."""
        calls = AssistantMessage("On it.", [ToolCall("c1", "ping")], id="m-1")
        stage = Stage(say("Done."), tools=[FakeTool("ping")], transcript=MemoryTranscript([TASK, calls]))
        assert stage.agent.run().text == "Done."
        assert stage.statuses == [ToolResultStatus.NOT_RUN]
        assert_laws(stage)

    def test_sources_are_asked_once_a_turn(self) -> None:
        """A run that goes on without a message asks its tool sources at the start of each turn, and not before."""
        source = Source()
        history: list[Message] = [TASK, AssistantMessage("Half", stop_reason="max_tokens", id="m-1")]
        model = ScriptedModel([call("ping"), say("Done.")])
        Agent(model, tools=[source], transcript=MemoryTranscript(history)).run()
        assert source.turns == [1, 2]


@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_the_time_of_a_run_is_its_own(seconds: float) -> None:
    """The seconds that a run took count from its own beginning, and are 0 where the clock did not move."""
    clock = ManualClock()
    clock.advance(5.0)
    stage = Stage([Do(lambda: clock.advance(seconds)), *say("Done.")], clock=clock)
    assert stage.run().metrics.elapsed_s == seconds
    assert_laws(stage)


def test_an_error_names_no_other_operation() -> None:
    """An agent that is closed says of which call it refused."""
    stage = Stage()
    stream = stage.agent.stream("late")
    stage.agent.close()
    operations: list[str] = []
    for act in (lambda: next(stream), lambda: stage.agent.run("late"), lambda: stage.agent.stream("late")):
        with pytest.raises(GotatoError) as caught:
            act()
        operations.append(caught.value.operation)
    assert operations == ["Agent.run", "Agent.run", "Agent.stream"]
