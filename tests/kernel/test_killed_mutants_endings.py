"""What no other test would notice of how runs end: by a limit, by an extension, by what goes wrong in between."""

from __future__ import annotations

from typing import TypeVar

import pytest

from gotato_py import (
    AgentEnd,
    AssistantMessage,
    Cancelled,
    DeadlineExceeded,
    ErrorCode,
    ExtensionFailure,
    GotatoError,
    Hooks,
    Limits,
    MemoryTranscript,
    Message,
    RunStatus,
)
from gotato_testkit import Do, Raise, call, say

from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


def ping() -> str:
    """Answers."""
    return "pong"


ONE_TURN = Limits(max_turns=1, wrap_up=True)


class TestWrapUp:
    """One more request after a limit."""

    def test_not_after_an_extension_has_stopped(self) -> None:
        """A run that an extension stops is not wrapped up: the model is asked for nothing more."""
        stop = Hooks(should_stop=lambda view: "enough")
        stage = Stage(call("ping"), tools=[ping], extensions=[stop], limits=Limits(wrap_up=True))
        result = stage.run()
        assert (result.status, result.stopped_by, len(stage.asked)) == (RunStatus.COMPLETED, "enough", 1)
        assert_laws(stage, again=False)

    def test_not_before_the_first_turn(self) -> None:
        """A run that may take no turn at all does not take one to wrap up either."""
        stage = Stage(limits=Limits(max_turns=0, wrap_up=True))
        result = stage.run()
        assert (result.status, result.metrics.turns, stage.asked) == (RunStatus.LIMITED, 0, [])
        assert_laws(stage, again=False)

    def test_its_failure_changes_nothing(self) -> None:
        """A last request that fails leaves the run limited, with the error of its limit."""
        broken = Raise(ConnectionError("no route"))
        stage = Stage(call("ping"), broken, broken, broken, broken, tools=[ping], limits=ONE_TURN)
        result = stage.run()
        assert result.status is RunStatus.LIMITED
        assert result.error is not None
        assert result.error.code is ErrorCode.LIMIT_EXCEEDED
        assert_laws(stage)

    def test_cancelled_meanwhile(self) -> None:
        """A run that is cancelled while it wraps up is cancelled, not limited."""
        stage = Stage(
            call("ping"), [Do(lambda: stage.agent.cancel("by the test")), *say("Well.")], tools=[ping], limits=ONE_TURN
        )
        assert stage.run().status is RunStatus.CANCELLED
        assert_laws(stage)


class Refusing(MemoryTranscript):
    """A transcript that keeps no answer, once."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._errors = [error]

    def append(self, message: M) -> M:
        """Keeps user messages."""
        if isinstance(message, AssistantMessage) and self._errors:
            raise self._errors.pop()
        return super().append(message)


class TestFailed:
    """Errors that look like an end of the run, and errors from where none is expected."""

    @pytest.mark.parametrize("error", [Cancelled("elsewhere"), DeadlineExceeded("elsewhere")])
    def test_the_end_of_something_else(self, error: GotatoError) -> None:
        """A run that nobody cancelled, and whose time has not passed, has failed, whatever error ended it."""
        stage = Stage(say("Done."), transcript=Refusing(error))
        result = stage.run()
        assert (result.status, result.error) == (RunStatus.FAILED, error)
        assert_laws(stage)

    def test_ids_that_fail(self) -> None:
        """An id source that raises fails the run, which names it and what it raised."""
        numbers = iter(range(1_000))
        broken: list[str] = []

        def ids(kind: str) -> str:
            if broken:
                raise ValueError(broken.pop())
            return f"{kind}-{next(numbers)}"

        stage = Stage(say("Done."), ids=ids, extensions=[Hooks(before_turn=lambda view: broken.append("secret"))])
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert isinstance(result.error, ExtensionFailure)
        assert result.error.message == "ValueError raised by the clock, the id source or the kernel itself"


class TestInterrupted:
    """Ctrl-C while the model speaks."""

    def test_told_with_its_name(self) -> None:
        """The last event of an interrupted run says that it was cancelled, and by which interrupt."""
        stage = Stage(Raise(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        ended = stage.events[-1]
        assert isinstance(ended, AgentEnd)
        assert ended.status is RunStatus.CANCELLED
        assert ended.error is not None
        assert (ended.error.code, "KeyboardInterrupt" in ended.error.message) == (ErrorCode.CANCELLED, True)
        assert_laws(stage)


class TestRoom:
    """Limits of the transcript."""

    def test_a_message_that_would_take_it_over_its_bytes(self) -> None:
        """A message for which the transcript has no room is not committed: the run is limited before anything is."""
        stage = Stage(limits=Limits(max_transcript_bytes=100))
        result = stage.run("x" * 101)
        assert (result.status, stage.history, stage.asked) == (RunStatus.LIMITED, [], [])
        assert_laws(stage, again=False)
