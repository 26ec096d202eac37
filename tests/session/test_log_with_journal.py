"""A session in a store under interrupts, signal handlers and threads: memory and store stay equal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from gotato_py import InvalidState, WaitingCall
from gotato_session import MemoryStore, Session

from .histories import answer, result, run_record, summary, user
from .steps import AtStep, at_each_step, interrupt

SCRIPT: list[Callable[[Session], object]] = [
    lambda session: session.append(user("u1")),
    lambda session: session.append(answer("a1", calls=2)),
    lambda session: session.mark_started("a1:0"),
    lambda session: session.append(result("t1", "a1:0")),
    lambda session: session.mark_waiting([WaitingCall("a1:1")]),
    lambda session: session.append(result("t2", "a1:1")),
    lambda session: session.replace(summary("u1", "s1")),
    lambda session: session.append(answer("a2")),
    lambda session: session.branch("a1"),
    lambda session: session.set("k", 1),
    lambda session: session.label("l"),
    lambda session: session.end_run(run_record("r1", 1)),
]
"""One of each thing that is committed, in an order that is allowed."""


def numbered_ids() -> Callable[[str], str]:
    """Ids that are the same in each store."""
    made: list[str] = []

    def make(kind: str) -> str:
        made.append(kind)
        return f"{kind}-{len(made)}"

    return make


def prepared(number: int) -> tuple[MemoryStore, Session]:
    """A store, and a session in it after so many operations."""
    store = MemoryStore()
    store.ids = numbered_ids()
    session = store.create("s")
    for operation in SCRIPT[:number]:
        operation(session)
    return store, session


def seen(session: Session) -> list[object]:
    """What can be read; ids of messages that the session made itself do not count."""
    return [
        [type(message).__name__ for message in session.messages],
        [message.id if len(message.id) == 2 else "" for message in session.history],
        sorted(session.started),
        session.waiting,
        [each.summary.id for each in session.compactions],
        len(session.path),
        [record.run_id for record in session.runs],
        session.usage,
        session.metadata,
        sorted(session.labels),
        session.check(),
    ]


def stored(store: MemoryStore) -> list[object]:
    """What another process would read."""
    with store.open("s", read_only=True) as session:
        return seen(session)


def count_steps(number: int, *, opcodes: bool) -> int:
    """How many steps of the session's code an operation takes."""
    _, session = prepared(number)
    counted = AtStep(0, interrupt, opcodes=opcodes)
    counted(lambda: SCRIPT[number](session))
    return counted.steps


def foretold() -> list[list[object]]:
    """What is seen after each number of operations, when nothing disturbs."""
    return [seen(prepared(number)[1]) for number in range(len(SCRIPT) + 1)]


@at_each_step
def test_an_interrupt_leaves_memory_and_store_equal(opcodes: bool) -> None:
    """Ctrl-C before any line and any bytecode of a commit: all of it is there or nothing, in memory as in the store,
    and the session goes on."""
    after = foretold()
    for number, operation in enumerate(SCRIPT):
        for step in range(1, count_steps(number, opcodes=opcodes) + 1, 7 if opcodes else 1):
            store, session = prepared(number)
            with pytest.raises(KeyboardInterrupt):
                AtStep(step, interrupt, opcodes=opcodes)(partial(operation, session))
            found = seen(session)
            assert found in (after[number], after[number + 1]), f"operation {number}, step {step}"
            assert stored(store) == found, f"operation {number}, step {step}"
            if found == after[number]:
                operation(session)
            for later in SCRIPT[number + 1 :]:
                later(session)
            assert seen(session) == after[-1] == stored(store), f"operation {number}, step {step}"


def test_a_handler_in_the_middle_of_a_commit_may_read_and_is_told_that_it_cannot_write() -> None:
    """A signal handler sees a whole session at any line; what it writes is kept, or refused before anything is."""
    after = foretold()
    refusals = 0
    for number, operation in enumerate(SCRIPT):
        for step in range(1, count_steps(number, opcodes=False) + 1):
            store, session = prepared(number)
            found: list[object] = []
            refused: list[str] = []

            def handler(session: Session = session, found: list[object] = found, refused: list[str] = refused) -> None:
                found.append(seen(session))
                try:
                    session.set("handled", True)
                except InvalidState as error:
                    refused.append(str(error))

            AtStep(step, handler)(partial(operation, session))
            assert found[0] in (after[number], after[number + 1]), f"operation {number}, step {step}"
            assert session.get("handled") is (None if refused else True)
            assert all("in the middle of a commit" in text for text in refused)
            assert stored(store) == seen(session)
            refusals += len(refused)
    assert refusals


def test_a_handler_that_closes_in_the_middle_of_a_commit_lets_the_session_go_at_its_end() -> None:
    """Whatever line is interrupted by `close`, the commit is whole or refused, and the next owner gets the session."""
    for step in range(1, count_steps(0, opcodes=False) + 1):
        store, session = prepared(0)

        def act(session: Session = session) -> None:
            try:
                SCRIPT[0](session)
            except InvalidState:
                pass

        AtStep(step, session.close)(act)
        with store.open("s") as again:
            assert seen(again) == seen(session)


def test_threads_that_write_take_turns() -> None:
    """What several threads commit is all there, in the store as in memory."""
    store, session = prepared(0)

    def write(name: str) -> None:
        for number in range(50):
            session.mark_started(f"{name}:{number}")
            session.set(name, number)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.started) == 200
    assert session.metadata == dict.fromkeys("abcd", 49)
    assert stored(store) == seen(session)


def test_readers_never_wait_for_the_disk() -> None:
    """While a commit is on its way to a slow store, another thread reads what was there before."""
    arrived, go_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        """Its journals keep nothing before they may."""

        def open_journal(self, id: str, owner: str, read_only: bool, steal: bool):  # type: ignore[no-untyped-def]
            journal = super().open_journal(id, owner, read_only, steal)
            keep = journal.append

            class Waiting:
                lease = journal.lease
                last_seq = 0
                entries = staticmethod(journal.entries)
                sync = staticmethod(journal.sync)
                close = staticmethod(journal.close)

                @staticmethod
                def append(entries: object) -> None:
                    arrived.set()
                    go_on.wait()
                    keep(entries)  # type: ignore[arg-type]

            return Waiting()

    session = Slow().create("s")
    writer = threading.Thread(target=session.append, args=(user("u1"),))
    writer.start()
    arrived.wait()
    assert list(session.messages) == []
    assert session.check() == []
    go_on.set()
    writer.join()
    assert [message.id for message in session.messages] == ["u1"]
