"""Programs of their own, for what ends or copies a whole process: exits, forks, signals in the main thread."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import gotato_py
import gotato_session
import gotato_testkit

ROOTS = [str(Path(module.__file__ or "").parents[1]) for module in (gotato_py, gotato_session, gotato_testkit)]
LONGEST_S = 60.0


# A fork in a process with threads warns from Python 3.12 on: here it is done on purpose.
STRICT = ("-W", "error", "-W", "ignore:.*fork:DeprecationWarning")


def output_of(program: str, *arguments: str, options: Sequence[str] = STRICT) -> str:
    """What the program prints. It has to end with status 0, and without a word on stderr."""
    text = f"import sys; sys.path[:0] = {ROOTS!r}\n{textwrap.dedent(program)}"
    command = [sys.executable, *options, "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def seconds_to_exit(program: str) -> float:
    """The seconds from the last statement of the program, run as users do, to the end of its process."""
    timed = f"{textwrap.dedent(program)}\nimport time; print(time.monotonic(), flush=True)\n"
    ended = float(output_of(timed, options=()))
    return time.monotonic() - ended
