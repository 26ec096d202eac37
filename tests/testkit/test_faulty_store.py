"""A store whose operations fail by plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from gotato_py import InvalidArgument, StoreFailure, UserMessage
from gotato_session import MemoryStore
from gotato_testkit import Fault, FaultPlan, FaultyStore, ManualClock
from gotato_testkit.contracts import StoreContract

T = TypeVar("T")


class TestFaultyStore(StoreContract):
    """A store whose faults are yet to come keeps the promises of a store."""

    examples = 2

    @pytest.fixture(autouse=True)
    def folder(self) -> None:
        """One store for each test."""
        self.store = FaultyStore(MemoryStore(), FaultPlan())

    def make(self) -> FaultyStore:
        """The store itself."""
        return self.store


def test_the_arguments_are_checked() -> None:
    """What is no store, and a plan that cannot be asked, are told by name."""
    with pytest.raises(InvalidArgument, match=r"FaultyStore.store must be a StoreBase, not int"):
        FaultyStore(5, FaultPlan())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"FaultyStore.fail must be callable with an operation and its number"):
        FaultyStore(MemoryStore(), [])  # type: ignore[arg-type]


def test_operations_are_counted_by_name() -> None:
    """`fail` is asked before each operation with its name and its number, over all sessions."""
    asked: list[tuple[str, int]] = []
    store = FaultyStore(MemoryStore(), lambda operation, number: asked.append((operation, number)))
    with store.create("s-1") as session:
        session.append(UserMessage("one"))
        session.flush()
    with store.open("s-1"):
        pass
    store.delete("s-1")
    assert asked == [
        ("create", 1), ("open", 1), ("entries", 1), ("append", 1), ("sync", 1), ("close", 1),
        ("open", 2), ("entries", 2), ("close", 2), ("list", 1), ("delete", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("operation", ["create", "open", "entries", "append", "sync", "close", "list", "delete"])
def test_an_operation_that_fails_is_not_done(operation: str) -> None:
    """What the plan has for it is raised before it, and the same call works the next time; after a failed sync, in a
    session that was opened again."""
    broken = OSError(28, "No space left on device")
    store = FaultyStore(MemoryStore(), FaultPlan([Fault(operation, 1, broken)]))
    failed: list[BaseException | None] = []

    def again() -> None:
        session.close()
        store.open("s-1").flush()

    def tried(call: Callable[[], T], after: Callable[[], T] | None = None) -> T:
        try:
            return call()
        except OSError as error:
            failed.append(error)
        except StoreFailure as error:
            failed.append(error.cause)
        return (after or call)()

    session = tried(lambda: store.open("s-1", create=True))
    tried(lambda: session.append(UserMessage("one")))
    tried(session.flush, again)
    tried(session.close)
    assert len(store.open("s-1", read_only=True).history) == 1
    tried(lambda: store.delete("s-1"))
    assert list(store.list()) == []
    assert failed == [broken]


def test_everything_else_is_the_stores_own() -> None:
    """Its clock, its ids and its further members, of its journals too."""
    kept = MemoryStore()
    kept.clock = ManualClock(unix=50.0)
    kept.ids = lambda kind: f"{kind}-1"
    store = FaultyStore(kept, FaultPlan())
    assert repr(store) == f"FaultyStore({kept!r})"
    assert store._sessions is kept._sessions
    with store.create() as session:
        assert session.id == "session-1"
        assert session.lease is not None
        assert session.lease.since == 50.0
    journal = store.open_journal("session-1", "me", False, False)
    assert journal.last_seq == 0  # type: ignore[attr-defined]  # an optional member
    assert getattr(journal, "recovered", None) is None
    assert [entry["id"] for entry in store.salvage_journal("session-1")] == ["session-1"]
