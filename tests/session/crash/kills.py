"""How a process is killed: from outside at some time, at some bytecode of the session's own code, within a write."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import gotato_session

from .telling import JSONObject, Tell

WATCHED = (str(Path(gotato_session.__file__ or "").parent), str(Path(__file__).with_name("clerk.py")))
TraceFunction = Callable[[FrameType, str, Any], Any]  # as sys.settrace takes it


class AtBytecode:
    """Kills this process a few bytecodes behind the `line`-th line of the watched files that it executes."""

    def __init__(self, line: int, bytecodes: int) -> None:
        self.line = line
        self.bytecodes = bytecodes

    def watch(self) -> None:
        """Begins to count, in all threads."""
        sys._getframe().f_trace_opcodes = True  # 3.12 traces none unless a frame asked before
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def enter(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        """A function is called."""
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        if self.line <= 0:
            frame.f_trace_opcodes = True
        return self.step

    def step(self, frame: FrameType, event: str, argument: object) -> TraceFunction:
        """A line or a bytecode is about to be executed."""
        if event == "line":
            self.line -= 1
            if self.line == 0:
                frame.f_trace_opcodes = True
        elif event == "opcode" and self.line <= 0:
            self.bytecodes -= 1
        if self.line <= 0 and self.bytecodes <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.step


def killed_at_commit(tell: Tell, rng: Random) -> Tell:
    """Tells, and kills the process soon after one of the first commits has begun: of several entries, if one of those
    comes before."""
    left, several = rng.randint(1, 25), rng.random() < 0.5
    at = AtBytecode(rng.randint(1, rng.choice((15, 120))), rng.randint(0, 25))

    def counting(what: str, id: str, entries: list[JSONObject]) -> None:
        nonlocal left
        tell(what, id, entries)
        left -= 1
        if left == 0 or (several and what == "begin" and len(entries) > 1):
            at.watch()

    return counting


def within_a_write(folder: Path, rng: Random) -> None:
    """Lets no file of this process grow past some size a little above one of those that are there: the write that would
    is cut off at that byte, and the next one kills the process."""
    sizes = [each.stat().st_size for each in folder.rglob("*") if each.is_file()] or [0]
    most = rng.choice(sizes) + rng.choice((rng.randint(1, 400), rng.randint(1, 20_000)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it otherwise
