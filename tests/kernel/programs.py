"""Programs of their own, for what ends or copies a whole process: exits, forks, signals in the main thread."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import gotato_py
import gotato_testkit

ROOTS = [str(Path(module.__file__ or "").parents[1]) for module in (gotato_py, gotato_testkit)]
LONGEST_S = 60.0


def output_of(program: str, *arguments: str) -> str:
    """What the program prints. It has to end with status 0, and with nothing on stderr but what it writes there."""
    text = f"import sys; sys.path[:0] = {ROOTS!r}\n{textwrap.dedent(program)}"
    # A fork in a process with threads warns from Python 3.12 on: here it is done on purpose.
    command = [sys.executable, "-W", "error", "-W", "ignore:.*fork:DeprecationWarning", "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
