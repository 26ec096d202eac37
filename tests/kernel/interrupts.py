"""Ctrl-C for tests: by real signals, which come when they come, and at one chosen line of the kernel."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import gotato_py

KERNEL = str(Path(gotato_py.__file__ or "").parent)


def interrupted(act: Callable[[], object], *seconds: float) -> int:
    """Calls `act` while real signals raise `KeyboardInterrupt`: the first after so many seconds, each further one so
    many after the one before. Returns how many were raised in it; none is raised anywhere else."""
    rest = list(seconds)
    raised: list[float] = []

    def played() -> None:
        act()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if rest:
            signal.setitimer(signal.ITIMER_REAL, rest.pop(0))
        while frame is not None and frame.f_code is not played.__code__:
            frame = frame.f_back
        if frame is not None:
            raised.append(time.monotonic())
            signal.default_int_handler(number, frame)

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, on_signal)
    left, _ = signal.setitimer(signal.ITIMER_REAL, rest.pop(0))  # pytest-timeout's own
    try:
        played()
    except KeyboardInterrupt:
        pass
    finally:
        rest.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)))
    return len(raised)


class LineInterrupt:
    """Raises `KeyboardInterrupt` before the `number`-th line of the kernel that is executed; `where` says which it was."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.where = ""

    def __call__(self, act: Callable[[], object]) -> bool:
        """Calls `act` and returns whether the interrupt came out of it."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            act()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _enter(self, frame: FrameType, event: str, argument: object) -> object:
        return self._line if frame.f_code.co_filename.startswith(KERNEL) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> object:
        if event == "line":
            self._left -= 1
            if self._left == 0:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt
        return self._line
