"""Files that were cut, filled with something else, or damaged in the middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_py import GotatoError, NotSupported, SessionCorrupt
from gotato_session._file_lines import Kept, _summed, commit_lines
from gotato_session.file_store import FileStore

from .journals import ID, Quick, contents, entry, filled, message, numbers, numbers_in, opened, store_on

COUNT = 8
"""Entries of the file that is damaged; the last three are one commit of two, and one of one."""


def sample(folder: Path) -> tuple[FileStore, Path, list[bytes]]:
    """A store with a session, its file, and the file's lines with their newlines."""
    filled(folder, COUNT - 3)
    store, path = store_on(Quick(), folder, sync="never"), folder / f"{ID}.jsonl"
    journal = opened(store)
    journal.append([entry(COUNT - 2, "label", name="ä🙂"), entry(COUNT - 1, "run")])
    journal.append([entry(COUNT, "label", name="🙂ä")])
    journal.close()
    return store, path, path.read_bytes().splitlines(keepends=True)


def lines_of(path: Path) -> list[bytes]:
    """The lines of the file, with their newlines; only a newline ends one."""
    return [each + b"\n" for each in path.read_bytes().split(b"\n")[:-1]]


def assert_opens(store: FileStore, path: Path, last: int, *, torn: bytes = b"", mended: bool = False) -> None:
    """A reader and a writer see the entries up to `last`; the reader changes nothing, the writer moves the rest to a
    side file, says so once, and goes on behind it."""
    before = contents(path.parent)
    assert numbers_in(store) == list(range(1, last + 1))
    assert contents(path.parent) == before
    journal = opened(store)
    told = list(journal.recovered)  # type: ignore[attr-defined]
    assert len(told) == bool(torn or mended)
    assert numbers(journal) == list(range(1, last + 1))
    journal.append([message(last + 1)])
    journal.close()
    asides = sorted(path.parent.glob(f"{ID}.torn-*"))
    assert [each.read_bytes() for each in asides] == [torn] * bool(torn)
    assert all(each.name in told[0] for each in asides)
    again = opened(store)
    assert again.recovered == ()  # type: ignore[attr-defined]
    assert numbers(again) == list(range(1, last + 2))
    again.close()
    for each in asides:
        each.unlink()


def assert_corrupt(store: FileStore, path: Path, line: int) -> None:
    """Neither a reader nor a writer gets it, both are told where the damage is, and nothing is changed."""
    before = contents(path.parent)
    for read_only in (True, False):
        with pytest.raises(SessionCorrupt, match=f"line {line} " if line > 1 else ID) as caught:
            opened(store, read_only=read_only)
        assert caught.value.line == line
    after = contents(path.parent)
    assert after == before


def test_c49_cut_at_every_byte_of_the_last_commits(tmp_path: Path) -> None:
    """Cut anywhere, a file has what was committed before the cut: a commit of two entries is there with both or not at
    all, and a line that lacks only its newline is kept."""
    store, path, _ = sample(tmp_path)
    data, lines = path.read_bytes(), lines_of(path)
    ends = {sum(map(len, lines[: count + 1])): count for count in (COUNT - 3, COUNT - 1, COUNT)}
    first = min(ends)
    for cut in range(first, len(data) + 1):
        path.write_bytes(data[:cut])
        whole = max(end for end in ends if end <= cut + 1)
        mended = whole == cut + 1
        assert_opens(store, path, ends[whole], torn=b"" if mended else data[whole:cut], mended=mended)


def test_c50_each_byte_of_a_middle_record(tmp_path: Path) -> None:
    """Whichever byte of a record with another behind it is wrong, the newline included, its line is told."""
    store, path, _ = sample(tmp_path)
    data, lines = path.read_bytes(), lines_of(path)
    start = sum(map(len, lines[:3]))
    for at in range(start, start + len(lines[3])):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(SessionCorrupt) as caught:
            opened(store, read_only=True)
        assert caught.value.line == 4
    assert_corrupt(store, path, 4)


def test_c50_each_byte_of_the_first_line(tmp_path: Path) -> None:
    """A head with a wrong byte is told as damage, or as a newer version, never taken as it is."""
    store, path, _ = sample(tmp_path)
    data = path.read_bytes()
    for at in range(len(lines_of(path)[0])):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        before = contents(tmp_path)
        for read_only in (True, False):
            with pytest.raises((SessionCorrupt, NotSupported)):
                opened(store, read_only=read_only)
        assert contents(tmp_path) == before
        assert list(store.summaries()) == []


def test_c50_the_newline_before_the_last_record(tmp_path: Path) -> None:
    """The last record is intact, though what stands before it has no end any more: that is no torn tail."""
    store, path, _ = sample(tmp_path)
    data, lines = path.read_bytes(), lines_of(path)
    at = len(data) - len(lines[-1]) - 1
    path.write_bytes(data[:at] + b" " + data[at + 1 :])
    assert_corrupt(store, path, COUNT)
    path.write_bytes(data[:at] + b'{"seq":{"seq":' + data[at + 1 :])
    assert_corrupt(store, path, COUNT)


@pytest.mark.parametrize(
    "tail",
    [
        b"\0" * 3000,
        b"\n",
        b"\n\n\n",
        b"garbage",
        b"\xff\xfe\n\xf0\x9f",
        b'{"seq":9,"v":1}\n',
        b'{"seq":{"seq":9,"v":1,"crc":"00000000"}\n',
        "häh".encode()[:2],
        b"\0" * 10 + b"\n" + b"\0" * 10 + b"\n",
    ],
    ids=repr,
)
def test_c49_a_tail_of_something_else(tmp_path: Path, tail: bytes) -> None:
    """NULs, blank lines, half characters, lines without their checksum: a torn tail, whatever it is."""
    store, path, _ = sample(tmp_path)
    path.write_bytes(path.read_bytes() + tail)
    assert_opens(store, path, COUNT, torn=tail)


def test_c49_the_end_filled_with_nuls(tmp_path: Path) -> None:
    """Where the last records are NULs, as some file systems leave them, what is before them is there."""
    store, path, _ = sample(tmp_path)
    data, lines = path.read_bytes(), lines_of(path)
    for length in (1, 2, len(lines[-1]), len(lines[-1]) + 1):
        path.write_bytes(data[:-length] + b"\0" * length)
        last = COUNT if length == 1 else COUNT - 1 if length <= len(lines[-1]) else COUNT - 3
        end = sum(map(len, lines[: last + 1]))
        if length == 1:  # the newline's NUL belongs to the line, which is damaged with it
            last, end = COUNT - 1, len(data) - len(lines[-1])
        assert_opens(store, path, last, torn=path.read_bytes()[end:])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines[:3] + lines[4:], 4),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], 5),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], 4),
        (lambda lines: [*lines, lines[-1]], COUNT + 2),
        (lambda lines: [*lines[:-2], lines[-1]], COUNT),
        (lambda lines: [*lines[:3], b"\n", *lines[3:]], 4),
        (lambda lines: [*lines[:3], b"\0" * 40, *lines[4:]], 4),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [each.replace(b"\n", b"\r\n") for each in lines], 1),
        (lambda lines: [*lines[:3], _summed(b'{"seq":3,oops'), *lines[3:]], 4),
        (lambda lines: [*lines[:3], _summed(b'[3,{"a":1'), *lines[3:]], 4),
        (lambda lines: [*lines[:3], _summed(b'{"a":"\xff"'), *lines[3:]], 4),
        (lambda lines: [*lines[:3], _summed(b'{"a":1'), *lines[3:]], 4),
        (lambda lines: [lines[0][:-3], *lines[1:]], 1),
        (lambda lines: lines[1:], 1),
    ],
)
def test_c50_lost_doubled_and_foreign_lines(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    """A gap in the numbers, a number twice, and lines that are none of ours are damage, told with the line."""
    store, path, _ = sample(tmp_path)
    path.write_bytes(b"".join(change(lines_of(path))))
    assert_corrupt(store, path, line)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello\n",
        b"[]\n",
        b"{}\n",
        b"\0" * 500,
        b'{"gotato_session":true}\n',
        b'{"gotato_session":0}\n',
        b'{"gotato_session":"1"}\n',
        b'{"gotato_session":1,"id":"s-1"',
        b"[" * 100_000,
        b"\xff\xd8\xff",
    ],
    ids=lambda content: repr(content[:30]),
)
def test_a_file_that_is_no_session(tmp_path: Path, content: bytes) -> None:
    """A file with the name of a session that holds something else is told as that, listed nowhere and left alone."""
    path = tmp_path / f"{ID}.jsonl"
    path.write_bytes(content)
    store = FileStore(tmp_path)
    assert_corrupt(store, path, 1)
    assert list(store.summaries()) == []
    with pytest.raises(SessionCorrupt):
        store.salvage_journal(ID)


def test_a_head_alone_may_lack_its_newline(tmp_path: Path) -> None:
    """A session without entries whose first line lacks only its newline is whole."""
    store, path = filled(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:-1])
    assert_opens(store, path, 0, mended=True)


def test_a_commit_without_its_end_is_no_commit(tmp_path: Path) -> None:
    """Lines of a commit whose last line never came are moved aside together, intact as they are."""
    store, path, _ = sample(tmp_path)
    end = path.stat().st_size
    lines, _ = commit_lines([message(9), message(10), message(11)], Kept(end, 8, 0, 7))
    torn = b"".join(each + b"\n" for each in lines.split(b"\n")[:2])
    path.write_bytes(path.read_bytes() + torn)
    assert_opens(store, path, COUNT, torn=torn)
    assert_opens(store, path, COUNT + 1)


def test_torn_tails_do_not_overwrite_each_other(tmp_path: Path) -> None:
    """Each torn tail gets a side file of its own."""
    store, path, _ = sample(tmp_path)
    for tail in (b"first", b"second"):
        path.write_bytes(path.read_bytes() + tail)
        opened(store).close()
    assert (tmp_path / f"{ID}.torn-1").read_bytes() == b"first"
    assert (tmp_path / f"{ID}.torn-2").read_bytes() == b"second"


def test_what_is_readable_by_one_only_stays_so(tmp_path: Path) -> None:
    """A side file and a copy may be read by those who may read the session."""
    store, path, _ = sample(tmp_path)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b"torn")
    first = opened(store)
    second = opened(store, steal=True)
    for each in (path, tmp_path / f"{ID}.torn-1"):
        assert each.stat().st_mode & 0o777 == 0o600
    second.close()
    first.close()


def test_a_reader_sees_nothing_unfinished(tmp_path: Path) -> None:
    """While a writer is in the middle of a line, it is just not there yet for a reader, who changes nothing."""
    store, path, _ = sample(tmp_path)
    reader = opened(store, read_only=True)
    assert numbers(reader) == list(range(1, COUNT + 1))
    line, _ = commit_lines([message(COUNT + 1)], Kept(path.stat().st_size, COUNT, 0, 0))
    whole = path.read_bytes()
    for cut in range(len(line) - 1):
        path.write_bytes(whole + line[:cut])
        assert numbers(reader) == list(range(1, COUNT + 1))
        assert reader.last_seq == COUNT  # type: ignore[attr-defined]
    path.write_bytes(whole + line)
    assert numbers(reader)[-1] == COUNT + 1
    assert reader.last_seq == COUNT + 1  # type: ignore[attr-defined]


def test_damage_that_comes_while_it_is_open(tmp_path: Path) -> None:
    """Damage in what is committed is told by `entries`, and a file that is shorter than it was takes nothing more."""
    store, path, _ = sample(tmp_path)
    journal = opened(store)
    journal.entries()
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(len(data) // 2)
        file.write(b"\0")
    with pytest.raises(SessionCorrupt):
        journal.entries()
    with path.open("r+b") as file:
        file.truncate(len(data) - 5)
    with pytest.raises(GotatoError, match="shorter"):
        journal.append([message(COUNT + 1)])
    assert path.stat().st_size == len(data) - 5
    journal.close()
