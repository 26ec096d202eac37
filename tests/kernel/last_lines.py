"""Acting at a chosen line of the kernel: what a signal handler or another thread would do just there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .interrupts import KERNEL, TraceFunction


class LastLines:
    """Counts the lines of the kernel that this thread executes once it is armed, and acts before those in `acts`."""

    def __init__(self, acts: Mapping[int, Callable[[], object]]) -> None:
        self._acts = acts
        self._traced: list[tuple[FrameType, Any]] = []  # the frames further up, and what traced them before
        self._armed = False
        self.count = 0

    @contextmanager
    def watching(self) -> Generator[None, None, None]:
        """Within this, `arm_once` may be called; nothing is watched behind it. The collector rests: an act in what it
        finalises would be that of nobody."""
        before = sys.gettrace()
        gc.disable()
        try:
            yield
        finally:
            sys.settrace(before)
            for frame, tracer in self._traced:
                frame.f_trace = tracer
            self._traced.clear()
            gc.enable()

    def arm_once(self) -> None:
        """Counts from the first call on, in the frames that are further up the stack as well."""
        if self._armed:
            return
        self._armed = True
        sys.settrace(self._enter)
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename.startswith(KERNEL):
                self._traced.append((frame, frame.f_trace))
                frame.f_trace = self._step
            frame = frame.f_back

    def _enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        return self._step if frame.f_code.co_filename.startswith(KERNEL) else None

    def _step(self, frame: FrameType, event: str, argument: Any) -> TraceFunction:
        if event == "line":
            self.count += 1
            act = self._acts.get(self.count)
            if act is not None:
                act()
        return self._step
