"""Several processes on one session: one writes, the others are told; killed and stopped ones keep nobody out."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_py import InvalidState, LeaseLost, SessionBusy
from gotato_session.file_store import FileStore
from gotato_session.journal import Journal

from .children import ended, forked
from .journals import HEAD, ID, Faults, filled, message, numbers, numbers_in, opened, store_on

AT_ONCE_S = 10.0
"""A refusal has to come sooner, however busy the machine is."""


def in_turn(folder: Path, name: str, commits: int, each: int) -> None:
    """Opens the session again and again, whenever it is free, and commits so many entries each time."""
    store = FileStore(folder, sync="never")
    while commits:
        began = time.monotonic()
        try:
            journal = opened(store, owner=name)
        except SessionBusy:
            assert time.monotonic() - began < AT_ONCE_S
            os.sched_yield()
            continue
        for _ in range(min(each, commits)):
            journal.append([message(journal.last_seq + 1, name)])  # type: ignore[attr-defined]
            commits -= 1
        journal.close()


@pytest.mark.parametrize(("processes", "commits", "each"), [(2, 1000, 20), (8, 10_000, 625)])
def test_c51_many_processes_on_one_session(tmp_path: Path, processes: int, commits: int, each: int) -> None:
    """In thousands of commits of several processes none is lost, doubled or fused with another."""
    store, path = filled(tmp_path, 0)
    share = commits // processes
    children = [forked(lambda name=f"p{n}": in_turn(tmp_path, name, share, each)) for n in range(processes)]  # type: ignore[misc]
    assert [ended(child) for child in children] == [0] * processes
    found = opened(store, read_only=True).entries()[1:]
    assert [entry["seq"] for entry in found] == list(range(1, commits + 1))
    assert Counter(entry["message"]["text"].split("\n")[0] for entry in found) == {
        f"p{n}": share for n in range(processes)
    }
    assert path.read_bytes().count(b"\n") == commits + 1
    assert [each.messages for each in store.summaries()] == [commits]


def test_many_processes_create_one_session(tmp_path: Path) -> None:
    """Of processes that create the same session one does; the others are told that it is there."""
    hear, tell = os.pipe()

    def child() -> None:
        os.close(tell)
        os.read(hear, 1)  # all begin when the parent has closed its end
        store = FileStore(tmp_path / "new", sync="never")
        try:
            store.create_journal(ID, HEAD)
        except InvalidState:
            os._exit(7)

    children = [forked(child) for _ in range(8)]
    os.close(hear)
    os.close(tell)
    assert sorted(ended(each) for each in children) == [0] + [7] * 7
    assert [each.name for each in (tmp_path / "new").iterdir()] == [f"{ID}.jsonl"]


def test_c51_a_killed_owner_is_replaced_at_once(tmp_path: Path) -> None:
    """After SIGKILL the session opens without any help, and has every commit that the owner knew of."""
    store, _ = filled(tmp_path, 0)
    hear, tell = os.pipe()

    def child() -> None:
        journal = opened(store, owner="child")
        while True:
            journal.append([message(journal.last_seq + 1)])  # type: ignore[attr-defined]
            os.write(tell, b".")

    pid = forked(child)
    os.close(tell)  # so that the child's death is heard of
    known = 0
    while known < 20:
        piece = os.read(hear, 50)
        assert piece
        known += len(piece)
    with pytest.raises(SessionBusy, match="child") as caught:
        opened(store)
    assert caught.value.pid == pid
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL
    while piece := os.read(hear, 1 << 16):
        known += len(piece)
    os.close(hear)
    journal = opened(store)
    assert journal.last_seq - known in (0, 1)  # type: ignore[attr-defined]  # the last one may not have been told of
    journal.append([message(journal.last_seq + 1)])  # type: ignore[attr-defined]
    journal.close()


def test_an_owner_who_is_killed_in_the_middle_of_a_write(tmp_path: Path) -> None:
    """What he had written of his commit is moved aside; what was committed before is there."""
    filled(tmp_path, 2)
    disk = Faults()
    disk.at_once = 50

    def child() -> None:
        journal = opened(store_on(disk, tmp_path))
        acts = iter(range(4))
        disk.fail = lambda act: os.kill(os.getpid(), signal.SIGKILL) if next(acts, None) is None else None
        journal.append([message(3), message(4)])

    assert ended(forked(child)) == -signal.SIGKILL
    journal = opened(FileStore(tmp_path))
    assert [line.startswith("200 bytes") for line in journal.recovered] == [True]  # type: ignore[attr-defined]
    assert numbers(journal) == [1, 2]
    journal.close()


def stopped_before(act: str, folder: Path) -> tuple[int, Callable[[], int]]:
    """A process that has the session and is stopped in its commit, right before it writes or syncs; and what lets it go
    on, and returns its exit status: 7 if it was told that it has lost its lease, for good."""
    disk = Faults()

    def child() -> None:
        journal = opened(store_on(disk, folder), owner="stopped")
        journal.append([message(3, "before")])
        disk.fail = lambda now: os.kill(os.getpid(), signal.SIGSTOP) if now == act else None
        refused = 0
        for _ in range(2):
            try:
                journal.append([message(4, "stopped")])
            except LeaseLost:
                refused += 1
            disk.fail = lambda now: None
        assert refused == 2
        os._exit(7)

    pid = forked(child)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])

    def go_on() -> int:
        os.kill(pid, signal.SIGCONT)
        return ended(pid)

    return pid, go_on


def test_a_stopped_owner_who_wakes_after_a_takeover(tmp_path: Path) -> None:
    """An owner who is stopped between two of his steps keeps the session, until another steals it; awake again he
    writes nothing into it, and is told."""
    store, path = filled(tmp_path, 2)
    pid, go_on = stopped_before("write", tmp_path)
    with pytest.raises(SessionBusy, match="stopped") as caught:
        opened(store)
    assert caught.value.pid == pid
    journal: Journal = opened(store, owner="new", steal=True)
    journal.append([message(4, "new")])
    assert go_on() == 7
    journal.append([message(5, "new")])
    journal.close()
    assert numbers_in(store) == [1, 2, 3, 4, 5]
    assert b"stopped" not in path.read_bytes()


def test_a_stopped_owner_who_had_written(tmp_path: Path) -> None:
    """Stopped after his write and before it was durable, he reports no success either; what he had written whole is
    kept like that of one who was killed there."""
    store, _ = filled(tmp_path, 2)
    _, go_on = stopped_before("sync", tmp_path)
    journal = opened(store, steal=True)
    assert numbers(journal) == [1, 2, 3, 4]
    assert go_on() == 7
    journal.append([message(5, "new")])
    journal.close()
    assert numbers_in(store) == [1, 2, 3, 4, 5]


def test_a_stopped_owner_whom_nobody_replaced(tmp_path: Path) -> None:
    """If nobody took the session meanwhile, an owner who was stopped goes on as if nothing had been."""
    store, _ = filled(tmp_path, 2)
    disk = Faults()

    def child() -> None:
        journal = opened(store_on(disk, tmp_path))
        disk.fail = lambda now: os.kill(os.getpid(), signal.SIGSTOP) if now == "write" else None
        journal.append([message(3)])

    pid = forked(child)
    os.waitpid(pid, os.WUNTRACED)
    os.kill(pid, signal.SIGCONT)
    assert ended(pid) == 0
    assert numbers_in(store) == [1, 2, 3]


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    """Readers of a session that is being written see a prefix of it, each time at least what they saw before."""
    store, path = filled(tmp_path, 0)

    def child() -> None:
        journal = opened(store)
        for seq in range(1, 1500, 3):
            journal.append([message(seq), message(seq + 1), message(seq + 2)])
        journal.close()

    pid = forked(child)
    last = 0
    while last < 1500:
        found = numbers_in(store)
        assert found == list(range(1, len(found) + 1))
        assert len(found) % 3 == 0
        assert len(found) >= last
        last = len(found)
        for summary in store.summaries():
            assert summary.messages is not None
            assert summary.messages >= last
    assert ended(pid) == 0
    assert path.exists()
