"""`os.fork` and databases: the parent goes on, the child opens anew, and SQLite is not misled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .programs import output_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

FORKED = """
from threading import Event, Thread

def in_child(act):
    "Forks; the child does that, and exits as any program does. Returns its exit status."
    sys.stdout.flush()
    child = os.fork()
    if not child:
        act()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

store = SQLiteStore(path)
journal = made(store)
journal.append([entry(1)])

"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


def test_a_child_cannot_write_to_what_its_parent_opened(path: Path) -> None:
    """In the child every write is `ForkedProcess`, reading and closing are harmless, and the parent goes on."""
    text = """
    def act():
        for write in (lambda: journal.append([entry(2)]), journal.sync):
            try:
                write()
            except ForkedProcess as error:
                tell(error)
        tell(numbers(journal), journal.last_seq)
        journal.close()
        try:
            opened(store)
        except SessionBusy as error:
            tell("busy", error.pid == os.getppid())

    tell(in_child(act))
    journal.append([entry(2)])
    tell(numbers(journal))
    """
    refused = "the session s-1 was opened by the process that this one was forked from; open it here"
    assert output_of(path, FORKED, text) == [refused, refused, "[1] 1", "busy True", "0", "[1, 2]"]


def test_a_child_opens_the_same_store_anew(path: Path) -> None:
    """The store object works in the child, beside the parent's, and both keep what they commit."""
    text = """
    def act():
        mine = made(store, "s-2")
        mine.append([entry(1)])
        tell(sorted(each.id for each in store.summaries()))
        mine.close()

    tell(in_child(act), in_child(lambda: opened(store, "s-2").append([entry(2)])))
    journal.append([entry(2)])
    tell(numbers(journal), numbers_in(store, "s-2"))
    """
    assert output_of(path, FORKED, text) == ["['s-1', 's-2']", "0 0", "[1, 2] [1, 2]"]


def test_what_a_child_commits_survives_its_parents_closing(path: Path) -> None:
    """The parent's closing does not take the log from under the child, which SQLite's inherited tables would allow."""
    text = """
    told, tells = os.pipe()
    goes, go = os.pipe()
    child = os.fork()
    if not child:
        mine = made(store, "s-2")
        os.write(tells, b"x")
        os.read(goes, 1)
        mine.append([entry(1), entry(2)])
        mine.close()
        os._exit(0)
    os.read(told, 1)
    journal.close()
    store.close()
    import subprocess
    more = f"import sys; sys.path[:0] = {sys.path!r}\\nfrom tests.session.sqlite_store.journals import *\\n"
    more += "made(SQLiteStore(sys.argv[1]), 's-3').append([entry(1)])"
    subprocess.run([sys.executable, "-c", more, path], check=True)
    os.write(go, b"x")
    tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    tell(numbers_in(store, "s-2"), numbers_in(store, "s-3"))
    """
    assert output_of(path, FORKED, text) == ["0", "[1, 2] [1]"]


def test_forking_while_another_thread_commits(path: Path) -> None:
    """A fork waits for the commit of another thread, whose connection no child inherits; none is lost."""
    text = """
    stop = Event()

    def write():
        seq = 1
        while not stop.is_set():
            seq += 1
            journal.append([entry(seq)])
        tell(seq)

    writer = Thread(target=write)
    writer.start()

    def act(n):
        made(store, f"c-{n}").append([entry(1)])

    codes = [in_child(lambda: act(n)) for n in range(3)]
    stop.set()
    writer.join()
    tell(codes, len(numbers(journal)), len(list(store.summaries())))
    """
    last, rest = output_of(path, FORKED, text)
    assert rest == f"[0, 0, 0] {last} 4"


def test_a_fork_in_the_middle_of_a_commit(path: Path) -> None:
    """A signal handler that forks in the middle of its own thread's commit breaks nothing; that child is refused."""
    text = """
    import sqlite3
    codes = []

    def act():
        try:
            SQLiteStore(path).create_journal("s-2", head("s-2"))
        except ForkedProcess as error:
            tell(error.message.split(" ", 1)[1])
        tell(SQLiteStore(path + "2").summaries().__next__ is not None)

    class Forking(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if "INSERT INTO entries" in sql and not codes:
                codes.append(None)
                codes.append(in_child(act))
            return super().execute(sql, *parameters)

    store = SQLiteStore(path)
    store._ways.factory = Forking
    journal = opened(store, steal=True)
    journal.append([entry(2)])
    tell(codes[1:], numbers(journal))
    """
    refused = "was open when this process was forked, by something that did not tell Python"
    assert output_of(path, FORKED, text) == [
        f"{refused}; open it for the first time after the fork", "True", "[0] [1, 2]",
    ]  # fmt: skip


def test_a_fork_that_python_was_not_told_of(path: Path) -> None:
    """In such a child the database is refused, whatever store asks for it; the parent goes on."""
    text = """
    import ctypes
    sys.stdout.flush()
    child = ctypes.CDLL(None).fork()
    if not child:
        for act in (lambda: list(SQLiteStore(path).summaries()), lambda: made(store, "s-2")):
            try:
                act()
            except ForkedProcess:
                tell("refused")
        del store, journal
        sys.stdout.flush()
        sys.exit(0)
    tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    journal.append([entry(2)])
    tell(numbers(journal))
    """
    assert output_of(path, FORKED, text) == ["refused", "refused", "0", "[1, 2]"]
