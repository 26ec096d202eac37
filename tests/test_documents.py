"""The documents run: Python blocks, the commands shown with their output, and the doctests of every module.

In Markdown, `<!-- not run: reason -->` on the line before a block excuses it (it must compile all the same), and
`<!-- output checked -->` before a console block says that what it shows is what the command prints.
"""

import doctest
import importlib
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = tuple(sorted(path.parents[1] for path in ROOT.glob("*/gotato_*/__init__.py")))
NAMED = ("README.md", "DESIGN.md", "PHILOSOPHY.md")
OTHERS = sorted([*ROOT.glob("[!.]*/README.md"), *ROOT.glob("docs/**/*.md")])
DOCUMENTS = (*(ROOT / name for name in NAMED), *OTHERS)

BLOCK = re.compile(
    r"^(?:[ ]*<!--[ ]*(?P<note>.*?)[ ]*-->\n+)?(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n"
    r"(?P<body>.*?)^[ ]*(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)

OFFLINE = """
import sys
def deny(event, args, local=("127.0.0.1", "::1", "localhost", "", None)):
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in local:
        raise RuntimeError(f"a document may not connect to {args[1]}")
    if event == "socket.getaddrinfo" and args[0] not in local:
        raise RuntimeError(f"a document may not look up {args[0]}")
sys.addaudithook(deny)
"""

RUN_BLOCKS = """
import json, linecache, sys, traceback, types
name, lines, blocks = json.load(sys.stdin)
linecache.cache[name] = (0, None, lines, name)
main = sys.modules["__main__"] = types.ModuleType("__main__")
try:
    for start, body in blocks:
        exec(compile("\\n" * start + body, name, "exec"), main.__dict__)
except Exception:
    traceback.print_exc()  # unlike the interpreter's own, it shows the document's lines
    sys.exit(1)
"""


@dataclass(frozen=True)
class Block:
    """One fenced block of a document; `line` counts the lines before its first."""

    document: str
    line: int
    language: str
    body: str
    note: str

    @property
    def excused(self) -> bool:
        """Whether the document says that the block is not run, and why."""
        return re.fullmatch(r"not run: \S.*", self.note) is not None


def blocks_of(text: str, document: str) -> list[Block]:
    """Every fenced block of a document, in order."""
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        body = textwrap.dedent(match["body"])
        found.append(Block(document, line, match["language"], body, match["note"] or ""))
    return found


def read(path: Path) -> list[Block]:
    """The blocks of one document of the project; none if it does not exist."""
    return blocks_of(path.read_text("utf-8"), path.relative_to(ROOT).as_posix()) if path.exists() else []


def commands_of(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown under it."""
    joined = body.replace("\\\n", " ")
    parts = re.split(r"^\$ (.*)\n?", joined, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


CONSOLE = [
    block
    for path in DOCUMENTS
    for block in read(path)
    if block.language == "console" and not block.excused and "$ gotato" in block.body
]


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a document: our packages can be imported, no key is known, the network is refused."""
    hook = tmp_path_factory.mktemp("offline")
    (hook / "sitecustomize.py").write_text(OFFLINE, "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    plain = {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "PYTHON_COLORS": "0", "COLUMNS": "80"}
    return kept | plain | {"PYTHONPATH": os.pathsep.join(map(str, (hook, *SOURCES)))}


def run_blocks(blocks: list[Block], text: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the blocks one after another in one new process, as one program."""
    name = blocks[0].document
    given = json.dumps([name, text.splitlines(keepends=True), [(block.line, block.body) for block in blocks]])
    command = [sys.executable, "-W", "error", "-c", RUN_BLOCKS]
    return subprocess.run(
        command, input=given, cwd=cwd, env=env, check=False, timeout=60, capture_output=True, text=True
    )


def run_gotato(command: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one `gotato …` line as `python -m gotato_cli …`, with both streams in one, as a terminal shows them."""
    operators = [word for word in shlex.shlex(command, punctuation_chars=True) if set(word) <= set("();<>|&")]
    assert not operators, f"{command!r} needs a shell ({operators}): show a plain command"
    argv = [sys.executable, "-m", "gotato_cli", *shlex.split(command)[1:]]
    nothing, one, same = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(
        argv, cwd=cwd, env=env, stdin=nothing, stdout=one, stderr=same, text=True, check=False, timeout=60
    )


def check_console(block: Block, cwd: Path, env: dict[str, str]) -> None:
    """Run a block's gotato commands; `$ echo $?` shows the exit code of the one before, 0 where it is not shown."""
    commands = commands_of(block.body)
    following = [command for command, _ in commands[1:]] + [""]
    status = 0
    for (command, shown), after in zip(commands, following, strict=True):
        if command.split() == ["echo", "$?"]:
            assert shown.strip() == str(status), f"{block.document}: the exit code of the command before was {status}"
        elif command.split()[:1] == ["gotato"]:
            done = run_gotato(command, cwd, env)
            status = done.returncode
            assert status == 0 or after.split() == ["echo", "$?"], f"{command}\n{done.stdout}"
            if block.note == "output checked":
                assert doctest.OutputChecker().check_output(shown, done.stdout, doctest.ELLIPSIS), (
                    f"{block.document}:{block.line} $ {command}\n--- shown\n{shown}--- printed\n{done.stdout}"
                )


def modules() -> list[str]:
    """Every module of every package but `__main__`, which is a program."""
    walk = pkgutil.walk_packages(map(str, SOURCES))
    return [each.name for each in walk if each.name.startswith("gotato_") and not each.name.endswith("__main__")]


# The project


@pytest.mark.parametrize("name", NAMED)
def test_the_document_exists(name: str) -> None:
    """The project has a README, a DESIGN and a PHILOSOPHY."""
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_python_blocks_run(path: Path, tmp_path: Path, offline: dict[str, str]) -> None:
    """The Python blocks of a document run in order as one program, without a network; excused ones compile."""
    blocks = [block for block in read(path) if block.language == "python"]
    for block in blocks:
        compile("\n" * block.line + block.body, block.document, "exec", dont_inherit=True)
    if runnable := [block for block in blocks if not block.excused]:
        done = run_blocks(runnable, path.read_text("utf-8"), tmp_path, offline)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_excuse_has_its_reason(path: Path) -> None:
    """A block that is not run says why."""
    bare = [block for block in read(path) if block.note.startswith("not run") and not block.excused]
    assert bare == []


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: f"{block.document}:{block.line}")
def test_the_commands_run(block: Block, tmp_path: Path, offline: dict[str, str]) -> None:
    """A `$ gotato …` line in a document works, and prints what is shown where the document says so."""
    check_console(block, tmp_path, offline)


@pytest.mark.parametrize("name", modules())
def test_the_doctests_pass(name: str) -> None:
    """The examples in a module's docstrings give what they show."""
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


# The rules themselves


def test_blocks_are_found_with_their_notes() -> None:
    """A block is known by its language, its line and the comment right before it, indented or not."""
    text = "# T\n\n```python\na = 1\n```\n\n<!-- not run: a key -->\n```python\nb = 2\n```\n\n"
    text += "- x\n\n  ````md\n  ```python\n  ````\n"
    found = [(block.language, block.line, block.body, block.excused) for block in blocks_of(text, "T.md")]
    assert found == [("python", 3, "a = 1\n", False), ("python", 8, "b = 2\n", True), ("md", 14, "```python\n", False)]


def test_an_excuse_without_a_reason_excuses_nothing() -> None:
    """`<!-- not run -->` alone leaves the block to be run."""
    (block,) = blocks_of("<!-- not run -->\n```python\n1\n```\n", "T.md")
    assert not block.excused


def test_blocks_share_one_namespace(tmp_path: Path, offline: dict[str, str]) -> None:
    """A later block sees the names of an earlier one, and classes that it makes find their module."""
    text = "```python\nimport dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int'\n```\n"
    text += "```python\nassert A(1).x == 1\n```\n"
    done = run_blocks(blocks_of(text, "T.md"), text, tmp_path, offline)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failing_block_names_its_line(tmp_path: Path, offline: dict[str, str]) -> None:
    """The traceback of a failing block points into the document and shows the line."""
    text = "# T\n\n```python\nx = 1\nassert x == 2\n```\n"
    done = run_blocks(blocks_of(text, "T.md"), text, tmp_path, offline)
    assert done.returncode != 0
    assert 'File "T.md", line 5' in done.stderr
    assert "assert x == 2" in done.stderr


def test_a_document_has_no_network(tmp_path: Path, offline: dict[str, str]) -> None:
    """A block that looks up or connects to another host fails."""
    for call in ("getaddrinfo('example.org', 80)", "create_connection(('192.0.2.1', 80), 1)"):
        text = f"```python\nimport socket\nsocket.{call}\n```\n"
        done = run_blocks(blocks_of(text, "T.md"), text, tmp_path, offline)
        assert "a document may not" in done.stderr


def test_commands_are_found_with_their_output() -> None:
    """A console block is commands after `$ `, each with the lines under it; a backslash joins lines."""
    body = "$ gotato run \\\n  hi\nhello\nthere\n$ echo $?\n0\n"
    assert commands_of(body) == [("gotato run    hi", "hello\nthere\n"), ("echo $?", "0\n")]


@pytest.mark.parametrize(
    "body", ["$ gotato --no-such-option\n", "$ gotato run hi | cat\n", "$ gotato --no-such-option\n$ echo $?\n0\n"]
)
def test_a_command_that_does_not_work_is_seen(body: str, tmp_path: Path, offline: dict[str, str]) -> None:
    """A command that fails, needs a shell or shows the wrong exit code is reported."""
    with pytest.raises(AssertionError):
        check_console(Block("T.md", 1, "console", body, ""), tmp_path, offline)


def test_wrong_output_is_seen(tmp_path: Path, offline: dict[str, str]) -> None:
    """What a checked block shows must be what the command prints, where `...` stands for anything."""
    good = Block("T.md", 1, "console", "$ gotato --help\nusage: gotato...\n", "output checked")
    check_console(good, tmp_path, offline)
    bad = Block("T.md", 1, "console", "$ gotato --help\nusage: potato...\n", "output checked")
    with pytest.raises(AssertionError, match="potato"):
        check_console(bad, tmp_path, offline)
