"""Files of other releases: newer ones are refused untouched, older ones are rewritten behind a copy."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gotato_py import NotSupported, SessionCorrupt
from gotato_session._file_format import Format
from gotato_session.file_store import FileStore
from gotato_session.journal import JSONObject

from ...effort import by_profile
from ..steps import killed_at
from .journals import HEAD, ID, Faults, broken, contents, entry, filled, message, numbers, opened


def add_color(entries: list[JSONObject]) -> list[JSONObject]:
    """What a next version might want: a new member everywhere."""
    return [{**each, "color": "red"} for each in entries]


def rename_runs(entries: list[JSONObject]) -> list[JSONObject]:
    """And the one after that: another word."""
    return [{**each, "type": "walk"} if each.get("type") == "run" else each for each in entries]


class Later(FileStore):
    """The store of a later release."""

    _format = Format(3, {1: add_color, 2: rename_runs})


class Later4(FileStore):
    """One that no longer reads the first version."""

    _format = Format(4, {2: rename_runs, 3: add_color})


def old(folder: Path) -> Path:
    """A file of the first version."""
    store, path = filled(folder, 2)
    journal = opened(store)
    journal.append([entry(3, "run")])
    journal.close()
    return path


def entries_of_later(head: dict[str, Any]) -> list[dict[str, Any]]:
    """What the later release reads there."""
    color = {"color": "red"}
    later = [message(1), message(2), entry(3, "walk")]
    return [{**head, "gotato_session": 3, **color}, *({**each, **color} for each in later)]


def entries_in(folder: Path) -> list[dict[str, Any]]:
    """What a writer of the later release finds."""
    journal = Later(folder).open_journal(ID, "me", False, False)
    try:
        return journal.entries()
    finally:
        journal.close()


def test_an_older_file_is_rewritten_behind_a_copy(tmp_path: Path) -> None:
    """A writer of a later release puts the old file beside the new one, tells it, and goes on with the new one."""
    path = old(tmp_path)
    before = path.read_bytes()
    journal = Later(tmp_path).open_journal(ID, "me", False, False)
    expected = entries_of_later(HEAD)
    assert journal.entries() == expected
    assert [f"{ID}.version-1-1" in each for each in journal.recovered] == [True]  # type: ignore[attr-defined]
    assert (tmp_path / f"{ID}.version-1-1").read_bytes() == before
    journal.append([message(4)])
    journal.close()
    again = Later(tmp_path).open_journal(ID, "me", False, False)
    assert again.entries() == [*expected, message(4)]
    assert again.recovered == ()  # type: ignore[attr-defined]
    again.close()
    with pytest.raises(NotSupported):
        opened(FileStore(tmp_path))
    Later(tmp_path).delete_journal(ID)
    assert list(tmp_path.iterdir()) == []


def test_a_rewriting_that_is_killed_is_done_again(tmp_path: Path) -> None:
    """Whatever the line, the next writer has all entries as the later release reads them, and the old file is kept."""
    before = old(tmp_path / "before").read_bytes()
    line, more = 1, True
    while more:
        place = shutil.copytree(tmp_path / "before", tmp_path / str(line))
        more = killed_at(line, partial(entries_in, place))
        assert entries_in(place) == entries_of_later(HEAD), line
        assert before in [each.read_bytes() for each in place.glob(f"{ID}.version-1-*")], line
        line += by_profile(dev=17, ci=5, nightly=1)
    assert line > 100, "it has lines"


def test_a_reader_rewrites_nothing(tmp_path: Path) -> None:
    """A reader of a later release sees what a writer would make of it, and leaves the file as it is."""
    old(tmp_path)
    before = contents(tmp_path)
    reader = Later(tmp_path).open_journal(ID, "me", True, False)
    assert reader.entries() == entries_of_later(HEAD)
    assert reader.last_seq == 3  # type: ignore[attr-defined]
    assert reader.entries() == entries_of_later(HEAD)
    assert Later(tmp_path).salvage_journal(ID) == entries_of_later(HEAD)
    assert contents(tmp_path) == before


def test_what_changed_while_it_was_read_is_read_again(tmp_path: Path) -> None:
    """A reader who cannot make sense of a file that was being written looks at it again."""
    path = old(tmp_path)
    calls: list[int] = []

    def fail_once(entries: list[JSONObject]) -> list[JSONObject]:
        calls.append(1)
        if len(calls) == 1:
            path.write_bytes(path.read_bytes() + b"torn")
            raise SessionCorrupt("read in the middle of a write")
        return entries

    class Racing(FileStore):
        _format = Format(2, {1: fail_once})

    assert numbers(Racing(tmp_path).open_journal(ID, "me", True, False)) == [1, 2, 3]
    assert len(calls) == 2


def test_an_older_file_with_a_torn_tail(tmp_path: Path) -> None:
    """The copy has the torn tail as well; the new file has not."""
    path = old(tmp_path)
    before = path.read_bytes() + b"torn"
    path.write_bytes(before)
    journal = Later(tmp_path).open_journal(ID, "me", False, False)
    assert numbers(journal) == [1, 2, 3]
    journal.close()
    assert (tmp_path / f"{ID}.version-1-1").read_bytes() == before


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    """If the new file cannot be written, the session is as it was, closed, and the next writer does it."""
    path = old(tmp_path)
    before = path.read_bytes()
    acts: list[str] = []

    def fail_late(act: str) -> OSError | None:
        acts.append(act)
        return broken() if len(acts) == 5 else None

    class Failing(Later):
        _disk = Faults(fail_late)

    with pytest.raises(Exception, match="could not be opened"):
        Failing(tmp_path).open_journal(ID, "me", False, False)
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{ID}.jsonl", f"{ID}.lease", f"{ID}.version-1-1"]
    journal = Later(tmp_path).open_journal(ID, "me", False, False)
    assert numbers(journal) == [1, 2, 3]
    journal.close()


def test_a_version_that_is_no_longer_read(tmp_path: Path) -> None:
    """A file so old that a release no longer knows how to read it is refused, and not changed."""
    old(tmp_path)
    before = contents(tmp_path)
    for read_only in (True, False):
        with pytest.raises(NotSupported, match="no longer"):
            Later4(tmp_path).open_journal(ID, "me", read_only, False)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "first", [b'{"gotato_session":2,"id":"s-1"}', b'{"gotato_session":99,"sums":"elsewhere"}', b'{"gotato_session":2}']
)
def test_the_version_is_read_before_anything_else(tmp_path: Path, first: bytes) -> None:
    """A file of a newer version is refused as that, whatever this release would think of the rest of it."""
    path = tmp_path / f"{ID}.jsonl"
    path.write_bytes(first + b"\nwhat may be\n")
    store = FileStore(tmp_path)
    before = contents(tmp_path)
    for act in (
        lambda: opened(store),
        lambda: opened(store, read_only=True),
        lambda: opened(store, steal=True),
        lambda: store.salvage_journal(ID),
        lambda: store.vacuum(ID),
    ):
        with pytest.raises(NotSupported, match="newer"):
            act()
    assert contents(tmp_path) == before
    assert list(store.summaries()) == []


@pytest.mark.parametrize("version", [2, "1", None, 1.0])
def test_an_entry_of_a_newer_version(tmp_path: Path, version: object) -> None:
    """An entry that a newer release wrote makes the session one that this release does not open."""
    store, path = filled(tmp_path, 1)
    journal = opened(store)
    journal.append([{**message(2), "v": version}])
    journal.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(NotSupported, match="entry 2"):
            opened(store, read_only=read_only)
    with pytest.raises(NotSupported, match="entry 2"):
        store.salvage_journal(ID)
    assert path.read_bytes() == before


def test_a_damaged_head_of_an_older_version_is_damage(tmp_path: Path) -> None:
    """Damage is told before anything is rewritten."""
    path = old(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"1000.0", b"1000.1", 1))
    with pytest.raises(SessionCorrupt):
        Later(tmp_path).open_journal(ID, "me", False, False)
    assert not list(tmp_path.glob("*.version*"))
