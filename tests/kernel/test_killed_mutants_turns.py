"""What no other test would notice of turns: what each begins with anew, and how large its answer may be."""

from __future__ import annotations

from gotato_py import (
    AssistantMessage,
    ErrorCode,
    Hooks,
    Limits,
    MessageDiscarded,
    RunStatus,
    StopReason,
    TurnEnd,
    TurnView,
    Usage,
)
from gotato_testkit import Do, ManualClock, call, say

from .laws import assert_laws
from .stage import Stage


def ping() -> str:
    """Answers."""
    return "pong"


def ends(stage: Stage) -> list[TurnEnd]:
    """What was told at the end of each turn."""
    return [event for event in stage.events if isinstance(event, TurnEnd)]


class TestEachTurn:
    """A turn tells of itself alone."""

    def test_its_own_usage(self) -> None:
        """The usage at the end of a turn is what that turn took, the result's that of all."""
        first = say("On it. ", usage=Usage(10, 1)) + call("ping")
        stage = Stage(first, say("Done.", usage=Usage(20, 2)), tools=[ping])
        assert stage.run().usage == Usage(30, 3)
        assert [end.usage for end in ends(stage)] == [Usage(10, 1), Usage(20, 2)]
        assert_laws(stage)

    def test_its_own_time(self) -> None:
        """The time of a turn counts from its own beginning."""
        clock = ManualClock()
        wait = Do(lambda: clock.advance(2.0))
        stage = Stage([wait, *call("ping")], [wait, *say("Done.")], tools=[ping], clock=clock)
        stage.run()
        assert [end.elapsed for end in ends(stage)] == [2.0, 2.0]
        assert_laws(stage)

    def test_its_own_stop_reason(self) -> None:
        """A turn whose answer never came does not tell the stop reason of the turn before."""
        stage = Stage(call("ping"), [Do(lambda: stage.agent.cancel("by the test")), *say("Done.")], tools=[ping])
        assert stage.run().status is RunStatus.CANCELLED
        assert [end.stop_reason for end in ends(stage)] == [StopReason.TOOL_CALLS, StopReason.NONE]
        assert_laws(stage)

    def test_its_own_results(self) -> None:
        """What `should_stop` is shown of a turn are the results of that turn."""
        seen: list[int] = []

        def stop(view: TurnView) -> None:
            assert view.result is not None
            seen.append(len(view.result.results))

        script = [call("ping") + call("ping"), call("ping"), say("Done.")]
        stage = Stage(*script, tools=[ping], extensions=[Hooks(should_stop=stop)])
        stage.run()
        assert seen == [2, 1, 0]
        assert_laws(stage)

    def test_silence_is_its_answer(self) -> None:
        """A run that ends with silence after a tool has no message: the one before it was not its answer."""
        stage = Stage(say("On it. ") + call("ping"), say(""), tools=[ping])
        result = stage.run()
        assert (result.status, result.message, result.text) == (RunStatus.COMPLETED, None, "")
        assert_laws(stage)


class TestWrappingUp:
    """The last answer after a limit."""

    def test_without_its_calls(self) -> None:
        """Text that comes with calls is kept as the last answer, and the calls are not in it."""
        limits = Limits(max_turns=1, wrap_up=True)
        stage = Stage(call("ping"), say("So far. ") + call("ping"), tools=[ping], limits=limits)
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.LIMITED, "So far. ")
        assert isinstance(result.message, AssistantMessage)
        assert result.message.tool_calls == ()
        assert_laws(stage)

    def test_of_calls_alone(self) -> None:
        """Calls without text are taken back for what they are: nothing, and no error of the limit."""
        stage = Stage(call("ping"), call("ping"), tools=[ping], limits=Limits(max_turns=1, wrap_up=True))
        stage.run()
        (taken_back,) = [event for event in stage.events if isinstance(event, MessageDiscarded)]
        assert taken_back.error is None
        assert_laws(stage)


class TestTheSizeOfAnAnswer:
    """`max_message_bytes` holds for what the model says."""

    def test_more_bytes_than_characters(self) -> None:
        """An answer with fewer characters than the limit has bytes is refused for its bytes."""
        stage = Stage(say("€" * 40), limits=Limits(max_message_bytes=100))
        result = stage.run("hi")
        assert (result.status, stage.history) == (RunStatus.LIMITED, ["U hi"])
        assert result.error is not None
        assert (result.error.code, getattr(result.error, "limit", "")) == (
            ErrorCode.LIMIT_EXCEEDED,
            "max_message_bytes",
        )
        assert_laws(stage, again=False)

    def test_just_as_large_as_it_may_be(self) -> None:
        """An answer of exactly the limit is kept, one byte more is not."""
        for more, status in ((0, RunStatus.COMPLETED), (1, RunStatus.LIMITED)):
            stage = Stage(say("x" * (100 + more)), limits=Limits(max_message_bytes=100))
            assert stage.run("hi").status is status
            assert_laws(stage, again=False)
