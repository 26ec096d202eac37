"""What is measured in a process of its own: `python child.py TASK SIDE` does it and prints one number."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks.floor import FloorAgent, FloorModel
from benchmarks.work import FINAL, ROUNDS, Script, lookup

AGENTS = 100
IDLE = 1000


def _finished_floor(rounds: int) -> object:
    agent = FloorAgent(FloorModel(Script(rounds)), [lookup])
    if agent.run("go") != FINAL:
        raise AssertionError
    return agent


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _traced_kb(make: Callable[[], object], many: int) -> float:
    """The heap that each of many such objects holds, as Python's allocator sees it."""
    kept = [make() for _ in range(3)]  # what is made once, at first use, belongs to none of them
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept += [make() for _ in range(many)]
    gc.collect()
    return (tracemalloc.get_traced_memory()[0] - before) / 1024 / many


def measure(task: str, idle: Callable[[], object], finished: Callable[[int], object]) -> float:
    """Does one task with what this side makes."""
    if task == "first_answer":
        finished(1)
        return 0.0
    if task == "idle":
        return _traced_kb(idle, IDLE)
    if task == "finished":
        return _traced_kb(lambda: finished(ROUNDS), AGENTS)
    kept = [finished(ROUNDS) for _ in range(AGENTS)]
    gc.collect()
    return _resident_mb() if kept else 0.0


def _floor(task: str) -> float:
    model = FloorModel(Script(1))
    return measure(task, lambda: FloorAgent(model, [lookup]), _finished_floor)


if __name__ == "__main__":
    if sys.argv[2] == "floor":
        print(_floor(sys.argv[1]))
    else:
        print(import_module("benchmarks.child_ours").ours(sys.argv[1]))  # the floor's process must not hold it
