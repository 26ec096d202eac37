"""`python -m tests.mutation [MODULE…]` puts small faults into the kernel, one at a time, for the tests to find.

The tests are collected once. Each mutant is tried in a forked process, in memory: the code of the faulty functions
takes the place of the real one, and those tests run that go through its lines, until one fails. One that takes too long
has failed. A mutant that lives is told, unless `mutants_that_live.md` names it; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from re import findall
from types import FrameType
from typing import Any

import pytest

from .mutants import Mutant, mutants_of, put_in_place

TESTS = Path(__file__).parent
KERNEL = TESTS.parent / "gotato_py" / "gotato_py"
EXPLAINED = TESTS / "mutants_that_live.md"
LOOP = (
    "_loop",
    "_turn",
    "_ask",
    "_overflow",
    "_requests",
    "_control",
    "_inbox",
    "_closing",
    "_entry",
    "_slot",
    "_hold",
    "_audience",
    "_view",
)
BATCH = ("_batch", "_calls", "_crew", "_perform", "_progress", "_bounds", "_gates", "_hooks", "_waiting")
OUTPUT = ("_final", "_structured")
SLOW = ("soak", "machine", "anywhere", "two_processes", "abandoned_many", "output_plan", "schema")
"""Files of tests that take seconds, by a part of their names: they find nothing here that the quick ones do not."""
_WRITTEN = "test_killed_mutants"
_PATIENCE_S = 10.0
_LONGEST_S = 1.0  # tests that take longer are left out: others of the same lines are quicker
_KILLED, _LIVED = 1, 0


class _Lines:
    """Which tests run which lines. Some tests trace by themselves, so the tracer is set for each anew."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._seen = {str(KERNEL / f"{name}.py"): defaultdict[int, set[str]](set) for name in modules}
        self._test = ""

    @contextmanager
    def of(self, test: str) -> Generator[None, None, None]:
        """Traces one test."""
        self._test = test
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)

    def found(self) -> list[tuple[str, int, list[str]]]:
        """Each module and line, and the tests that run it."""
        return [
            (Path(file).stem, line, sorted(tests)) for file, seen in self._seen.items() for line, tests in seen.items()
        ]

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:  # Any: as sys.settrace takes it
        seen = self._seen.get(frame.f_code.co_filename)
        if seen is None:
            return None
        seen[frame.f_lineno].add(self._test)
        return self._trace


class Mutation:
    """The plugin that runs the mutants in place of the tests."""

    def __init__(self, modules: list[str], seconds: float, jobs: int) -> None:
        self._seconds = seconds
        self._jobs = jobs
        self._trees = {name: ast.parse((KERNEL / f"{name}.py").read_text("utf-8")) for name in modules}
        self._in_child = False
        self._broken: list[str] = []
        self._unfit: set[str] = set()
        self._sound: set[str] = set()
        self._times: dict[str, float] = {}
        self._covering: dict[str, dict[int, list[str]]] = {name: {} for name in modules}
        self._killers: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=40))
        self._report = Path(tempfile.mkdtemp())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Ends the process of a mutant at the first test that fails, before anybody words the failure."""
        if self._in_child and call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            (self._report / str(os.getpid())).write_text(item.nodeid)
            os._exit(_KILLED)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps how long each test takes, and which fail without a fault of ours."""
        if report.failed:
            self._broken.append(report.nodeid)
        self._times[report.nodeid] = self._times.get(report.nodeid, 0.0) + report.duration

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learns which tests run which lines, then tries every mutant."""
        items = {item.nodeid: item for item in session.items}
        began = time.monotonic()
        self._learn(items)
        gc.freeze()  # no fork copies what the collector would only look at
        _say(f"{len(items)} tests in {time.monotonic() - began:.0f} s; these fail without a fault: {self._broken}")
        known = set(findall(r"`([^`]+)`", EXPLAINED.read_text("utf-8"))) if EXPLAINED.exists() else set[str]()
        mutants = [each for name, tree in self._trees.items() for each in mutants_of(name, tree)]
        counts: Counter[str] = Counter()
        for mutant, outcome in self._try_all(mutants, items):
            counts[outcome] += 1
            if outcome != "killed":
                explained = mutant.name in known
                counts["explained"] += explained
                if not explained:
                    _say(f"{outcome}: {mutant.name}   (line {min(mutant.lines)})")
        session.testsfailed = counts["lived"] + counts["uncovered"] - counts["explained"]
        _say(f"{len(mutants)} mutants: {dict(counts)}, {time.monotonic() - began:.0f} s")
        return True

    def _learn(self, items: dict[str, pytest.Item]) -> None:
        """Runs all tests once, in a process of their own, each under a tracer."""
        told = self._report / "lines"
        pid = os.fork()
        if not pid:
            _be_quiet()
            lines = _Lines(self._trees)
            for item in items.values():
                with lines.of(item.nodeid):
                    if not _is_run(item, None):
                        self._broken.append(item.nodeid)
            told.write_text(json.dumps([lines.found(), self._times, self._broken]))
            os._exit(0)
        os.waitpid(pid, 0)
        found, self._times, self._broken = json.loads(told.read_text())
        for name, line, tests in found:
            self._covering[name][line] = tests
        self._unfit = {*self._broken, *(test for test, taken in self._times.items() if taken > _LONGEST_S)}

    def _try_all(self, mutants: list[Mutant], items: dict[str, pytest.Item]) -> Iterator[tuple[Mutant, str]]:
        todo = deque(mutants)
        running: dict[int, tuple[Mutant, float]] = {}
        while todo or running:
            while todo and len(running) < self._jobs:
                mutant = todo.popleft()
                tests = self._choose(mutant)
                if not tests:
                    yield mutant, "uncovered"
                    continue
                patience = _PATIENCE_S + 5 * sum(self._times[each] for each in tests)
                running[self._start(mutant, [items[each] for each in tests])] = mutant, time.monotonic() + patience
            for pid, (mutant, until) in list(running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if not ended and time.monotonic() < until:
                    continue
                if not ended:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                del running[pid]
                killed = not ended or os.waitstatus_to_exitcode(status) != _LIVED
                if self._is_sound(pid, mutant, items):
                    yield mutant, "killed" if killed else "lived"
                else:
                    todo.append(mutant)
            time.sleep(0.002)

    def _is_sound(self, pid: int, mutant: Mutant, items: dict[str, pytest.Item]) -> bool:
        """Whether the test that failed in that process, if one did, does not fail without a fault as well."""
        killer = self._report / str(pid)
        if not killer.exists():
            return True
        test = killer.read_text()
        if test not in self._sound:
            _, status = os.waitpid(self._start(None, [items[test]]), 0)
            (self._sound if os.waitstatus_to_exitcode(status) == _LIVED else self._unfit).add(test)
        self._killers[_function(mutant)].appendleft(test)
        return test in self._sound

    def _choose(self, mutant: Mutant) -> list[str]:
        """The tests that run the mutant's lines, as many as the time allows: first those that found one close by and
        those that were written to, then by turns those that go where few do in the same function, and the quickest of
        each file."""
        covering = self._covering[mutant.module]
        lines = set(covering) if mutant.kind == "constant" else mutant.lines
        if not any(covering.get(line) for line in lines):  # perhaps in a process of the test's own
            lines = mutant.around
        found = {test for line in lines for test in covering.get(line, ())} - self._unfit
        quick = sorted(found, key=lambda each: (self._times[each], each))
        files: defaultdict[str, list[str]] = defaultdict(list)
        for test in quick:
            files[test.partition("::")[0]].append(test)
        rarity: Counter[str] = Counter()
        for line in mutant.around & covering.keys():
            rarity.update(dict.fromkeys(covering[line], 1000 // len(covering[line])))
        rare = sorted(quick, key=lambda each: -rarity[each])
        mixed = [test for row in zip_longest(*files.values()) for test in row if test is not None]
        near = [test for test in self._killers[_function(mutant)] if test in found]
        written = [test for test in quick if _WRITTEN in test]
        by_turns = [test for pair in zip(rare, mixed, strict=True) for test in pair]
        return list(_within(self._seconds, dict.fromkeys([*near, *written, *by_turns]), self._times))

    def _start(self, mutant: Mutant | None, items: list[pytest.Item]) -> int:
        pid = os.fork()
        if pid:
            return pid
        os.setpgid(0, 0)
        _be_quiet()
        self._in_child = True
        if mutant is not None:
            module = importlib.import_module(f"gotato_py.{mutant.module}")
            mutant.apply()
            try:
                code = compile(self._trees[mutant.module], str(KERNEL / f"{mutant.module}.py"), "exec")
                put_in_place(module, code, mutant.kind)
            except Exception:  # it cannot even be loaded
                os._exit(_KILLED)
        for item, after in zip(items, [*items[1:], None], strict=True):
            if not _is_run(item, after):
                os._exit(_KILLED)
        os._exit(_LIVED)


def _is_run(item: pytest.Item, after: pytest.Item | None) -> bool:
    """Runs a test. Returns whether pytest has come through it: an interrupt goes past it."""
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    except BaseException:
        return False
    return True


def _function(mutant: Mutant) -> str:
    return mutant.name.partition(":")[0]


def _within(seconds: float, tests: Iterable[str], times: dict[str, float]) -> Iterator[str]:
    for test in tests:
        if seconds > 0:
            yield test
        seconds -= times[test]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _be_quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def main() -> int:
    """Tries the mutants of the named modules, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", default=[*LOOP, *BATCH, *OUTPUT])
    parser.add_argument("--seconds", type=float, default=8.0, help="of tests, as they take without a fault, a mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    found = sorted((TESTS / "kernel").glob("test_*.py"))
    files = [str(file) for file in found if not any(part in file.name for part in SLOW)]
    options = ["-q", "-s", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--timeout={_PATIENCE_S:g}", *files]
    return int(pytest.main(options, plugins=[Mutation(given.modules, given.seconds, given.jobs)]))


if __name__ == "__main__":
    raise SystemExit(main())
