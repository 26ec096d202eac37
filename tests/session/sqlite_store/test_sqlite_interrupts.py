"""Ctrl-C before every line of what a store does: nobody is blocked by it, and what is kept can be asked."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_session._sqlite_journal import SQLiteJournal
from gotato_session.sqlite_store import SQLiteStore

from .interrupts import LineInterrupt
from .journals import entry, filled, head, made, numbers, numbers_in, opened, raw

STEP = {"dev": 3, "ci": 2}.get(os.environ.get("HYPOTHESIS_PROFILE", "dev"), 1)
"""Every which line is tried of what opens a database: all but in the profiles for every day."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


def assert_nobody_is_blocked(path: Path) -> None:
    """Another connection can write at once."""
    with raw(path) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


def at_every_line(act: Callable[[], object], check: Callable[[], object], step: int = 1) -> None:
    """Does that again and again, interrupted so many lines later each time, until it comes to its end, and checks."""
    number = 0
    while True:
        number += step
        line = LineInterrupt(number)
        came_out = line(act)
        assert came_out == bool(line.where), line.where
        try:
            check()
        except (AssertionError, sqlite3.Error) as error:
            raise AssertionError(f"after {line.where}: {error}") from error
        if not line.where:
            break
    assert number > 15


@pytest.mark.parametrize("anew", [False, True], ids=["connected", "unconnected"])
def test_an_append(path: Path, anew: bool) -> None:
    """Before any line of `append`: a whole commit is kept or nothing, `last_seq` tells which, and the next works."""
    store = SQLiteStore(path, sync="never")
    journal = made(store)
    kept = 0

    def act() -> None:
        journal.append([entry(kept + 1), entry(kept + 2)])

    def check() -> None:
        nonlocal kept
        assert_nobody_is_blocked(path)
        assert journal.last_seq in (kept, kept + 2)
        kept = journal.last_seq
        journal.append([entry(kept + 1)])
        kept += 1
        if anew:
            store.close()

    at_every_line(act, check)
    assert numbers(journal) == list(range(1, kept + 1))


def test_the_end_of_a_run(path: Path) -> None:
    """Before any line of `sync`: nothing is kept or lost by it, and nobody is blocked."""
    store = SQLiteStore(path, sync="run")
    journal = made(store)
    journal.append([entry(1)])
    at_every_line(journal.sync, lambda: assert_nobody_is_blocked(path))
    journal.append([entry(2)])
    assert numbers(journal) == [1, 2]


def test_opening(path: Path) -> None:
    """Before any line of opening: who did not get the journal does not hold it, and the next one gets it."""
    store = filled(path, 2)

    def check() -> None:
        assert_nobody_is_blocked(path)
        journal = opened(store)
        assert numbers(journal) == [1, 2]
        journal.close()
        store.close()

    at_every_line(lambda: opened(store), check, STEP)


def test_closing(path: Path) -> None:
    """Before any line of `close`: closing once more lets the session go."""
    store = filled(path, 2)
    journals: list[SQLiteJournal] = []

    def check() -> None:
        assert_nobody_is_blocked(path)
        journals[-1].close()
        with raw(path) as connection:
            assert connection.execute("SELECT owner FROM sessions").fetchone() == (None,)
        journals.append(opened(store))

    journals.append(opened(store))

    def act() -> None:
        journals[-1].close()

    at_every_line(act, check)


def test_making_and_deleting(tmp_path: Path) -> None:
    """Before any line of making a database and a session, or of deleting one: it is there as a whole, or not at all."""
    made_here = 0

    def path() -> Path:
        return tmp_path / f"{made_here}.sqlite"

    def check() -> None:
        nonlocal made_here
        store = SQLiteStore(path())
        found = [each.id for each in store.summaries()]
        assert found in ([], ["s-1"])
        if not found:
            made(store).close()
        assert numbers_in(store) == []
        assert_nobody_is_blocked(path())
        made_here += 1

    at_every_line(lambda: SQLiteStore(path(), sync="never").create_journal("s-1", head()), check, STEP)

    here = path()
    store = SQLiteStore(here, sync="never")
    made(store).append([entry(1)])

    def check_deleted() -> None:
        found = [each.id for each in store.summaries()]
        assert found in ([], ["s-1"])
        if not found:
            made(store).append([entry(1)])
        assert numbers_in(store) == [1]
        assert_nobody_is_blocked(here)

    at_every_line(lambda: store.delete_journal("s-1"), check_deleted, STEP)


def test_reading(path: Path) -> None:
    """Before any line of reading: no connection is left that somebody would have to wait for."""
    store = filled(path, 2)
    reader = opened(store, read_only=True)

    def check() -> None:
        with raw(path) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA journal_mode = WAL")  # each asks to be alone with the file

    at_every_line(reader.entries, check, STEP)
    assert numbers(reader) == [1, 2]
