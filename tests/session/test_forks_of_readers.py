"""Forks of sessions that nobody writes to: others may have removed, replaced or rewritten what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_py import MessageUpdate, NotFound
from gotato_session import FileStore, StoreBase

from .histories import user
from .stores import STORES
from .test_review_stores import TinyStore

READ = Path("/proc/self/io")
"""What the system says that this process has read."""
GONE = "s was removed, replaced or damaged since"


def bytes_read() -> int:
    """By this process, from whatever."""
    return int(READ.read_text("ascii").split()[1])


@pytest.fixture(params=[*STORES, "tiny"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreBase:
    """Each store, and an author's, whose journals do not say whether a session is still kept."""
    name: str = request.param
    return TinyStore() if name == "tiny" else STORES[name](tmp_path)()


@pytest.mark.parametrize("is_read_only", [True, False])
def test_no_fork_is_made_of_what_is_not_kept_any_more(store: StoreBase, is_read_only: bool) -> None:
    """A session that nobody writes to may be removed, and made anew, while it is read: a fork would share nothing."""
    with store.create("s") as session:
        session.append(user("u1"))
    reader = store.open("s", read_only=is_read_only)
    if not is_read_only:
        reader.close()
    reader.fork(id="f").close()
    store.delete("f")
    store.delete("s")
    with pytest.raises(NotFound):
        reader.fork(id="f")
    with store.create("s") as session:
        session.append(user("another"))
    with pytest.raises(NotFound, match=GONE):
        reader.fork(id="f")
    assert [each.id for each in store.list()] == ["s"]


def test_a_fork_of_what_has_grown(store: StoreBase) -> None:
    """What others add to a session meanwhile keeps no reader from forking what it has read, the head alone included."""
    with store.create("s") as session:
        empty = store.open("s", read_only=True)
        session.append(user("u1"))
        reader = store.open("s", read_only=True)
        session.append(user("u2"))
        for each, ids in ((empty, []), (reader, ["u1"])):
            with each.fork() as fork:
                assert [message.id for message in fork.history] == ids
            with store.open(fork.id) as again:
                assert [message.id for message in again.history] == ids


def test_no_fork_is_made_of_what_was_numbered_anew(tmp_path: Path) -> None:
    """A file that was rewritten without its events has other entries at the places that were read."""
    store = FileStore(tmp_path)
    with store.create("s") as session:
        session.observe(MessageUpdate("a", "r", 1, 1, 0.0, "Hello"))
        session.append(user("u1"))
    reader = store.open("s", read_only=True)
    assert store.vacuum("s") > 0
    with pytest.raises(NotFound, match=GONE):
        reader.fork()
    with store.open("s", read_only=True) as again:
        again.fork(id="f").close()
    assert [message.id for message in store.open("f", read_only=True).history] == ["u1"]


@pytest.mark.skipif(not READ.exists(), reason="the system does not say what was read")
@pytest.mark.parametrize("name", ["file", "sqlite"])
def test_a_fork_of_a_reader_reads_next_to_nothing(name: str, tmp_path: Path) -> None:
    """However long the session is, it is not read once more."""
    store = STORES[name](tmp_path)()
    with store.create("s") as session:
        for number in range(100):
            session.append(user(f"u{number}", "x" * 40_000))
    with store.open("s", read_only=True) as reader:
        before = bytes_read()
        with reader.fork() as fork:
            read = bytes_read() - before
            assert len(fork.history) == 100
    assert read < 400_000
