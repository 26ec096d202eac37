"""Threads: one connection each, closed with the thread or the store."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

from gotato_session._sqlite_held import _process
from gotato_session.sqlite_store import SQLiteStore

from .journals import entry, made, numbers, opened


def in_thread(act: Callable[[], object]) -> None:
    """Does that in a thread of its own, to its end; what it raises is raised here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def connections_to(path: Path) -> int:
    """How many connections to a database are open in this process."""
    return sum(each == str(path) for each, _ in _process.opened.values())


def test_a_journal_goes_from_thread_to_thread(tmp_path: Path) -> None:
    """Different threads may use a journal one after the other, and each connection goes with its thread."""
    path = tmp_path / "a.sqlite"
    journal = made(SQLiteStore(path, sync="never"))
    for seq in range(1, 6):
        in_thread(lambda seq=seq: journal.append([entry(seq)]))  # type: ignore[misc]  # bound at once
        gc.collect()
        assert connections_to(path) == 1
    journal.append([entry(6)])
    assert numbers(journal) == [1, 2, 3, 4, 5, 6]


def test_threads_that_write_at_once(tmp_path: Path) -> None:
    """Threads that write to sessions of their own, through one store, lose nothing."""
    store = SQLiteStore(tmp_path / "a.sqlite", sync="never")
    started = threading.Barrier(4)

    def write(id: str) -> None:
        started.wait()
        journal = made(store, id)
        for seq in range(1, 51):
            journal.append([entry(seq)])
        journal.close()

    threads = [threading.Thread(target=write, args=(f"s-{n}",)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [numbers(opened(store, f"s-{n}", read_only=True)) for n in range(4)] == [list(range(1, 51))] * 4


def test_closing_the_store_closes_every_threads_connection(tmp_path: Path) -> None:
    """`close` reaches the connections of threads that still live, and these open new ones when they go on."""
    path = tmp_path / "a.sqlite"
    store = SQLiteStore(path, sync="never")
    go, done = threading.Semaphore(0), threading.Semaphore(0)

    def write() -> None:
        journal = made(store)
        for seq in (1, 2):
            journal.append([entry(seq)])
            done.release()
            go.acquire()
        journal.close()

    thread = threading.Thread(target=write)
    thread.start()
    done.acquire()
    assert connections_to(path) == 1
    store.close()
    assert connections_to(path) == 0
    go.release()
    done.acquire()
    go.release()
    thread.join()
    assert numbers(opened(store)) == [1, 2]


def test_a_store_that_is_dropped_closes_its_connection(tmp_path: Path) -> None:
    """A store that nobody refers to any more leaves no connection open."""
    path = tmp_path / "a.sqlite"
    store = SQLiteStore(path)
    made(store)
    assert connections_to(path) == 1
    del store
    gc.collect()
    assert connections_to(path) == 0
