"""Something happens at one chosen step of the session's code: an interrupt, or a call as a signal handler makes it."""

from __future__ import annotations

import gc
import linecache
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gotato_session

only_bytecodes = pytest.mark.skipif(sys.version_info >= (3, 13), reason="3.13.0 leaves out events of bytecodes")
at_each_step = pytest.mark.parametrize(
    "opcodes", [pytest.param(False, id="line"), pytest.param(True, id="bytecode", marks=only_bytecodes)]
)
"""For a test that is done at each line, and once more at each bytecode."""
PACKAGE = str(Path(gotato_session.__file__ or "").parent)
TraceFunction = Callable[[FrameType, str, Any], Any]  # as sys.settrace takes it


class AtStep:
    """Calls `happen()` before the `number`-th line of the package that is executed, or bytecode with `opcodes`.

    `steps` is how many there were. The collector rests meanwhile: what finalisers raise is lost by Python. Lines that
    take a lock by `with` are left out: Python looks for signals at none of their bytecodes between the block and the
    lock's release, where a trace function would be called.
    """

    def __init__(self, number: int, happen: Callable[[], object], *, opcodes: bool = False) -> None:
        self._number = number
        self._happen = happen
        self._step = "opcode" if opcodes else "line"
        self.steps = 0

    def __call__(self, act: Callable[[], object]) -> None:
        """Calls `act`."""
        before = sys.gettrace()
        gc.disable()
        try:
            sys._getframe().f_trace_opcodes = self._step == "opcode"  # 3.12 traces none unless a frame asked before
            sys.settrace(self._enter)
            act()
        finally:
            sys.settrace(before)
            gc.enable()

    def _enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = self._step == "opcode"
        return self._count

    def _count(self, frame: FrameType, event: str, argument: object) -> TraceFunction:
        if event == self._step and not _takes_lock(frame.f_code.co_filename, frame.f_lineno):
            self.steps += 1
            if self.steps == self._number:
                self._happen()
        return self._count


def _takes_lock(filename: str, line: int | None) -> bool:  # None: bytecodes that end a `with` after an error
    return line is None or linecache.getline(filename, line).lstrip().startswith("with self._")


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def killed_at(line: int, act: Callable[[], object]) -> bool:
    """Does it in a forked process, which is killed before that line of the package; False if it ended before."""
    child = os.fork()
    if not child:
        try:
            AtStep(line, lambda: os.kill(os.getpid(), signal.SIGKILL))(act)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
