"""Faults that were found once, each with the smallest case that showed it."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gotato_py import (
    Approve,
    Deny,
    InvalidState,
    SessionCorrupt,
    StoreFailure,
    ToolMessage,
    ToolResult,
    WaitingCall,
)
from gotato_session import FileStore, MemoryStore, Session, SessionSummary, SQLiteStore
from gotato_session._collector import collector_at_rest

from .damages import damage
from .failing_store import FailingStore
from .histories import answer, run_record, summary, user
from .stores import STORES

ROOT = Path(__file__).resolve().parents[2]
Entries = list[dict[str, Any]]


def test_a_torn_tail_is_told_without_being_touched(tmp_path: Path) -> None:
    """A read-only look and its `check` say what a writer would move; nothing is written."""
    store = FileStore(tmp_path)
    with store.create("s") as session:
        session.append(user("u1"))
    file = tmp_path / "s.jsonl"
    with file.open("ab") as tail:
        tail.write(b'{"seq":4,')
    before = file.read_bytes()
    with store.open("s", read_only=True) as session:
        [told] = session.recovered
        assert told.startswith("9 bytes of an unfinished commit")
        assert [(problem.rule, problem.text) for problem in session.check()] == [(0, told)]
    assert file.read_bytes() == before
    with store.open("s") as session:
        assert "were moved to" in session.recovered[0]
        assert session.check() == []


def test_a_completion_that_is_held_back_is_in_the_fork_too() -> None:
    """During a run a call is completed and the session forked: the fork tells what came of the call."""
    session = Session()
    session.append(user("u1"))
    session.append(answer("a1", calls=1))
    session.append(ToolMessage(ToolResult("same", "pending", "later", key="a1:0"), id="t1"))
    session.begin_run("r1")
    told = session.complete_call("a1:0", "done")
    fork = session.fork()
    assert fork.history[-1].id == told.id
    assert session.history[-1].id == "t1"


def with_entry(number: int, change: Callable[[dict[str, Any]], None]) -> Callable[[Entries], Entries]:
    """Damage to one entry, of a copy."""

    def damage(entries: Entries) -> Entries:
        copied: Entries = json.loads(json.dumps(entries))
        change(copied[number])
        return copied

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        with_entry(3, lambda entry: entry["compaction"]["summary"].update(id="u1")),
        with_entry(4, lambda entry: entry["message"].update(id="u1")),
        with_entry(1, lambda entry: entry.update(time=10**400)),
        with_entry(1, lambda entry: entry.update(time=float("nan"))),
        with_entry(1, lambda entry: entry.update(time=-1)),
    ],
)
def test_an_entry_that_cannot_be_is_refused(damage: Callable[[Entries], Entries]) -> None:
    """An id that comes twice, of a summary or of a completion, and a time that no clock shows."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1"))
        session.replace(summary("a1", "s1"))
    kept = store._sessions["s"]
    told = {"role": "user", "id": "x1", "parts": [{"kind": "text", "text": "done"}]}
    settlement = {"seq": 4, "v": 1, "type": "settlement", "time": 0.0, "key": "k", "message": told}
    kept.commits.append((settlement,))
    store.open("s").close()
    store.damage = damage
    with pytest.raises(SessionCorrupt):
        store.open("s")


def test_the_collector_is_as_it_was() -> None:
    """It rests while a session is read, and stays off for those who had turned it off."""
    with collector_at_rest():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_read_is_not_gone_through_and_nothing_is_thawed(frozen: bool) -> None:
    """Behind a long reading no collection goes over it; where the application has frozen its objects, they stay so."""
    gc.unfreeze()  # what the tests before this one left
    gc.collect()  # or one might be due just now
    if frozen:
        gc.freeze()
    before, began = gc.get_freeze_count(), [each["collections"] for each in gc.get_stats()]
    with collector_at_rest():
        kept = [[number] for number in range(60_000)]
    kept += [[number] for number in range(100)]  # one of these would set it going
    collected = [each["collections"] for each in gc.get_stats()]
    assert gc.isenabled()
    assert gc.get_freeze_count() == before
    assert (before > 0) is frozen
    assert frozen or collected == began
    assert len(kept) == 60_100


def test_the_testkit_loads_no_store_before_one_is_asked_for() -> None:
    """`gotato run` takes its demo model from the testkit, and pays for no database."""
    code = "import gotato_testkit, sys; print('sqlite3' in sys.modules, gotato_testkit.FaultyStore.__name__)"
    paths = ":".join(str(ROOT / each) for each in ("gotato_py", "session", "testkit"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": paths}
    )
    assert done.stdout == "False FaultyStore\n"
    with pytest.raises(AttributeError, match="nothing"):
        __import__("gotato_testkit").nothing  # noqa: B018  # asking is the test


def test_what_a_run_cost_is_not_lost_where_its_end_could_not_be_stored() -> None:
    """The record is stored before the next commit, or by `flush`, and once."""
    store = FailingStore()
    session = store.create("s")
    session.begin_run("r1")
    store.fail = OSError(28, "No space left on device")
    with pytest.raises(StoreFailure):
        session.end_run(run_record("r1", 7))
    assert session.usage.input_tokens == 0
    store.fail = None
    session.flush()
    session.end_run(run_record("r1", 7))
    assert session.usage.input_tokens == 7
    session.close()
    assert session.lease is None
    with store.open("s", read_only=True) as again:
        assert [record.run_id for record in again.runs] == ["r1"]


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_fork_needs_of_its_parent_only_what_it_shares(kind: str, tmp_path: Path) -> None:
    """Damage of the parent behind the fork does not keep the fork from being opened; before it, it does."""
    make = STORES[kind](tmp_path)
    with make().create("p") as parent:
        for number in range(6):
            parent.append(user(f"m{number}"))
        parent.fork("m1", id="c").close()
        for number in range(6, 9):
            parent.append(user(f"m{number}"))
    damage(tmp_path, kind, "m7")
    with pytest.raises(SessionCorrupt):
        make().open("p")
    with make().open("c") as fork:
        assert [message.id for message in fork.messages] == ["m0", "m1"]
    damage(tmp_path, kind, "m3")
    with pytest.raises(SessionCorrupt, match="begins with entry 6 of p, which cannot be read as far as that"):
        make().open("c")


def test_sqlite_asks_for_forks_alone_before_it_deletes(tmp_path: Path) -> None:
    """Deleting does not read the list of all sessions."""

    class Counting(SQLiteStore):
        """Its list is not to be asked for."""

        def summaries(self) -> Iterator[SessionSummary]:
            raise AssertionError("all sessions were listed")

    with Counting(tmp_path / "s.db") as store:
        with store.create("s") as session:
            session.fork(id="f").close()
        with pytest.raises(InvalidState, match="has forks, which need it: f"):
            store.delete("s")
        store.delete("f")
        store.delete("s")


def test_nothing_is_wrong_with_a_torn_batch_that_waits_still() -> None:
    """A process killed between the results of an answered batch leaves a call open before the one that waits: nothing
    would be mended, so `check` tells nothing, and opening changes nothing."""
    store = MemoryStore()
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1", calls=3))
        session.mark_waiting([WaitingCall("a1:0", decision=Deny("no")), WaitingCall("a1:2", decision=Approve())])
        session.append(ToolMessage(ToolResult("same", "blocked", error="no", key="a1:0"), id="t1"))
        assert session.check() == []
    with store.open("s") as again:
        assert len(again.history) == 3
        assert again.check() == []
