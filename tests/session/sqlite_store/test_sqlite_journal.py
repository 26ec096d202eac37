"""A journal in a database: what is appended is there, in order, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gotato_py import InvalidArgument, InvalidState, NotFound, StoreFailure
from gotato_session.sqlite_store import SQLiteStore

from .journals import ID, change, contents, entry, filled, head, made, numbers, opened, raw, said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


@pytest.fixture
def store(path: Path) -> SQLiteStore:
    """A store without sessions."""
    return SQLiteStore(path, sync="never")


@pytest.mark.parametrize("sync", ["commit", "run", "never"])
def test_what_was_appended_is_read_back(path: Path, sync: str) -> None:
    """The head and the entries come back as they were given, by any promise about power cuts."""
    store = SQLiteStore(path, sync=sync)
    given = [said(1, "häh?\0\u2028 🙂"), entry(2, "label", name="a"), entry(3, "event", event={"n": [1, 2.5, None]})]
    with_metadata = head(metadata={"customer": "Kari"})
    store.create_journal(ID, with_metadata)
    journal = opened(store)
    assert (journal.entries(), journal.last_seq) == ([with_metadata], 0)
    journal.append(given[:1])
    journal.append(given[1:])
    journal.sync()
    assert (journal.entries(), journal.last_seq) == ([with_metadata, *given], 3)
    journal.close()
    again = opened(SQLiteStore(path), read_only=True)
    assert (again.entries(), again.last_seq, again.lease) == ([with_metadata, *given], 3, None)


def test_an_empty_commit_keeps_nothing(store: SQLiteStore) -> None:
    """Nothing appended is nothing kept."""
    journal = made(store)
    journal.append([])
    assert journal.entries() == [head()]


def test_lone_surrogates_are_replaced(store: SQLiteStore) -> None:
    """A text that no encoding can say is kept with U+FFFD in its place."""
    journal = made(store)
    journal.append([entry(1, text="a\ud800b")])
    assert journal.entries()[1]["text"] == "a\ufffdb"


@pytest.mark.parametrize("wrong", [[entry(1)], [entry(3), entry(5)], [entry(4)], [{"type": "event"}], [entry(-1)]])
def test_only_the_next_numbers_are_taken(store: SQLiteStore, wrong: list[dict[str, object]]) -> None:
    """Entries that do not carry the next numbers are refused, and none of them is kept."""
    journal = made(store)
    journal.append([entry(1), entry(2)])
    with pytest.raises(InvalidArgument, match="after entry 2 comes"):
        journal.append(wrong)
    assert (numbers(journal), journal.last_seq) == ([1, 2], 2)
    journal.append([entry(3)])


def test_what_is_no_json_is_refused(store: SQLiteStore) -> None:
    """An entry that JSON has no form for is refused, with the whole commit."""
    journal = made(store)
    with pytest.raises(InvalidArgument):
        journal.append([entry(1), entry(2, text=float("nan"))])
    assert journal.entries() == [head()]


def test_a_number_that_moved_behind_its_back(store: SQLiteStore, path: Path) -> None:
    """If the session does not end any more where its writer left it, the commit fails as a whole."""
    journal = made(store)
    journal.append([entry(1)])
    change(path, "UPDATE progress SET last_seq = 7")
    with pytest.raises(StoreFailure, match="does not end with entry 1 any more"):
        journal.append([entry(2)])
    change(path, "UPDATE progress SET last_seq = 1")
    journal.append([entry(2)])
    assert numbers(journal) == [1, 2]


def test_the_primary_key_is_the_last_line_of_defence(store: SQLiteStore, path: Path) -> None:
    """A number that is taken in the table is an error of that commit: no entry is lost, and none is fused."""
    journal = made(store)
    journal.append([entry(1)])
    change(path, "INSERT INTO entries SELECT place + 1, messages, checksum, text FROM entries")
    with pytest.raises(StoreFailure, match="UNIQUE"):
        journal.append([entry(2)])
    assert journal.last_seq == 1


def test_a_session_is_made_once(store: SQLiteStore) -> None:
    """A second session with that id is refused, and the first one is as it was."""
    journal = made(store, metadata={"a": 1})
    with pytest.raises(InvalidState, match="there is a session s-1 already"):
        store.create_journal(ID, head())
    assert journal.entries() == [head(metadata={"a": 1})]


def test_a_fork_begins_after_its_parents_entries(store: SQLiteStore) -> None:
    """A fork's first number follows the last that it shares, and its messages count those that it shares."""
    parent = made(store)
    parent.append([said(1), entry(2), said(3), said(4)])
    child = made(store, "s-2", parent_id=ID, at=3)
    assert (child.last_seq, child.entries()) == (3, [head("s-2", parent_id=ID, at=3)])
    child.append([entry(4), said(5)])
    grandchild = made(store, "s-3", parent_id="s-2", at=3)
    grandchild.append([said(4)])
    empty = made(store, "s-4", parent_id="s-2", at=0)
    assert empty.last_seq == 0
    assert numbers(child) == [4, 5]
    assert numbers(grandchild) == [4]
    counted = {each.id: (each.messages, each.parent_id) for each in store.summaries()}
    assert counted == {"s-1": (3, ""), "s-2": (3, "s-1"), "s-3": (3, "s-2"), "s-4": (0, "s-2")}


def test_a_fork_needs_its_parent(store: SQLiteStore) -> None:
    """A fork of a session that is not there, or was deleted in that moment, is refused."""
    with pytest.raises(NotFound, match="no session s-0 to fork from"):
        store.create_journal(ID, head(parent_id="s-0", at=3))
    assert list(store.summaries()) == []


@pytest.mark.parametrize("at", [2, 9])
def test_messages_that_cannot_be_counted(store: SQLiteStore, path: Path, at: int) -> None:
    """A fork from an entry that is lost does not know how many messages it has."""
    made(store).append([said(1), said(2)])
    change(path, "DELETE FROM entries WHERE place & 4294967295 = 2")
    made(store, "s-2", parent_id=ID, at=at).append([said(at + 1)])
    assert next(store.summaries()).messages is None


def test_after_close_nothing_is_written(store: SQLiteStore) -> None:
    """A closed journal takes nothing, and closing it again does nothing."""
    journal = made(store)
    journal.append([entry(1)])
    journal.close()
    journal.close()
    writes: list[Callable[[], object]] = [lambda: journal.append([entry(2)]), journal.sync]
    for write in writes:
        with pytest.raises(InvalidState, match="the session s-1 is closed"):
            write()
    assert numbers(journal) == [1]


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    """A journal opened for reading takes nothing, has no lease, and changes no byte of a folder."""
    store = filled(tmp_path / "a.sqlite", 3)
    before = contents(tmp_path)
    journal = opened(store, read_only=True)
    writes: list[Callable[[], object]] = [lambda: journal.append([entry(4)]), journal.sync]
    for write in writes:
        with pytest.raises(InvalidState, match="opened read-only"):
            write()
    assert (numbers(journal), journal.last_seq, journal.lease) == ([1, 2, 3], 3, None)
    assert [each.messages for each in store.summaries()] == [3]
    assert len(store.salvage_journal(ID)) == 4
    journal.close()
    assert contents(tmp_path) == before


def test_a_reader_sees_what_is_committed_meanwhile(store: SQLiteStore) -> None:
    """Each look of a reader is at one moment, after the last commit."""
    writer = made(store)
    reader = opened(store, read_only=True)
    for seq in range(1, 4):
        writer.append([entry(seq)])
        assert (numbers(reader)[-1], reader.last_seq) == (seq, seq)
    writer.close()
    store.close()
    assert numbers(reader) == [1, 2, 3]


def test_a_look_without_a_database_makes_none(tmp_path: Path) -> None:
    """Where there is no file, nothing is found, and there is none afterwards."""
    store = SQLiteStore(tmp_path / "none.sqlite")
    for look in (
        lambda: opened(store),
        lambda: opened(store, read_only=True),
        lambda: store.delete_journal(ID),
        lambda: store.salvage_journal(ID),
    ):
        with pytest.raises(NotFound, match="there is no session s-1: there is no database"):
            look()
    assert (list(store.summaries()), store.search("a"), store.purge(older_than=0)) == ([], [], [])
    store.vacuum()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_not_found(store: SQLiteStore) -> None:
    """In a database that is there, a session that is not is `NotFound` too."""
    made(store)
    for look in (
        lambda: opened(store, "s-9"),
        lambda: opened(store, "s-9", read_only=True),
        lambda: store.delete_journal("s-9"),
        lambda: store.salvage_journal("s-9"),
    ):
        with pytest.raises(NotFound, match="there is no session s-9"):
            look()


def test_a_reader_outlives_its_session(store: SQLiteStore, path: Path) -> None:
    """What was deleted after it was opened for reading is not found any more, nor is it without the file."""
    made(store).close()
    reader = opened(store, read_only=True)
    store.delete_journal(ID)
    for look in (reader.entries, lambda: reader.last_seq):
        with pytest.raises(NotFound):
            look()
    store.close()
    path.unlink()
    for look in (reader.entries, lambda: reader.last_seq):
        with pytest.raises(NotFound):
            look()


@settings(max_examples=20)
@given(commits=st.lists(st.integers(0, 5), max_size=8), steals=st.sets(st.integers(0, 7)))
def test_any_commits_and_owners(tmp_path_factory: pytest.TempPathFactory, commits: list[int], steals: set[int]) -> None:
    """Whatever sizes commits have, and whoever makes them, the entries are those that were acknowledged."""
    store = SQLiteStore(tmp_path_factory.mktemp("any") / "a.sqlite", sync="never")
    journal, kept = made(store), [head()]
    for turn, size in enumerate(commits):
        if turn in steals:
            journal = opened(store, steal=True)
        commit = [said(len(kept) + index) for index in range(size)]
        journal.append(commit)
        kept += commit
    assert journal.entries() == kept
    assert next(store.summaries()).messages == len(kept) - 1
    store.close()


def test_a_durable_end_of_a_run_changes_the_log(path: Path) -> None:
    """With sync="run", `sync` commits something in the full mode, which syncs the log; the others need nothing."""
    for sync, counts in (("commit", 0), ("run", 1), ("never", 0)):
        here = path.with_name(f"{sync}.sqlite")
        journal = made(SQLiteStore(here, sync=sync))
        journal.append([entry(1)])
        journal.sync()
        with raw(here) as connection:
            assert connection.execute("SELECT synced FROM progress").fetchone() == (counts,)


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b"])
def test_what_is_no_path(path: str) -> None:
    """A path that names no file is refused when the store is made."""
    with pytest.raises(InvalidArgument, match=r"SQLiteStore\.path"):
        SQLiteStore(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": 3},
        {"path": b"a"},
        {"sync": "always"},
        {"lease_timeout": -1},
        {"lease_timeout": float("nan")},
        {"busy_timeout": "3"},
        {"busy_timeout": True},
    ],
)
def test_arguments_are_checked(tmp_path: Path, wrong: dict[str, object]) -> None:
    """What an argument cannot be is refused by its name, and nothing is made."""
    arguments: dict[str, object] = {"path": tmp_path / "a.sqlite", **wrong}
    with pytest.raises(InvalidArgument, match=f"SQLiteStore.{next(iter(wrong))}"):
        SQLiteStore(**arguments)  # type: ignore[arg-type]  # on purpose
    assert list(tmp_path.iterdir()) == []


def test_a_store_as_a_block(path: Path) -> None:
    """At the end of a `with` block the connections are closed, and later calls open them anew."""
    with SQLiteStore(path) as store:
        journal = made(store)
        journal.append([entry(1)])
        assert path.with_name(f"{path.name}-wal").exists()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    journal.append([entry(2)])
    assert numbers(journal) == [1, 2]
    assert repr(store) == f"SQLiteStore({str(path)!r})"


@pytest.mark.parametrize("name", ["a b", "a%20b", "a?mode=ro", "a#b", "häh 🙂", "a\\b", "a&b=c"])
def test_any_name_names_a_file(tmp_path: Path, name: str) -> None:
    """Signs that mean something in a URI are signs of the file's name."""
    store = SQLiteStore(tmp_path / name)
    made(store).append([entry(1)])
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert numbers(opened(store, read_only=True)) == [1]


def test_a_link_leads_to_the_same_database(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store opened through a link uses the log beside the file itself, and sees who has a session."""
    store = SQLiteStore(path)
    journal = made(store)
    journal.append([entry(1)])
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.sqlite"
    link.symlink_to(path)
    assert numbers(opened(SQLiteStore(link), read_only=True)) == [1]
    monkeypatch.chdir(tmp_path / "other")
    assert [each.id for each in SQLiteStore("link.sqlite").summaries()] == [ID]
    assert [each.name for each in link.parent.iterdir()] == ["link.sqlite"]
