"""A session under interrupts, signal handlers, threads and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gotato_py import Busy, InvalidState, WaitingCall
from gotato_session import Session
from gotato_session._entries import MetadataEntry
from gotato_session._log import Log
from gotato_session._state import State
from gotato_testkit import ManualClock

from .histories import answer, result, run_record, summary, user
from .steps import AtStep, at_each_step, interrupt, only_bytecodes

ROOT = Path(__file__).resolve().parents[2]

SCRIPT: list[Callable[[Session], object]] = [
    lambda session: session.begin_run("r1"),
    lambda session: session.append(user("u1")),
    lambda session: session.append(answer("a1", calls=2)),
    lambda session: session.mark_started("a1:0"),
    lambda session: session.append(result("t1", "a1:0")),
    lambda session: session.mark_waiting([WaitingCall("a1:1")]),
    lambda session: session.replace(summary("u1", "s1")),
    lambda session: session.append(result("t2", "a1:1")),
    lambda session: session.append(answer("a2")),
    lambda session: session.replace(summary("a2", "s2")),
    lambda session: session.set("k", 1),
    lambda session: session.label("l"),
    lambda session: session.end_run(run_record("r1", 1)),
]
"""One of each thing that can be done to a session, in an order that is allowed."""


def seen(session: Session) -> list[object]:
    """Everything that can be read, and whether a run has the session."""
    try:
        session.begin_run("probe")
    except Busy as busy:
        holder = busy.run_id
    else:
        session.end_run(run_record("probe"))
        holder = ""
    return [
        [message.id for message in session.messages],
        [message.id for message in session.history],
        sorted(session.started),
        session.waiting,
        [each.summary.id for each in session.compactions],
        [each for each in session.runs if each.run_id != "probe"],
        session.usage,
        session.metadata,
        session.labels,
        session.check(),
        holder,
    ]


def prepared(number: int) -> Session:
    """A session after so many operations."""
    session = Session()
    for operation in SCRIPT[:number]:
        operation(session)
    return session


def count_steps(number: int, *, opcodes: bool) -> int:
    """How many steps of the session's code an operation takes."""
    session, counted = prepared(number), AtStep(0, interrupt, opcodes=opcodes)
    counted(lambda: SCRIPT[number](session))
    return counted.steps


def foretold() -> list[list[object]]:
    """What is seen after each number of operations, on a session that nothing disturbs."""
    session = Session()
    after = [seen(session)]
    for operation in SCRIPT:
        operation(session)
        after.append(seen(session))
    return after


@at_each_step
def test_an_interrupt_leaves_all_of_an_operation_or_nothing(opcodes: bool) -> None:
    """Ctrl-C before any line and any bytecode: the session is as before the operation or as after it, and goes on.

    `end_run` does two things, it records and lets go; either may be there alone, and it can be called again.
    """
    after = foretold()
    for number, operation in enumerate(SCRIPT):
        allowed = after[number], after[number + 1]
        for step in range(1, count_steps(number, opcodes=opcodes) + 1):
            session = prepared(number)
            with pytest.raises(KeyboardInterrupt):
                AtStep(step, interrupt, opcodes=opcodes)(partial(operation, session))
            found = seen(session)
            assert found[:-1] in [each[:-1] for each in allowed], f"operation {number}, step {step}"
            assert found[-1] in [each[-1] for each in allowed], f"operation {number}, step {step}"
            if found != after[number + 1]:
                operation(session)
            for later in SCRIPT[number + 1 :]:
                later(session)
            assert seen(session) == after[-1], f"operation {number}, step {step}"


@at_each_step
def test_a_signal_handler_may_read_and_write_anywhere(opcodes: bool) -> None:
    """Whatever it interrupts, a handler sees a whole session, and what it writes is kept beside what it interrupted."""
    after = foretold()
    for number, operation in enumerate(SCRIPT):
        for step in range(1, count_steps(number, opcodes=opcodes) + 1, 5 if opcodes else 1):
            session = prepared(number)
            found: list[object] = []

            def handler(session: Session = session, found: list[object] = found) -> None:
                found.append(seen(session)[:5])
                session.set("handled", True)

            AtStep(step, handler, opcodes=opcodes)(partial(operation, session))
            assert found[0] in (after[number][:5], after[number + 1][:5])
            assert session.get("handled") is True
            for later in SCRIPT[number + 1 :]:
                later(session)
            assert seen(session)[:7] == after[-1][:7], f"operation {number}, step {step}"


@only_bytecodes
def test_a_run_that_was_interrupted_while_it_began_has_nothing() -> None:
    """Ctrl-C in `begin_run` leaves the session free, but for the bytecodes that return: no signal is seen there."""
    steps = count_steps(0, opcodes=True)
    held: list[int] = []
    for step in range(1, steps + 1):
        session = Session()
        with pytest.raises(KeyboardInterrupt):
            AtStep(step, interrupt, opcodes=True)(partial(SCRIPT[0], session))
        if seen(session)[-1]:
            held.append(step)
    assert all(step > steps - 4 for step in held)


@only_bytecodes
def test_check_sees_a_whole_session() -> None:
    """What comes in the middle of `check` is not seen half: neither with the old messages nor with the old marks."""

    def go_on(session: Session) -> None:
        session.append(result("t2", "a1:1"))
        session.append(user("u2"))

    for step in range(1, 200):
        session = prepared(6)
        found: list[object] = []

        def look(session: Session = session, found: list[object] = found) -> None:
            found.extend(session.check())

        AtStep(step, partial(go_on, session), opcodes=True)(look)
        assert found == []


def try_to_begin(session: Session, won: list[str], run_id: str) -> None:
    """Begins a run, if no other one has the session."""
    try:
        session.begin_run(run_id)
    except Busy:
        return
    won.append(run_id)


@at_each_step
def test_a_run_that_begins_in_a_handler_is_not_lost(opcodes: bool) -> None:
    """Two runs that want the session at the same time: one of them has it, whoever comes between."""
    for step in range(1, count_steps(0, opcodes=opcodes) + 1):
        session = Session()
        won: list[str] = []
        begin = partial(try_to_begin, session, won)
        AtStep(step, partial(begin, "r2"), opcodes=opcodes)(partial(begin, "r1"))
        assert won in (["r1"], ["r2"])
        assert seen(session)[-1] == won[0]


def test_readers_in_other_threads_see_a_whole_session() -> None:
    """While one thread commits, another reads histories that only grow and fit together."""
    session = Session()
    wrong: list[object] = []
    stop = threading.Event()

    def read() -> None:
        known = 0
        while not stop.is_set():
            history, problems = session.history, session.check()
            numbers = [int(message.id[1:]) for message in history]
            if numbers != list(range(len(numbers))) or len(numbers) < known or problems:
                wrong.append((numbers, known, problems))
            known = len(numbers)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        session.append(user(f"u{number}"))
        session.mark_started(f"k{number}")
        if number % 50 == 49:
            session.replace(summary(f"u{number - 1}", f"s{number}"))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(session.messages) == 2


def test_writers_in_many_threads_lose_nothing() -> None:
    """Marks, values and runs of several threads are all there, and one run at a time has had the session."""
    session = Session()
    refused: list[str] = []
    inside: list[str] = []

    def write(name: str) -> None:
        for number in range(50):
            session.mark_started(f"{name}:{number}")
            session.set(name, number)
            try:
                session.begin_run(f"{name}-{number}")
            except Busy:
                refused.append(name)
            else:
                inside.append(name)
                assert len(inside) == 1
                inside.pop()
                session.end_run(run_record(f"{name}-{number}", 1))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.started) == 200
    assert session.metadata == dict.fromkeys("abcd", 49)
    assert len(session.runs) == 200 - len(refused) == session.usage.input_tokens


def test_a_session_closed_by_another_thread_takes_no_more() -> None:
    """Once `close` has been called, the next write of any thread is refused."""
    session = Session()
    closer = threading.Thread(target=session.close)
    closer.start()
    closer.join()
    with pytest.raises(InvalidState):
        session.append(user("u1"))


def test_whoever_comes_second_looks_again() -> None:
    """An entry that was made when another one came first is made again, of what is there now."""
    log = Log("the log", partial(State, {}), ManualClock())
    seen_before: list[dict[str, str]] = []

    def build(state: State, time: float) -> tuple[MetadataEntry]:
        seen_before.append(dict(state.values))
        if len(seen_before) == 1:
            log.commit("test", lambda state, time: (MetadataEntry(state.seq + 1, time, {"first": "1"}),))
        return (MetadataEntry(state.seq + 1, time, {**state.values, "second": "2"}),)

    [made] = log.commit("test", build)
    assert made.seq == 2
    assert seen_before == [{}, {"first": "1"}]
    assert log.state.values == {"first": "1", "second": "2"}


FORKING = """
import os
from gotato_py import ForkedProcess, UserMessage
from gotato_session import Session
session = Session("s-1", metadata={"k": 1})
session.append(UserMessage("hi", id="u1"))
session.begin_run("r-1")
child = os.fork()
if child == 0:
    writes = [lambda: session.append(UserMessage("no")), lambda: session.set("k", 2), lambda: session.begin_run("r")]
    for write in writes:
        try:
            write()
        except ForkedProcess as error:
            assert str(error).startswith("the session s-1 belongs to the process that opened it"), error
        else:
            raise AssertionError
    session.close()
    assert Session("s-1").append(UserMessage("mine")).text == "mine"
else:
    assert os.waitpid(child, 0)[1] == 0
    session.append(UserMessage("more", id="u2"))
assert [message.id for message in session.messages] == ["u1", "u2"][: 1 + (child != 0)]
assert session.get("k") == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_can_read_and_not_write() -> None:
    """In a child every write is ForkedProcess; what was there can be read, and the parent goes on undisturbed."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("gotato_py", "session"))
    command = [sys.executable, "-W", "error", "-c", FORKING]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
