"""Signals that come right before a wait: Python runs their handlers only when the wait ends, so no wait is long."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import pytest

from gotato_py import Limits, Scope
from gotato_testkit import FakeTool, Stall, say

from .laws import assert_laws
from .stage import Stage
from .workers import batch, fine, on_alarm

TIMES = 30
"""Without the remedy one or two in a hundred come too late."""
LONG_S = 20.0
"""What a wait takes that nobody ends."""


@contextmanager
def busy_threads() -> Generator[None, None, None]:
    """Meanwhile others want the interpreter too, which widens the gap between the last look for signals and a wait."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(300))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def waited(cancel: Callable[[], object], wait: Callable[[], object], after: float) -> float:
    """The seconds that the wait takes from when a signal handler cancels it."""

    def handle(number: int, frame: FrameType | None) -> None:
        if not cancel():
            signal.setitimer(signal.ITIMER_REAL, 0.001)  # the run has not begun

    due = time.monotonic() + after
    with on_alarm(handle, after):
        wait()
    return time.monotonic() - due


def test_a_scope_that_a_signal_handler_cancels() -> None:
    """`Scope.wait` in the main thread returns soon, however the signal and the wait meet."""
    dice = random.Random(16)
    with busy_threads():
        for _ in range(TIMES):
            scope = Scope()
            late = waited(scope.cancel, partial(scope.wait, LONG_S), dice.uniform(0.0001, 0.02))
            assert late < LONG_S / 2


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_that_a_signal_handler_cancels(parallel: int) -> None:
    """A run that waits for its workers ends soon, however the signal and the wait meet."""
    dice = random.Random(61)
    with busy_threads():
        for _ in range(TIMES // 3):
            stall = FakeTool("stall", Stall(), timeout=LONG_S)
            stage = Stage(
                batch("stall", "fine"), say("never"), tools=[stall, fine()], limits=Limits(max_parallel_tools=parallel)
            )
            late = waited(stage.agent.cancel, stage.run, dice.uniform(0.0001, 0.02))
            assert late < LONG_S / 2
            assert stage.events[-1].to_dict()["status"] == "cancelled"
            assert_laws(stage)
