"""Cases of time: deadlines by the monotonic clock alone, and waits between attempts that end when they should."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Flag
from threading import Thread

import pytest

from gotato_py import (
    Cancelled,
    DeadlineExceeded,
    Hooks,
    InvalidArgument,
    Limits,
    ModelRetry,
    Overloaded,
    RateLimited,
    RetryPolicy,
    RunDeadlineExceeded,
    RunStatus,
    Scope,
    TextDelta,
    ToolContext,
)
from gotato_testkit import Do, ManualClock, Raise, Stall, Wait, call, say

from .hosts import SOON_S
from .laws import assert_laws
from .stage import Stage

ONE_SECOND = Limits(run_timeout=1.0)
HOUR = 3600.0
MOVES: dict[str, Callable[[ManualClock], None]] = {
    "left alone": lambda clock: None,
    "set back": lambda clock: clock.set_time(clock.time() - HOUR),
    "set forward": lambda clock: clock.set_time(clock.time() + HOUR),
}
"""What happens to the wall clock in the middle of a run."""


class TestC07TheDeadline:
    """`run_timeout` passes."""

    @pytest.mark.parametrize("move", MOVES)
    def test_c07_the_model_stalls(self, move: str) -> None:
        """The run ends after its seconds by the monotonic clock, whatever the wall clock does meanwhile."""
        clock = ManualClock()
        stage = Stage(clock=clock, limits=ONE_SECOND)
        stage.script.replace([TextDelta("a"), Wait(0.5), Do(lambda: MOVES[move](clock)), Stall()])
        result = stage.run()
        assert result.status is RunStatus.DEADLINE_EXCEEDED
        assert isinstance(result.error, DeadlineExceeded)
        assert result.metrics.elapsed_s == clock.monotonic() == 1.0
        assert stage.history == ["U do it", "A a cancelled"]
        assert_laws(stage)

    @pytest.mark.parametrize("move", MOVES)
    def test_c07_it_passes_inside_a_tool_that_heeds_it(self, move: str) -> None:
        """A tool that gives up at the deadline is `timed_out`, effect unknown; calls behind it were never run."""

        def wait(use: ToolContext[object]) -> str:
            """Waits."""
            use.scope.wait(0.5)
            MOVES[move](clock)
            use.scope.wait(60)
            use.scope.check()
            return "in time"

        clock = ManualClock()
        stage = Stage(call("wait") + call("wait"), tools=[wait], clock=clock, limits=ONE_SECOND)
        result = stage.run()
        assert (result.status, result.metrics.elapsed_s) == (RunStatus.DEADLINE_EXCEEDED, 1.0)
        assert stage.history == ["U do it", "A  [wait, wait] tool_calls", "R call_1 timed_out", "R call_2 not_run"]
        assert [message.result.executed for message in stage.results] == [None, False]
        assert_laws(stage)

    def test_c07_it_passes_inside_a_tool_that_answers(self) -> None:
        """A tool that returns after the deadline did run: its real result is kept, and nothing further starts."""

        def wait(use: ToolContext[object]) -> str:
            """Waits."""
            use.scope.wait(60)
            return "done all the same"

        stage = Stage(call("wait") + call("wait"), tools=[wait], clock=ManualClock(), limits=ONE_SECOND)
        assert stage.run().status is RunStatus.DEADLINE_EXCEEDED
        assert stage.history[2:] == ["R call_1 ok", "R call_2 not_run"]
        assert stage.results[0].text == "done all the same"
        assert_laws(stage)

    def test_c07_it_has_passed_at_the_start(self) -> None:
        """A run whose time is 0 keeps what the user said and asks nothing."""
        stage = Stage()
        with pytest.raises(RunDeadlineExceeded) as raised:
            stage.agent.run("do it", timeout=0)
        assert isinstance(raised.value.__cause__, DeadlineExceeded)
        assert (stage.history, stage.asked) == (["U do it"], [])
        assert stage.kinds == ["agent_start", "message_end", "agent_end"]
        assert_laws(stage)

    def test_c07_a_negative_time(self) -> None:
        """A negative timeout is misuse: it raises at once and commits nothing."""
        stage = Stage()
        with pytest.raises(InvalidArgument, match="timeout"):
            stage.agent.run("do it", timeout=-1)
        assert (stage.history, stage.events) == ([], [])
        assert_laws(stage)

    def test_c07_the_nearer_end_wins(self) -> None:
        """Of the limit, the call's timeout and the caller's scope the nearest ends the run."""
        for run_timeout, timeout, outer in ((1.0, 9.0, 9.0), (9.0, 1.0, 9.0), (9.0, 9.0, 1.0)):
            clock = ManualClock()
            stage = Stage([Stall()], clock=clock, limits=Limits(run_timeout=run_timeout))
            result = stage.run(timeout=timeout, scope=Scope(outer, clock=clock))
            assert (result.status, clock.monotonic()) == (RunStatus.DEADLINE_EXCEEDED, 1.0)
            assert_laws(stage)

    def test_c07_an_attempt_that_takes_too_long(self) -> None:
        """`model_timeout` bounds one attempt, which is retried; it is not the end of the run."""
        limits = Limits(model_timeout=2.0)
        stage = Stage([TextDelta("a"), Stall()], say("Quick."), clock=ManualClock(), limits=limits)
        assert stage.run().text == "Quick."
        assert stage.history == ["U do it", "A Quick. end_turn"]
        assert stage.kinds.count("model_retry") == 1
        assert_laws(stage)

    def test_c07_by_real_time(self) -> None:
        """By the machine's own clock a run with 80 ms ends after 80 ms."""
        stage = Stage([TextDelta("a"), Stall()])
        began = time.monotonic()
        result = stage.run(timeout=0.08)
        took = time.monotonic() - began
        assert result.status is RunStatus.DEADLINE_EXCEEDED
        assert 0.08 <= took < SOON_S
        assert_laws(stage)


class TestC08TheWaitBeforeTheNextAttempt:
    """The model is overloaded, and the run waits."""

    def test_c08_longer_than_the_time_left(self) -> None:
        """A wait that the deadline would cut short gives up now, with the model's error as the cause."""
        clock = ManualClock()
        stage = Stage(Raise(RateLimited("slow down", retry_after=30)), clock=clock, limits=Limits(run_timeout=5))
        result = stage.run()
        assert result.status is RunStatus.DEADLINE_EXCEEDED
        assert isinstance(result.error, DeadlineExceeded)
        assert isinstance(result.error.cause, RateLimited)
        assert (clock.monotonic(), clock.waits) == (0.0, [])
        assert stage.history == ["U do it"]
        assert_laws(stage)

    def test_c08_what_the_provider_asks_for(self) -> None:
        """`retry_after` is waited for exactly; otherwise the wait doubles from attempt to attempt."""
        clock = ManualClock()
        steps = [Raise(Overloaded("busy")), Raise(Overloaded("busy")), Raise(RateLimited("slow", retry_after=7))]
        stage = Stage(*steps, say("At last."), clock=clock, retry=RetryPolicy(max_attempts=4, jitter=0.0))
        assert stage.run().text == "At last."
        assert clock.waits == [0.5, 1.0, 7.0]
        told = [event for event in stage.events if isinstance(event, ModelRetry)]
        assert [(event.attempt, event.delay) for event in told] == [(1, 0.5), (2, 1.0), (3, 7.0)]
        assert all(event.error is not None for event in told)
        assert_laws(stage)

    def test_c08_cancelled_by_another_thread(self) -> None:
        """A cancel ends the wait at once, by real time."""
        waiting = Flag()
        ended: list[float] = []

        def cancel() -> None:
            waiting.wait()
            time.sleep(0.01)
            ended.append(time.monotonic())
            stage.cancel()

        on_retry = Hooks(observe=lambda event: waiting.set() if event.kind == "model_retry" else None)
        stage = Stage(Raise(RateLimited("slow down", retry_after=30)), extensions=[on_retry])
        other = Thread(target=cancel)
        other.start()
        result = stage.run()
        took = time.monotonic() - ended[0] if ended else 0.0
        other.join()
        assert result.status is RunStatus.CANCELLED
        assert isinstance(result.error, Cancelled)
        assert took < SOON_S
        assert stage.history == ["U do it"]
        assert stage.kinds[-3:] == ["model_retry", "turn_end", "agent_end"]
        assert_laws(stage)

    def test_c08_the_deadline_passes_between_attempts(self) -> None:
        """Waits that fit are made, and the deadline still ends the run when it comes."""
        clock = ManualClock()
        limits = Limits(run_timeout=1.0)
        stage = Stage(*[Raise(Overloaded("busy"))] * 2, clock=clock, limits=limits, retry=RetryPolicy(jitter=0.0))
        assert stage.run().status is RunStatus.DEADLINE_EXCEEDED
        assert clock.waits == [0.5]
        assert stage.history == ["U do it"]
        assert_laws(stage)

    def test_c08_a_message_that_was_shown_is_taken_back_before_the_wait(self) -> None:
        """What a failed attempt had shown is discarded before the run waits, and told as an error."""
        clock = ManualClock()
        stage = Stage([TextDelta("On it"), Raise(Overloaded("busy"))], say("Done."), clock=clock)
        assert stage.run().text == "Done."
        assert stage.kinds.index("message_discarded") < stage.kinds.index("model_retry")
        assert_laws(stage)

    def test_c08_what_cannot_be_retried(self) -> None:
        """An adapter's own bug is not retried: the run fails, and its error keeps the cause."""
        stage = Stage(Raise(KeyError("choices")))
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert result.error is not None
        assert isinstance(result.error.cause, KeyError)
        assert len(stage.asked) == 1
        assert stage.history == ["U do it"]
        assert_laws(stage)
