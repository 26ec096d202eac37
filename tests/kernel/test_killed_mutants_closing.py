"""What no other test would notice of how a run is closed: what its open calls are told, and what is recorded of it."""

from __future__ import annotations

import pytest

from gotato_py import ErrorCode, Hooks, Limits, MemoryTranscript, RunRecord, RunStatus, ToolExecutionEnd
from gotato_testkit import Do, FakeTool, ManualClock, Raise, call, say

from .laws import assert_laws
from .stage import Stage

TWO = call("first") + call("second")


class Recording(MemoryTranscript):
    """A transcript that keeps the records of its runs, or fails to."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__()
        self.records: list[RunRecord] = []
        self._errors = list(errors)

    def end_run(self, record: RunRecord) -> None:
        """Keeps the record."""
        if self._errors:
            raise self._errors.pop(0)
        self.records.append(record)


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class TestWhatOpenCallsAreTold:
    """The model reads, with the next run, why a call of its was not run."""

    def test_cancelled(self) -> None:
        """It says that the run was cancelled, and why."""
        cancel = Do(lambda: stage.agent.cancel("too dear"))
        stage = Stage(TWO, tools=[FakeTool("first", cancel), FakeTool("second")])
        stage.run()
        assert stage.results[-1].result.error == "the run was cancelled (too dear)"
        assert_laws(stage)

    def test_out_of_time(self) -> None:
        """It says that the time of the run has passed."""
        clock = ManualClock()
        late = Do(lambda: clock.advance(61.0))
        stage = Stage(TWO, tools=[FakeTool("first", late), FakeTool("second")], clock=clock)
        stage.run(timeout=60.0)
        assert stage.results[-1].result.error == "the time of the run has passed"
        assert_laws(stage)

    def test_a_limit(self) -> None:
        """It says that the run reached a limit, and which."""
        stage = Stage(TWO, tools=[FakeTool("first"), FakeTool("second")], limits=Limits(max_tool_calls=1))
        stage.run()
        error = stage.results[-1].result.error
        assert error.startswith("the run reached a limit: ")
        assert "max_tool_calls" in error
        assert_laws(stage, again=False)

    def test_a_failure(self) -> None:
        """It says that the run failed, by the code of its error alone: an error's text is not for the model."""
        full = Failing(ValueError("secret"))
        stage = Stage(TWO, tools=[FakeTool("first"), FakeTool("second")], transcript=full)
        assert stage.run().status is RunStatus.FAILED
        stage.script.replace(say("Done."))
        assert stage.run("again").status is RunStatus.COMPLETED
        assert stage.results[-1].result.error == "the run failed (store_failure)"

    def test_an_interrupt_is_told_to_observers_by_name(self) -> None:
        """A tool that Ctrl-C ends is told to have ended with it; one that the run's end cut off, with nothing."""
        stage = Stage(call("first"), tools=[FakeTool("first", Do(interrupt))])
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        ended = [event for event in stage.events if isinstance(event, ToolExecutionEnd)]
        assert [event.exception for event in ended] == ["KeyboardInterrupt"]
        assert_laws(stage)


class Failing(MemoryTranscript):
    """A transcript that cannot record that a second tool starts."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error
        self._marks = 0

    def mark_started(self, key: str) -> None:
        """Marks the first."""
        self._marks += 1
        if self._marks == 2:
            raise self._error
        super().mark_started(key)


class TestTheRecord:
    """What a transcript is told of a run that has ended."""

    @pytest.mark.parametrize("name", ["clerk", ""])
    def test_of_a_run_that_completed(self, name: str) -> None:
        """Its id, whose it is, how it ended, what it took: the agent's name, or its id where it has none."""
        clock, kept = ManualClock(), Recording()
        wait = Do(lambda: clock.advance(2.0))
        stage = Stage(
            [wait, *call("first")], say("Done."), tools=[FakeTool("first")], transcript=kept, clock=clock, name=name
        )
        result = stage.run()
        (record,) = kept.records
        assert (record.run_id, record.status, record.error) == (result.run_id, "completed", "")
        assert record.agent == (name or stage.events[0].agent_id)
        assert (record.elapsed_s, record.turns, record.tool_calls, record.usage) == (2.0, 2, 1, result.usage)
        assert result.metrics.elapsed_s == 2.0
        assert_laws(stage)

    def test_of_a_run_that_failed(self) -> None:
        """The code of its error stands in the record."""
        kept = Recording()
        stage = Stage(Raise(ValueError("x")), transcript=kept)
        result = stage.run()
        assert result.error is not None
        assert [(each.status, each.error) for each in kept.records] == [("failed", result.error.code.value)]

    def test_that_cannot_be_kept(self) -> None:
        """A run whose record the transcript cannot keep has failed, though its answer is there."""
        stage = Stage(say("Done."), transcript=Recording(OSError("full")))
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.FAILED, "Done.")
        assert result.error is not None
        assert result.error.code is ErrorCode.STORE_FAILURE
        assert_laws(stage)

    def test_interrupted_meanwhile(self) -> None:
        """Ctrl-C while it is kept comes out; the record is kept by the next entry, once."""
        kept = Recording(KeyboardInterrupt())
        stage = Stage(say("Done."), transcript=kept)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert_laws(stage, repair=True)
        assert len(kept.records) == 2
        assert len({record.run_id for record in kept.records}) == 2

    def test_kept_once(self) -> None:
        """Ctrl-C in an observer of the last event does not have the record kept again."""
        kept = Recording()
        raises = [KeyboardInterrupt()]

        def observe(event: object) -> None:
            if getattr(event, "kind", "") == "agent_end" and raises:
                raise raises.pop()

        stage = Stage(say("Done."), transcript=kept, extensions=[Hooks(observe=observe)])
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert_laws(stage, repair=True)
        assert len({record.run_id for record in kept.records}) == len(kept.records) == 2
