"""Reads a journal file as a whole and judges it: whole, with a torn tail, or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from gotato_py import SessionCorrupt

from ._collector import collector_at_rest
from ._file_format import VERSION_KEY, Format
from ._file_lines import Kept, intact_end, is_intact, objects, read_line, without_own
from .journal import JSONObject


@dataclass(slots=True)
class Scan:
    """What a file holds: the entries of its whole commits, the head first, as their writer gave them."""

    entries: list[JSONObject]
    kept: Kept
    joined: set[int]
    """The numbers of the entries whose commit goes on with the next one."""
    terminated: bool
    """Whether the last of their lines has its newline."""

    @property
    def version(self) -> int:
        """The version of the file."""
        version: int = self.entries[0][VERSION_KEY]
        return version


def scan(data: bytes, id: str, form: Format) -> Scan:
    """What the file holds. What follows the last whole commit, and holds no intact entry, is a torn tail.

    Raises `SessionCorrupt` for damage before an intact entry and for a gap in the numbers, `NotSupported` for what a
    newer release wrote.
    """
    lines = data.split(b"\n")
    form.read_head(lines[0], id)
    terminated = not lines[-1]
    if terminated:
        lines.pop()
    count = _intact(lines, id)
    with collector_at_rest():
        entries = objects(lines[:count])
    if len(entries) < count:
        raise _corrupt(id, len(entries) + 1, "it is not an object of JSON")
    joined = _numbers(entries, id, form)
    while entries[-1].get("seq") in joined:
        joined.remove(entries.pop()["seq"])
    whole = len(entries)
    terminated = terminated or whole < len(lines)
    end = sum(map(len, lines[:whole])) + whole - (not terminated)
    return Scan(entries, _kept(entries, lines[whole - 1], end), joined, terminated)


def _intact(lines: Sequence[bytes], id: str) -> int:
    """How many lines there are before the torn tail."""
    for at, line in enumerate(lines):
        if not is_intact(line):
            if at == 0 or any(is_intact(each) or intact_end(each) for each in lines[at:]):
                raise _corrupt(id, at + 1, "it is damaged")
            return at
    return len(lines)


def first_number(head: JSONObject) -> int:
    """The number of the first entry after the head."""
    at = head.get("at", 0)
    return at + 1 if isinstance(at, int) else 1


def _numbers(entries: Sequence[JSONObject], id: str, form: Format) -> set[int]:
    """Asks whether every number is the next one; takes the file's own members out, and returns the joined ones."""
    without_own(entries[0])
    joined: set[int] = set()
    version = form.version
    for number, entry in enumerate(islice(entries, 1, None), first_number(entries[0])):
        if entry.get("seq") != number:
            line = number - first_number(entries[0]) + 2
            raise _corrupt(id, line, f"the entry {number} is due there, and it has {str(entry.get('seq'))[:20]}")
        given = entry.get("v")
        if given != version or type(given) is not int:
            form.check(entry, id)
        entry.pop("n", None)
        entry.pop("meta", None)
        if entry.pop("more", False):
            joined.add(number)
    return joined


def _kept(entries: Sequence[JSONObject], last_line: bytes, end: int) -> Kept:
    head, last = entries[0], read_line(last_line) or {}
    seq = first_number(head) + len(entries) - 2
    return Kept(end, seq, last.get("meta", 0), None if head.get("parent_id") else last.get("n", 0))


def _corrupt(id: str, line: int, what: str) -> SessionCorrupt:
    text = f"session {id!r}, line {line} of its file: {what}; nothing was changed"
    return SessionCorrupt(f"{text}. open(…, repair=True) opens a copy of what can be read", line=line)
