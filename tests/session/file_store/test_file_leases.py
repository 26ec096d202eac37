"""Who may write: one owner at a time, one who takes over from the living, and never a forked child."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_py import ForkedProcess, LeaseLost, SessionBusy
from gotato_session._file_disk import Handle
from gotato_session._file_lock import _locked, fenced, lock_journal
from gotato_session._file_names import Names
from gotato_session.file_store import FileStore
from gotato_session.journal import Journal

from .children import ended, forked, in_child
from .journals import ID, Faults, filled, message, numbers, numbers_in, opened, store_on


def test_c51_a_session_is_open_once_in_a_process(tmp_path: Path) -> None:
    """The second opening is refused at once, whichever store object it comes from; readers are many."""
    store, _ = filled(tmp_path, 1)
    journal = opened(store)
    for other in (store, FileStore(tmp_path)):
        began = time.monotonic()
        with pytest.raises(SessionBusy, match="read_only=True"):
            opened(other)
        assert time.monotonic() - began < 5
        assert [numbers(opened(other, read_only=True)) for _ in range(2)] == [[1], [1]]
    journal.append([message(2)])
    journal.close()
    opened(store).close()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_journal_that_was_dropped_lets_go(tmp_path: Path) -> None:
    """Whoever forgets to close a journal keeps nobody out for longer than the object lives."""
    store, _ = filled(tmp_path, 1)
    journal = opened(store)
    journal.append([message(2)])
    del journal
    gc.collect()
    opened(store).close()


def test_a_failed_opening_lets_go(tmp_path: Path) -> None:
    """An opening that was refused holds no lock, even while its exception is kept."""
    store, path = filled(tmp_path, 3)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"1001.0", b"1001.1"))
    with pytest.raises(Exception, match="damaged") as caught:
        opened(store)
    path.write_bytes(data)
    opened(store).close()
    del caught


def test_taking_over_from_the_living(tmp_path: Path) -> None:
    """Who steals a session has all that was committed; the old owner's next commit is refused, and so is every one
    after that, and what it held is not in the file."""
    store, path = filled(tmp_path, 2)
    old = opened(store, owner="old")
    old.append([message(3)])
    new = opened(store, owner="new", steal=True)
    assert numbers(new) == [1, 2, 3]
    assert old.lease is not None
    assert new.lease is not None
    assert new.lease.token > old.lease.token
    new.append([message(4, "new")])
    acts: list[Callable[[], object]] = [lambda: old.append([message(4, "old")]), old.sync]
    for _ in range(2):
        for act in acts:
            with pytest.raises(LeaseLost, match="taken over by 'new'") as caught:
                act()
            assert (caught.value.owner, caught.value.pid) == ("new", os.getpid())
        assert old.last_seq == 3  # type: ignore[attr-defined]
        assert numbers(old) == [1, 2, 3]
    old.close()
    new.append([message(5, "new")])
    with pytest.raises(SessionBusy, match="new"):
        opened(store)
    new.close()
    assert b"old" not in path.read_bytes()
    assert numbers_in(store) == [1, 2, 3, 4, 5]
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{ID}.jsonl", f"{ID}.lease"]


def test_stealing_what_nobody_has(tmp_path: Path) -> None:
    """`steal` asks for no owner: a session that is free opens as ever, without a copy."""
    store, path = filled(tmp_path, 2)
    before = path.stat().st_ino
    opened(store, steal=True).close()
    assert path.stat().st_ino == before


def test_a_stolen_torn_tail(tmp_path: Path) -> None:
    """What the old owner was in the middle of writing is moved aside, as any torn tail."""
    store, path = filled(tmp_path, 2)
    old = opened(store)
    with path.open("ab") as file:
        file.write(b"unfinished")
    new = opened(store, steal=True)
    assert len(new.recovered) == 1  # type: ignore[attr-defined]
    assert numbers(new) == [1, 2]
    assert (tmp_path / f"{ID}.torn-1").read_bytes() == b"unfinished"
    new.close()
    old.close()


def test_a_chain_of_owners(tmp_path: Path) -> None:
    """Each owner loses it to the next; only the last one writes."""
    store, _ = filled(tmp_path, 1)
    owners = [opened(store, steal=True) for _ in range(4)]
    for owner in owners[:-1]:
        with pytest.raises(LeaseLost):
            owner.append([message(2)])
    owners[-1].append([message(2)])
    for owner in owners:
        owner.close()
    assert numbers_in(store) == [1, 2]


def test_an_owner_learns_it_from_a_sync_too(tmp_path: Path) -> None:
    """With `sync="run"` the end of a run says that the session is another's by now."""
    filled(tmp_path, 1)
    store = FileStore(tmp_path, sync="run")
    old = opened(store)
    old.append([message(2)])
    new = opened(store, steal=True)
    with pytest.raises(LeaseLost):
        old.sync()
    assert numbers(new) == [1, 2]
    new.close()
    old.close()


@pytest.mark.parametrize("when", ["write", "sync"])
def test_a_takeover_between_the_check_and_the_write(tmp_path: Path, when: str) -> None:
    """Taken over in the middle of its commit, the old owner reports no success; the new one has what was committed."""
    filled(tmp_path, 2)
    disk, thief = Faults(), FileStore(tmp_path)
    old = opened(store_on(disk, tmp_path))
    stolen: list[Journal] = []

    def steal(act: str) -> None:
        if act == when and not stolen:
            stolen.append(opened(thief, owner="thief", steal=True))

    disk.fail = steal
    with pytest.raises(LeaseLost):
        old.append([message(3, "old")])
    old.close()
    [new] = stolen
    new.append([message(new.last_seq + 1, "new")])  # type: ignore[attr-defined]
    new.close()
    seqs = numbers_in(thief)
    assert seqs == ([1, 2, 3] if when == "write" else [1, 2, 3, 4])  # written, whole, and not reported


def test_every_commit_that_was_reported_is_in_the_copy(tmp_path: Path) -> None:
    """While a copy is being made, from its first moment on, the old owner can commit nothing."""
    filled(tmp_path, 2)
    owner = opened(FileStore(tmp_path))
    reported: list[int] = []

    def commit(act: str) -> None:
        seq = owner.last_seq + 1  # type: ignore[attr-defined]
        try:
            owner.append([message(seq)])
            reported.append(seq)
        except LeaseLost:
            pass

    new = opened(store_on(Faults(commit), tmp_path), steal=True)
    assert reported == []
    assert numbers(new) == [1, 2]
    new.close()
    owner.close()


def test_one_takes_over_at_a_time(tmp_path: Path) -> None:
    """While one takes a session over or rewrites it, another who wants to is told so at once."""
    store, _ = filled(tmp_path, 2)
    owner = opened(store)
    with fenced(Names(tmp_path, ID), None), pytest.raises(SessionBusy, match="try again"):
        opened(store, steal=True)
    owner.close()
    with fenced(Names(tmp_path, ID), None):
        for act in (lambda: opened(store), lambda: store.delete_journal(ID), lambda: store.vacuum(ID)):
            with pytest.raises(SessionBusy, match="try again"):
                act()
    opened(store).close()


def test_one_who_died_while_he_took_it_over(tmp_path: Path) -> None:
    """What a dead thief left is taken away by the next owner; the old one, whom he fenced off, stays out."""
    store, _ = filled(tmp_path, 2)
    names = Names(tmp_path, ID)
    owner = opened(store)
    names.fence.touch()
    names.copy.write_bytes(b"half")
    with pytest.raises(LeaseLost):
        owner.append([message(3)])
    with pytest.raises(SessionBusy):
        opened(store)
    owner.close()
    journal = opened(store)
    journal.append([message(3)])
    assert not names.fence.exists()
    new = opened(store, steal=True)
    assert numbers(new) == [1, 2, 3]
    assert not names.copy.exists()
    new.close()
    journal.close()
    names.fence.touch()
    names.copy.touch()
    store.delete_journal(ID)
    assert list(tmp_path.iterdir()) == []


def test_an_owner_whose_file_was_removed(tmp_path: Path) -> None:
    """If somebody removes the file by hand, the next commit says that the session is gone."""
    store, path = filled(tmp_path, 2)
    journal = opened(store)
    path.unlink()
    with pytest.raises(LeaseLost, match="removed"):
        journal.append([message(3)])
    journal.close()
    assert not path.exists()


def test_a_file_that_was_replaced_before_it_was_locked(tmp_path: Path) -> None:
    """Whoever comes to the lock of a file that is no longer the session's lets it go and takes the one that is."""
    _, path = filled(tmp_path, 2)
    opens: list[Handle] = []

    class Late(Handle):
        def lock(self) -> bool:
            opens.append(self)
            if len(opens) == 1:
                (tmp_path / "new").write_bytes(path.read_bytes())
                (tmp_path / "new").rename(path)
            return super().lock()

    taken = _locked(path, "r+", Late)
    assert taken is not None
    assert taken is opens[1]
    assert taken.is_at(path)
    assert opens[0].closed
    with pytest.raises(SessionBusy):
        opened(FileStore(tmp_path))
    taken.let_go()


def test_a_file_that_was_removed_before_it_was_locked(tmp_path: Path) -> None:
    """A session that is deleted while it is being opened is not found."""
    _, path = filled(tmp_path, 2)

    class Late(Handle):
        def lock(self) -> bool:
            path.unlink()
            return super().lock()

    with pytest.raises(FileNotFoundError):
        _locked(path, "r+", Late)


def test_a_file_system_without_locks(tmp_path: Path) -> None:
    """Where files cannot be locked that is told, and the file is not left open."""
    _, path = filled(tmp_path, 2)
    opens: list[Handle] = []

    class Without(Handle):
        def lock(self) -> bool:
            opens.append(self)
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with pytest.raises(OSError, match="lock"):
        _locked(path, "r+", Without)
    assert [each.closed for each in opens] == [True]


def test_who_has_lost_a_session_replaces_nothing(tmp_path: Path) -> None:
    """Whoever was about to rewrite or remove a session, and lost it before he had fenced it off, is told so."""
    store, path = filled(tmp_path, 2)
    names = Names(tmp_path, ID)
    old = lock_journal(names)
    assert old is not None
    new = opened(store, steal=True)
    with pytest.raises(SessionBusy, match="me"), fenced(names, old):
        raise AssertionError("it is not his any more")
    assert not names.fence.exists()
    new.append([message(3)])
    new.close()
    old.let_go()
    assert path.exists()


class TestFork:
    """The process forks while a session is open."""

    def test_the_child_writes_nothing(self, tmp_path: Path) -> None:
        """What needs the lease is refused in the child, for good; the parent goes on, and so does its lease."""
        store, _ = filled(tmp_path, 1)
        journal, reader = opened(store), opened(store, read_only=True)

        def child() -> None:
            for _ in range(2):
                for act in (lambda: journal.append([message(2)]), journal.sync, journal.entries):
                    with pytest.raises(ForkedProcess, match="forked"):
                        act()
            assert numbers(reader) == [1]
            assert numbers_in(store) == [1]
            with pytest.raises(SessionBusy):
                opened(store)
            journal.close()
            with pytest.raises(SessionBusy):
                opened(store)

        in_child(child)
        with pytest.raises(SessionBusy):
            opened(store)
        journal.append([message(2)])
        journal.close()
        assert numbers_in(store) == [1, 2]

    def test_the_child_keeps_nobody_out(self, tmp_path: Path) -> None:
        """A child that lives on does not hold the lock of its parent, who closes the session, or opens it anew."""
        store, _ = filled(tmp_path, 1)
        journal = opened(store)
        hear, tell = os.pipe()

        def child() -> None:
            os.close(tell)
            os.read(hear, 1)  # until the parent has closed its end

        pid = forked(child)
        journal.close()
        again = opened(store)
        again.append([message(2)])
        again.close()
        os.close(tell)
        os.close(hear)
        assert ended(pid) == 0

    def test_the_child_opens_it_once_the_parent_has_closed_it(self, tmp_path: Path) -> None:
        """A session is opened anew in the child like in any other process."""
        store, _ = filled(tmp_path, 1)
        journal = opened(store)
        hear, tell = os.pipe()

        def child() -> None:
            os.close(tell)
            os.read(hear, 1)
            mine = opened(store)
            mine.append([message(2)])
            mine.close()

        pid = forked(child)
        journal.close()
        os.close(tell)
        os.close(hear)
        assert ended(pid) == 0
        assert numbers_in(store) == [1, 2]

    def test_a_program_that_is_started_meanwhile_has_no_copy(self, tmp_path: Path) -> None:
        """The file of a session is not inherited by other programs."""
        store, _ = filled(tmp_path, 1)
        journal = opened(store)
        for handle in gc.get_objects():
            if isinstance(handle, Handle) and not handle.closed:
                assert fcntl.fcntl(handle.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        journal.close()


def test_the_owners_note_is_json(tmp_path: Path) -> None:
    """Who had a session last can be read beside it with ordinary tools."""
    store, _ = filled(tmp_path, 1)
    opened(store, owner="worker \ud800 7").close()
    noted = json.loads((tmp_path / f"{ID}.lease").read_text("utf-8"))
    assert noted["owner"] == "worker \ud800 7"
    assert noted["token"] == 2
