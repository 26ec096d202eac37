"""Sessions in a `FileStore`, as an application uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_py import (
    AssistantMessage,
    ForkedProcess,
    InvalidState,
    LeaseLost,
    NotFound,
    SessionBusy,
    SessionCorrupt,
    StoreFailure,
    UserMessage,
)
from gotato_session.file_store import FileStore

from .children import in_child
from .journals import Faults, no_space, store_on


def test_a_session_goes_on_where_it_was(tmp_path: Path) -> None:
    """What one program said is there for the next, with its metadata; a fork has what it shares and its own."""
    store = FileStore(tmp_path)
    with store.create("a", metadata={"user": "u-1"}) as session:
        session.append(UserMessage("hello"))
        session.append(AssistantMessage("hi"))
        session.set("topic", "weather")
        with session.fork(id="f") as fork:
            fork.append(UserMessage("more"))
    with FileStore(tmp_path).open("a") as session:
        assert [each.text for each in session.messages] == ["hello", "hi"]
        session.append(UserMessage("again"))
    with store.open("f", read_only=True) as fork:
        assert [each.text for each in fork.messages] == ["hello", "hi", "more"]
    assert [(each.id, each.parent_id, each.messages) for each in store.list()] == [("a", "", 3), ("f", "a", None)]
    assert [each.id for each in store.list(where={"topic": "weather"})] == ["a", "f"]
    with pytest.raises(InvalidState, match="forks"):
        store.delete("a")
    store.delete("f")
    store.delete("a")
    with pytest.raises(NotFound):
        store.open("a")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_and_space_again(tmp_path: Path) -> None:
    """A message that cannot be stored is not in the session either; the session can go on when there is space."""
    disk = Faults()
    with store_on(disk, tmp_path).create("a") as session:
        session.append(UserMessage("one"))
        disk.fail = lambda act: no_space() if act == "write" else None
        with pytest.raises(StoreFailure):
            session.append(UserMessage("two"))
        assert [each.text for each in session.messages] == ["one"]
        disk.fail = lambda act: None
        session.append(UserMessage("three"))
    with FileStore(tmp_path).open("a") as session:
        assert [each.text for each in session.messages] == ["one", "three"]


def test_two_owners_and_a_child(tmp_path: Path) -> None:
    """The second owner is refused or takes over, and a forked child writes nothing."""
    store = FileStore(tmp_path)
    with store.create("a") as first:
        first.append(UserMessage("one"))
        with pytest.raises(SessionBusy):
            store.open("a")
        with store.open("a", steal=True) as second:
            with pytest.raises(LeaseLost):
                first.append(UserMessage("lost"))

            def child() -> None:
                with pytest.raises(ForkedProcess):
                    second.append(UserMessage("child"))

            in_child(child)
            second.append(UserMessage("two"))
            assert [each.text for each in second.messages] == ["one", "two"]


def test_a_damaged_session_is_copied(tmp_path: Path) -> None:
    """A damaged session is refused; repaired it is a copy that tells what is missing, and the damaged one stays."""
    store = FileStore(tmp_path)
    with store.create("a") as session:
        for text in ("one", "two", "three"):
            session.append(UserMessage(text))
    path = tmp_path / "a.jsonl"
    damaged = path.read_bytes().replace(b'"two"', b'"2wo"')
    path.write_bytes(damaged)
    with pytest.raises(SessionCorrupt) as caught:
        store.open("a")
    assert caught.value.line == 3
    with store.open("a", repair=True) as copy:
        texts = [each.text for each in copy.messages]
        assert (texts[0], texts[-1]) == ("one", "three")
        assert "entry 2 is missing" in texts[1]
    assert path.read_bytes() == damaged
