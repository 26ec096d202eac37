"""What no other test would notice of what waits: calls for a person, messages for a run, a run for output that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from gotato_py import (
    Approve,
    Ask,
    AssistantMessage,
    Deny,
    Hooks,
    InvalidArgument,
    Limits,
    MemoryTranscript,
    Message,
    MessageView,
    NotRunning,
    RunStatus,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import Do, FakeTool, call, say

from .controls import delivered, on
from .laws import assert_laws
from .laws_of_waiting import assert_laws as assert_laws_of_waiting
from .laws_of_waiting import ran
from .stage import Stage

BATCH = AssistantMessage(tool_calls=(ToolCall("c1", "a"), ToolCall("c2", "b")), id="m")


def result(index: int) -> ToolMessage:
    """The result of a call of the batch."""
    return ToolMessage(ToolResult(f"c{index + 1}", ToolResultStatus.OK, key=f"m:{index}"))


def waits(index: int, *, approved: bool = False) -> WaitingCall:
    """The record of a call of the batch that waits."""
    decision = Approve() if approved else None
    return WaitingCall(f"m:{index}", f"c{index + 1}", "ab"[index], {}, "May it?", decision=decision)


class Recording(MemoryTranscript):
    """A transcript that remembers what it was told of calls that wait."""

    def __init__(self, messages: Sequence[Message], *waiting: WaitingCall) -> None:
        super().__init__(messages)
        super().mark_waiting(waiting)
        self.marks: list[list[str]] = []

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Remembers them."""
        self.marks.append([each.key for each in calls])
        super().mark_waiting(calls)


class Unreadable(MemoryTranscript):
    """A transcript that cannot be read from when it was told what waits."""

    broken = False

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Remembers them, and breaks."""
        super().mark_waiting(calls)
        self.broken = True

    @property
    def messages(self) -> MessageView:
        """What the model may see."""
        if self.broken:
            raise OSError
        return super().messages


class TestCallsThatWait:
    """Calls of a transcript that came from elsewhere."""

    def test_in_a_transcript_that_begins_with_them(self) -> None:
        """A call waits also where nothing stands before its message, and a result behind that."""
        stage = Stage(tools=[FakeTool("a"), FakeTool("b")], transcript=Recording([BATCH, result(0)], waits(1)))
        assert stage.agent.status == "waiting"

    def test_all_answered_and_one_started(self) -> None:
        """Answers that are recorded are not recorded again, though a call of theirs has been closed meanwhile."""
        transcript = Recording([UserMessage("do it"), BATCH], waits(0, approved=True), waits(1, approved=True))
        transcript.mark_started("m:0")  # by a process that ended in it
        stage = Stage(say("Done."), tools=[FakeTool("a"), FakeTool("b")], transcript=transcript)
        assert stage.run(None).text == "Done."
        assert (ran(stage), transcript.marks) == (["a cancelled", "b ok"], [])
        assert_laws_of_waiting(stage)

    def test_the_same_answers_when_one_call_is_done(self) -> None:
        """Answers that come again, when the first of the calls has its result, go on with the other; what differs from
        the answer by which the first was done is refused."""
        transcript = Recording([UserMessage("do it"), BATCH], waits(0, approved=True), waits(1, approved=True))
        transcript.append(result(0))
        stage = Stage(say("Done."), tools=[FakeTool("a"), FakeTool("b")], transcript=transcript)
        with pytest.raises(InvalidArgument, match="'m:0' was answered before, with Approve"):
            stage.run(None, answers={"m:0": Deny("no"), "m:1": Approve()})
        assert stage.run(None, answers={"m:0": Approve(), "m:1": Approve()}).text == "Done."
        assert ran(stage) == ["a ok", "b ok"]
        assert_laws_of_waiting(stage)

    def test_in_a_transcript_that_cannot_be_read_any_more(self) -> None:
        """A run that could not be closed shows what it has recorded as waiting all the same."""
        transcript = Unreadable()
        gate = Hooks(before_tool=lambda use: Ask("May it?"))
        stage = Stage(call("a"), tools=[FakeTool("a")], extensions=[gate], transcript=transcript)
        failed = stage.run()
        assert (failed.status, [each.name for each in failed.waiting]) == (RunStatus.FAILED, ["a"])


class TestControls:
    """Steers and follow-ups."""

    def test_a_follow_up_in_the_turn_of_another(self) -> None:
        """A follow-up that was delivered waits no more: another may come for it while its answer is made."""
        queue = FakeTool("queue", Do(lambda: stage.agent.follow_up("and?")), Do(lambda: stage.agent.follow_up("then?")))
        steps = [call("queue"), say("One."), call("queue"), say("Two."), say("Three.")]
        stage = Stage(*steps, tools=[queue], limits=Limits(max_follow_up=1))
        assert stage.run().text == "Three."
        assert [control for _, control in delivered(stage)] == ["follow_up", "follow_up"]
        assert_laws(stage)

    def test_undelivered(self) -> None:
        """What was not delivered is listed in the order in which it would have been: steers before follow-ups."""

        def act() -> None:
            stage.agent.follow_up("and?")
            stage.agent.steer("hurry")
            stage.cancel()

        stage = Stage(call("a"), tools=[FakeTool("a", Do(act))])
        assert [message.text for message in stage.run().undelivered] == ["hurry", "and?"]
        assert_laws(stage)

    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    def test_too_late(self, control: str) -> None:
        """A run that has come to its end takes nothing; the error says what was asked of it."""
        told: list[str] = []

        def act() -> None:
            with pytest.raises(NotRunning) as raised:
                getattr(stage.agent, control)("too late")
            told.append(raised.value.operation)

        stage = Stage(say("Done."), extensions=[on("agent_end", act)])
        stage.run()
        assert told == [f"Agent.{control}"]
        assert_laws(stage)


@dataclass
class Number:
    """What a run is asked for."""

    value: int


class TestOutput:
    """What a model that keeps schemas by itself is told of an answer that does not fit."""

    def test_silence(self) -> None:
        """Silence after a tool's result is an answer that says nothing."""
        stage = Stage(call("a"), say(""), say('{"value": 5}'), tools=[FakeTool("a")])
        stage.model.capabilities = frozenset({"response_schema"})
        assert stage.agent.run("how many?", output=Number).output == Number(5)
        assert "$: expected a JSON value, got an empty string" in stage.asked[2][-1]
        assert_laws(stage)

    def test_one_that_was_cut_off(self) -> None:
        """An answer that its token limit cut off is not read, though what is left of it may fit."""
        stage = Stage(say('{"value": 5}', stop_reason=StopReason.MAX_TOKENS), say('{"value": 56}'))
        stage.model.capabilities = frozenset({"response_schema"})
        assert stage.agent.run("how many?", output=Number).output == Number(56)
        assert ": $: expected a whole answer, got one that its token limit cut off" in stage.asked[1][-1]
        assert_laws(stage)
