"""The benchmarks run and say what they should. Nothing here looks at a time: figures belong to a quiet machine."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .effort import by_profile

ROOT = Path(__file__).resolve().parents[1]
COMMAND = ROOT / "benchmarks" / "bench_core.py"
GATEWAY = ROOT / "benchmarks" / "bench_gateway.py"
SESSION = ROOT / "benchmarks" / "bench_session.py"
PEER = ROOT / "benchmarks" / "peers" / "bench_gotato_py.py"
ROWS = {
    "turn", "growth", "transform", "observer", "delta_1000", "delta_10000", "construct", "construct_bare", "threads",
    "idle", "finished", "process", "import", "import_cpu", "first_answer", "first_answer_cpu", "cancel_stall",
    "cancel_backoff", "cancel_connect", "cancel_mute", "cancel_headers", "cancel_body",
}  # fmt: skip
GATEWAY_ROWS = {"line_1k", "line_64k", "lines"} | {
    f"{kind}_{dialect}"
    for kind in ("read", "deltas", "arguments")
    for dialect in ("anthropic", "gemini", "chat", "responses")
}
SESSION_ROWS = {
    "session", "file-commit", "sqlite-commit", "commit-growth", "file-open", "sqlite-open", "file-fork", "file-list",
    "sqlite-list",
}  # fmt: skip
SOME_ROWS = {"turn", "growth", "delta_1000", "construct", "cancel_stall"}
VERDICTS = {"aim", "must", "MISSED"}


def bench(*arguments: str, command: Path = COMMAND) -> subprocess.CompletedProcess[str]:
    """The command, run as people run it."""
    command_line = [sys.executable, str(command), *arguments]
    return subprocess.run(command_line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("command", "rows", "named"),
    [
        (COMMAND, *by_profile(dev=(SOME_ROWS, SOME_ROWS), ci=(ROWS, set[str]()), nightly=(ROWS, set[str]()))),
        (GATEWAY, GATEWAY_ROWS, set()),
        (SESSION, SESSION_ROWS, set()),
    ],
    ids=["core", "gateway", "session"],
)
def test_the_quick_run_has_every_row(command: Path, rows: set[str], named: set[str]) -> None:
    """`--quick --json` measures every row: positive figures, the least and the most around the median, a verdict."""
    done = bench("--quick", "--json", *sorted(named), command=command)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {row["row"] for row in told["rows"]} == rows
    for row in told["rows"]:
        assert row["verdict"] in VERDICTS, row
        assert (row["ratio"] is None) == (row["floor"] is None), row
        for found in filter(None, (row["ours"], row["floor"], row["ratio"])):
            assert found["min"] <= found["median"] <= found["max"], row
        assert row["ours"]["median"] > 0, row
        assert min(row["must"], row["aim"]) > 0, row
        assert all((row["title"], row["unit"])), row


def test_the_table_has_the_rows_asked_for() -> None:
    """A row that is named is printed alone, and the last line says what kind of machine it was, but not which."""
    done = bench("--quick", "construct")
    assert (done.returncode, done.stderr) == (0, "")
    heads, _, row, _, machine = done.stdout.splitlines()
    assert heads.startswith("| row |")
    assert row.startswith("| construct |")
    assert f" {sys.version_info.major}.{sys.version_info.minor}." in machine
    assert str(ROOT) not in done.stdout


def test_an_unknown_row_is_refused() -> None:
    """A name that is no row ends the command with the names there are."""
    done = bench("nonsense")
    assert done.returncode != 0
    assert "no row 'nonsense'" in done.stderr
    assert "construct_bare" in done.stderr


# The peer


class Script:
    """Stands in for the script of the peers' library: `rounds` tool calls, then the final text."""

    def __init__(self, rounds: int, deltas: int = 0) -> None:
        self.rounds, self.taken, self.seen = rounds, 0, 0
        self.deltas = [f"w{number} " for number in range(deltas)]

    def step(self, messages: Any) -> tuple[str, str] | None:
        """The id and the arguments of a tool call, or None for the final text."""
        self.taken += 1
        if self.taken <= self.rounds:
            return f"call_{self.taken}", f'{{"key": "k{self.taken}"}}'
        self.taken, self.seen = 0, len(messages)
        assert not self.rounds or f"k{self.rounds}:" in repr(messages[-1])
        return None


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The peer file, loaded beside a library with the two names that it uses."""
    library: Any = ModuleType("peerlib")
    library.FINAL, library.payload = "All done.", lambda key: f"{key}:".ljust(4096, "x")
    monkeypatch.setitem(sys.modules, "peerlib", library)
    spec = importlib.util.spec_from_file_location("bench_gotato_py", PEER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_peer_runs_the_same_work_again(peer: Any) -> None:
    """A run makes every call and ends with the text; after `reset` the next one sees nothing older."""
    script = Script(3)
    agent = peer.make_agent(peer.make_model(script))
    for _ in range(2):
        peer.reset(agent)
        result = peer.run(agent)
        assert peer.text(result) == "All done."
        assert script.seen == 2 * 3 + 1
        assert len(peer.history(agent, result).messages) == 2 * 3 + 2


def test_the_peer_streams_every_delta(peer: Any) -> None:
    """Each delta reaches the consumer once, in order."""
    script, got = Script(0, deltas=20), list[str]()
    peer.stream(peer.make_agent(peer.make_model(script)), got.append)
    assert got == script.deltas


def test_the_peer_says_what_the_driver_reads(peer: Any) -> None:
    """The names and the requirement that the peers' driver and setup look for are there."""
    assert PEER.read_text("utf-8").startswith("# requires: ")
    assert (peer.NAME, peer.DIST) == ("gotato_py", "gotato-py")
    exec(peer.IMPORT, {})
    assert peer.NOTES
