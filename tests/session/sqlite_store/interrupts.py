"""Ctrl-C at one chosen line of the store's own code."""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gotato_session

TraceFunction = Callable[[FrameType, str, Any], Any]  # as sys.settrace takes it
PACKAGE = Path(gotato_session.__file__ or "").parent
MODULES = {str(each) for each in PACKAGE.glob("*sqlite_*.py")}


class LineInterrupt:
    """Raises `KeyboardInterrupt` before the `number`-th line of SQLiteStore that is executed; `where` says which.

    Lines where only a tracer can raise are left out: a `with`, which it sees again between the block and its end, and
    a bare `try`. So are finalisers: what is raised in them is lost by Python itself.
    """

    def __init__(self, number: int) -> None:
        self._left = number
        self.where = ""

    def __call__(self, act: Callable[[], object]) -> bool:
        """Calls `act` and returns whether the interrupt came out of it."""
        before = sys.gettrace()
        gc.disable()
        sys.settrace(self._enter)
        try:
            act()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
            gc.enable()
        return False

    def _enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        if frame.f_code.co_filename not in MODULES:
            return None
        back = frame.f_back
        if "__del__" in (frame.f_code.co_name, "" if back is None else back.f_code.co_name):
            return None
        return self._count

    def _count(self, frame: FrameType, event: str, argument: object) -> TraceFunction:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and not line.startswith(("with ", "try:")):
            self._left -= 1
            if self._left == 0:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt
        return self._count
