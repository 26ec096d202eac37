"""A journal in a file: what is written, what is read again, and which ids and files there are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from gotato_py import InvalidArgument, InvalidState, NotFound, SessionBusy, SessionCorrupt, StoreFailure
from gotato_session.file_store import FileStore
from gotato_testkit import ManualClock

from .journals import HEAD, ID, Faults, contents, entry, filled, message, numbers, numbers_in, opened, store_on

SYNCS = ["commit", "run", "never"]


@pytest.mark.parametrize("sync", SYNCS)
def test_what_was_appended_is_read_again(tmp_path: Path, sync: str) -> None:
    """Entries come back as they were given, at once, by a reader, and from the next opening."""
    store = FileStore(tmp_path / "new" / "folder", sync=sync)
    store.create_journal(ID, HEAD)
    given = [HEAD, message(1), entry(2, "metadata", metadata={"a": [1, None]}), message(3), entry(4, "run")]
    journal = opened(store)
    journal.append(given[1:2])
    journal.append(given[2:])
    journal.append([])
    assert journal.entries() == given
    assert opened(store, read_only=True).entries() == given
    journal.sync()
    journal.close()
    journal.close()
    again = opened(store)
    assert again.entries() == given
    assert again.entries() == given
    assert again.last_seq == 4  # type: ignore[attr-defined]
    again.append([message(5)])
    assert numbers(again) == [1, 2, 3, 4, 5]
    again.close()


def test_every_line_tells_what_a_list_needs(tmp_path: Path) -> None:
    """A line is the entry, whether its commit goes on, how many messages there are, where the newest metadata is, and a
    checksum of all that."""
    store, path = filled(tmp_path, 1)
    journal = opened(store)
    journal.append([entry(2, "metadata", metadata={"a": 1}), message(3)])
    journal.append([entry(4, "label", name="x", entry_id="m-3")])
    journal.close()
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    at = len(lines[0]) + len(lines[1]) + 2
    for line in lines:
        assert line.endswith(b',"crc":"%08x"}' % crc32(line[:-18]))
    read: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for each in read:
        del each["crc"]
    assert read == [
        HEAD,
        {**message(1), "n": 1},
        {**entry(2, "metadata", metadata={"a": 1}), "more": True, "n": 1, "meta": at},
        {**message(3), "n": 2, "meta": at},
        {**entry(4, "label", name="x", entry_id="m-3"), "n": 2, "meta": at},
    ]


def test_a_fork_goes_on_with_the_next_number(tmp_path: Path) -> None:
    """The first entry of a fork has the number after the last one that it shares; messages are not counted there."""
    store = FileStore(tmp_path)
    store.create_journal("f", {**HEAD, "id": "f", "parent_id": ID, "at": 17})
    journal = opened(store, "f")
    assert journal.last_seq == 17  # type: ignore[attr-defined]
    journal.append([message(18)])
    journal.close()
    assert numbers_in(store, "f") == [18]
    assert opened(store, "f", read_only=True).last_seq == 18  # type: ignore[attr-defined]
    assert b'"n":' not in (tmp_path / "f.jsonl").read_bytes()


@pytest.mark.parametrize("wrong", [entry(1), entry(3), {"type": "message"}, {**entry(2), "crc": ""}])
def test_what_does_not_come_next_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """An entry with another number than the next, or with a member that is the file's own, changes nothing."""
    store, path = filled(tmp_path, 1)
    journal = opened(store)
    before = path.read_bytes()
    with pytest.raises(InvalidArgument):
        journal.append([wrong])
    assert path.read_bytes() == before
    journal.append([message(2)])
    journal.close()


@pytest.mark.parametrize("wrong", ["", ".a", "-a", "a/b", "../a", "a b", "ä", "a" * 129, "a\n", 7])
def test_ids_that_no_session_has(tmp_path: Path, wrong: Any) -> None:
    """An id that could not be a file's name anywhere is refused, wherever one is given."""
    store = FileStore(tmp_path)
    for act in (
        lambda: store.create_journal(wrong, HEAD),
        lambda: opened(store, wrong),
        lambda: store.delete_journal(wrong),
        lambda: store.salvage_journal(wrong),
        lambda: store.vacuum(wrong),
    ):
        with pytest.raises(InvalidArgument, match="id"):
            act()
    assert list(tmp_path.iterdir()) == []


def test_ids_that_look_like_the_files_of_others(tmp_path: Path) -> None:
    """A session may be called like a side file of another, or like its own file; none touches what is another's."""
    store = FileStore(tmp_path, sync="never")
    ids = ["a", "a.jsonl", "a.torn-1", "a.lease", "a.version-1-1", "a.jsonl.jsonl", "A" * 128]
    journals = []
    for each in ids:
        store.create_journal(each, {**HEAD, "id": each})
        journals.append(opened(store, each))
        journals[-1].append([message(1)])
    for journal in journals:
        journal.close()
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes() + b"torn")
    opened(store, "a").close()
    assert (tmp_path / "a.torn-1").read_bytes() == b"torn"
    store.delete_journal("a")
    assert sorted(each.id for each in store.summaries()) == sorted(ids[1:])
    for each in ids[1:]:
        assert numbers_in(store, each) == [1]
        store.delete_journal(each)
    assert list(tmp_path.iterdir()) == []


def test_a_session_is_created_once(tmp_path: Path) -> None:
    """Creating a session that is there is refused, and leaves it and the folder as they were."""
    store, _ = filled(tmp_path, 2)
    before = contents(tmp_path)
    with pytest.raises(InvalidState, match="already"):
        store.create_journal(ID, HEAD)
    assert contents(tmp_path) == before


def test_a_file_of_another_name_is_not_taken_for_the_session(tmp_path: Path) -> None:
    """A file that was copied under another name says whose it is, and is not opened as something else."""
    store, path = filled(tmp_path, 1)
    (tmp_path / "other.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(SessionCorrupt, match="s-1") as caught:
        opened(store, "other")
    assert caught.value.line == 1
    assert [each.id for each in store.summaries()] == [ID]


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    """Opening, reading, deleting or rewriting a session that is not there says so, whether the folder is or not."""
    for store in (FileStore(tmp_path), FileStore(tmp_path / "none")):
        for act in (
            lambda store=store: opened(store),
            lambda store=store: opened(store, read_only=True),
            lambda store=store: store.delete_journal(ID),
            lambda store=store: store.salvage_journal(ID),
            lambda store=store: store.vacuum(ID),
        ):
            with pytest.raises(NotFound, match=ID):
                act()
        assert list(store.summaries()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_session_is_deleted_with_all_that_is_beside_it(tmp_path: Path) -> None:
    """Nothing of a deleted session is left, and it cannot be deleted while it is open."""
    store, path = filled(tmp_path, 2)
    for _ in range(2):
        path.write_bytes(path.read_bytes() + b"torn")
        opened(store).close()
    assert len(list(tmp_path.iterdir())) == 4
    journal = opened(store)
    with pytest.raises(SessionBusy):
        store.delete_journal(ID)
    journal.append([message(3)])
    journal.close()
    reader = opened(store, read_only=True)
    store.delete_journal(ID)
    assert list(tmp_path.iterdir()) == []
    assert numbers(reader) == [1, 2, 3]  # as it was opened
    with pytest.raises(NotFound):
        reader.entries()


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    """After `close` nothing is read or written by that journal; a reader never writes."""
    store, _ = filled(tmp_path, 1)
    journal = opened(store)
    journal.close()
    for act in (lambda: journal.append([message(2)]), journal.sync, journal.entries):
        with pytest.raises(InvalidState, match="closed"):
            act()
    reader = opened(store, read_only=True)
    with pytest.raises(InvalidState, match="read-only"):
        reader.append([message(2)])
    assert reader.lease is None
    reader.sync()
    reader.close()
    assert numbers_in(store) == [1]


@pytest.mark.parametrize("given", [{"dir": 7}, {"dir": ".", "sync": "always"}])
def test_arguments_are_checked(given: dict[str, Any]) -> None:
    """A folder that is no path and an unknown word for `sync` are refused."""
    with pytest.raises(InvalidArgument):
        FileStore(**given)


def test_the_folder_stays_the_same_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative folder is meant from where the process was when the store was made."""
    monkeypatch.chdir(tmp_path)
    store = FileStore("sessions")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.create_journal(ID, HEAD)
    assert (tmp_path / "sessions" / f"{ID}.jsonl").is_file()


@pytest.mark.parametrize(
    ("sync", "created", "appended", "synced"),
    [("commit", 1, 1, 0), ("run", 1, 0, 1), ("never", 0, 0, 0)],
)
def test_when_the_disk_is_asked(tmp_path: Path, sync: str, created: int, appended: int, synced: int) -> None:
    """`sync` says when a commit has to have reached the disk: at once, at the end of the run, or never."""
    disk = Faults()
    store = store_on(disk, tmp_path, sync=sync)
    store.create_journal(ID, HEAD)
    assert disk.acts == ["write"] + ["sync", "sync folder"] * created
    journal = opened(store)
    disk.acts.clear()
    journal.append([message(1), message(2)])
    assert disk.acts == ["write"] + ["sync"] * appended
    disk.acts.clear()
    journal.sync()
    assert disk.acts == ["sync"] * synced
    journal.close()


def test_the_lease_tells_who_writes(tmp_path: Path) -> None:
    """A lease has the owner's name, host, process and time, and its token grows with each owner."""
    store, _ = filled(tmp_path, 1)
    store.clock = ManualClock()
    journal = opened(store, owner="worker 7")
    lease = journal.lease
    assert lease is not None
    assert (lease.owner, lease.host, lease.pid) == ("worker 7", os.uname().nodename, os.getpid())
    assert lease.since == store.clock.time()
    assert lease.token == 2
    with pytest.raises(SessionBusy, match="worker 7") as caught:
        opened(store)
    busy = caught.value
    assert (busy.owner, busy.host, busy.pid, busy.since) == (lease.owner, lease.host, lease.pid, lease.since)
    journal.close()


@pytest.mark.parametrize("noted", [b"", b"{", b"[]", b'{"owner": 1}', b"\xff", b'{"owner":"","host":"","pid":"x"}'])
def test_a_damaged_note_of_the_owner_does_no_harm(tmp_path: Path, noted: bytes) -> None:
    """Who has the session is a note for people: without it a session is as busy, and opens as well."""
    store, _ = filled(tmp_path, 1)
    journal = opened(store)
    (tmp_path / f"{ID}.lease").write_bytes(noted)
    with pytest.raises(SessionBusy) as caught:
        opened(store)
    assert (caught.value.owner, caught.value.pid) == ("", 0)
    journal.append([message(2)])
    journal.close()
    opened(store).close()


def test_a_note_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    """Where the owner's note cannot stand, a session opens and is written as ever."""
    store, _ = filled(tmp_path, 1)
    (tmp_path / f"{ID}.lease").unlink()
    (tmp_path / f"{ID}.lease" / "in the way").mkdir(parents=True)
    journal = opened(store)
    journal.append([message(2)])
    journal.close()
    assert numbers_in(store) == [1, 2]


def test_the_systems_errors_are_told(tmp_path: Path) -> None:
    """What the system refuses is a `StoreFailure` that says what was tried, with the system's error behind it."""
    (tmp_path / "file").write_text("")
    store = FileStore(tmp_path / "file")
    for act in (lambda: store.create_journal(ID, HEAD), lambda: opened(store), lambda: list(store.summaries())):
        with pytest.raises(StoreFailure) as caught:
            act()
        assert isinstance(caught.value.cause, OSError)


def test_a_lone_surrogate_fails_before_anything_is_written(tmp_path: Path) -> None:
    """A text that UTF-8 cannot say is an error, and the file is as it was."""
    store, path = filled(tmp_path, 1)
    journal = opened(store)
    before = path.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        journal.append([message(2, "\ud800")])
    assert path.read_bytes() == before
    journal.close()


def test_many_entries_come_back(tmp_path: Path) -> None:
    """A journal of thousands of entries is read in pieces, and comes back whole."""
    store, _ = filled(tmp_path, 0)
    given = [message(seq, "x" * 600) for seq in range(1, 2051)]
    journal = opened(store)
    for at in range(0, len(given), 50):
        journal.append(given[at : at + 50])
    journal.close()
    assert opened(store, read_only=True).entries()[1:] == given
