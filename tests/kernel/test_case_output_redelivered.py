"""Cases of a task that comes again, in this process or in another: it gets the value, or the answer, of its run."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_py import (
    Accept,
    AuthenticationFailed,
    Hooks,
    InvalidState,
    MemoryTranscript,
    RunStatus,
    TurnView,
    UserMessage,
)
from gotato_testkit import Raise, call, say

from .laws import assert_laws
from .test_case_output import GIVEN, JSON, SUNNY, ask, final, wanted


class TestRedelivery:
    """The task comes again, in this process or in another."""

    TASK = UserMessage("do it", id="task-1")

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_it_gets_its_value(self, native: bool) -> None:
        """The value is read from the answer that is there: no request, nothing committed."""
        transcript = MemoryTranscript()
        ask(
            wanted(say(JSON) if native else final(city=1) + final(**GIVEN), native=native, transcript=transcript),
            self.TASK,
        )
        stored = MemoryTranscript.from_dict(transcript.to_dict())
        stage = wanted(native=native, transcript=stored)
        result = ask(stage, self.TASK)
        assert (result.output, result.new_messages, stage.asked) == (SUNNY, (), [])
        assert_laws(stage)

    def test_without_output(self) -> None:
        """Asked without `output` it gets the message that gave the value."""
        stage = wanted(say("Here. ") + final(**GIVEN))
        ask(stage, self.TASK)
        again = stage.run(self.TASK)
        assert (again.status, again.text, len(stage.asked)) == (RunStatus.COMPLETED, "Here. ", 1)
        assert_laws(stage)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_after_a_correction(self, native: bool) -> None:
        """The value is the one that the run came to, not the answer that was corrected."""
        right = say(JSON) if native else final(**GIVEN)
        stage = wanted(say("Sunny."), right, native=native)
        assert ask(stage, self.TASK).output == SUNNY
        assert ask(stage, self.TASK).output == SUNNY
        assert len(stage.asked) == 2
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["steer", "follow_up", "before_settle"])
    def test_messages_that_came_during_the_run(self, kind: str) -> None:
        """What came while the run went on belongs to it: its answer is the last one, in another process too."""
        left = ["and Bergen?"]

        def settle(view: TurnView) -> UserMessage | None:
            return UserMessage(left.pop()) if left and kind == "before_settle" else None

        def queue(view: TurnView, message: Any) -> Accept:
            if left and kind != "before_settle":
                getattr(stage.agent, kind)(left.pop())
            return Accept()

        transcript = MemoryTranscript()
        hooks = [Hooks(before_settle=settle, check_answer=queue)]
        stage = wanted(call("look"), say("Sunny."), say("Rain."), transcript=transcript, extensions=hooks)
        first = stage.run(self.TASK)
        stored = wanted(transcript=MemoryTranscript.from_dict(transcript.to_dict()))
        again = stored.run(self.TASK)
        assert (again.text, again.new_messages) == (first.text, ())
        assert_laws(stored)

    def test_a_message_that_came_and_was_not_answered(self) -> None:
        """A run that failed on what came while it went on is gone on from, not answered with what came before."""
        left = ["and Bergen?"]
        hooks = [Hooks(before_settle=lambda view: UserMessage(left.pop()) if left else None)]
        stage = wanted(say("Sunny."), Raise(AuthenticationFailed("no key")), say("Rain."), extensions=hooks)
        assert stage.run(self.TASK).status is RunStatus.FAILED
        assert stage.run(self.TASK).text == "Rain."
        assert stage.history == ["U do it", "A Sunny. end_turn", "U and Bergen?", "A Rain. end_turn"]
        assert_laws(stage)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_an_answer_of_another_kind(self, native: bool) -> None:
        """An answer in text, given when no value was asked for, is corrected as any other."""
        stage = wanted(say("Sunny."), say(JSON) if native else final(**GIVEN), native=native)
        stage.run(self.TASK)
        assert ask(stage, self.TASK).output == SUNNY
        assert [line for line in stage.history if line[0] == "U"] == ["U do it"]
        assert stage.asked[-1][-1].startswith("U ")
        assert_laws(stage)

    def test_the_conversation_has_gone_on(self) -> None:
        """Where others have spoken since, no value can be asked for any more: that is said, nothing is committed."""
        stage = wanted(say("Sunny."), say("You are welcome."))
        stage.run(self.TASK)
        stage.run("thanks")
        before = stage.messages
        with pytest.raises(InvalidState, match="output"):
            ask(stage, self.TASK)
        assert stage.messages == before
        assert_laws(stage)
