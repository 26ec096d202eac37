"""A disk that is full, fails, or may not be written to, and others who write all the time."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gotato_py import GotatoError, InvalidState, NotFound, NotSupported, SessionCorrupt, StoreFailure
from gotato_session._sqlite_errors import told
from gotato_session.sqlite_store import SQLiteStore

from .journals import ID, change, contents, entry, filled, made, numbers, numbers_in, opened, raw, said
from .programs import output_of, program


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


def own_connection(store: SQLiteStore) -> sqlite3.Connection:
    """This thread's connection of a store."""
    connection: sqlite3.Connection = store._ways._mine.held.connection
    return connection


def test_a_full_disk(path: Path) -> None:
    """A commit that finds no room is a `StoreFailure` and keeps nothing; with room again the same commit is taken."""
    store = SQLiteStore(path)
    journal = made(store)
    journal.append([entry(1)])
    pages = own_connection(store).execute("PRAGMA page_count").fetchone()[0]
    own_connection(store).execute(f"PRAGMA max_page_count = {pages}")
    big = [entry(2), entry(3, text="x" * 100_000)]
    for _ in range(2):
        with pytest.raises(StoreFailure, match=r"database or disk is full \(SQLITE_FULL\)"):
            journal.append(big)
        assert (journal.last_seq, numbers(journal)) == (1, [1])
        change(path, "UPDATE progress SET synced = synced")  # nobody is kept from writing
    own_connection(store).execute("PRAGMA max_page_count = 100000")
    journal.append(big)
    assert numbers(journal) == [1, 2, 3]


def test_a_file_that_may_not_grow(path: Path) -> None:
    """Where the system refuses to write, the commit fails as a whole, and what was kept can be read."""
    text = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = SQLiteStore(path)
    journal = made(store)
    journal.append([entry(1)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        journal.append([entry(2, text="x" * 300_000)])
    except StoreFailure as error:
        tell(error.code, journal.last_seq, numbers(journal))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.append([entry(2, text="x" * 300_000)])
    tell(numbers(journal))
    """
    assert output_of(path, text) == ["store_failure 1 [1]", "[1, 2]"]


class Failing(sqlite3.Connection):
    """A connection that raises what `fails` says of a statement."""

    fails: Callable[[str], BaseException | None] = staticmethod(lambda sql: None)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # Any: as sqlite3 takes them
        error = type(self).fails(sql)
        if error is not None:
            raise error
        return super().execute(sql, *parameters)


@pytest.fixture
def failing() -> Iterator[type[Failing]]:
    """Such a class, which fails nothing any more at the end."""
    yield Failing
    Failing.fails = staticmethod(lambda sql: None)


def sqlite_error(code: int, name: str) -> sqlite3.OperationalError:
    """An error as SQLite tells it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = code, name
    return error


@pytest.mark.parametrize("sync", ["commit", "run"])
def test_after_a_failed_fsync_nothing_is_accepted(path: Path, failing: type[Failing], sync: str) -> None:
    """What an fsync failed to bring to the disk no later one will: the journal takes nothing until opened again."""
    store = SQLiteStore(path, sync=sync)
    store._ways.factory = failing
    journal = made(store)
    journal.append([entry(1)])
    error = sqlite_error(sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC")
    failing.fails = staticmethod(lambda sql: error if sql == "COMMIT" else None)
    with pytest.raises(StoreFailure, match="SQLITE_IOERR_FSYNC"):
        journal.append([entry(2)]) if sync == "commit" else journal.sync()
    failing.fails = staticmethod(lambda sql: None)
    writes: list[Callable[[], object]] = [lambda: journal.append([entry(2)]), journal.sync]
    for write in writes:
        with pytest.raises(StoreFailure, match="SQLITE_IOERR_FSYNC"):
            write()
    assert numbers(journal) == [1]
    journal.close()
    again = opened(store)
    again.append([entry(2)])
    assert numbers(again) == [1, 2]


def test_another_failed_commit_can_be_tried_again(path: Path, failing: type[Failing]) -> None:
    """A commit that failed before anything was to be durable is taken the next time."""
    store = SQLiteStore(path)
    store._ways.factory = failing
    journal = made(store)
    error = sqlite_error(sqlite3.SQLITE_IOERR_WRITE, "SQLITE_IOERR_WRITE")
    failing.fails = staticmethod(lambda sql: error if sql == "COMMIT" else None)
    with pytest.raises(StoreFailure, match="SQLITE_IOERR_WRITE") as caught:
        journal.append([entry(1)])
    assert caught.value.cause is error
    failing.fails = staticmethod(lambda sql: None)
    journal.append([entry(1)])
    assert numbers(journal) == [1]


def test_closing_while_the_disk_fails(path: Path, failing: type[Failing]) -> None:
    """A journal that cannot let go in the database is free in this process, and lets go when it is closed again."""
    store = SQLiteStore(path)
    store._ways.factory = failing
    journal = made(store)
    failing.fails = staticmethod(lambda sql: sqlite_error(sqlite3.SQLITE_FULL, "SQLITE_FULL"))
    journal.close()
    with pytest.raises(StoreFailure):
        opened(store, read_only=True)
    failing.fails = staticmethod(lambda sql: None)
    with raw(path) as connection:
        assert connection.execute("SELECT owner FROM sessions").fetchone() == ("me",)
        with pytest.raises(InvalidState):
            journal.append([entry(1)])
        journal.close()
        assert connection.execute("SELECT owner FROM sessions").fetchone() == (None,)


def test_a_file_system_without_shared_memory(path: Path) -> None:
    """Where SQLite cannot keep a write-ahead log, that is said, rather than another mode used in silence."""

    class Stubborn(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # Any: as sqlite3 takes them
            return super().execute("PRAGMA journal_mode" if sql == "PRAGMA journal_mode = WAL" else sql, *parameters)

    store = SQLiteStore(path)
    store._ways.factory = Stubborn
    with pytest.raises(NotSupported, match="cannot have a write-ahead log: put it on a local disk"):
        made(store)


def test_waiting_for_other_writers(path: Path) -> None:
    """A commit waits for another process's transaction up to `busy_timeout`, then it is a retryable `StoreFailure`."""
    journal = made(SQLiteStore(path, busy_timeout=0.05))
    with raw(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailure, match="is locked: another process has been writing") as caught:
            journal.append([entry(1)])
        assert caught.value.retryable
        assert numbers(journal) == []
        connection.execute("ROLLBACK")
    journal.append([entry(1)])
    assert numbers(journal) == [1]


@pytest.mark.parametrize("lock", ["BEGIN EXCLUSIVE", "BEGIN"])
def test_a_database_that_cannot_be_made_while_it_is_locked(path: Path, lock: str) -> None:
    """Making the tables waits no longer than `busy_timeout` either, and leaves nothing half made."""
    path.touch()
    with raw(path) as connection:
        connection.execute(lock)
        connection.execute("SELECT * FROM sqlite_master").fetchall()  # reads, which the commit has to wait for
        with pytest.raises(StoreFailure, match="is locked"):
            made(SQLiteStore(path, busy_timeout=0.3))
        connection.execute("ROLLBACK")
    made(SQLiteStore(path)).append([entry(1)])


def test_a_transaction_that_was_left_open(path: Path) -> None:
    """What two interrupts left open is rolled back by the next commit."""
    store = SQLiteStore(path)
    journal = made(store)
    own_connection(store).execute("BEGIN IMMEDIATE")
    own_connection(store).execute("UPDATE progress SET last_seq = 7")
    journal.append([entry(1)])
    assert numbers(journal) == [1]


class Meddling(sqlite3.Connection):
    """A connection that lets others do something before it looks at the entries."""

    before: ClassVar[str] = "SELECT place"
    meddle: ClassVar[list[Callable[[], object]]] = []

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # Any: as sqlite3 takes them
        if self.before in sql and self.meddle:
            self.meddle.pop()()
        return super().execute(sql, *parameters)


class Leaving(Meddling):
    """The same, before it has looked at anything."""

    before = "BEGIN"
    meddle: ClassVar[list[Callable[[], object]]] = []


@pytest.mark.parametrize("error", [None, SessionCorrupt("torn"), NotFound("torn"), sqlite3.DatabaseError("torn")])
def test_a_file_that_changes_while_it_is_read_alone(path: Path, error: Exception | None) -> None:
    """What was read of a file that had no log is read again if somebody wrote to it meanwhile, whatever came of it."""
    filled(path, 2)
    store = SQLiteStore(path)
    store._ways.factory = Meddling

    def write() -> None:
        with SQLiteStore(path) as other:
            journal = opened(other)
            journal.append([said(3)])
            journal.close()
        if error is not None:
            raise error

    Meddling.meddle[:] = [write]
    assert numbers_in(store) == [1, 2, 3]
    assert Meddling.meddle == []


@pytest.mark.parametrize("error", [SessionCorrupt("torn"), sqlite3.DatabaseError("torn")])
def test_an_error_of_a_file_that_does_not_change(path: Path, error: Exception) -> None:
    """Damage that is there though nobody writes is told at once."""

    def fail() -> None:
        raise error

    filled(path, 2)
    store = SQLiteStore(path)
    store._ways.factory = Meddling
    for log in (False, True):
        if log:
            opened(store)
        Meddling.meddle[:] = [fail]
        with pytest.raises((SessionCorrupt, StoreFailure), match="torn"):
            numbers_in(store)


def test_a_log_that_goes_away_in_that_moment(path: Path) -> None:
    """A log that its last writer took away between two looks is no error."""
    other = SQLiteStore(path)
    made(other).append([said(1)])
    reader = opened(SQLiteStore(path), read_only=True)
    reader._ways.factory = Leaving

    def leave() -> None:
        other.close()
        raise sqlite_error(sqlite3.SQLITE_CANTOPEN, "SQLITE_CANTOPEN")

    Leaving.meddle[:] = [leave]
    assert numbers(reader) == [1]
    assert Leaving.meddle == []


def test_waiting_for_a_lock_while_reading(path: Path) -> None:
    """A look that meets a lock is made again."""
    filled(path, 2)
    store = SQLiteStore(path)
    store._ways.factory = Meddling

    def locked() -> None:
        raise sqlite_error(sqlite3.SQLITE_BUSY, "SQLITE_BUSY")

    Meddling.meddle[:] = [locked]
    assert numbers_in(store) == [1, 2]


def test_a_commit_inside_a_commit(path: Path, failing: type[Failing]) -> None:
    """A signal handler that writes in the middle of its own thread's commit is refused; the commit is not harmed."""
    store = SQLiteStore(path)
    store._ways.factory = failing
    journal, other = made(store), made(store, "s-2")
    seen: list[GotatoError] = []

    def handler(sql: str) -> None:
        if sql.startswith("INSERT INTO entries") and not seen:
            with pytest.raises(StoreFailure, match="in the middle of a commit") as caught:
                other.append([entry(1)])
            seen.append(caught.value)
            store.close()  # leaves alone what is in use

    failing.fails = staticmethod(handler)
    journal.append([entry(1)])
    assert (numbers(journal), numbers(other), len(seen)) == ([1], [], 1)


# Rights. Root may do everything, so that these tests have to be somebody else for a moment.


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody can reach."""
    made_folder = Path(tempfile.mkdtemp())
    made_folder.chmod(0o755)
    yield made_folder
    made_folder.chmod(0o755)
    shutil.rmtree(made_folder)


def without_rights(folder: Path, act: Callable[[], object]) -> None:
    """Does that with the right to read the folder and its files, and no other."""
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(0o555)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        act()
    finally:
        os.seteuid(me)
        folder.chmod(0o755)
        for each in folder.iterdir():
            each.chmod(0o644)


def look_and_be_refused(path: Path) -> None:
    """Reads a session of three, and tries everything that writes."""
    store = SQLiteStore(path)
    assert numbers_in(store) == [1, 2, 3]
    assert [each.id for each in store.summaries()] == [ID]
    assert len(store.salvage_journal(ID)) == 4
    for write in (lambda: opened(store), lambda: made(store, "s-2"), lambda: store.search("a")):
        with pytest.raises(StoreFailure, match=r"readonly|unable to open"):
            write()


def test_reading_without_the_right_to_write(folder: Path) -> None:
    """A database in a folder that may not be written to can be read, and nothing of it is changed."""
    path = folder / "a.sqlite"
    filled(path, 3)
    before = contents(folder)
    without_rights(folder, lambda: look_and_be_refused(path))
    assert contents(folder) == before


def test_reading_beside_a_writer_without_the_right_to_write(folder: Path) -> None:
    """While somebody else has the database open, his commits can be read without any right to write."""
    path = folder / "a.sqlite"
    journal = made(SQLiteStore(path))
    journal.append([said(1), said(2), said(3)])
    text = """
    if os.geteuid() == 0:
        os.seteuid(65534)
    store = SQLiteStore(path)
    for turn in range(2):
        tell(numbers_in(store), len(list(store.summaries())))
        asked()
    for write in (lambda: opened(store, steal=True), lambda: made(store, "s-2")):
        try:
            write()
        except StoreFailure as error:
            tell("readonly" in error.message)
    os.seteuid(os.getuid())  # what measures the tests writes its own files at the end
    """
    for each in folder.iterdir():
        each.chmod(0o444)
    folder.chmod(0o555)
    with program(path, text) as reader:
        assert reader.line() == "[1, 2, 3] 1"
        journal.append([said(4)])
        reader.go()
        assert reader.line() == "[1, 2, 3, 4] 1"
        reader.go()
        assert reader.rest() == ["True", "True"]
    journal.append([said(5)])
    assert numbers(journal) == [1, 2, 3, 4, 5]


def test_a_log_that_was_left_without_the_right_to_write(folder: Path) -> None:
    """What a killed writer left in its log is never passed over: it is read, or the reader is told that he cannot."""
    path = folder / "a.sqlite"
    journal = made(SQLiteStore(path))
    journal.append([said(1), said(2)])
    copied = Path(shutil.copytree(folder, f"{folder}.copy")) / "a.sqlite"  # as a kill leaves it
    try:
        without_rights(copied.parent, lambda: assert_read(copied, [1, 2]))
        Path(f"{copied}-shm").unlink()

        def refused() -> None:
            with pytest.raises(StoreFailure, match="unable to open database file"):
                numbers_in(SQLiteStore(copied, busy_timeout=0.1))

        without_rights(copied.parent, refused)
        assert_read(copied, [1, 2])
    finally:
        shutil.rmtree(copied.parent)


def assert_read(path: Path, expected: list[int]) -> None:
    """These are the numbers in the database."""
    assert numbers_in(SQLiteStore(path)) == expected


def test_a_folder_without_rights_at_all(folder: Path) -> None:
    """A database that may not even be read is a `StoreFailure`, not an empty one."""
    path = folder / "a.sqlite"
    filled(path, 3)

    def refused() -> None:
        with pytest.raises(StoreFailure, match="unable to open database file"):
            list(SQLiteStore(path).summaries())

    path.chmod(0o000)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        refused()
    finally:
        os.seteuid(me)


def test_what_sqlite_says_is_told_as_ours() -> None:
    """Damage is `SessionCorrupt`, a lock is retryable, and everything else a plain `StoreFailure`, with its cause."""
    for error, kind, retryable in (
        (sqlite_error(sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"), SessionCorrupt, False),
        (sqlite_error(sqlite3.SQLITE_BUSY, "SQLITE_BUSY"), StoreFailure, True),
        (sqlite3.ProgrammingError("a"), StoreFailure, False),
    ):
        ours = told(error, "/a", "Store.open")
        assert (type(ours), ours.retryable, ours.cause, ours.operation) == (kind, retryable, error, "Store.open")
