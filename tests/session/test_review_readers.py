"""Reading while others write: it ends, it is of one moment, and it never stumbles over what is being added."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Set
from contextlib import contextmanager

import pytest

from gotato_py import ToolMessage, ToolResult
from gotato_session import Session
from gotato_session._log import Log
from gotato_session._state import State

from .failing_store import FailingStore
from .histories import answer, user
from .steps import AtStep, interrupt

READS: dict[str, Callable[[Session], object]] = {
    "fork": lambda session: session.fork().history,
    "check": lambda session: session.check(),
    "path": lambda session: session.path,
    "tree": lambda session: session.tree,
    "leaves": lambda session: session.leaves,
    "messages": lambda session: session.messages,
    "started": lambda session: list(session.started),
}


@contextmanager
def written_to(session: Session) -> Generator[None, None, None]:
    """A thread that commits as often as it can, some thousand times."""
    ended = threading.Event()

    def write() -> None:
        for number in range(2_000):
            session.append(user(f"w{number}"))
            session.mark_started(f"w{number}:0")
            if ended.is_set():
                break

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def test_what_is_looked_at_longer_than_writers_rest_is_seen_all_the_same() -> None:
    """A look during which another commit comes, every time, sees a state of its own in the end: all of one moment."""
    session = Session()
    session.append(user("u0"))
    log: Log = session._log
    seen: list[tuple[int, int]] = []

    def look(state: State) -> int:
        before = len(state.nodes)
        if len(seen) < 50:
            session.append(user(f"u{len(seen) + 1}"))
        seen.append((before, len(state.nodes)))
        return len(state.nodes)

    count = log.read(look)
    assert len(seen) < 10
    assert seen[-1] == (count, count)
    assert len(session.history) == count + 1


@pytest.mark.parametrize("name", READS)
def test_every_look_ends_under_a_writer_that_never_rests(name: str) -> None:
    """Forks, checks, paths and trees are made while another thread commits without a pause."""
    session = Session()
    for number in range(1_000):
        session.append(user(f"u{number}"))
    with written_to(session):
        for _ in range(10):
            READS[name](session)
    assert session.check() == []


def test_the_started_keys_can_be_walked_while_calls_start() -> None:
    """A walk sees what was there when it began; as a set it compares and combines."""
    session = Session()
    session.mark_started("a:0")
    session.mark_started("a:1")
    walked: list[str] = []
    for key in session.started:
        session.mark_started(f"b:{len(walked)}")
        walked.append(key)
    assert walked == ["a:0", "a:1"]
    assert session.started == {"a:0", "a:1", "b:0", "b:1"}
    started = session.started
    assert isinstance(started, Set)
    assert {"a:0"} < started
    assert started & {"a:0", "z"} == {"a:0"}
    assert "z" not in session.started
    assert len(session.started) == 4
    assert repr(session.started) == "{'a:0', 'a:1', 'b:0', 'b:1'}"


def test_a_session_that_is_closed_after_an_interrupt_still_knows_what_it_keeps() -> None:
    """Ctrl-C at any step of a commit, then `close`: what the session says then is what the store keeps, and nobody
    asks the closed journal."""
    number = 0
    while True:
        number += 1
        store = FailingStore()
        session = store.create("s")
        session.append(user("u1"))
        at_step = AtStep(number, interrupt)
        try:
            at_step(lambda session=session: session.append(answer("a1")))  # type: ignore[misc]  # bound now
        except KeyboardInterrupt:
            pass
        session.close()
        store.fail = OSError("nobody may ask")
        store.damage = _nobody
        said = session.path
        store.damage = None
        with store.open("s", read_only=True) as kept:
            assert kept.path == said
        if at_step.steps < number:
            break
    assert number > 50


def _nobody(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    raise AssertionError("the journal of a closed session was read")


def test_a_held_completion_may_come_while_a_look_places_the_others() -> None:
    """`check` of a session to which completions are added by another thread."""
    session = Session()
    session.append(user("u"))
    session.append(answer("a", calls=200))
    for index in range(200):
        session.append(ToolMessage(ToolResult("same", "pending", "later", key=f"a:{index}"), id=f"t{index}"))
    session.begin_run("r")

    def complete() -> None:
        for index in range(200):
            session.complete_call(f"a:{index}", "done")

    thread = threading.Thread(target=complete)
    thread.start()
    while thread.is_alive():
        assert session.check() == []
    thread.join()
    assert session.check() == []
