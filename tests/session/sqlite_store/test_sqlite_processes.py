"""Many processes on one database: one writer a session, nothing lost, nothing fused."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gotato_session.sqlite_store import SQLiteStore

from .journals import entry, head, made, numbers, numbers_in, opened, raw
from .programs import Crew, crew, program

APPENDS = 10_000
"""Of all processes together."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


@pytest.fixture(scope="module", params=[2, 8])
def them(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """Two processes, and eight."""
    with crew(tmp_path_factory.mktemp("crew"), request.param) as made_crew:
        yield made_crew


def test_making_one_database_at_once(path: Path, them: Crew) -> None:
    """Processes that make the same database in the same moment all get it, each with its session and its log."""
    answers = them.do(path, "made(SQLiteStore(path), name).append([entry(1)])")
    assert answers == [[]] * len(answers)
    store = SQLiteStore(path)
    assert sorted(each.id for each in store.summaries()) == [f"s-{n}" for n in range(len(answers))]
    assert all(numbers_in(store, f"s-{n}") == [1] for n in range(len(answers)))
    with raw(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_one_session_has_one_writer(path: Path, them: Crew) -> None:
    """Of processes that open one session at once one gets it, and the others `SessionBusy` with its pid."""
    text = """
    try:
        global kept  # open until the next one
        kept = opened(SQLiteStore(path))
        kept.append([entry(1)])
        tell("mine", os.getpid())
    except SessionBusy as error:
        tell("busy", error.pid)
    """
    store = SQLiteStore(path)
    made(store).close()
    answers = sorted(line for (line,) in them.do(path, text))
    owner = answers[-1].removeprefix("mine ")
    assert answers == [*[f"busy {owner}"] * (len(answers) - 1), f"mine {owner}"]
    assert numbers_in(store) == [1]


def test_ten_thousand_appends_to_one_database(path: Path, them: Crew) -> None:
    """Processes that write to sessions of their own lose no entry and fuse none."""
    count = APPENDS // 2 // len(them.members)
    text = f"""
    journal = made(SQLiteStore(path, sync="never"), name)
    for seq in range(1, {count} + 1):
        journal.append([entry(seq, "event", event=f"{{name}} {{seq}}")])
    journal.close()
    """
    them.do(path, text)
    store = SQLiteStore(path)
    for n in range(len(them.members)):
        expected = [entry(seq, "event", event=f"s-{n} {seq}") for seq in range(1, count + 1)]
        assert opened(store, f"s-{n}", read_only=True).entries() == [head(f"s-{n}"), *expected]


def test_taking_turns_at_one_session(path: Path, them: Crew) -> None:
    """Processes that wrest one session from each other keep exactly what was acknowledged, in one unbroken row."""
    text = """
    store = SQLiteStore(path, sync="never")
    kept = 0
    while kept < 20:
        journal = opened(store, steal=True)
        try:
            while kept < 20:
                journal.append([entry(journal.last_seq + 1, "event", event=f"{name} {kept}")])
                kept += 1
        except LeaseLost:
            pass
    """
    store = SQLiteStore(path, sync="never")
    made(store).close()
    them.do(path, text)
    events = [each["event"] for each in opened(store, read_only=True).entries()[1:]]
    assert sorted(events) == sorted(f"s-{n} {kept}" for n in range(len(them.members)) for kept in range(20))


def test_a_stopped_owner_that_wakes_cannot_write(path: Path) -> None:
    """A process that was stopped, and replaced meanwhile, gets `LeaseLost` when it wakes; its entry is not there."""
    text = """
        journal = made(SQLiteStore(path))
        journal.append([entry(1)])
        tell("ready")
        asked()
        try:
            journal.append([entry(2, "event", event="old")])
        except LeaseLost as error:
            tell("lost to", error.owner)
    """
    with program(path, text) as old:
        old.line()
        os.kill(old.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, old.pid, os.WSTOPPED | os.WNOWAIT)
        new = opened(SQLiteStore(path), owner="new", steal=True)
        new.append([entry(2, "event", event="new")])
        old.go()
        os.kill(old.pid, signal.SIGCONT)
        assert old.rest() == ["lost to new"]
    assert [each.get("event") for each in new.entries()[1:]] == [None, "new"]


def test_killed_at_any_moment(path: Path) -> None:
    """A process killed in the middle of commits leaves what it acknowledged, and at most the one on its way."""
    text = """
    journal = made(SQLiteStore(path, sync="never"), asked().strip())
    seq = 0
    while True:
        seq += 1
        journal.append([entry(2 * seq - 1), entry(2 * seq)])
        tell(seq)
    """
    for turn in range(3):
        with program(path, text) as writer:
            writer.go(f"s-{turn}")
            told = [writer.line() for _ in range(20 + turn)]
            writer.process.kill()
            assert writer.process.stdout is not None
            told += [line for line in writer.process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        journal = opened(SQLiteStore(path), f"s-{turn}")
        kept = numbers(journal)
        assert kept == list(range(1, len(kept) + 1))
        assert len(kept) in (2 * int(told[-1]), 2 * int(told[-1]) + 2)
        journal.append([entry(len(kept) + 1)])
