"""Who may write to a session in a database: one owner, told apart from the dead and the replaced."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_py import InvalidState, LeaseLost, NotFound, SessionBusy
from gotato_session._sqlite_process import is_alive, process_mark
from gotato_session.lease import Lease
from gotato_session.sqlite_store import SQLiteStore
from gotato_testkit import ManualClock

from .journals import ID, change, entry, made, numbers, numbers_in, opened
from .programs import program


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


@pytest.fixture
def clock() -> ManualClock:
    """The time of the stores."""
    return ManualClock(5000.0)


def a_store(path: Path, clock: ManualClock) -> SQLiteStore:
    """A store at that time, as another process would open it."""
    store = SQLiteStore(path, sync="never", lease_timeout=100.0)
    store.clock = clock
    return store


def test_the_lease_says_who_writes(path: Path, clock: ManualClock) -> None:
    """A writer's lease has its name, host, process, time, and a token that grows with every owner."""
    store = a_store(path, clock)
    first = made(store)
    assert first.lease == Lease("me", socket.gethostname(), os.getpid(), 5000.0, 1)
    first.close()
    clock.advance(3)
    assert opened(store, owner="you").lease == Lease("you", socket.gethostname(), os.getpid(), 5003.0, 2)


def test_a_second_writer_is_refused_at_once(path: Path, clock: ManualClock) -> None:
    """While a journal is open, another writer gets `SessionBusy` with the owner, by any store on that file."""
    first = made(a_store(path, clock))
    for store in (a_store(path, clock), a_store(path, clock)):
        with pytest.raises(SessionBusy, match="the session s-1 is open: me writes to it") as caught:
            opened(store, owner="you")
        told = caught.value
        assert (told.owner, told.host, told.pid, told.since) == ("me", socket.gethostname(), os.getpid(), 5000.0)
    with pytest.raises(SessionBusy):
        a_store(path, clock).delete_journal(ID)
    assert opened(a_store(path, clock), read_only=True).entries()
    first.append([entry(1)])


def test_closing_lets_it_go(path: Path, clock: ManualClock) -> None:
    """After `close` the next writer has it, and closing again takes nothing from it."""
    store = a_store(path, clock)
    first = made(store)
    first.close()
    second = opened(store)
    first.close()
    second.append([entry(1)])
    assert numbers(second) == [1]


def test_who_drops_it_has_let_it_go(path: Path, clock: ManualClock) -> None:
    """A journal that nobody refers to any more holds its session no longer: nobody could write through it."""
    first = made(a_store(path, clock))
    first.append([entry(1)])
    del first
    gc.collect()
    opened(a_store(path, clock)).append([entry(2)])


def test_stealing_ends_the_old_owner_for_ever(path: Path, clock: ManualClock) -> None:
    """`steal` takes it from the living: the old owner's commits raise `LeaseLost` with the new one, for ever."""
    old = made(a_store(path, clock))
    old.append([entry(1)])
    clock.advance(7)
    new = opened(a_store(path, clock), owner="thief", steal=True)
    writes: list[Callable[[], object]] = [lambda: old.append([entry(2)]), old.sync, lambda: old.append([entry(2)])]
    for write in writes:
        with pytest.raises(LeaseLost, match="s-1 was taken over by thief; nothing of this commit is kept") as caught:
            write()
        assert (caught.value.owner, caught.value.since) == ("thief", 5007.0)
    new.append([entry(2, "event", event="mine")])
    new.close()
    with pytest.raises(LeaseLost):
        old.append([entry(3)])
    old.close()
    with pytest.raises(LeaseLost):
        old.append([entry(3)])
    assert [each.get("event") for each in new.entries()[1:]] == [None, "mine"]


@pytest.mark.parametrize("sync", ["run", "never"])
def test_the_loss_is_told_by_whatever_looks_first(path: Path, sync: str) -> None:
    """A lease that was taken and let go again is lost too, and `sync` tells it where it writes anything."""
    old = made(SQLiteStore(path, sync=sync))
    opened(SQLiteStore(path), steal=True).close()
    if sync == "run":
        with pytest.raises(LeaseLost, match="was taken over, and let go again"):
            old.sync()
    with pytest.raises(LeaseLost, match="was taken over, and let go again") as caught:
        old.append([entry(1)])
    assert (caught.value.owner, caught.value.pid) == ("", 0)


def test_last_seq_is_never_another_owners(path: Path, clock: ManualClock) -> None:
    """Who lost the session before he knew its last number is told so, rather than the number of another."""
    old = made(a_store(path, clock))
    new = opened(a_store(path, clock), steal=True)
    new.append([entry(1)])
    with pytest.raises(LeaseLost):
        old.last_seq  # noqa: B018  # it raises
    with pytest.raises(LeaseLost):
        old.append([entry(2)])
    assert numbers(new) == [1]


def test_a_number_is_never_given_again(path: Path, clock: ManualClock) -> None:
    """Who holds a session that was deleted, and made anew under its id, does not write to the new one."""
    old = made(a_store(path, clock))
    change(path, "UPDATE sessions SET host = 'elsewhere'")
    clock.advance(101)
    a_store(path, clock).delete_journal(ID)
    with pytest.raises(LeaseLost, match="s-1 was deleted: its lease had run out"):
        old.append([entry(1)])
    new = made(a_store(path, clock))
    with pytest.raises(LeaseLost):
        old.append([entry(1)])
    old.close()
    new.append([entry(1)])
    assert numbers(new) == [1]


def test_an_owner_elsewhere_is_dead_after_the_timeout(path: Path, clock: ManualClock) -> None:
    """An owner on another host is taken for alive until `lease_timeout` has passed since its last commit."""
    far = made(a_store(path, clock))
    change(path, "UPDATE sessions SET host = 'elsewhere', pid = 1, process = 'x'")
    clock.advance(60)
    far.append([entry(1)])
    clock.advance(100)
    with pytest.raises(SessionBusy, match="process 1 on elsewhere"):
        opened(a_store(path, clock))
    clock.advance(0.001)
    near = opened(a_store(path, clock))
    with pytest.raises(LeaseLost):
        far.append([entry(2)])
    near.append([entry(2)])


def test_an_owner_elsewhere_goes_on_after_the_timeout(path: Path, clock: ManualClock) -> None:
    """A lease that has run out, and that nobody took, is as good as new with the next commit."""
    far = made(a_store(path, clock))
    change(path, "UPDATE sessions SET host = 'elsewhere'")
    clock.advance(5000)
    far.append([entry(1)])
    with pytest.raises(SessionBusy):
        opened(a_store(path, clock))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not show when a process began")
def test_a_pid_that_was_given_again(path: Path, clock: ManualClock) -> None:
    """An owner whose pid another process has now is dead, whether that is this one or not."""
    made(a_store(path, clock)).append([entry(1)])
    for pid in (os.getpid(), os.getppid()):
        change(path, "UPDATE sessions SET owner = 'old', pid = ?, process = 'another boot 17'", pid)
        opened(a_store(path, clock)).close()
    assert numbers_in(a_store(path, clock)) == [1]


def test_a_killed_owner_is_dead_before_anybody_asks_for_it(path: Path, clock: ManualClock) -> None:
    """After SIGKILL the session is free at once, though the process is still in the table; its commits are there."""
    text = """
        journal = made(SQLiteStore(path))
        journal.append([entry(1)])
        tell("there")
        asked()
    """
    with program(path, text) as owner:
        owner.line()
        with pytest.raises(SessionBusy) as caught:
            opened(a_store(path, clock))
        assert caught.value.pid == owner.pid
        owner.process.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # dead, and not taken away yet
        journal = opened(a_store(path, clock))
        journal.append([entry(2)])
    assert numbers(journal) == [1, 2]


def test_closing_when_the_database_is_gone(path: Path, clock: ManualClock) -> None:
    """A journal whose database cannot be told of its end is closed all the same, and raises nothing."""
    store = a_store(path, clock)
    journal = made(store)
    store.close()
    path.unlink()
    path.mkdir()
    journal.close()
    with pytest.raises(InvalidState):
        journal.append([entry(1)])
    path.rmdir()
    journal.close()


def test_a_process_is_known_by_its_start() -> None:
    """This process is alive under its own mark, under none that another had, and in doubt it is."""
    mark = process_mark(os.getpid())
    assert mark == process_mark(os.getpid())
    assert is_alive(os.getpid(), mark or "")
    assert is_alive(os.getpid(), "")
    assert not mark or not is_alive(os.getpid(), f"{mark}0")
    assert not is_alive(0, "")
    assert not is_alive(1 << 40, "")
    assert process_mark(1 << 40) == ""


def test_another_users_process_is_alive() -> None:
    """A process that may not be signalled is there."""
    if os.getuid() != 0:
        assert is_alive(1, "")
        return
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        os._exit(0 if is_alive(os.getppid(), "") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_session_that_is_not_there_has_no_owner(path: Path, clock: ManualClock) -> None:
    """Opening a session that was deleted in that moment is `NotFound`."""
    store = a_store(path, clock)
    made(store).close()
    store.delete_journal(ID)
    with pytest.raises(NotFound):
        opened(store, steal=True)
