"""The examples run, offline, and print what their docstrings say."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "examples").glob("*.py"))
PROGRAMS = [path for path in FILES if not path.name.startswith("test_")]
TESTS = [path for path in FILES if path.name.startswith("test_")]
SOURCES = sorted(path.parents[1] for path in ROOT.glob("*/gotato_*/__init__.py"))


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python from a bare clone, without keys, with warnings as errors."""
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    env = plain | {"PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "PYTHONUTF8": "1"}
    command = [sys.executable, "-W", "error", *argv]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60)


def promised(path: Path) -> str:
    """What the docstring says that the program prints: the indented block at its end."""
    told = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return textwrap.dedent(told.partition("Prints:\n\n")[2]) + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_an_example_prints_what_it_promises(path: Path, tmp_path: Path) -> None:
    """Each program ends without an error or a warning, and its output is the block in its docstring."""
    done = run(str(path), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == promised(path)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_an_example_of_tests_passes(path: Path, tmp_path: Path) -> None:
    """A test file among the examples passes under pytest as users run it."""
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_there_are_examples() -> None:
    """The folder was found."""
    assert len(PROGRAMS) >= 4
    assert TESTS
