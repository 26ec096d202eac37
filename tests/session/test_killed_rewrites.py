"""A process is killed at any line of what is more than a commit: a new session, a takeover, a repair, a clean-up.

`tests/session/crash` does the same to commits. Here each deed is done in a forked process that kills itself before one
line of it. What was there before is there still, and the deed done again comes to where it comes to undisturbed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from gotato_py import AssistantMessage, InvalidState, LeaseLost, NotFound, ToolCall, UserMessage
from gotato_session import FileStore, SQLiteStore, StoreBase

from ..effort import by_profile
from .steps import killed_at
from .stores import STORES, MakeStore

ID = "s-1"
STRIDE = by_profile(dev=47, ci=23, nightly=1)
"""Every how many lines a process is killed."""

View = dict[str, tuple[list[str], dict[str, object], dict[str, str], list[str]]]
"""What a reader sees of each session."""
Deed = Callable[[StoreBase], object]


def view(make: MakeStore) -> View:
    """All that can be read of all sessions."""
    seen: View = {}
    with closing(make()) as store:
        for summary in store.list():
            with store.open(summary.id, read_only=True) as session:
                ids = [message.id for message in session.history]
                seen[summary.id] = (ids, dict(session.metadata), dict(session.labels), sorted(session.started))
    return seen


@contextmanager
def closing(store: StoreBase) -> Generator[StoreBase, None, None]:
    """The store, closed afterwards if it is one that can be."""
    with store if isinstance(store, SQLiteStore) else nullcontext():
        yield store


def fill(store: StoreBase) -> None:
    """A session with some of everything."""
    with store.create(ID, metadata={"of": "somebody"}) as session:
        for number in range(4):
            session.append(UserMessage("hello", id=f"m-{number}"))
            session.set("step", number)
        session.label("here")
        session.append(AssistantMessage("", [ToolCall("c", "act", "{}")], id="a-1"))
        session.mark_started("a-1:0")
    store.open(ID).close()  # closes the call


def done(make: MakeStore, deed: Deed) -> None:
    """Does it in the place."""
    with closing(make()) as store:
        deed(store)


def create(store: StoreBase) -> None:
    """Another session, as one does who may do it again."""
    store.open("s-2", create=True).close()


def fork(store: StoreBase) -> None:
    """A fork; who does it again finds it."""
    with store.open(ID) as session:
        try:
            session.fork("m-2", id="s-2").close()
        except InvalidState:
            store.open("s-2").close()


def delete(store: StoreBase) -> None:
    """The session goes."""
    try:
        store.delete(ID)
    except NotFound:
        pass


def vacuum(store: StoreBase) -> None:
    """The file gets smaller."""
    assert isinstance(store, FileStore)
    store.vacuum(ID)


def purge(store: StoreBase) -> None:
    """All that is old goes."""
    assert isinstance(store, SQLiteStore)
    store.purge(older_than=0)


def search(store: StoreBase) -> None:
    """The first search makes the index."""
    assert isinstance(store, SQLiteStore)
    assert len(store.search("hello")) == 4


@pytest.mark.parametrize(
    ("kind", "deed"),
    [
        *[(kind, deed) for kind in ("file", "sqlite") for deed in (create, fork, delete)],
        ("file", vacuum),
        ("sqlite", purge),
        ("sqlite", search),
    ],
)
def test_a_deed_that_is_killed_is_done_again(kind: str, deed: Deed, tmp_path: Path) -> None:
    """After it every session is as before, or gone if that was the deed; done again it ends as if nothing had been."""
    (tmp_path / "before").mkdir()
    done(STORES[kind](tmp_path / "before"), fill)
    before = view(STORES[kind](tmp_path / "before"))
    shutil.copytree(tmp_path / "before", tmp_path / "whole")
    done(STORES[kind](tmp_path / "whole"), deed)
    whole = view(STORES[kind](tmp_path / "whole"))
    line, more = 1, True
    while more:
        shutil.copytree(tmp_path / "before", tmp_path / str(line))
        make = STORES[kind](tmp_path / str(line))
        more = killed_at(line, partial(done, make, deed))
        left = view(make)
        assert {id: left.get(id) for id in before.keys() & whole.keys()} == {
            id: before[id] for id in before.keys() & whole.keys()
        }, line
        assert left.keys() <= before.keys() | whole.keys(), line
        done(make, deed)
        assert view(make) == whole, line
        shutil.rmtree(tmp_path / str(line))
        line += STRIDE
    assert line > 3 * STRIDE, "the deed has lines"


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_takeover_that_is_killed_loses_nothing(kind: str, tmp_path: Path) -> None:
    """Whoever has the session then, what its owner was told is kept is there, and another can take it over."""
    (tmp_path / "before").mkdir()
    done(STORES[kind](tmp_path / "before"), fill)
    filled = view(STORES[kind](tmp_path / "before"))[ID][0]
    line, more = 1, True
    while more:
        make, kept = STORES[kind](shutil.copytree(tmp_path / "before", tmp_path / str(line))), list(filled)
        with closing(make()) as store:
            owner = store.open(ID)
            try:
                more = killed_at(line, partial(done, make, take_over))
                kept.append(owner.append(UserMessage("still here")).id)
            except LeaseLost:
                pass
            finally:
                owner.close()
        with closing(make()) as store, store.open(ID, steal=True) as session:
            assert [message.id for message in session.history] == kept, line
        shutil.rmtree(tmp_path / str(line))
        line += STRIDE
    assert line > 3 * STRIDE, "a takeover has lines"


def take_over(store: StoreBase) -> None:
    """Takes the session from its owner."""
    store.open(ID, steal=True).close()


def test_a_repair_that_is_killed_is_done_again(tmp_path: Path) -> None:
    """The damaged file stays as it is, and a repair that comes to its end has all that can be read."""
    done(STORES["file"](tmp_path / "before"), fill)
    name = Path("sessions", f"{ID}.jsonl")
    damaged = (tmp_path / "before" / name).read_bytes().replace(b'"m-1","parts"', b'"m-1","parks"', 1)
    (tmp_path / "before" / name).write_bytes(damaged)
    line, more = 1, True
    while more:
        place = shutil.copytree(tmp_path / "before", tmp_path / str(line))
        make = STORES["file"](place)
        more = killed_at(line, partial(done, make, repair))
        assert (place / name).read_bytes() == damaged
        with closing(make()) as store, store.open(ID, repair=True) as session:
            ids = [message.id for message in session.history]
            assert session.id.startswith(f"{ID}.repaired")
            assert {"m-0", "m-2", "m-3", "a-1"} <= set(ids), line
        shutil.rmtree(place)
        line += STRIDE
    assert line > 3 * STRIDE, "a repair has lines"


def repair(store: StoreBase) -> None:
    """Makes a copy of what can be read."""
    store.open(ID, repair=True).close()
