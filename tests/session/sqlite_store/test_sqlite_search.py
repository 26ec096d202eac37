"""What only a database can: finding words in messages, listing much, and deleting what is old."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import InvalidArgument, NotSupported, StoreFailure
from gotato_session.sqlite_store import SearchHit, SQLiteStore
from gotato_session.summary import SessionSummary
from gotato_testkit import ManualClock

from .journals import ID, change, entry, head, made, opened, raw, said


@pytest.fixture
def clock() -> ManualClock:
    """The time of the store."""
    return ManualClock(5000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "sessions.sqlite"


@pytest.fixture
def store(path: Path, clock: ManualClock) -> SQLiteStore:
    """A store without sessions."""
    store = SQLiteStore(path, sync="never", lease_timeout=100.0)
    store.clock = clock
    return store


def found(store: SQLiteStore, text: str, **options: Any) -> set[tuple[str, str]]:  # Any: the options of `search`
    """Where a search finds something: session and message."""
    return {(each.session_id, each.entry_id) for each in store.search(text, **options)}


def test_a_hit_says_where_and_what(store: SQLiteStore) -> None:
    """A hit has the session, the message, its role, and a piece of its text."""
    made(store).append([said(1, "Where is the red ball?"), said(2, "Under the tree.", role="assistant")])
    assert store.search("red") == [SearchHit("s-1", "m-1", "user", "Where is the red ball?")]
    assert store.search("TREE") == [SearchHit("s-1", "m-2", "assistant", "Under the tree.")]
    made(store, "s-2").append([said(1, "word " * 200 + "needle " + "word " * 200)])
    (hit,) = store.search("needle")
    assert "needle" in hit.snippet
    assert hit.snippet.startswith("…")
    assert len(hit.snippet) < 200


def test_all_words_have_to_be_there(store: SQLiteStore) -> None:
    """A message is found if it has every word, in any order and case, with or without accents; words are whole."""
    made(store).append([said(1, "Crème brûlée, please!"), said(2, "crème"), said(3, "brule")])
    assert found(store, "brulee CREME") == {("s-1", "m-1")}
    assert found(store, "creme") == {("s-1", "m-1"), ("s-1", "m-2")}
    assert found(store, "brul") == set()


def test_what_came_since_the_last_search(store: SQLiteStore) -> None:
    """Each search finds what was committed before it, by whatever store and in whatever number of messages."""
    first, second = made(store), made(store, "s-2")
    first.append([said(seq, f"apple n{seq}") for seq in range(1, 1202)])
    assert found(store, "n1201") == {("s-1", "m-1201")}
    assert len(store.search("apple", limit=10**30)) == 1201
    second.append([said(1, "apple")])
    first.append([entry(1202), said(1203, "pear")])
    assert found(store, "pear") == {("s-1", "m-1203")}
    assert len(SQLiteStore(store._path).search("apple", limit=5000)) == 1202
    with raw(store._path) as connection:
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (1203,)


def test_many_sessions_are_indexed_together(store: SQLiteStore) -> None:
    """Sessions with a message each are found all of them, forks too, under the session that the message is kept in."""
    for n in range(30):
        made(store, f"s-{n}").append([said(1, f"hello n{n}")])
    made(store, "fork", parent_id="s-7", at=1).append([said(2, "hello again")])
    assert len(found(store, "hello", limit=100)) == 31
    assert found(store, "again") == {("fork", "m-2")}
    assert found(store, "n7") == {("s-7", "m-1")}


def test_a_deleted_session_is_not_found(store: SQLiteStore) -> None:
    """What a deleted session said is in no hit, and not in the index."""
    made(store).append([said(1, "apple")])
    made(store, "s-2").append([said(1, "apple")])
    assert len(store.search("apple")) == 2
    opened(store, steal=True).close()
    store.delete_journal(ID)
    assert found(store, "apple") == {("s-2", "m-1")}
    with raw(store._path) as connection:
        assert connection.execute("SELECT count(*) FROM words").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM indexed").fetchone() == (1,)


def test_the_limit(store: SQLiteStore) -> None:
    """At most `limit` hits come, twenty if it is left out, the best first."""
    made(store).append([said(seq, "apple") for seq in range(1, 31)] + [said(31, "apple apple apple")])
    assert len(store.search("apple")) == 20
    assert store.search("apple")[0].entry_id == "m-31"
    assert len(store.search("apple", limit=3)) == 3
    assert store.search("apple", limit=0) == []


@pytest.mark.parametrize(
    "text", ["", " \n", '"', "\0", "a AND", "NOT", "(", "text:apple", "-apple", "*", "^", "{a b}:c"]
)
def test_no_text_is_a_syntax_error(store: SQLiteStore, text: str) -> None:
    """Signs that mean something to FTS5 are taken literally."""
    made(store).append([said(1, "nothing of it")])
    assert store.search(text) == []


@given(text=st.text())
def test_any_text_can_be_searched(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """No text whatever makes a search fail, and a message is found by each of its words."""
    store = SQLiteStore(tmp_path_factory.getbasetemp() / "any.sqlite", sync="never")
    if not list(store.summaries()):
        made(store).append([said(1, "the quick brown fox")])
    store.search(text)
    store.search(text + "\ud800")
    assert [each.entry_id for each in store.search(f"fox {'quick' if text else 'the'}")] == ["m-1"]
    store.close()


def test_what_cannot_be_read_is_left_out(store: SQLiteStore, path: Path) -> None:
    """A damaged message is no hit and no error: to tell of it is the session's own business."""
    made(store).append([said(1, "apple"), said(2, "apple"), said(3, "apple"), entry(4, "message", message=3)])
    change(path, "UPDATE entries SET text = CAST(x'7bff' AS TEXT) WHERE place & 4294967295 = 2")
    assert found(store, "apple") == {("s-1", "m-1"), ("s-1", "m-3")}


def test_messages_without_text(store: SQLiteStore) -> None:
    """A message that is only an image is in no index."""
    image = {"kind": "image", "url": "https://example.org/apple.png"}
    made(store).append([entry(1, "message", parent="", message={"role": "user", "id": "m-1", "parts": [image]})])
    assert store.search("apple") == []


@pytest.mark.parametrize(("text", "limit"), [(3, 20), (b"a", 20), ("a", -1), ("a", True), ("a", 1.5)])
def test_arguments_of_search(store: SQLiteStore, text: Any, limit: Any) -> None:  # Any: wrong on purpose
    """What is no text, or no limit, is refused by its name."""
    with pytest.raises(InvalidArgument, match="search: "):
        store.search(text, limit=limit)


class WithoutFTS5(sqlite3.Connection):
    """A connection to a build that has no FTS5, or that fails there."""

    said = "no such module: fts5"

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # Any: as sqlite3 takes them
        if sql.startswith("CREATE VIRTUAL TABLE"):
            raise sqlite3.OperationalError(self.said)
        return super().execute(sql, *parameters)


class Failing(WithoutFTS5):
    """The other one."""

    said = "disk I/O error"


def test_a_build_without_full_text_search(store: SQLiteStore) -> None:
    """Where SQLite has no FTS5, `search` says so, and all the rest works."""
    store._ways.factory = WithoutFTS5
    journal = made(store)
    journal.append([said(1, "apple")])
    with pytest.raises(NotSupported, match="no full-text search"):
        store.search("apple")
    store._ways.factory = Failing
    store.close()
    with pytest.raises(StoreFailure, match="disk I/O error"):
        store.search("apple")
    journal.close()
    store.delete_journal(ID)


def test_summaries_say_what_changed_last(store: SQLiteStore, clock: ManualClock) -> None:
    """A list has those that changed last first, with what every session is and how big, without reading any."""
    first = made(store, metadata={"customer": "Kari"})
    clock.advance(1)
    made(store, "s-2", parent_id="s-1", at=0)
    clock.advance(1)
    assert [each.id for each in store.summaries()] == ["s-2", "s-1"]
    message = said(1, "häh?")
    first.append([message, entry(2, "metadata", metadata={"customer": "Ola", "n": 1})])
    by_id = {each.id: each for each in store.summaries()}
    assert list(by_id) == ["s-1", "s-2"]
    with raw(store._path) as connection:
        sizes = dict(connection.execute("SELECT id, length(CAST(head AS BLOB)) FROM sessions"))
        stored = connection.execute("SELECT sum(length(CAST(text AS BLOB))) FROM entries").fetchone()[0]
    assert by_id["s-1"] == SessionSummary(
        "s-1", "", 1000.0, 5002.0, sizes["s-1"] + stored, {"customer": "Ola", "n": 1}, 1
    )
    assert by_id["s-2"] == SessionSummary("s-2", "s-1", 1000.0, 5001.0, sizes["s-2"], {}, 0)


def test_a_list_keeps_nobody_waiting(store: SQLiteStore, path: Path) -> None:
    """Between two summaries no transaction is open: sessions may come and go, and the list goes on without them."""
    for n in range(1100):
        store.create_journal(f"s-{n}", head(f"s-{n}"))
    listed = store.summaries()
    seen = [next(listed).id for _ in range(3)]
    with raw(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    store.delete_journal("s-5")
    store.create_journal("new", head("new"))
    rest = [each.id for each in listed]
    assert seen + rest == [f"s-{n}" for n in range(1099, -1, -1) if n != 5]


def test_purging_what_is_old(store: SQLiteStore, clock: ManualClock) -> None:
    """What was not changed for so long is deleted, but for what is open, is kept, or has a fork that stays."""
    old, open_one, kept, parent = (made(store, id) for id in ("old", "open", "kept", "parent"))
    made(store, "child", parent_id="parent", at=0).close()
    for each in (old, kept, parent):
        each.append([said(1, "apple")])
        each.close()
    clock.advance(1000)
    made(store, "new").close()
    made(store, "young-child", parent_id="child", at=0).close()
    assert store.purge(older_than=1001) == []
    assert sorted(store.purge(older_than=500, keep=lambda summary: summary.id == "kept")) == ["old"]
    assert sorted(each.id for each in store.summaries()) == sorted(
        ["open", "kept", "parent", "child", "new", "young-child"]
    )
    open_one.append([entry(1)])
    clock.advance(1000)
    open_one.close()
    assert sorted(store.purge(older_than=500)) == sorted(["open", "kept", "parent", "child", "new", "young-child"])
    assert list(store.summaries()) == []


def test_what_changes_while_it_is_purged_stays(store: SQLiteStore, clock: ManualClock) -> None:
    """A session that somebody writes to between the look and the deleting is not deleted."""
    journal = made(store)
    journal.close()
    made(store, "s-2").close()
    clock.advance(1000)

    def keep(summary: SessionSummary) -> bool:
        if summary.id == ID:
            again = opened(store)
            again.append([entry(1)])
            again.close()
        else:
            store.delete_journal("s-2")
        return False

    assert store.purge(older_than=500, keep=keep) == []
    assert [each.id for each in store.summaries()] == [ID]


@pytest.mark.parametrize("older_than", [-1, float("nan"), "3", True, None])
def test_arguments_of_purge(store: SQLiteStore, older_than: Any) -> None:  # Any: wrong on purpose
    """What is no number of seconds deletes nothing."""
    made(store).close()
    with pytest.raises(InvalidArgument, match="purge: older_than"):
        store.purge(older_than=older_than)
    assert list(store.summaries())


def test_room_is_given_back(store: SQLiteStore, path: Path) -> None:
    """After `vacuum` the file is as small as what is in it."""
    journal = made(store)
    journal.append([entry(1, text="x" * 500_000)])
    journal.close()
    store.close()
    full = path.stat().st_size
    store.delete_journal(ID)
    store.vacuum()
    store.close()
    assert path.stat().st_size < full / 5
    made(store).append([entry(1)])
