"""Damage in a database: told with its place, never a shorter history presented as whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from gotato_py import NotFound, SessionCorrupt
from gotato_session.sqlite_store import SQLiteStore

from .journals import ID, change, contents, entry, filled, head, made, numbers, numbers_in, opened, raw, said

MASK = 0xFFFFFFFF


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one session of five messages."""
    path = tmp_path / "a.sqlite"
    filled(path, 5)
    return path


def damaged(path: Path) -> SessionCorrupt:
    """The error of reading the session."""
    with pytest.raises(SessionCorrupt) as caught:
        opened(SQLiteStore(path), read_only=True).entries()
    return caught.value


def left(path: Path) -> list[str | int]:
    """What can be salvaged: numbers, and the words for what is missing."""
    before = contents(path.parent)
    entries = SQLiteStore(path).salvage_journal(ID)
    assert contents(path.parent) == before
    return [each.get("seq") or each.get("text", "head") for each in entries]


def flip(path: Path, seq: int, at: int) -> None:
    """Changes one byte of an entry's text."""
    sql = "SELECT place, CAST(text AS BLOB) FROM entries WHERE place & ? = ?"
    with raw(path) as connection:
        place, text = connection.execute(sql, (MASK, seq)).fetchone()
        changed = text[:at] + bytes([text[at] ^ 0x41]) + text[at + 1 :]
        connection.execute("UPDATE entries SET text = CAST(? AS TEXT) WHERE place = ?", (changed, place))


def test_each_byte_of_an_entry(path: Path) -> None:
    """Whichever byte of an entry is another, the line is told, and the rest can be salvaged."""
    whole = opened(SQLiteStore(path), read_only=True).entries()
    size = len(SQLiteStore(path).salvage_journal(ID)[3]["message"]["parts"][0]["text"].encode()) + 90
    for at in range(0, size, 7):
        flip(path, 3, at)
        error = damaged(path)
        assert (error.line, error.message) == (4, "the session s-1 is damaged: entry 3 is damaged")
        assert SQLiteStore(path).salvage_journal(ID) == [
            *whole[:3], {"type": "gap", "text": "entry 3"}, *whole[4:],
        ]  # fmt: skip
        flip(path, 3, at)
    assert opened(SQLiteStore(path), read_only=True).entries() == whole


@pytest.mark.parametrize(
    ("sql", "line", "salvaged"),
    [
        (f"DELETE FROM entries WHERE place & {MASK} = 1", 2, ["head", "entry 1", 2, 3, 4, 5]),
        (f"DELETE FROM entries WHERE place & {MASK} IN (2, 3)", 3, ["head", 1, "entries 2 to 3", 4, 5]),
        (f"DELETE FROM entries WHERE place & {MASK} = 5", 6, ["head", 1, 2, 3, 4, "entry 5"]),
        ("DELETE FROM entries", 2, ["head", "entries 1 to 5"]),
        (f"UPDATE entries SET text = NULL || 1 WHERE place & {MASK} = 9", 0, ["head", 1, 2, 3, 4, 5]),
        (f"UPDATE entries SET text = 7 WHERE place & {MASK} = 4", 5, ["head", 1, 2, 3, "entry 4", 5]),
        (f"UPDATE entries SET checksum = 'x' WHERE place & {MASK} = 4", 5, ["head", 1, 2, 3, "entry 4", 5]),
        (f"UPDATE entries SET place = place + 1 WHERE place & {MASK} = 5", 6, ["head", 1, 2, 3, 4, "entries 5 to 6"]),
        (f"UPDATE entries SET place = place - 9 WHERE place & {MASK} = 5", 6, ["head", 1, 2, 3, 4, "entry 5"]),
        ("UPDATE progress SET last_seq = 4", 7, ["head", 1, 2, 3, 4, 5]),
        ("UPDATE progress SET last_seq = 'x'", 7, ["head", 1, 2, 3, 4, 5]),
        ("DELETE FROM progress", 1, ["head", 1, 2, 3, 4, 5]),
    ],
)
def test_lost_and_moved_entries(path: Path, sql: str, line: int, salvaged: list[str | int]) -> None:
    """An entry that is lost, moved, or that is there twice, is told with the first line that is wrong."""
    change(path, sql)
    assert left(path) == salvaged
    if line:
        assert damaged(path).line == line
    else:
        assert numbers_in(SQLiteStore(path)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("text", ["[]", "{", '{"seq": 4}', '{"n": 3}', '{"seq": 3}, {"seq": 4}', "\udcff"])
def test_an_entry_that_is_another_though_its_checksum_fits(path: Path, text: str) -> None:
    """A row whose text is no entry with its number is damage too."""
    sql = f"UPDATE entries SET text = CAST(? AS TEXT), checksum = ? WHERE place & {MASK} = 3"
    data = text.encode("utf-8", "surrogateescape")
    change(path, sql, data, crc32(data))
    assert damaged(path).line == 4
    assert left(path) == ["head", 1, 2, "entry 3", 4, 5]


def test_a_damaged_head(path: Path) -> None:
    """A head that is damaged is line 1; what is salvaged has one made anew, with the metadata that are left."""
    change(path, "UPDATE sessions SET head = replace(head, 's-1', 's-2'), metadata = '{\"a\":1}'")
    assert damaged(path).line == 1
    made_anew = SQLiteStore(path).salvage_journal(ID)[0]
    assert made_anew == head(metadata={"a": 1})
    assert left(path)[1:] == ["the head, which said what the session is a fork of", 1, 2, 3, 4, 5]
    change(path, "UPDATE sessions SET metadata = 'x', created_at = 'x'")
    assert SQLiteStore(path).salvage_journal(ID)[0] == head(created_at=0.0)


def test_a_fork_is_salvaged_from_its_own_beginning(path: Path) -> None:
    """What a fork has from its parent is no gap in it."""
    store = SQLiteStore(path)
    made(store, "s-2", parent_id=ID, at=3).append([entry(4), entry(5)])
    change(path, f"DELETE FROM entries WHERE place & {MASK} = 4 AND place >> 32 = 2")
    assert [each.get("seq") or each.get("text") for each in store.salvage_journal("s-2")] == [None, "entry 4", 5]


@pytest.mark.parametrize("text", [b"{", b"7", b'{"\xff":1}'])
def test_metadata_that_are_damaged_are_not_known(path: Path, text: bytes) -> None:
    """A list says None of metadata that it cannot read, and the session is whole."""
    change(path, "UPDATE sessions SET metadata = CAST(? AS TEXT)", text)
    store = SQLiteStore(path)
    assert [each.metadata for each in store.summaries()] == [None]
    assert list(store.list(where={"n": 1})) == []
    assert numbers(opened(store)) == [1, 2, 3, 4, 5]


def test_a_text_that_is_no_utf8_is_not_quoted(path: Path) -> None:
    """What is stored comes into no error, whatever a damaged text has become; it is shown as far as it can be read."""
    store = SQLiteStore(path)
    assert store.search("h\u00e4h")
    change(path, "UPDATE words_content SET c0 = CAST(? AS TEXT) WHERE id & 255 = 1", b"secret \xff")
    assert "secret \ufffd" in [hit.snippet for hit in store.search("h\u00e4h")]
    change(path, "UPDATE sessions SET owner = CAST(? AS TEXT)", b"\xff")
    assert opened(store, steal=True).lease is not None


def test_a_page_of_entries_is_spoiled(tmp_path: Path) -> None:
    """Damage that SQLite itself meets is told with the first line that it hides; what lies around it is salvaged."""
    path = tmp_path / "b.sqlite"
    filled(path, 200)
    with raw(path) as connection:
        try:
            pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'entries' AND pagetype = 'leaf'")
        except sqlite3.OperationalError:
            pytest.skip("this build of SQLite does not show its pages")
        leaf = sorted(page for (page,) in pages)[3]
    data = bytearray(path.read_bytes())
    data[(leaf - 1) * 4096 : leaf * 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    error = damaged(path)
    assert "malformed" in error.message
    found = left(path)
    (gap,) = [each for each in found if isinstance(each, str) and each.startswith("entries")]
    first, last = (int(word) for word in gap.split()[1::2])
    assert found == ["head", *range(1, first), gap, *range(last + 1, 201)]
    assert error.line == 1 + first


@pytest.mark.parametrize("table", ["sessions", "sqlite_schema"])
def test_the_table_of_sessions_is_spoiled(path: Path, table: str) -> None:
    """Where not even the sessions can be found, everything says `SessionCorrupt`."""
    with raw(path) as connection:
        try:
            page = connection.execute("SELECT min(pageno) FROM dbstat WHERE name = ?", (table,)).fetchone()[0]
        except sqlite3.OperationalError:
            pytest.skip("this build of SQLite does not show its pages")
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 + 100 : page * 4096] = b"\xa5" * 3996
    path.write_bytes(data)
    everything_says_so(SQLiteStore(path))


def test_a_name_in_the_schema_is_spoiled(path: Path) -> None:
    """What SQLite says of a table is not UTF-8 then, and no error of Python's for that comes out."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b"progressprogress", b"progr\xa5ssprogress"))
    everything_says_so(SQLiteStore(path))


def everything_says_so(store: SQLiteStore) -> None:
    """No look into the store tells of anything but the damage."""
    looks: list[Callable[[], object]] = [
        lambda: opened(store),
        lambda: opened(store, read_only=True).entries(),
        lambda: list(store.summaries()),
        lambda: store.search("häh"),
        lambda: store.salvage_journal(ID),
        lambda: made(store, "s-2"),
    ]
    for look in looks:
        with pytest.raises(SessionCorrupt, match="is damaged, or no database"):
            look()


def test_other_sessions_are_unharmed(path: Path) -> None:
    """Damage in one session does not keep anybody from the others."""
    store = SQLiteStore(path)
    other = made(store, "s-2")
    other.append([said(1)])
    flip(path, 3, 10)
    assert damaged(path).line == 4
    other.append([said(2)])
    assert numbers(other) == [1, 2]
    with pytest.raises(NotFound):
        store.salvage_journal("s-3")
