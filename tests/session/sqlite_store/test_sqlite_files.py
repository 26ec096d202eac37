"""Files that are not ours, or not any more: told apart before anything of them is touched."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gotato_py import GotatoError, NotSupported, SessionCorrupt, StoreFailure
from gotato_session._sqlite_schema import APPLICATION_ID, VERSION
from gotato_session.sqlite_store import SQLiteStore

from .journals import ID, change, contents, entry, filled, made, numbers_in, opened, raw
from .programs import program


def assert_refused(path: Path, kind: type[GotatoError], match: str) -> None:
    """Every way to use the file raises that, and no byte of the folder is changed."""
    before = contents(path.parent)
    store = SQLiteStore(path, busy_timeout=1.0)
    for use in (
        lambda: opened(store),
        lambda: opened(store, read_only=True),
        lambda: made(store),
        lambda: list(store.summaries()),
        lambda: store.delete_journal(ID),
        lambda: store.search("a"),
        lambda: store.purge(older_than=0),
        lambda: store.salvage_journal(ID),
        store.vacuum,
    ):
        with pytest.raises(kind, match=match):
            use()
    assert contents(path.parent) == before


@pytest.mark.parametrize("data", [b"{}", b"\0" * 5000, b"SQLite format 3\0" + b"x" * 5000, b"x" * 100_000])
def test_what_is_no_database(tmp_path: Path, data: bytes) -> None:
    """A file that is no database is `SessionCorrupt`, and stays as it is."""
    path = tmp_path / "a.sqlite"
    path.write_bytes(data)
    assert_refused(path, SessionCorrupt, "is damaged, or no database")


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(("application", "version"), [(0, 0), (0, 1), (77, 0), (77, 1), (77, 99)])
def test_another_applications_database(tmp_path: Path, mode: str, application: int, version: int) -> None:
    """A database of another application is `SessionCorrupt`, in any mode and version, and stays as it is."""
    path = tmp_path / "a.sqlite"
    with raw(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"PRAGMA application_id = {application}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("CREATE TABLE sessions (x)")
    assert_refused(path, SessionCorrupt, "is a database of another application; it was left as it is")


def test_another_applications_log(tmp_path: Path) -> None:
    """The log of another application that writes just now, or was killed, is not touched either."""
    path = tmp_path / "a.sqlite"
    with raw(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO t VALUES (1)")
        assert len(list(tmp_path.iterdir())) == 3
        assert_refused(path, SessionCorrupt, "another application")
        assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_newer_database(tmp_path: Path) -> None:
    """A database of a newer release is `NotSupported`, told by its version, and stays as it is."""
    path = tmp_path / "a.sqlite"
    filled(path, 3)
    change(path, f"PRAGMA user_version = {VERSION + 1}")
    with raw(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert_refused(path, NotSupported, f"written by a newer release: its tables have version {VERSION + 1}")


def test_a_database_without_tables_is_used(tmp_path: Path) -> None:
    """A file that holds nothing, or a database without tables, becomes ours."""
    for name, sql in (("empty", ""), ("bare", "PRAGMA journal_mode = WAL"), ("vacuumed", "VACUUM")):
        path = tmp_path / name
        path.touch()
        with raw(path) as connection:
            connection.execute(sql)
        store = SQLiteStore(path)
        assert list(store.summaries()) == []
        made(store).append([entry(1)])
        assert numbers_in(store) == [1]


def test_what_is_ours_says_so(tmp_path: Path) -> None:
    """The header of the file itself holds the application's id and the version, and the log is on."""
    path = tmp_path / "a.sqlite"
    filled(path, 1)
    data = path.read_bytes()
    assert (data[60:64], data[68:72]) == (VERSION.to_bytes(4, "big"), APPLICATION_ID.to_bytes(4, "big"))
    assert data[18:20] == b"\2\2"


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    """A path that is a folder, or that leads through a folder that is not there, is a `StoreFailure`."""
    with pytest.raises(StoreFailure, match="failed: "):
        made(SQLiteStore(tmp_path))
    with pytest.raises(StoreFailure, match="unable to open database file"):
        made(SQLiteStore(tmp_path / "none" / "a.sqlite"))
    assert list(SQLiteStore(tmp_path / "none" / "a.sqlite").summaries()) == []


def test_killed_while_making_the_tables(tmp_path: Path) -> None:
    """Tables that were half made when their process was killed are taken back, by whoever looks first."""
    path = tmp_path / "a.sqlite"
    text = f"""
    import sqlite3
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = {VERSION}")
    connection.execute("CREATE TABLE sessions (x)")
    connection.execute("INSERT INTO sessions VALUES (randomblob(100000))")  # more than fits: it goes to the file
    tell("half")
    asked()
    """
    for use in (lambda store: list(store.summaries()), made):
        with program(path, text) as maker:
            maker.line()
            maker.process.kill()
        assert path.stat().st_size > 0
        use(SQLiteStore(path))
    assert [each.id for each in SQLiteStore(path).summaries()] == [ID]


def test_a_journal_file_without_content_is_no_hindrance(tmp_path: Path) -> None:
    """A rollback journal that says nothing, left beside the database, changes nothing."""
    path = tmp_path / "a.sqlite"
    filled(path, 2)
    (tmp_path / "a.sqlite-journal").touch()
    assert numbers_in(SQLiteStore(path)) == [1, 2]


def test_tables_that_are_made_just_now(tmp_path: Path) -> None:
    """Whoever looks while another process makes the tables waits for them, up to `busy_timeout`."""
    path = tmp_path / "a.sqlite"
    filled(path, 2)
    with raw(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE more (x)")
        assert (tmp_path / "a.sqlite-journal").exists()
        with pytest.raises(StoreFailure, match="is locked") as caught:
            opened(SQLiteStore(path, busy_timeout=0.0), read_only=True)
        assert caught.value.retryable
        assert isinstance(caught.value.cause, sqlite3.OperationalError)
        connection.execute("ROLLBACK")
    assert numbers_in(SQLiteStore(path)) == [1, 2]
