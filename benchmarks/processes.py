"""The rows that need processes of their own: memory, import, the first answer."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Effort, Goal, Measured, Row, paired

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CHILD = str(HERE / "child.py")


def child_environment(cache: str) -> dict[str, str]:
    """The environment of the children: this checkout's kernel, and bytecode kept, as after an installation.

    The bytecode goes to a folder that is thrown away, so that measuring leaves nothing behind.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "gotato_py")])
    return {**kept, "PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": cache, "PYTHONHASHSEED": "0"}


def printed(task: str, side: str) -> Callable[[dict[str, str]], float]:
    """The number that a child prints."""

    def figure(environment: dict[str, str]) -> float:
        command = [sys.executable, CHILD, task, side]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return float(done.stdout)

    return figure


def _wall_s() -> float:
    return time.perf_counter()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lasting(clock: Callable[[], float], arguments: Sequence[str]) -> Callable[[dict[str, str]], float]:
    """The milliseconds that a child takes from its start to its end."""

    def figure(environment: dict[str, str]) -> float:
        began = clock()
        subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
        return (clock() - began) * 1e3

    return figure


def children(floor: Callable[[dict[str, str]], float], ours: Callable[[dict[str, str]], float], times: int) -> Measured:
    """Measures two kinds of children by turns, after one of each that fills the caches."""
    with TemporaryDirectory() as cache:
        environment = child_environment(cache)
        return paired(lambda: floor(environment), lambda: ours(environment), times)


def in_child(task: str) -> Callable[[Effort], Measured]:
    """A task whose child prints the figure: the same each time, or nearly."""
    return lambda effort: children(printed(task, "floor"), printed(task, "ours"), effort.times(3, 1))


def first_answer(clock: Callable[[], float]) -> Callable[[Effort], Measured]:
    """From the start of a process to its end, with the first answer of a run of one tool call in between."""
    floor, ours = (lasting(clock, [CHILD, "first_answer", side]) for side in ("floor", "ours"))
    return lambda effort: children(floor, ours, effort.times(15))


def importing(clock: Callable[[], float]) -> Callable[[Effort], Measured]:
    """What `import gotato_py` adds to a bare interpreter's start and end, as differences of pairs, beside the
    floor's first answer."""
    bare, imported = lasting(clock, ["-c", "pass"]), lasting(clock, ["-c", "import gotato_py"])
    floor = lasting(clock, [CHILD, "first_answer", "floor"])

    def measure(effort: Effort) -> Measured:
        with TemporaryDirectory() as cache:
            environment = child_environment(cache)
            return paired(
                lambda: floor(environment), lambda: imported(environment) - bare(environment), effort.times(25)
            )

    return measure


# 50 and 25 ms, 100 and 65 ms, on a machine where the floor's first answer takes 31: the ratios are what holds on other
# machines, and in this one's slower moments.
_IMPORT, _FIRST = Goal(50 / 31, 25 / 31, "ratio"), Goal(100 / 31, 65 / 31, "ratio")
ROWS = (
    Row("idle", "heap per idle agent", "KB", Goal(4, 1.5), in_child("idle")),
    Row("finished", "heap per agent after 25 rounds of 4 KB", "KB", Goal(160, 130), in_child("finished")),
    Row("process", "whole process with 100 such agents", "MB", Goal(41, 33), in_child("process")),
    Row("import", "import gotato_py over a bare interpreter", "ms", _IMPORT, importing(_wall_s)),
    Row("import_cpu", "the same in CPU time", "ms", _IMPORT, importing(_cpu_s)),
    Row("first_answer", "start of the process to the first answer", "ms", _FIRST, first_answer(_wall_s)),
    Row("first_answer_cpu", "the same in CPU time", "ms", _FIRST, first_answer(_cpu_s)),
)
