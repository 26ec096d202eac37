"""Cases around the model call: cancelled before, in the middle, and cut off."""

from __future__ import annotations

import json
from threading import Event as Flag
from threading import Thread

import pytest

from gotato_py import (
    AssistantMessage,
    ConnectionFailed,
    ErrorCode,
    Event,
    Hooks,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ReasoningPart,
    ReasoningUpdate,
    RetryPolicy,
    RunCancelled,
    RunFailed,
    RunStatus,
    Scope,
    StopReason,
    TextDelta,
    ToolCallDelta,
    message_to_dict,
)
from gotato_testkit import Do, ManualClock, Raise, Stall, call, say, think

from .laws import assert_laws
from .stage import Stage

NOW = RetryPolicy(base=0.0, jitter=0.0)
"""Retries without waiting."""


def remove(path: str) -> str:
    """Removes a folder."""
    return f"removed {path}"


def last_answer(stage: Stage) -> AssistantMessage:
    """The last assistant message of the transcript."""
    found = [message for message in stage.messages if isinstance(message, AssistantMessage)]
    return found[-1]


class TestC01CancelledBeforeTheFirstRequest:
    """The run is cancelled before the model is asked."""

    def test_c01_a_scope_that_has_ended(self) -> None:
        """A run in an ended scope keeps what the user said, asks nothing, and the next request holds both messages."""
        scope = Scope()
        scope.cancel("changed my mind")
        stage = Stage()
        result = stage.run("do it", scope=scope)
        assert (result.status, result.message) == (RunStatus.CANCELLED, None)
        assert result.error is not None
        assert result.error.code is ErrorCode.CANCELLED
        assert (stage.history, stage.asked) == (["U do it"], [])
        assert stage.kinds == ["agent_start", "message_end", "agent_end"]
        assert_laws(stage)
        assert stage.asked == [["U do it", "U once more"]]

    def test_c01_a_listener_of_agent_start_cancels(self) -> None:
        """A cancel from an observer at `agent_start` is the same as one before the run."""

        def observe(event: Event) -> None:
            if event.kind == "agent_start" and not stage.model.requests and len(stage.events) == 1:
                stage.cancel()

        stage = Stage(extensions=[Hooks(observe=observe)])
        with pytest.raises(RunCancelled) as raised:
            stage.agent.run("do it")
        assert raised.value.result.new_messages == tuple(stage.messages)
        assert (stage.history, stage.asked) == (["U do it"], [])
        assert stage.kinds == ["agent_start", "message_end", "agent_end"]
        assert_laws(stage)
        assert stage.asked == [["U do it", "U once more"]]

    def test_c01_a_cancel_while_nothing_runs(self) -> None:
        """`cancel` of an idle agent returns False, from any thread, and does not hit a later run."""
        stage = Stage(say("Done."))
        told: list[bool] = []
        other = Thread(target=lambda: told.append(stage.agent.cancel()))
        other.start()
        other.join()
        assert told == [False]
        assert stage.run().status is RunStatus.COMPLETED
        assert stage.agent.cancel() is False
        assert_laws(stage)


class TestC02CancelledInTheMiddleOfText:
    """The run is cancelled while text arrives."""

    def test_c02_what_was_said_is_kept(self) -> None:
        """The partial text is committed once, later pieces are dropped, and the next request shows it as said."""
        stage = Stage()
        stage.script.replace([TextDelta("Hello wor"), Do(stage.cancel), TextDelta("ld"), *say(" and more")])
        result = stage.run("greet")
        assert (result.status, result.text) == (RunStatus.CANCELLED, "Hello wor")
        assert stage.history == ["U greet", "A Hello wor cancelled"]
        assert result.message == last_answer(stage)
        assert [event.text for event in stage.events if isinstance(event, MessageUpdate)] == ["Hello wor"]
        assert stage.kinds.count("message_end") == 2
        assert_laws(stage)
        assert stage.asked[-1] == ["U greet", "A Hello wor cancelled", "U once more"]

    def test_c02_another_thread_cancels(self) -> None:
        """A cancel from another thread ends a model call that waits."""

        def cancel() -> None:
            reading.wait()
            stage.cancel()

        reading = Flag()
        stage = Stage([TextDelta("Hello wor"), Do(reading.set), Stall()])
        other = Thread(target=cancel)
        other.start()
        result = stage.run("greet")
        other.join()
        assert result.status is RunStatus.CANCELLED
        assert stage.history == ["U greet", "A Hello wor cancelled"]
        assert_laws(stage)

    @pytest.mark.parametrize("pieces", [[], [" "], ["\n", "\t "]])
    def test_c02_nothing_but_white_space(self, pieces: list[str]) -> None:
        """A partial answer that says nothing is not committed; what was shown of it is taken back."""
        stage = Stage()
        stage.script.replace([*map(TextDelta, pieces), Do(stage.cancel), *say("late")])
        assert stage.run("greet").status is RunStatus.CANCELLED
        assert stage.history == ["U greet"]
        assert stage.kinds.count("message_discarded") == (1 if pieces else 0)
        assert_laws(stage)

    def test_c02_going_on_without_a_message(self) -> None:
        """`run()` after a partial answer sends it with a closing user line that is not stored."""
        stage = Stage()
        stage.script.replace([TextDelta("One, two"), Do(stage.cancel), *say("late")], say(", three."))
        stage.run("count")
        assert stage.run(None).status is RunStatus.COMPLETED
        assert stage.history == ["U count", "A One, two cancelled", "A , three. end_turn"]
        assert stage.asked[-1][:2] == ["U count", "A One, two cancelled"]
        assert [line[0] for line in stage.asked[-1]] == ["U", "A", "U"]
        assert_laws(stage)


class TestC03CancelledInTheMiddleOfThinking:
    """The run is cancelled while the model thinks."""

    def test_c03_only_thinking(self) -> None:
        """Unfinished thinking is told in events and kept nowhere."""
        stage = Stage()
        stage.script.replace([*think("let me", done=False)[:-1], Do(stage.cancel), *say("late")])
        assert stage.run("greet").status is RunStatus.CANCELLED
        assert stage.history == ["U greet"]
        assert "".join(event.text for event in stage.events if isinstance(event, ReasoningUpdate)) == "let me"
        assert_laws(stage)

    def test_c03_text_after_thinking_that_nothing_closed(self) -> None:
        """Text that followed unsigned thinking is kept, the thinking is not."""
        stage = Stage()
        stage.script.replace([*think("let me", done=False)[:-1], TextDelta("Sure"), Do(stage.cancel), *say("late")])
        assert stage.run("greet").status is RunStatus.CANCELLED
        assert stage.history == ["U greet", "A Sure cancelled"]
        assert not any(isinstance(part, ReasoningPart) for part in last_answer(stage).parts)
        assert_laws(stage)

    def test_c03_thinking_after_text(self) -> None:
        """Thinking that was open when the run was cancelled is dropped, signed thinking before it is kept."""
        stage = Stage()
        signed = think("first", signature="s1", origin="test:m")[:-1]
        open_thought = think("second", done=False)[:-1]
        stage.script.replace([*signed, TextDelta("Sure. "), *open_thought, Do(stage.cancel), *say("late")])
        stage.run("greet")
        kept = [part for part in last_answer(stage).parts if isinstance(part, ReasoningPart)]
        assert kept == [ReasoningPart("first", "s1", "test:m")]
        assert last_answer(stage).text == "Sure. "
        assert_laws(stage)


class TestC04CutInTheMiddleOfArguments:
    """The answer ends inside the arguments of a call."""

    FRAGMENT = '{"path":"./bu'

    def test_c04_the_host_cancels(self) -> None:
        """Text is kept, calls are not, complete ones neither: the fragment stays as metadata, and nothing runs."""
        stage = Stage(tools=[remove])
        begun = [*say("I will")[:-1], *call("remove", path="/a")[:-1], ToolCallDelta(1, "remove", self.FRAGMENT)]
        stage.script.replace([*begun, Do(stage.cancel), *say("late")])
        assert stage.run("clean up").status is RunStatus.CANCELLED
        assert stage.history == ["U clean up", "A I will cancelled"]
        assert json.dumps(self.FRAGMENT) in json.dumps(message_to_dict(last_answer(stage)))
        assert not stage.effects
        assert_laws(stage)

    def test_c04_the_connection_breaks(self) -> None:
        """A broken attempt is taken back and made again; nothing of the first is in the transcript."""
        broken = [*say("I will")[:-1], ToolCallDelta(0, "remove", self.FRAGMENT), Raise(ConnectionFailed("reset"))]
        stage = Stage(broken, say("Cleaned."), tools=[remove], retry=NOW)
        assert stage.run("clean up").text == "Cleaned."
        assert stage.history == ["U clean up", "A Cleaned. end_turn"]
        assert "I will" not in repr(stage.messages)
        assert stage.kinds.count("message_discarded") == 1
        assert stage.kinds.index("message_discarded") < stage.kinds.index("model_retry")
        assert stage.asked == [["U clean up"]] * 2
        assert not stage.effects
        assert_laws(stage)

    def test_c04_a_call_seen_only_as_deltas_is_no_call(self) -> None:
        """A complete answer whose call never became ready is its text alone."""
        stage = Stage([*say("I will")[:-1], ToolCallDelta(0, "remove", self.FRAGMENT), say("")[-1]], tools=[remove])
        assert stage.run("clean up").status is RunStatus.COMPLETED
        assert stage.history == ["U clean up", "A I will end_turn"]
        assert not stage.effects
        assert_laws(stage)


class TestC05TheStreamEndsWithoutDone:
    """The model's stream ends as if it were complete, and is not."""

    def test_c05_text_in_every_attempt(self) -> None:
        """Every attempt is made, and the run fails with what the last one said kept as a partial answer."""
        clock = ManualClock()
        stage = Stage(*[say("Done, I dele")[:-1]] * 3, clock=clock)
        with pytest.raises(RunFailed) as raised:
            stage.agent.run("delete it")
        assert raised.value.code is ErrorCode.MODEL_PROTOCOL_FAILURE
        assert raised.value.result.text == "Done, I dele"
        assert stage.history == ["U delete it", "A Done, I dele error"]
        assert last_answer(stage).stop_reason is StopReason.ERROR
        assert stage.kinds.count("model_retry") == stage.kinds.count("message_discarded") == 2
        assert len(clock.waits) == 2
        assert_laws(stage)

    def test_c05_a_complete_call_in_every_attempt(self) -> None:
        """A call of an answer without its end never runs and is never committed."""
        stage = Stage(*[call("remove", path="/a")[:-1]] * 3, tools=[remove], retry=NOW)
        assert stage.run("delete it").status is RunStatus.FAILED
        assert stage.history == ["U delete it"]
        assert stage.kinds.count("message_discarded") == 3
        assert not stage.effects
        assert_laws(stage)

    def test_c05_a_later_attempt_succeeds(self) -> None:
        """One complete attempt is the answer, as if the broken ones had not been."""
        stage = Stage(say("Done, I dele")[:-1], [], say("Deleted."), retry=NOW)
        assert stage.run("delete it").text == "Deleted."
        assert stage.history == ["U delete it", "A Deleted. end_turn"]
        ends = [event for event in stage.events if isinstance(event, MessageEnd | MessageDiscarded)]
        assert [event.kind for event in ends] == ["message_end", "message_discarded", "message_end"]
        assert_laws(stage)

    def test_c05_the_stream_goes_on_after_done(self) -> None:
        """A stream that goes on after `Done` is no answer either."""
        stage = Stage([*say("Deleted."), TextDelta("!")], say("Really."), retry=NOW)
        assert stage.run("delete it").text == "Really."
        assert stage.history == ["U delete it", "A Really. end_turn"]
        assert_laws(stage)
