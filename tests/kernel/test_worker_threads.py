"""Threads that cannot be had, or come too late."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from queue import SimpleQueue

from gotato_py import Limits, ToolCall, ToolContext, ToolResult, ToolResultStatus
from gotato_py._crew import Job, Mail, _do, _start
from gotato_testkit import say

from .laws import assert_laws
from .stage import Stage
from .workers import batch, fine

TWO = Limits(max_parallel_tools=2)


class TestNoThread:
    """The machine has no thread left."""

    def test_a_tool_that_gets_no_thread(self) -> None:
        """It is `not_run`, which is safe to repeat, and the run goes on."""
        stage = Stage(batch("fine", "fine"), say("I see."), tools=[fine()], limits=TWO)
        with no_room_for_threads():
            assert stage.run().text == "I see."
        assert stage.statuses == ["not_run", "not_run"]
        assert "no thread could be started" in stage.results[0].result.error
        assert not stage.effects
        assert_laws(stage)

    def test_a_thread_that_cannot_be_started_by_the_one_that_starts_it(self) -> None:
        """The room may be gone in between: the call then ends as one that was not run, in its turn."""
        thread = threading.Thread(target=int, daemon=True)
        thread.start()
        job = job_of(thread)
        mail: Mail = SimpleQueue()
        _start(thread, job, mail)  # a thread is started only once
        assert mail.get_nowait() is job
        assert (job.ended, job.outcome, job.lives) == (True, NOT_RUN, False)
        thread.join()

    def test_a_thread_that_begins_when_its_call_was_given_up(self) -> None:
        """It does nothing: an effect after the end would be one that nobody expects any more."""
        job = job_of(None)
        job.given_up = True
        _do(job, SimpleQueue())
        assert (job.ended, job.outcome, job.raised) == (True, None, None)


NOT_RUN = ToolResult("call_1", ToolResultStatus.NOT_RUN), ""


def job_of(thread: threading.Thread | None) -> Job:
    """A call whose tool must not run."""

    def work() -> tuple[ToolResult, str]:
        raise AssertionError("it ran")

    job = Job(ToolCall("call_1", "fine"), "", ToolContext(), None, work, lambda error: NOT_RUN, 0.0)
    job.thread = thread
    return job


@contextmanager
def no_room_for_threads() -> Generator[None, None, None]:
    """Meanwhile a new thread asks for a stack that no address space has room for."""
    before = threading.stack_size(1 << 62)
    try:
        yield
    finally:
        threading.stack_size(before)
