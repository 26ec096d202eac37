"""Forks of sessions that are damaged, gone, or not any more what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_py import NotFound, SessionCorrupt, check_messages
from gotato_session import FileStore, Session, SQLiteStore, StoreBase
from gotato_testkit import ManualClock

from .damages import damage
from .histories import answer, result, run_record, user
from .stores import STORES, MakeStore

each_kind = pytest.mark.parametrize("kind", ["file", "sqlite"])


def family(make: MakeStore, at: str | None = None) -> None:
    """A parent "p", its fork "f" from that place, and a fork of the fork, "g"."""
    store = make()
    with store.create("p", metadata={"of": "the parent"}) as parent:
        for number in range(3):
            parent.append(user(f"u{number}"))
            parent.append(answer(f"a{number}"))
        parent.label("early", "u1")
        parent.end_run(run_record("r1"))
        with parent.fork(at, id="f") as fork:
            fork.append(user("mine"))
            fork.set("of", "the fork")
            with fork.fork(id="g") as other:
                other.append(user("too"))


def ids(session: Session) -> list[str]:
    """The ids of its messages, a gap as "…"."""
    return ["…" if "gap" in message.metadata else message.id for message in session.history]


def refused(store: StoreBase, id: str, words: str) -> None:
    """Opening it says what is wrong, and where."""
    for read_only in (False, True):
        with pytest.raises(SessionCorrupt, match=words):
            store.open(id, read_only=read_only)


@each_kind
@pytest.mark.parametrize(("id", "own"), [("f", ["mine"]), ("g", ["mine", "too"])])
def test_a_fork_of_a_damaged_session_can_be_repaired(kind: str, id: str, own: list[str], tmp_path: Path) -> None:
    """The copy has what is left of the parent, a gap that is told, and all of the fork; it needs no parent."""
    make = STORES[kind](tmp_path)
    family(make)
    damage(tmp_path, kind, "a1")
    refused(make(), id, "begins with entry [0-9]+ of [pf], which cannot be read as far as that")
    with make().open(id, repair=True) as copy:
        assert ids(copy) == ["u0", "a0", "u1", "…", "u2", "a2", *own]
        assert copy.recovered
        assert (copy.id, copy.parent_id, copy.runs, copy.labels) == (f"{id}.repaired", "", (), {"early": "u1"})
        assert copy.metadata["of"] == "the fork"
        assert check_messages(copy.messages) == []
        copy.append(answer("more"))
    with make().open(f"{id}.repaired") as copy:
        assert ids(copy)[-1] == "more"
    refused(make(), id, "begins with")


@each_kind
def test_a_fork_from_a_place_goes_on_from_there_in_its_copy(kind: str, tmp_path: Path) -> None:
    """What the parent has behind that place is in the tree, not in the branch."""
    make = STORES[kind](tmp_path)
    family(make, "a1")
    damage(tmp_path, kind, "a0")
    with make().open("f", repair=True) as copy:
        assert ids(copy) == ["u0", "…", "u1", "a1", "mine"]
        assert "a2" in copy.tree


def test_a_place_that_is_lost_is_left_out(tmp_path: Path) -> None:
    """The copy of a fork whose very place is damaged goes on from what is left."""
    make = STORES["file"](tmp_path)
    family(make, "a1")
    damage(tmp_path, "file", "a1")
    with make().open("f", repair=True) as copy:
        assert ids(copy)[-1] == "mine"
        assert check_messages(copy.messages) == []


@pytest.mark.parametrize("at", [None, "a1"])
def test_what_was_written_in_the_place_of_lost_entries_is_not_shared(at: str | None, tmp_path: Path) -> None:
    """A parent that has lost its last entries, and goes on otherwise, has other entries with their numbers."""
    make = STORES["file"](tmp_path)
    family(make, at)
    file = tmp_path / "sessions" / "p.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-3]) + b'{"seq":6,"to')
    with make().open("p") as parent:
        parent.append(answer("other"))
        parent.append(user("other words"))
        parent.end_run(run_record("r2"))
    for id, own in (("f", ["mine"]), ("g", ["mine", "too"])):
        refused(make(), id, "begins with entry 8 of p, which has another one with that number now")
        with make().open(id, repair=True) as copy:
            shared = ["u0", "a0", "u1", "a1", "u2"] if at is None else ["u0", "a0", "u1", "a1"]
            assert ids(copy) == [*shared, "…", *own]
            assert "other" not in copy.tree


@each_kind
def test_a_clock_that_was_set_back_before_the_fork_loses_nothing(kind: str, tmp_path: Path) -> None:
    """What a fork shares is known by its last entry, though all of it seems to be younger than the fork."""
    store = STORES[kind](tmp_path)()
    clock = store.clock = ManualClock()
    with store.create("p") as parent:
        for number in range(3):
            parent.append(user(f"u{number}"))
        clock.set_time(1_600_000_000.0)
        parent.fork(id="f").close()
    damage(tmp_path, kind, "u1")
    with store.open("f", repair=True) as copy:
        assert ids(copy) == ["u0", "…", "u2"]


@each_kind
def test_a_parent_that_is_gone_is_one_gap(kind: str, tmp_path: Path) -> None:
    """Nothing of it is left, and the fork's own entries are."""
    make = STORES[kind](tmp_path)
    family(make)
    store = make()
    if isinstance(store, FileStore):
        (tmp_path / "sessions" / "p.jsonl").unlink()
    else:
        assert isinstance(store, SQLiteStore)
        store._ways.write("test", lambda connection: connection.execute("DELETE FROM sessions WHERE id = 'p'"))
    with pytest.raises(NotFound):
        store.open("p")
    refused(store, "f", "is a fork of p, which is not there")
    with store.open("f", repair=True) as copy:
        assert ids(copy) == ["…", "mine"]
        assert "the session p" in copy.history[0].text


def test_results_that_a_fork_shares_stay_with_their_calls(tmp_path: Path) -> None:
    """Marks and results of the parent count in the copy; what was open at the fork is closed there."""
    make = STORES["file"](tmp_path)
    with make().create("p") as parent:
        parent.append(user("u0"))
        parent.append(answer("a0", calls=2))
        parent.mark_started("a0:0")
        parent.append(result("t0", "a0:0"))
        parent.fork(id="f").close()
        parent.append(result("t1", "a0:1"))
    damage(tmp_path, "file", "u0")
    with make().open("f", repair=True) as copy:
        assert [message.role for message in copy.history] == ["user", "assistant", "tool", "tool"]
        assert copy.started == {"a0:0"}
        assert check_messages(copy.messages) == []


def test_a_fork_of_an_older_release_is_read(tmp_path: Path) -> None:
    """Its head does not say what tells the shared entries from others."""
    make = STORES["file"](tmp_path)
    family(make)
    store = FileStore(tmp_path / "sessions", sync="never")
    left = store.salvage_journal("f")
    head = {key: value for key, value in left[0].items() if key not in ("at_id", "at_time")}
    store.create_journal("old", {**head, "id": "old"})
    with make().open("old") as fork:
        assert ids(fork) == ["u0", "a0", "u1", "a1", "u2", "a2"]


@each_kind
def test_a_copy_is_as_young_as_its_making(kind: str, tmp_path: Path) -> None:
    """However old what it was made of: a list begins with it, and no purge takes it for an old one."""
    make = STORES[kind](tmp_path)
    store = make()
    store.clock = clock = ManualClock(unix=1_000.0)
    with store.create("p") as session:
        session.append(user("u0"))
        session.append(user("u1"))
    damage(tmp_path, kind, "u0")
    clock.advance(1_000_000)
    store = make()
    store.clock = clock
    store.create("t").close()
    clock.advance(10)
    store.open("p", repair=True).close()
    assert [each.id for each in store.list()][:2] == ["p.repaired", "t"]
    assert next(store.list()).updated_at == clock.time()
    if isinstance(store, SQLiteStore):
        assert store.purge(older_than=5_000) == ["p"]
