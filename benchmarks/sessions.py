"""The rows of sessions: what a commit costs beside a bare write, and what long sessions and many of them cost."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Effort, Figure, Goal, Measured, Row, paired, spread
from benchmarks.ours import LOOKUP, UNBOUNDED, OurModel
from benchmarks.turns import floor_turn
from benchmarks.work import ROUNDS, Script

from gotato_py import Agent, AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, UserMessage
from gotato_session import FileStore, SQLiteStore, Store

COMMITS = 40
"""Commits in one figure."""
TEXT = "x" * 400

Make = Callable[[Path], Store]
"""Makes a store in a folder."""


def files(folder: Path) -> Store:
    """Journals that nobody waits for."""
    return FileStore(folder, sync="never")


def database(folder: Path) -> Store:
    """A database that nobody waits for."""
    return SQLiteStore(folder / "sessions.db", sync="never")


@contextmanager
def a_folder() -> Generator[Path]:
    """A folder for the time of a figure, on the disk of this checkout rather than in memory."""
    with TemporaryDirectory(dir=Path(__file__).parent) as folder:
        yield Path(folder)


def session_turn(effort: Effort) -> Measured:
    """A model turn of an agent whose transcript is a session in a file, three commits a turn."""

    def ours() -> float:
        with a_folder() as folder:
            sessions = [files(folder).create() for _ in range(8)]
            agents = [
                Agent(OurModel(Script(ROUNDS)), tools=[LOOKUP], limits=UNBOUNDED, transcript=session)
                for session in sessions
            ]
            began = time.thread_time()
            for agent in agents:
                agent.run("go")
            took = time.thread_time() - began
            for session in sessions:
                session.close()
            return took / (len(agents) * (ROUNDS + 1)) * 1e6

    return paired(floor_turn(ROUNDS, 8), ours, effort.times(20))


def _commits(store: Store) -> float:
    """Microseconds of wall time a commit of a user message."""
    with store.create() as session:
        session.append(UserMessage("warm"))
        messages = [UserMessage(TEXT, id=f"m-{number}") for number in range(COMMITS)]
        began = time.perf_counter()
        for message in messages:
            session.append(message)
        return (time.perf_counter() - began) / COMMITS * 1e6


def _line(number: int) -> bytes:
    entry = {"seq": number, "message": {"role": "user", "parts": [{"kind": "text", "text": TEXT}], "id": f"m-{number}"}}
    return dumps(entry).encode() + b"\n"


def file_commit(effort: Effort) -> Measured:
    """A durable commit to a file, beside `write` and `fsync` of as many bytes."""

    def floor() -> float:
        with a_folder() as folder:
            file = os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            try:
                lines = [_line(number) for number in range(COMMITS)]
                began = time.perf_counter()
                for line in lines:
                    os.write(file, line)
                    os.fsync(file)
                return (time.perf_counter() - began) / COMMITS * 1e6
            finally:
                os.close(file)

    def ours() -> float:
        with a_folder() as folder:
            return _commits(FileStore(folder))

    return paired(floor, ours, effort.times(40))


def sqlite_commit(effort: Effort) -> Measured:
    """A durable commit to a database, beside a bare insert of as many bytes in a transaction of its own."""

    def floor() -> float:
        with a_folder() as folder:
            connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("CREATE TABLE entries (session TEXT, seq INTEGER, entry TEXT)")
                lines = [_line(number).decode() for number in range(COMMITS)]
                began = time.perf_counter()
                for number, line in enumerate(lines):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", ("s", number, line))
                    connection.execute("COMMIT")
                return (time.perf_counter() - began) / COMMITS * 1e6
            finally:
                connection.close()

    def ours() -> float:
        with a_folder() as folder, SQLiteStore(folder / "sessions.db") as store:
            return _commits(store)

    return paired(floor, ours, effort.times(40))


@cache
def history(count: int) -> Sequence[Message]:
    """That many messages, a call and its result among every four."""
    made: list[Message] = []
    for number in range(count // 4):
        key = f"a{number}"
        made.append(UserMessage("Look it up.", id=f"u{number}"))
        made.append(AssistantMessage((), [ToolCall("c1", "lookup", '{"key": "k1"}')], id=key))
        made.append(ToolMessage(ToolResult("c1", "ok", "found it " * 8, key=f"{key}:0"), id=f"t{number}"))
        made.append(AssistantMessage("It says that it was found.", id=f"b{number}"))
    return made


def long_session(make: Make, what: Callable[[Store], float]) -> Callable[[Effort], Measured]:
    """Something about a session of 100,000 messages."""

    def measure(effort: Effort) -> Measured:
        with a_folder() as folder:
            store = make(folder)
            with store.create("long") as session:
                for message in history(4_000 if effort.quick else 100_000):
                    session.append(message)
            return Measured(spread([what(store) for _ in range(effort.times(7))]))

    return measure


def opened(store: Store) -> float:
    """Seconds of CPU to open it."""
    began = time.process_time()
    with store.open("long"):
        return time.process_time() - began


def forked(store: Store) -> float:
    """Milliseconds of CPU to fork it."""
    with store.open("long") as session:
        began = time.process_time()
        with session.fork():
            return (time.process_time() - began) * 1e3


def growth(effort: Effort) -> Measured:
    """A commit to a session of 50,000 messages, beside one to a new session."""

    def per_commit(before: int) -> Figure:
        def figure() -> float:
            with a_folder() as folder, files(folder).create() as session:
                for message in history(before):
                    session.append(message)
                messages = [UserMessage(TEXT, id=f"m-{number}") for number in range(1_000)]
                began = time.thread_time()
                for message in messages:
                    session.append(message)
                return (time.thread_time() - began) / len(messages) * 1e6

        return figure

    return paired(per_commit(0), per_commit(2_000 if effort.quick else 50_000), effort.times(5))


def listing(make: Make) -> Callable[[Effort], Measured]:
    """Seconds to list 10,000 sessions."""

    def measure(effort: Effort) -> Measured:
        count = 200 if effort.quick else 10_000
        with a_folder() as folder:
            store = make(folder)
            for number in range(count):
                with store.create(metadata={"user": f"u{number % 10}"}) as session:
                    session.append(UserMessage(TEXT))

            def listed() -> float:
                began = time.perf_counter()
                found = len(list(store.list()))
                took = time.perf_counter() - began
                if found != count:
                    raise AssertionError(found)
                return took

            return Measured(spread([listed() for _ in range(effort.times(5))]))

    return measure


TURN = Goal(40, 20, of="ratio")
COMMIT = Goal(1.3, 1.1, of="ratio")
INSERT = Goal(2, 1.3, of="ratio")
ROWS = (
    Row("session", "model turn into a file session (three commits)", "µs", TURN, session_turn),
    Row("file-commit", "durable commit to a file, beside write + fsync", "µs", COMMIT, file_commit),
    Row("sqlite-commit", "durable commit to SQLite, beside a bare insert", "µs", INSERT, sqlite_commit),
    Row(
        "commit-growth",
        "commit to a session of 50,000 messages, beside a new one",
        "µs",
        Goal(1.4, 1.1, of="ratio"),
        growth,
    ),
    Row("file-open", "open 100,000 messages from a file", "s", Goal(2, 1), long_session(files, opened)),
    Row("sqlite-open", "open 100,000 messages from SQLite", "s", Goal(2, 1), long_session(database, opened)),
    Row("file-fork", "fork a session of 100,000 messages", "ms", Goal(50, 10), long_session(files, forked)),
    Row("file-list", "list 10,000 sessions in files", "s", Goal(1, 0.5), listing(files)),
    Row("sqlite-list", "list 10,000 sessions in SQLite", "s", Goal(1, 0.5), listing(database)),
)
