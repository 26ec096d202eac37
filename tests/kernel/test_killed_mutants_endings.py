"""What no other test would notice of how runs end: by a limit, by an extension, by what goes wrong in between."""

from __future__ import annotations

import pytest

from gotato_py import AgentEnd, ErrorCode, Hooks, Limits, RunStatus
from gotato_testkit import Do, Raise, call, say

from .laws import assert_laws
from .stage import Stage


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
