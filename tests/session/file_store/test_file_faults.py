"""A disk that is full, broken or read-only: nothing half there, and file and journal say the same."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gotato_py import GotatoError, SessionCorrupt, StoreFailure
from gotato_session.file_store import FileStore
from gotato_session.journal import Journal

from .children import in_child
from .journals import (
    HEAD,
    ID,
    Faults,
    broken,
    contents,
    filled,
    message,
    no_space,
    numbers,
    numbers_in,
    opened,
    store_on,
)


def failing(folder: Path, *, sync: str = "commit") -> tuple[Faults, FileStore, Path, Journal]:
    """A disk, a store on it, and the file and the journal of a session with two entries."""
    _, path = filled(folder, 2)
    disk = Faults()
    store = store_on(disk, folder, sync=sync)
    journal = opened(store)
    disk.acts.clear()
    return disk, store, path, journal


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_short_writes_are_completed(tmp_path: Path, at_once: int) -> None:
    """What the system takes in pieces is written whole."""
    disk, store, _, journal = failing(tmp_path)
    disk.at_once = at_once
    journal.append([message(3), message(4)])
    journal.close()
    store.create_journal("t", {**HEAD, "id": "t"})
    assert numbers_in(store) == [1, 2, 3, 4]
    assert numbers_in(store, "t") == []


@pytest.mark.parametrize("taken", [0, 1, 200, 400])
def test_c52_a_full_disk(tmp_path: Path, taken: int) -> None:
    """A commit for which there is no space is taken back whole, wherever the disk was full; the next one works."""
    disk, store, path, journal = failing(tmp_path)
    before = path.read_bytes()
    disk.full = len(before) + taken
    with pytest.raises(OSError, match="No space"):
        journal.append([message(3), message(4), message(5)])
    assert path.read_bytes() == before
    assert journal.last_seq == 2  # type: ignore[attr-defined]
    assert numbers(journal) == [1, 2]
    disk.full = 1 << 60
    journal.append([message(3)])
    journal.close()
    assert numbers_in(store) == [1, 2, 3]


def test_c52_what_cannot_be_taken_back_is_cut_off_later(tmp_path: Path) -> None:
    """If even taking back fails, the journal knows nothing of the rest, and the next commit cuts it off first."""
    disk, store, path, journal = failing(tmp_path)
    before = path.read_bytes()
    disk.full = len(before) + 300
    disk.fail = lambda act: broken() if act == "cut" else None
    for _ in range(2):
        with pytest.raises(OSError, match=r"No space|Input/output"):
            journal.append([message(3), message(4)])
        assert numbers(journal) == [1, 2]
        assert path.stat().st_size == len(before) + 300
    disk.fail = lambda act: None
    disk.full = 1 << 60
    journal.append([message(3)])
    assert numbers(journal) == [1, 2, 3]
    journal.close()
    assert numbers_in(store) == [1, 2, 3]


def test_what_was_left_over_is_cut_off_at_the_end(tmp_path: Path) -> None:
    """A journal that is closed leaves nothing behind that it does not know as committed; if it cannot, the next can."""
    disk, store, path, journal = failing(tmp_path)
    before = path.read_bytes()
    disk.full = len(before) + 300
    disk.fail = lambda act: broken() if act == "cut" else None
    with pytest.raises(OSError, match="No space"):
        journal.append([message(3), message(4)])
    disk.fail = lambda act: None
    journal.close()
    assert path.read_bytes() == before

    journal = opened(store)
    disk.fail = lambda act: broken() if act == "cut" else None
    with pytest.raises(OSError, match="No space"):
        journal.append([message(3), message(4)])
    journal.close()
    assert path.stat().st_size > len(before)
    disk.fail = lambda act: None
    disk.full = 1 << 60
    journal = opened(store)
    assert len(journal.recovered) == 1  # type: ignore[attr-defined]
    assert numbers(journal) == [1, 2]
    journal.close()


@pytest.mark.parametrize("sync", ["commit", "run"])
def test_after_a_failed_sync_nothing_is_accepted(tmp_path: Path, sync: str) -> None:
    """Nobody knows what the disk has after a failed sync: nothing more is taken until the session is opened again."""
    disk, store, path, journal = failing(tmp_path, sync=sync)
    before = path.read_bytes()
    disk.fail = lambda act: broken() if act == "sync" else None
    if sync == "run":
        journal.append([message(3)])
    fails = journal.sync if sync == "run" else lambda: journal.append([message(3)])
    with pytest.raises(OSError, match="Input/output"):
        fails()
    kept = numbers(journal)
    assert path.read_bytes()[: len(before)] == before
    assert kept == ([1, 2] if sync == "commit" else [1, 2, 3])
    disk.fail = lambda act: None
    acts: list[Callable[[], object]] = [lambda: journal.append([message(len(kept) + 1)]), journal.sync]
    for act in acts:
        with pytest.raises(StoreFailure, match="open it again") as caught:
            act()
        assert isinstance(caught.value.cause, OSError)
    journal.close()
    journal = opened(store)
    assert numbers(journal) == kept
    journal.append([message(len(kept) + 1)])
    journal.close()


def test_a_sync_that_fails_and_cannot_be_taken_back(tmp_path: Path) -> None:
    """The record is not counted, though a reader may see it until the session is closed."""
    disk, store, _, journal = failing(tmp_path)
    disk.fail = lambda act: broken() if act in ("sync", "cut") else None
    with pytest.raises(OSError, match="Input/output"):
        journal.append([message(3)])
    assert numbers(journal) == [1, 2]
    disk.fail = lambda act: None
    journal.close()
    assert numbers_in(store) == [1, 2]


@pytest.mark.parametrize("act", ["write", "sync", "sync folder"])
def test_a_session_that_cannot_be_created(tmp_path: Path, act: str) -> None:
    """Creating is all or nothing: no file that is half a session, and none for the moment, is left."""
    store = store_on(Faults(lambda now: no_space() if now == act else None), tmp_path)
    with pytest.raises(StoreFailure, match="could not be created"):
        store.create_journal(ID, HEAD)
    left = [each.name for each in tmp_path.iterdir()]
    assert left == ([f"{ID}.jsonl"] if act == "sync folder" else [])
    assert [each.id for each in store.summaries()] == [ID] * len(left)


def nth(count: int) -> Callable[[str], OSError | None]:
    """Fails at that act."""
    left = iter(range(count))
    return lambda act: broken() if next(left, None) is None else None


def test_a_torn_tail_that_cannot_be_moved(tmp_path: Path) -> None:
    """Whatever fails while a torn tail is moved aside, the session is not open, nothing is lost, and it opens later."""
    store, path = filled(tmp_path, 2)
    whole = path.read_bytes()
    for count in range(5):
        path.write_bytes(whole + b"torn")
        with pytest.raises(StoreFailure, match="could not be opened"):
            opened(store_on(Faults(nth(count)), tmp_path))
        asides = [each.read_bytes() for each in tmp_path.glob("*.torn-*")]
        assert path.read_bytes() == whole + b"torn" or b"torn" in asides
        assert numbers_in(store) == [1, 2]
        opened(store).close()
        assert b"torn" in [each.read_bytes() for each in tmp_path.glob("*.torn-*")]
    journal = opened(store_on(Faults(nth(5)), tmp_path))
    journal.close()


def test_a_newline_that_cannot_be_written(tmp_path: Path) -> None:
    """A last line that lacks its newline is not added to before it has it."""
    store, path = filled(tmp_path, 2)
    cut = path.read_bytes()[:-1]
    path.write_bytes(cut)
    with pytest.raises(StoreFailure):
        opened(store_on(Faults(lambda act: no_space()), tmp_path))
    assert path.read_bytes() == cut
    journal = opened(store)
    journal.append([message(3)])
    assert numbers(journal) == [1, 2, 3]
    journal.close()


def test_a_copy_that_cannot_be_written(tmp_path: Path) -> None:
    """If a living owner's session cannot be copied it is not taken over, and nothing of the attempt is left."""
    store, path = filled(tmp_path, 2)
    owner = opened(store)
    before = path.read_bytes()
    for count in range(3):
        with pytest.raises(StoreFailure):
            opened(store_on(Faults(nth(count)), tmp_path), steal=True)
        assert sorted(each.name for each in tmp_path.iterdir()) == [f"{ID}.jsonl", f"{ID}.lease"]
        assert path.read_bytes() == before
    owner.close()
    journal = opened(store)
    assert numbers(journal) == [1, 2]
    journal.close()


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """Where the system itself lets no file grow, a commit is taken back, and one that fits is kept."""
    store, path = filled(tmp_path, 2)
    size = path.stat().st_size

    def child() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 400, size + 400))
        journal = opened(store)
        for _ in range(2):
            with pytest.raises(OSError, match="too large"):
                journal.append([message(3), message(4), message(5)])
            assert path.stat().st_size == size
        journal.append([message(3)])
        journal.close()

    in_child(child)
    assert numbers_in(store) == [1, 2, 3]


@contextmanager
def read_only(folder: Path) -> Generator[None, None, None]:
    """The folder takes no new files meanwhile, and whoever `as_nobody` makes of root can get there."""
    modes = {each: each.stat().st_mode for each in (folder, *(folder.parents[:2] if os.geteuid() == 0 else ()))}
    try:
        for each in modes:
            each.chmod(0o555)
        yield
    finally:
        for each, mode in modes.items():
            each.chmod(mode)


def as_nobody() -> None:
    """Root may write anywhere: a child of his goes on as somebody else."""
    if os.geteuid() == 0:
        os.seteuid(65534)


def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    """A reader needs no right to write; a writer is told, and nothing is changed."""
    store, path = filled(tmp_path, 2)
    path.write_bytes(path.read_bytes() + b"torn")
    before = contents(tmp_path)

    def child() -> None:
        as_nobody()
        assert numbers_in(store) == [1, 2]
        assert [each.messages for each in store.summaries()] == [2]
        assert len(store.salvage_journal(ID)) == 4
        for act in (
            lambda: opened(store),
            lambda: store.create_journal("t", {**HEAD, "id": "t"}),
            lambda: store.delete_journal(ID),
        ):
            with pytest.raises(StoreFailure, match=r"ermission"):
                act()

    with read_only(tmp_path):
        in_child(child)
    assert contents(tmp_path) == before


def test_a_file_that_may_be_written_in_a_folder_that_may_not(tmp_path: Path) -> None:
    """A session whose folder takes no new files is written as ever, without a note of its owner."""
    store, path = filled(tmp_path, 2)
    path.chmod(0o666)

    def child() -> None:
        as_nobody()
        journal = opened(store)
        journal.append([message(3)])
        with pytest.raises(GotatoError):
            opened(store)
        with pytest.raises(StoreFailure):
            opened(store, steal=True)
        journal.append([message(4)])
        journal.close()

    with read_only(tmp_path):
        in_child(child)
    assert numbers_in(store) == [1, 2, 3, 4]


def test_damage_costs_a_living_owner_nothing(tmp_path: Path) -> None:
    """A damaged session is not taken over, so its owner keeps it."""
    store, path = filled(tmp_path, 3)
    owner = opened(store)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"1002.0", b"1002.1"))
    with pytest.raises(SessionCorrupt):
        opened(store, steal=True)
    path.write_bytes(data)
    owner.append([message(4)])
    owner.close()
    assert numbers_in(store) == [1, 2, 3, 4]
