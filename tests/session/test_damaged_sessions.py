"""What does not fit together is refused with its line; `repair=True` makes a copy with its gaps marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import pytest

from gotato_py import (
    Agent,
    Message,
    NotSupported,
    SessionCorrupt,
    StoreFailure,
    ToolMessage,
    ToolResult,
    WaitingCall,
    check_messages,
)
from gotato_session import MemoryStore
from gotato_testkit import FaultyStore, ScriptedModel, say

from .failing_store import FailingStore
from .histories import answer, result, run_record, summary, user

Entries = list[dict[str, Any]]
GAP = {"type": "gap", "text": "line 4 is damaged"}


def a_store() -> FailingStore:
    """A store with one session: head, u1, a1 (two calls), a mark, t1, t2, a2, run."""
    store = FailingStore()
    with store.create("s", metadata={"k": 1}) as session:
        session.append(user("u1"))
        session.append(answer("a1", calls=2))
        session.mark_started("a1:0")
        session.append(result("t1", "a1:0"))
        session.append(result("t2", "a1:1"))
        session.append(answer("a2"))
        session.end_run(run_record("r1"))
    return store


def changed(number: int, **changes: object) -> Callable[[Entries], Entries]:
    """Damage that changes some fields of one entry."""
    return lambda entries: [{**each, **changes} if place == number else each for place, each in enumerate(entries)]


def without(*numbers: int) -> Callable[[Entries], Entries]:
    """Damage that loses entries."""
    return lambda entries: [each for place, each in enumerate(entries) if place not in numbers]


def with_gap(*numbers: int) -> Callable[[Entries], Entries]:
    """What a store says of entries that it cannot read."""
    return lambda entries: [
        GAP if place == numbers[0] else each for place, each in enumerate(entries) if place not in numbers[1:]
    ]


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (without(2), 3),
        (changed(3, seq=2), 4),
        (changed(2, parent="nowhere"), 3),
        (changed(2, type="unheard of"), 3),
        (changed(2, message={"role": "user"}), 3),
        (changed(2, message={"role": "user", "parts": []}), 3),
        (changed(2, message="text"), 3),
        (changed(2, time="noon"), 3),
        (changed(3, key=7), 4),
        (changed(3, type="branch", to="nowhere"), 4),
        (changed(3, type="label", name="l", entry_id="nowhere"), 4),
        (changed(3, type="waiting", calls={}), 4),
        (changed(3, type="waiting", calls=["x"]), 4),
        (changed(3, type="waiting", calls=[{"kind": "run_record"}]), 4),
        (changed(3, type="run", record=run_record), 4),
        (changed(3, type="settlement", message={"role": "assistant", "id": "m"}), 4),
        (changed(3, type="compaction", compaction={}), 4),
        (changed(3, type="metadata", metadata=[]), 4),
        (lambda entries: [entries[0], entries[4]], 2),
        (lambda entries: entries[1:], 1),
        (lambda entries: [], 1),
        (changed(0, id="another"), 1),
        (changed(0, metadata=3), 1),
        (changed(0, metadata={"k": float("nan")}), 1),
        (changed(0, metadata={"": 1}), 1),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(damage: Callable[[Entries], Entries], line: int) -> None:
    """An entry that is lost, doubled, unknown or in the wrong place is SessionCorrupt, and nothing is written."""
    store = a_store()
    store.damage = damage
    for read_only in (True, False):
        with pytest.raises(SessionCorrupt) as caught:
            store.open("s", read_only=read_only)
        assert caught.value.line == line
    store.damage = None
    with store.open("s") as session:
        assert len(session.history) == 5


@pytest.mark.parametrize("damage", [changed(0, gotato_session=2), changed(4, v=2)])
def test_what_a_newer_release_wrote_is_not_supported(damage: Callable[[Entries], Entries]) -> None:
    """The version comes first: of the session, and of each entry."""
    store = a_store()
    store.damage = damage
    with pytest.raises(NotSupported, match="newer release"):
        store.open("s")
    with pytest.raises(NotSupported, match="newer release"):
        store.open("s", repair=True)


def test_repair_opens_a_session_that_is_whole_as_it_is() -> None:
    """There is nothing to copy."""
    store = a_store()
    with store.open("s", repair=True) as session:
        assert session.id == "s"


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        ((1,), ["gap", "a1", "t1", "t2", "a2"]),
        ((2,), ["u1", "gap", "a2"]),
        ((2, 3, 4), ["u1", "gap", "a2"]),
        ((4,), ["u1", "a1", "t2", "cancelled", "gap", "a2"]),
        ((3, 4), ["u1", "a1", "t2", "cancelled", "gap", "a2"]),
        ((5,), ["u1", "a1", "t1", "cancelled", "gap", "a2"]),
        ((4, 5), ["u1", "a1", "cancelled", "cancelled", "gap", "a2"]),
        ((6,), ["u1", "a1", "t1", "t2", "gap"]),
    ],
)
def test_a_repaired_copy_keeps_what_is_left_and_marks_the_gap(lost: tuple[int, ...], left: list[str]) -> None:
    """Calls and results that lost each other are closed or left out, the model is told of the gap, and the copy goes
    on; the damaged session stays as it is."""
    store = a_store()
    store.damage = without(*lost)
    store.left = with_gap(*lost)
    for copy_id in ("s.repaired", "s.repaired-2"):
        with store.open("s", repair=True) as session:
            assert session.id == copy_id
            names = [
                "gap" if "gap" in each.metadata else each.result.status if _is_closing(each) else each.id
                for each in session.history
            ]
            assert names == left
            assert session.recovered[0] == "line 4 is damaged"
            assert check_messages(session.messages) == []
            assert session.get("k") == 1
            assert Agent(ScriptedModel([say("on")]), transcript=session).run("go on").text == "on"
    with store.open("s.repaired") as again:
        assert again.recovered[0] == "line 4 is damaged"
    with pytest.raises(SessionCorrupt):
        store.open("s")


def _is_closing(message: Message) -> TypeGuard[ToolMessage]:
    return isinstance(message, ToolMessage) and len(message.id) > 2


def test_a_lost_move_is_told_by_what_follows() -> None:
    """Where the entry of a branch is lost, the parents of the next entries still say where they belong."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1"))
        session.append(user("u2"))
        session.branch("u1")
        session.append(answer("a2"))
    store.damage, store.left = without(4), with_gap(4)
    with store.open("s", repair=True) as session:
        first, gap, last = session.history
        assert (first.id, "gap" in gap.metadata, last.id) == ("u1", True, "a2")
        assert session.tree["u2"] == "a1"


def test_a_batch_that_waited_is_over_where_something_follows_it() -> None:
    """The answer's result is lost, and maybe that the tool was started: nothing waits, and what came later is there."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(answer("a1", calls=1))
        session.mark_waiting([WaitingCall("a1:0", question="May it?")])
        session.append(result("t1", "a1:0"))
        session.append(user("u1"))
        session.append(answer("a2"))
    store.damage, store.left = without(3), with_gap(3)
    with store.open("s", repair=True) as session:
        first, closed, gap, *others = session.history
        assert [each.id for each in (first, *others)] == ["a1", "u1", "a2"]
        assert isinstance(closed, ToolMessage)
        assert (closed.result.executed, "gap" in gap.metadata, session.waiting) == (None, True, ())


def test_a_message_that_waits_for_its_place_at_a_gap_gets_it_later() -> None:
    """What came of a pending call during a run is where it was, behind what was said meanwhile."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(answer("a1", calls=1))
        session.append(ToolMessage(ToolResult("same", "pending", "later", key="a1:0"), id="t1"))
        session.begin_run("r1")
        told = session.complete_call("a1:0", "done")
        session.label("lost")
        session.append(user("u1"))
        session.end_run(run_record("r1"))
        session.append(user("u2"))
    store.damage, store.left = without(4), with_gap(4)
    with store.open("s", repair=True) as session:
        assert [each.id for each in session.history if "gap" not in each.metadata] == ["a1", "t1", "u1", told.id, "u2"]


def test_what_followed_a_lost_place_stands_behind_its_gap() -> None:
    """A branch to an entry that is lost leads behind the message that tells so, out of any batch that is open."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1", calls=1))
        session.branch("u1")
        session.append(user("u2"))
    store.damage, store.left = without(1), with_gap(1)
    with store.open("s", repair=True) as session:
        assert session.path[-1] == "u2"
        assert session.tree["u2"] == session.tree["a1"] == session.path[0]


def test_summaries_labels_and_unreadable_entries_of_a_damaged_session() -> None:
    """A summary whose place is lost and a label of a lost entry are left out; an entry that cannot be read is a gap."""
    store = a_store()
    with store.open("s") as session:
        session.replace(summary("a2", "s1"))
        session.label("end", "s1")
        session.append(user("u2"))
    store.damage = without(6)
    store.left = lambda entries: [*entries[:6], GAP, {"seq": "x"}, *entries[7:]]
    with store.open("s", repair=True) as session:
        assert session.labels == {}
        assert session.compactions == ()
        assert [message.id for message in session.history][-1] == "u2"
        assert any("could not be read" in text for text in session.recovered)


class Plain(MemoryStore):
    """A store of the four methods that an author has to write; `damaged` is what its journals hold beside the rest."""

    damaged: tuple[dict[str, Any], ...] = ()
    error: SessionCorrupt | None = None

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        """The journal, if it can be read."""
        if self.error is not None:
            raise self.error
        journal = super().open_journal(id, owner, read_only, steal)
        if id == "s" and self.damaged:
            journal._kept.commits.append(self.damaged)
            self.damaged = ()
        return journal


def test_a_store_that_cannot_salvage_says_so() -> None:
    """`repair` needs something that can be read."""
    store = Plain()
    store.create("s").close()
    store.error = SessionCorrupt("its first block is gone", line=1)
    with pytest.raises(NotSupported, match=r"^Plain cannot read what is left of a damaged session: its first block"):
        store.open("s", repair=True)


def test_a_store_without_a_way_of_its_own_salvages_what_its_journals_give() -> None:
    """An author need not write `salvage_journal` for entries that do not fit."""
    store = Plain()
    with store.create("s") as session:
        session.append(user("u1"))
    store.damaged = ({"seq": 2, "v": 1, "type": "message", "time": 0.0, "parent": "u1", "message": {"role": "user"}},)
    with store.open("s", repair=True) as copy:
        assert (copy.id, copy.recovered) == ("s.repaired", ("an entry that could not be read",))
        assert copy.history[0].id == "u1"


@pytest.mark.parametrize("operation", ["create", "open", "entries", "append", "sync", "close", "list", "delete"])
def test_an_error_of_the_system_is_a_store_failure(operation: str) -> None:
    """Whatever a store's method raises that is none of our errors: it is the cause, and the text tells no path."""
    broken = OSError(28, "No space left on device", "/some/where")
    store = FaultyStore(MemoryStore(), lambda name, number: broken if name == operation else None)

    def act() -> None:
        with store.open("s-1", create=True) as session:
            session.append(user("u1"))
            session.flush()
        store.delete("s-1")
        list(store.list())

    with pytest.raises(StoreFailure, match=r"could not be [a-z ]+ \(OSError: No space left on device\)") as caught:
        act()
    assert caught.value.cause is broken
    assert "/some/where" not in str(caught.value)
