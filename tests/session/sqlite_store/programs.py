"""Other processes for tests: programs that are told what to do, and answer, line by line."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import gotato_py
import gotato_session

ROOTS = [str(Path(module.__file__ or "").parents[1]) for module in (gotato_py, gotato_session)]
HERE = str(Path(__file__).parents[3])
LONGEST_S = 60.0

# A fork in a process with threads warns from Python 3.12 on: here it is done on purpose.
STRICT = ("-W", "error", "-W", "ignore:.*fork:DeprecationWarning")
HEAD = f"""
import os, sys
sys.path[:0] = {[*ROOTS, HERE]!r}
import signal; signal.alarm({LONGEST_S:.0f})
from gotato_py import *
from gotato_session.sqlite_store import SQLiteStore
from tests.session.sqlite_store.journals import *
path = sys.argv[1]

def tell(*words):
    print(*words, flush=True)

def asked():
    return sys.stdin.readline()

"""


class Program:
    """A Python program in a process of its own; `path` is the database, which it knows under that name."""

    def __init__(self, path: Path, *texts: str) -> None:
        text = HEAD + "\n".join(textwrap.dedent(each) for each in texts)
        command = [sys.executable, *STRICT, "-c", text, str(path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def line(self) -> str:
        """The next line that it tells."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return line.rstrip("\n")

    def go(self, word: str = "go") -> None:
        """Answers what it waits for."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def rest(self) -> list[str]:
        """What it still tells, up to its end, which has to be a good one."""
        out, err = self.process.communicate(timeout=LONGEST_S)
        assert (self.process.returncode, err) == (0, ""), err
        return out.splitlines()


@contextmanager
def program(path: Path, *texts: str) -> Generator[Program, None, None]:
    """A program of these pieces, which is gone at the end."""
    made = Program(path, *texts)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def output_of(path: Path, *texts: str) -> list[str]:
    """What a program tells."""
    with program(path, *texts) as made:
        return made.rest()


class Crew:
    """Processes that are started once and then do the same at the same time, as often as they are asked."""

    def __init__(self, members: list[Program]) -> None:
        self.members = members

    def do(self, path: Path, text: str) -> list[list[str]]:
        """What each tells of a text that all of them begin at once; `name` is a different one for each."""
        for number, each in enumerate(self.members):
            each.go(json.dumps([str(path), f"s-{number}", textwrap.dedent(text)]))
        assert {each.line() for each in self.members} == {"ready"}
        for each in self.members:
            each.go()
        return [list(iter(each.line, "done")) for each in self.members]


@contextmanager
def crew(path: Path, count: int) -> Generator[Crew, None, None]:
    """So many processes, which end without a word when nothing more is asked of them."""
    text = """
    import json
    while line := asked():
        signal.alarm(60)  # for each time anew: they live as long as many tests take
        path, name, text = json.loads(line)
        names = {**globals(), "path": path, "name": name}
        tell("ready")
        asked()
        exec(text, names)
        tell("done")
    """
    with ExitStack() as stack:
        members = [stack.enter_context(program(path, text)) for _ in range(count)]
        yield Crew(members)
        assert [each.rest() for each in members] == [[]] * count
