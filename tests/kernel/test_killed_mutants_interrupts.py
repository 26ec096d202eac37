"""What no other test would notice of interrupts that are ordinary exceptions, raised in a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from gotato_py import MemoryTranscript, Message, RunRecord, WaitingCall
from gotato_testkit import FakeTool, call, say

from .laws_of_waiting import asks, assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


class SoftTimeLimit(RuntimeError):
    """What a task queue raises in the middle of a task."""


class Stopping(MemoryTranscript):
    """A transcript in which time runs out at one of its calls, once."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self.point = point

    def _perhaps(self, point: str) -> None:
        if self.point == point:
            self.point = ""
            raise SoftTimeLimit

    def begin_run(self, run_id: str) -> None:
        """Begins a run."""
        self._perhaps("begin_run")

    def append(self, message: M) -> M:
        """Keeps a message."""
        self._perhaps("append")
        return super().append(message)

    def mark_started(self, key: str) -> None:
        """Marks a call that starts."""
        self._perhaps("mark_started")
        super().mark_started(key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Marks the calls that wait."""
        self._perhaps("mark_waiting")
        super().mark_waiting(calls)

    def end_run(self, record: RunRecord) -> None:
        """Ends a run."""
        self._perhaps("end_run")


@pytest.mark.parametrize("point", ["begin_run", "append", "mark_started", "mark_waiting", "end_run"])
def test_it_comes_out(point: str) -> None:
    """A type in `interrupts` that a transcript raises is no failure of the transcript: it comes out as it is."""
    transcript = Stopping(point)
    stage = Stage(
        call("a") + call("b"),
        say("Done."),
        tools=[FakeTool("a", "a"), FakeTool("b", "b")],
        extensions=[asks("b")],
        transcript=transcript,
        interrupts=[SoftTimeLimit],
    )
    with pytest.raises(SoftTimeLimit):
        stage.run()
    assert transcript.point == ""
    assert_laws(stage, repair=True)
