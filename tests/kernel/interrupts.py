"""Ctrl-C for tests: by real signals, which come when they come, and at one chosen line of the kernel.

The collector rests meanwhile: what is raised in its callbacks and finalisers is lost by Python itself.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import gotato_py

TraceFunction = Callable[[FrameType, str, Any], Any]  # as sys.settrace takes it
KERNEL = str(Path(gotato_py.__file__ or "").parent)
_MOMENT_S = 0.0002


class Interrupted(NamedTuple):
    """How many interrupts were raised, and whether one came out."""

    raised: int
    came_out: bool


@contextmanager
def _no_collection() -> Generator[None, None, None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interrupted(act: Callable[[], object], *seconds: float, ready: Callable[[], object] = lambda: True) -> Interrupted:
    """Calls `act` while real signals raise `KeyboardInterrupt`: the first after so many seconds, each further one so
    many after the one before. None is raised anywhere else; one that comes before `act` has begun, or is `ready` for
    it, comes again a moment later."""
    rest = list(seconds)
    raised: list[float] = []
    begun, ended = list[bool](), list[bool]()

    def played() -> None:
        begun.append(True)
        act()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not ended and not (begun and ready()):
            signal.setitimer(signal.ITIMER_REAL, _MOMENT_S)
            return
        if rest:
            signal.setitimer(signal.ITIMER_REAL, rest.pop(0))
        while frame is not None and frame.f_code is not played.__code__:
            frame = frame.f_back
        if frame is not None:
            raised.append(time.monotonic())
            signal.default_int_handler(number, frame)

    began = time.monotonic()
    came_out = False
    handler = signal.signal(signal.SIGALRM, on_signal)
    left, _ = signal.setitimer(signal.ITIMER_REAL, rest.pop(0))  # pytest-timeout's own
    try:
        with _no_collection():
            played()
    except KeyboardInterrupt:
        came_out = True
    finally:
        ended.append(True)
        rest.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - began)))
    return Interrupted(len(raised), came_out)


class LineInterrupt:
    """Raises an interrupt before the `number`-th line of the kernel that is executed; `where` says which it was.

    With `opcodes_of` it is the `number`-th bytecode executed in that module instead, with `lines_of` such a line.
    """

    def __init__(
        self, number: int, kind: type[BaseException] = KeyboardInterrupt, *, opcodes_of: str = "", lines_of: str = ""
    ) -> None:
        self._left = number
        self._kind = kind
        self._module = f"{KERNEL}/{opcodes_of or lines_of}"
        self._step = "opcode" if opcodes_of else "line"
        self.where = ""

    def happen(self) -> None:
        """Raises the interrupt."""
        raise self._kind

    def __call__(self, act: Callable[[], object]) -> bool:
        """Calls `act` and returns whether the interrupt came out of it, as it was."""
        before = sys.gettrace()
        try:
            with _no_collection():
                sys._getframe().f_trace_opcodes = self._step == "opcode"  # 3.12 traces none unless a frame asked before
                sys.settrace(self._enter)
                act()
        except self._kind:
            return True
        finally:
            sys.settrace(before)
        return False

    def _enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        if not frame.f_code.co_filename.startswith(self._module):
            return None
        frame.f_trace_opcodes = self._step == "opcode"
        return self._count

    def _count(self, frame: FrameType, event: str, argument: object) -> TraceFunction:
        if event == self._step:
            self._left -= 1
            if self._left == 0:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                self.happen()
        return self._count


class AtLine(LineInterrupt):
    """Calls `happens` there instead, as a signal handler is called."""

    def __init__(self, number: int, happens: Callable[[], object], *, opcodes_of: str = "", lines_of: str = "") -> None:
        super().__init__(number, opcodes_of=opcodes_of, lines_of=lines_of)
        self._happens = happens

    def happen(self) -> None:
        """Calls it, unobserved."""
        watching = sys.gettrace()
        sys.settrace(None)
        try:
            self._happens()
        finally:
            sys.settrace(watching)
