"""Lists of sessions, made from the ends of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gotato_session.file_store import FileStore
from gotato_session.summary import SessionSummary

from .journals import HEAD, ID, contents, entry, filled, message, opened


def made(folder: Path, id: str, *commits: list[dict[str, Any]], **head: Any) -> FileStore:
    """A store that has such a session."""
    store = FileStore(folder, sync="never")
    store.create_journal(id, {**HEAD, "id": id, **head})
    journal = opened(store, id)
    for commit in commits:
        journal.append(commit)
    journal.close()
    return store


def only(store: FileStore) -> SessionSummary:
    """The one session's summary."""
    [found] = store.summaries()
    return found


def test_an_empty_session(tmp_path: Path) -> None:
    """A session without entries was changed when it was created, and has the metadata that it was created with."""
    store = made(tmp_path, ID, metadata={"user": "ä"})
    size = (tmp_path / f"{ID}.jsonl").stat().st_size
    assert only(store) == SessionSummary(ID, "", 1000.0, 1000.0, size, {"user": "ä"}, 0)


def test_a_session_with_entries(tmp_path: Path) -> None:
    """The time is the last entry's, the messages are counted, the metadata is the newest."""
    commits = [
        [message(1)],
        [entry(2, "metadata", metadata={"a": 1})],
        [message(3), entry(4, "metadata", metadata={"b": [2]}), message(5)],
        [entry(6, "label"), entry(7, "run")],
    ]
    for count, metadata, messages in [
        (1, {"at": "first"}, 1),
        (2, {"a": 1}, 1),
        (3, {"b": [2]}, 3),
        (4, {"b": [2]}, 3),
    ]:
        store = made(tmp_path / str(count), ID, *commits[:count], metadata={"at": "first"})
        found = only(store)
        assert found.metadata == metadata
        assert found.messages == messages
        assert found.updated_at == commits[count - 1][-1]["time"]
        assert found.created_at == 1000.0


def test_a_fork(tmp_path: Path) -> None:
    """A fork tells its parent; how many messages it has cannot be known from its file."""
    store = made(tmp_path, "f", parent_id=ID, at=3)
    found = only(store)
    assert (found.parent_id, found.messages) == (ID, None)
    store = made(tmp_path / "more", "f", [message(4)], parent_id=ID, at=3)
    found = only(store)
    assert (found.parent_id, found.messages, found.updated_at) == (ID, None, 1004.0)


def test_the_newest_come_first(tmp_path: Path) -> None:
    """The order is that of the last changes, then that of the ids."""
    for id, seq in [("b", 2), ("c", 3), ("a", 2), ("d", 1)]:
        store = made(tmp_path, id, *[[message(each)] for each in range(1, seq + 1)])
    assert [each.id for each in store.list()] == ["c", "a", "b", "d"]


@pytest.mark.parametrize("length", [10, 3000, 4000, 4096, 5000, 20_000, 100_000])
def test_lines_of_any_length(tmp_path: Path, length: int) -> None:
    """Long metadata and long messages are found as well, wherever the blocks that are read end."""
    long = {"long": "ä" * (length // 2)}
    store = made(
        tmp_path,
        ID,
        [message(1, "x" * length)],
        [entry(2, "metadata", metadata=long)],
        [message(3, "x" * length), message(4, "y" * length)],
        metadata=long,
    )
    found = only(store)
    assert found.metadata == long
    assert (found.messages, found.updated_at) == (3, 1004.0)
    other = made(tmp_path / "other", ID, metadata=long)
    assert only(other).metadata == long


@pytest.mark.parametrize("tail", [b"torn", b"\0" * 9000, b'{"seq":4}\n' * 1000, b"\n\n", b"\xff" * 5])
def test_a_torn_tail_is_not_looked_at(tmp_path: Path, tail: bytes) -> None:
    """What a list says of a session with a torn tail is what it says once that is gone."""
    store = made(tmp_path, ID, [message(1), message(2)], [entry(3, "metadata", metadata={"a": 1})])
    path = tmp_path / f"{ID}.jsonl"
    before = only(store)
    path.write_bytes(path.read_bytes() + tail)
    found = only(store)
    assert (found.metadata, found.messages, found.updated_at) == (before.metadata, 2, before.updated_at)


def test_a_commit_without_its_end(tmp_path: Path) -> None:
    """Half a commit counts for nothing in a list either."""
    store = made(tmp_path, ID, [message(1)], [message(2), message(3), message(4)])
    path = tmp_path / f"{ID}.jsonl"
    path.write_bytes(b"".join(each + b"\n" for each in path.read_bytes().split(b"\n")[:-2]))
    found = only(store)
    assert (found.messages, found.updated_at) == (1, 1001.0)


def test_what_is_no_session_is_left_out(tmp_path: Path) -> None:
    """Other files, other folders, empty and foreign files and what cannot be read are no sessions, and no errors."""
    store, _ = filled(tmp_path, 1)
    for name in ("notes.txt", "empty.jsonl", ".hidden.jsonl", "-x.jsonl", "other.jsonl", f"{ID}.torn-1", ".jsonl"):
        (tmp_path / name).write_bytes(b'{"a":1}\n' if name == "other.jsonl" else b"")
    (tmp_path / "-x.jsonl").write_bytes((tmp_path / f"{ID}.jsonl").read_bytes().replace(b"s-1", b"-x"))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere")
    before = contents_of_files(tmp_path)
    assert [each.id for each in store.summaries()] == [ID]
    assert contents_of_files(tmp_path) == before


def test_what_is_left_out_of_a_list_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A session that a list cannot show is not gone: the log names its file and what is wrong with it."""
    store, _ = filled(tmp_path, 1)
    whole = (tmp_path / f"{ID}.jsonl").read_bytes()
    (tmp_path / "damaged.jsonl").write_bytes(whole.replace(b'"s-1"', b'"damaged"', 1))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "newer.jsonl").write_bytes(b'{"gotato_session": 99, "id": "newer"}\n')
    (tmp_path / "renamed.jsonl").write_bytes(whole)
    assert [each.id for each in store.summaries()] == [ID]
    said = sorted(record.getMessage() for record in caplog.records)
    reasons = (
        "is damaged",
        "is not the head of a session",
        "the file is of version 99",
        "is that of the session 's-1'",
    )
    for name, reason, line in zip(("damaged", "empty", "newer", "renamed"), reasons, said, strict=True):
        assert line.startswith(f"{tmp_path / name}.jsonl is left out of the list: session {name!r}: ")
        assert reason in line
    assert {record.name for record in caplog.records} == {"gotato_session"}


def contents_of_files(folder: Path) -> dict[str, bytes]:
    """The content of every file there."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def test_entries_that_lack_what_a_list_wants(tmp_path: Path) -> None:
    """Without times the file's own time counts; metadata that is damaged is unknown."""
    store = made(tmp_path, ID, [{"seq": 1, "type": "metadata", "metadata": {"a": 1}}], [{"seq": 2, "type": "label"}])
    path = tmp_path / f"{ID}.jsonl"
    found = only(store)
    assert found.updated_at == path.stat().st_mtime
    assert found.metadata == {"a": 1}
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    assert only(store).metadata is None
    other = made(tmp_path / "other", ID, [{"seq": 1, "type": "metadata", "metadata": 7}], created_at="long ago")
    found = only(other)
    assert found.metadata is None
    assert found.created_at == (tmp_path / "other" / f"{ID}.jsonl").stat().st_mtime


def test_listing_changes_nothing(tmp_path: Path) -> None:
    """A list is made without a lock and without a change, beside a writer too."""
    store, _ = filled(tmp_path, 2)
    journal = opened(store)
    before = contents(tmp_path)
    assert only(store).messages == 2
    assert contents(tmp_path) == before
    journal.append([message(3)])
    assert only(store).messages == 3
    journal.close()
