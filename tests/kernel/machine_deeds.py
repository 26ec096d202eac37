"""What the machine's tools, extensions and places raise, return and do, by name: names shrink and print well."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NoReturn

from gotato_py import Cancelled, DeadlineExceeded, Pending, StoreFailure, ToolError


class Interrupt(BaseException):
    """What a task queue raises in the middle of a task; given to the agent as `interrupts=`."""


class TimeLimit(Exception):
    """The same as an ordinary exception, as Celery's and RQ's are."""


class Untyped(BaseException):
    """A BaseException that nobody announced."""


class BrokenText(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raise(kind: type[BaseException]) -> NoReturn:
    raise kind


INTERRUPTS: dict[str, Callable[[], None]] = {
    "interrupt": lambda: _raise(KeyboardInterrupt),
    "ctrl-c": lambda: signal.raise_signal(signal.SIGINT),
    "stop": lambda: _raise(Interrupt),
    "time limit": lambda: _raise(TimeLimit),
}
"""What ends a run from anywhere and comes out of it unchanged."""
RAISES: dict[str, Callable[[], BaseException]] = {
    "raise ValueError": lambda: ValueError("no such row"),
    "raise ToolError": lambda: ToolError("my own words"),
    "raise BrokenText": BrokenText,
    "raise SystemExit": lambda: SystemExit(3),
    "raise GeneratorExit": GeneratorExit,
    "raise MemoryError": MemoryError,
    "raise StopIteration": StopIteration,
    "raise CancelledError": asyncio.CancelledError,
    "raise Untyped": Untyped,
    "raise Cancelled": lambda: Cancelled("not mine"),
    "raise DeadlineExceeded": lambda: DeadlineExceeded("not mine"),
    "raise StoreFailure": lambda: StoreFailure("not mine"),
}
"""What a tool or an extension may raise: none of it comes out of the run."""


def _cycle() -> object:
    cycle: list[object] = []
    cycle.append(cycle)
    return cycle


async def _coroutine() -> None:
    raise AssertionError("never awaited")


RETURNS: dict[str, Callable[[], object]] = {
    "return None": lambda: None,
    "return empty": lambda: "",
    "return False": lambda: False,
    "return bytes": lambda: b"\xff\x00",
    "return nan": lambda: float("nan"),
    "return set": lambda: {3, 1, 2},
    "return time": lambda: datetime(2024, 5, 1, tzinfo=UTC),
    "return keys": lambda: {1: "a", "1": "b"},
    "return surrogate": lambda: "\ud800",
    "return long": lambda: "é" * 300,
    "return cycle": _cycle,
    "return object": object,
    "return generator": lambda: (each for each in "ab"),
    "return coroutine": _coroutine,
    "return exception": lambda: ValueError("returned"),
    "return pending": lambda: Pending("job-7", "queued"),
}
"""What a tool may return, whether or not it can be said in JSON."""
DEEDS = ("busy", "cancel", "signal", "charge", "progress", "wait", "time", "nested", "thing")
"""What a tool may do beside that."""
UNFINISHED = "(unfinished)"
"""Scripts put this into reasoning that nothing closes."""
CONTROLS = ("steer", "follow up", "steer again", "withdraw", "subscribe", "look", "wait idle", "bad steer")
"""What anybody may do to an agent in the middle of a run, and go on."""
WAITS = ("hang", "heed", "heed late", "behind", "cancel and hang")
"""How a tool may keep a worker thread: for ever, until its scope ends, until another tool has ended."""
