"""What a store does in odd but plausible hands: sessions that are dropped, lists over damage, repair of what is open,
stores without leases."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gotato_py import InvalidArgument, InvalidState, LeaseLost, NotFound, SessionBusy, StoreFailure
from gotato_session import FileStore, MemoryStore, SessionSummary, StoreBase
from gotato_testkit import Fault, FaultPlan, FaultyStore, ManualClock

from .histories import answer, user
from .steps import AtStep, interrupt
from .stores import STORES

Stored = list[str]


class TinyStore(StoreBase):
    """The least that an author can write: texts in a dict, no lease, summaries in a list and without metadata."""

    def __init__(self) -> None:
        self.kept: dict[str, Stored] = {}

    def create_journal(self, id: str, head: dict[str, Any]) -> None:
        """Keeps the head."""
        if id in self.kept:
            raise InvalidState(f"there is a session {id} already")
        self.kept[id] = [json.dumps(head)]

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> TinyJournal:
        """For anybody, at any time."""
        if id not in self.kept:
            raise NotFound(f"there is no session {id}")
        return TinyJournal(self.kept[id])

    def summaries(self) -> Iterator[SessionSummary]:
        """The sessions in any order."""
        heads = {id: json.loads(texts[0]) for id, texts in self.kept.items()}
        return iter([SessionSummary(id, each.get("parent_id", ""), 0.0, 0.0, 0, None) for id, each in heads.items()])

    def delete_journal(self, id: str) -> None:
        """Forgets it."""
        del self.kept[id]


class TinyJournal:
    """A journal without a lease."""

    lease = None

    def __init__(self, texts: Stored) -> None:
        self._texts = texts

    def entries(self) -> list[dict[str, Any]]:
        """Everything."""
        return [json.loads(text) for text in self._texts]

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Keeps them all."""
        self._texts += [json.dumps(each) for each in entries]

    def sync(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def test_a_store_without_leases_can_be_written_to() -> None:
    """Read-only is what was opened so, not what has no lease."""
    store = TinyStore()
    with store.create("s") as session:
        assert not session.read_only
        session.append(user("u1"))
        session.append(answer("a1", calls=1))
    with store.open("s", read_only=True) as session:
        assert session.read_only
        assert len(session.check()) == 1
        with pytest.raises(InvalidState):
            session.append(user("u2"))
    with store.open("s") as session:
        assert [message.role for message in session.history] == ["user", "assistant", "tool"]


# ---- sessions that nobody closed


@pytest.mark.parametrize("name", STORES)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_session_that_was_dropped_is_free(name: str, tmp_path: Path) -> None:
    """Who dropped a session without closing it has let it go."""
    store = STORES[name](tmp_path)()
    session = store.create("s")
    session.append(user("u1"))
    del session
    gc.collect()
    with store.open("s") as session:
        assert session.path == ("u1",)


def test_a_dropped_session_takes_the_lease_of_nobody_else() -> None:
    """A writer who was replaced, and readers, leave the new one alone when they go."""
    store = MemoryStore()
    old = store.create("s")
    new = store.open("s", steal=True)
    store.open("s", read_only=True).close()
    with pytest.raises(LeaseLost):
        old.append(user("u1"))
    del old
    gc.collect()
    store.open("s", read_only=True).close()
    new.append(user("u2"))
    assert new.path == ("u2",)


def test_an_interrupted_opening_leaves_no_lease() -> None:
    """Ctrl-C at any step of `open`: the session can be opened afterwards."""
    number = 0
    while True:
        number += 1
        store = MemoryStore()
        store.create("s").close()
        opened: list[object] = []
        at_step = AtStep(number, interrupt)
        try:
            at_step(lambda store=store, opened=opened: opened.append(store.open("s")))  # type: ignore[misc]  # bound now
        except KeyboardInterrupt:
            pass
        opened.clear()
        gc.collect()
        store.open("s").close()
        if at_step.steps < number:
            break
    assert number > 50


@pytest.mark.parametrize("name", STORES)
def test_a_fork_that_could_not_be_made_whole_is_let_go(name: str, tmp_path: Path) -> None:
    """The disk is full when the fork's open calls are closed: the error is told, and the fork can be opened later."""
    make = STORES[name](tmp_path)
    store = FaultyStore(make(), FaultPlan([Fault("append", 3, OSError(28, "No space left on device"))]))
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1", calls=1))
        with pytest.raises(StoreFailure):
            session.fork(id="f")
        with store.open("f") as fork:
            assert [message.role for message in fork.history] == ["user", "assistant", "tool"]


# ---- clocks


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("time", [1.7e12, -1.0, math.nan, math.inf])
def test_a_time_that_nobody_could_read_again_is_refused(name: str, time: float, tmp_path: Path) -> None:
    """A clock that tells milliseconds, or no time at all, makes no entry that would keep the session from opening."""
    store = STORES[name](tmp_path)()
    clock = store.clock = ManualClock()
    with store.create("s") as session:
        session.append(user("u1"))
        clock.set_time(time)
        for write in (lambda: session.append(user("u2")), session.fork, lambda: store.create("t")):
            with pytest.raises(InvalidArgument, match=r"clock\.time\(\) must give Unix seconds"):
                write()
    clock.set_time(1.7e9)
    with store.open("s") as session:
        assert session.path == ("u1",)
    assert [each.id for each in store.list()] == ["s"]


# ---- repair


def damaged(folder: Path) -> FileStore:
    """A store in which the session "s" is damaged in the middle."""
    store = FileStore(folder, sync="never")
    with store.create("s", metadata={"team": "a"}) as session:
        for number in range(4):
            session.append(user(f"u{number}"))
        session.set("team", "b")
        session.append(user("u9"))
    lines = (folder / "s.jsonl").read_bytes().split(b"\n")
    lines[5] = lines[5].replace(b"team", b"meat")
    (folder / "s.jsonl").write_bytes(b"\n".join(lines))
    return store


def test_repair_takes_a_session_over_if_asked(tmp_path: Path) -> None:
    """`steal` and `create` mean with `repair` what they mean without."""
    store = FileStore(tmp_path, sync="never")
    first = store.create("s")
    first.append(user("u1"))
    with store.open("s", repair=True, steal=True) as second:
        assert second.path == ("u1",)
        with pytest.raises(LeaseLost):
            first.append(user("u2"))
    first.close()
    with store.open("t", repair=True, create=True) as made:
        assert made.id == "t"


# ---- lists


def test_a_list_by_metadata_passes_over_what_cannot_be_read(tmp_path: Path) -> None:
    """Where the list cannot know the metadata without reading a damaged session, that one does not match."""
    store = damaged(tmp_path)
    store.create("t", metadata={"team": "b"}).close()
    assert {each.id: each.metadata for each in store.list()} == {"s": None, "t": {"team": "b"}}
    assert [each.id for each in store.list(where={"team": "b"})] == ["t"]


@pytest.mark.parametrize("name", STORES)
def test_a_list_by_metadata_compares_as_json(name: str, tmp_path: Path) -> None:
    """A tuple is what it was stored as; what JSON cannot hold is refused."""
    store = STORES[name](tmp_path)()
    store.create("s", metadata={"tags": ("a", "b"), "n": None}).close()
    store.create("t").close()
    assert [each.id for each in store.list(where={"tags": ("a", "b")})] == ["s"]
    assert [each.id for each in store.list(where={"tags": ["a", "b"]})] == ["s"]
    assert [each.id for each in store.list(where={"n": None}, limit=10**30)] == ["s"]
    with pytest.raises(InvalidArgument, match=r"list: where\['tags'\] must be plain"):
        store.list(where={"tags": object()})
    with pytest.raises(InvalidArgument, match="list: where: a key"):
        store.list(where={"": 1})


def nested(levels: int) -> object:
    """Lists in lists."""
    return [nested(levels - 1)] if levels else "["


def far_down(levels: int, act: Callable[[], list[str]]) -> list[str]:
    """What `act` gives far down a stack, as in the handlers of a web framework."""
    return far_down(levels - 1, act) if levels else act()


@pytest.mark.parametrize("name", STORES)
def test_metadata_are_no_deeper_than_can_be_read_anywhere(name: str, tmp_path: Path) -> None:
    """What was stored high up in a stack can be opened and listed far down in one; what is deeper is refused."""
    store = STORES[name](tmp_path)()
    with store.create("s", metadata={"k": nested(200)}) as session:
        session.set("all", [[]] * 300)
        session.set("k", {"k": nested(199)})
        for write in (lambda: session.set("k", nested(201)), lambda: store.create("t", metadata={"k": nested(900)})):
            with pytest.raises(InvalidArgument, match=r"must not be nested more than 200 levels deep"):
                write()

    def look() -> list[str]:
        store.open("s").close()
        return [each.id for each in store.list(where={"all": [[]] * 300})]

    assert far_down(500, look) == ["s"]


def test_a_list_of_sessions_in_memory_counts_what_came_since_the_last_one() -> None:
    """Size, messages, time and metadata are those of the whole session however often it was listed before."""
    store, other = MemoryStore(), MemoryStore()
    with store.create("s", metadata={"k": [1]}) as session:
        for number in range(3):
            session.append(user(f"u{number}"))
            [told] = store.list()
            assert told.messages == number + 1
        session.set("k", [2])
        session.append(user("u9"))
        [told] = store.list()
        assert (told.messages, told.metadata) == (4, {"k": [2]})
        assert told.updated_at == session._log.state.time
        assert isinstance(told.metadata, dict)
        told.metadata["k"].append(3)
        assert session.get("k") == [2]
        assert next(iter(store.list())).metadata == {"k": [2]}
        fork = session.fork(id="f")
        assert {each.id: each.messages for each in store.list()} == {"s": 4, "f": None}
        fork.close()
    other._sessions.update(store._sessions)
    for each in other._sessions.values():
        each._counted = type(each)(each.head)._counted
    assert sorted(other.list(), key=lambda each: each.id) == sorted(store.list(), key=lambda each: each.id)


def test_a_session_in_memory_that_is_open_says_what_can_be_done() -> None:
    """The refusal names the owner, reading and taking over."""
    store = MemoryStore()
    with store.create("s", owner="me"), pytest.raises(SessionBusy, match=r"me writes to it; open it with read_only"):
        store.open("s")
