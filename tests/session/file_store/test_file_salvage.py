"""What can be read of a damaged file, and what a rewriting leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gotato_py import InvalidState, SessionBusy, SessionCorrupt
from gotato_session._file_lines import Kept, _summed, commit_lines
from gotato_session.file_store import FileStore

from .journals import HEAD, ID, contents, entry, filled, message, numbers, opened

GAP = "gap"


def lines_of(path: Path) -> list[bytes]:
    """The lines of the file, with their newlines."""
    return [each + b"\n" for each in path.read_bytes().split(b"\n")[:-1]]


def shape(entries: list[dict[str, Any]]) -> list[object]:
    """The entries by their numbers, and the gaps."""
    return [each["seq"] if "seq" in each else each.get("type", "head") for each in entries]


@pytest.mark.parametrize(
    ("change", "expected", "words"),
    [
        (lambda lines: lines, ["head", 1, 2, 3, 4, 5, 6], ""),
        (lambda lines: [*lines[:3], lines[3][:-1] + b"x\n", *lines[4:]], ["head", 1, 2, GAP, 4, 5, 6], "line 4"),
        (lambda lines: [*lines[:3], *lines[4:]], ["head", 1, 2, GAP, 4, 5, 6], "entry 3 is"),
        (lambda lines: [*lines[:2], *lines[4:]], ["head", 1, GAP, 4, 5, 6], "2 to 3"),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], ["head", 1, 2, 3, GAP, 4, 5, 6], "number 3 again"),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], ["head", 1, GAP, 3, GAP, 4, 5, 6], "entry 2 is"),
        (lambda lines: [*lines[:3], b"\n", b"\0\n", *lines[3:]], ["head", 1, 2, GAP, 3, 4, 5, 6], "line 4"),
        (lambda lines: [*lines[:3], lines[3][:-1], *lines[4:]], ["head", 1, 2, GAP, 4, 5, 6], "line 4"),
        (lambda lines: [*lines, b"torn"], ["head", 1, 2, 3, 4, 5, 6, GAP], "line 8"),
        (lambda lines: lines[:-1], ["head", 1, 2, 3, 4, GAP], "entry 5"),
        (lambda lines: [*lines[:-2], b"x\n"], ["head", 1, 2, 3, 4, GAP], "line 6"),
        (lambda lines: [b"x\n", *lines[1:]], ["head", GAP, 1, 2, 3, 4, 5, 6], "first line"),
        (lambda lines: [b"{ " + lines[0][1:], *lines[1:]], ["head", GAP, 1, 2, 3, 4, 5, 6], "damaged"),
        (lambda lines: [*lines[:3], _summed(b'{"type":"label"'), *lines[3:]], ["head", 1, 2, GAP, 3, 4, 5, 6], "None"),
    ],
)
def test_c50_what_is_left_of_a_damaged_file(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], expected: list[object], words: str
) -> None:
    """Every intact entry is there as it was given, and where something is missing there is a gap that says what."""
    store, path = filled(tmp_path, 4)
    journal = opened(store)
    journal.append([message(5), message(6)])
    journal.close()
    path.write_bytes(b"".join(change(lines_of(path))))
    before = contents(tmp_path)
    found = list(store.salvage_journal(ID))
    assert shape(found) == expected
    assert all(each in [HEAD, *map(message, range(1, 7))] for each in found[1:] if "seq" in each)
    assert found[0] == HEAD or GAP in shape(found)[:2]
    assert words in "; ".join(each["text"] for each in found if each.get("type") == GAP)
    assert contents(tmp_path) == before


def test_an_entry_joined_to_damage_is_found(tmp_path: Path) -> None:
    """An intact entry that follows damage on the same line is not given up with it."""
    store, path = filled(tmp_path, 3)
    lines = lines_of(path)
    path.write_bytes(b"".join([*lines[:2], lines[2][:20], lines[3]]))
    assert shape(list(store.salvage_journal(ID))) == ["head", 1, GAP, 3]


def test_a_head_that_is_lost(tmp_path: Path) -> None:
    """Without its first line a session still has its id; what else stood there is told as missing."""
    store, path = filled(tmp_path, 2)
    path.write_bytes(b"\0\n" + b"".join(lines_of(path)[1:]))
    head, gap, *_ = store.salvage_journal(ID)
    assert head == {"gotato_session": 1, "id": ID, "created_at": 0.0}
    assert "metadata" in gap["text"]


def test_nothing_is_left(tmp_path: Path) -> None:
    """A file of which nothing is a session's is not opened as an empty one."""
    (tmp_path / f"{ID}.jsonl").write_bytes(b"hello\nworld\n")
    with pytest.raises(SessionCorrupt, match="nothing"):
        FileStore(tmp_path).salvage_journal(ID)


def noisy(folder: Path) -> tuple[FileStore, Path]:
    """A session with recorded events and replaced metadata."""
    store, path = filled(folder, 1)
    journal = opened(store)
    journal.append([entry(2, "metadata", metadata={"a": 1})])
    journal.append([entry(3, "event", event={"kind": "x" * 500}), message(4), entry(5, "event", event={})])
    journal.append([entry(6, "event", event={})])
    journal.append([entry(7, "metadata", metadata={"a": 2}), message(8), entry(9, "label", name="x", entry_id="m-8")])
    journal.close()
    return store, path


def test_a_rewriting_leaves_out_what_no_longer_counts(tmp_path: Path) -> None:
    """Events and replaced metadata go; the rest stays in order, numbered without gaps, in the commits it was in."""
    store, path = noisy(tmp_path)
    before, [listed] = path.stat().st_size, store.summaries()
    freed = store.vacuum(ID)
    assert freed == before - path.stat().st_size > 500
    kept = [message(1), message(4), entry(7, "metadata", metadata={"a": 2}), message(8)]
    kept.append(entry(9, "label", name="x", entry_id="m-8"))
    assert opened(store, read_only=True).entries() == [
        HEAD,
        *({**each, "seq": number} for number, each in enumerate(kept, 1)),
    ]
    [found] = store.summaries()
    assert (found.metadata, found.messages, found.updated_at) == ({"a": 2}, 3, listed.updated_at)
    lines = path.read_bytes().split(b"\n")
    assert [b'"more":true' in line for line in lines] == [False, False, False, True, True, False, False]
    assert store.vacuum(ID) == 0
    journal = opened(store)
    journal.append([message(6)])
    journal.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{ID}.jsonl", f"{ID}.lease"]


def test_a_rewriting_of_what_cannot_be_rewritten(tmp_path: Path) -> None:
    """An open session, one with forks and a damaged one are refused, and stay as they are."""
    store, path = noisy(tmp_path)
    data = path.read_bytes()
    journal = opened(store)
    with pytest.raises(SessionBusy):
        store.vacuum(ID)
    journal.close()
    store.create_journal("f", {**HEAD, "id": "f", "parent_id": ID, "at": 4})
    with pytest.raises(InvalidState, match="forks"):
        store.vacuum(ID)
    assert store.vacuum("f") == 0
    store.delete_journal("f")
    path.write_bytes(data.replace(b"1001.0", b"1001.1"))
    with pytest.raises(SessionCorrupt):
        store.vacuum(ID)
    assert path.read_bytes() == data.replace(b"1001.0", b"1001.1")


def test_a_fork_that_is_rewritten(tmp_path: Path) -> None:
    """A fork's numbers go on from where it left its parent."""
    store = FileStore(tmp_path)
    store.create_journal("f", {**HEAD, "id": "f", "parent_id": ID, "at": 4})
    journal = opened(store, "f")
    journal.append([entry(5, "event"), message(6)])
    journal.close()
    assert store.vacuum("f") > 0
    assert numbers(opened(store, "f", read_only=True)) == [5]


def test_a_torn_tail_is_moved_aside_before_a_rewriting(tmp_path: Path) -> None:
    """Nothing that could not be read is thrown away by a rewriting."""
    store, path = noisy(tmp_path)
    torn, _ = commit_lines([message(10), message(11)], Kept(path.stat().st_size, 9, 0, 0))
    path.write_bytes(path.read_bytes() + torn[:-1])
    path.write_bytes(path.read_bytes()[:-30])
    assert store.vacuum(ID) > 0
    assert (tmp_path / f"{ID}.torn-1").read_bytes() == torn[:-31]
