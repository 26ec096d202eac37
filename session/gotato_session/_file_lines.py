"""One entry as a line of a journal file.

    {"seq":7,"v":1,"type":"message",…,"n":4,"meta":980,"crc":"0b1f5c7e"}

The last members are the file's own: `more` (true: the commit goes on in the next line), `n` (how many messages there
are up to here; not in a fork, which does not know its parent's), `meta` (the offset of the line with the newest
metadata; left out while that is the head) and `crc`, the CRC-32 of the line's bytes before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from gotato_py import InvalidArgument

from .journal import JSONObject

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_OWN = frozenset(("more", "n", "meta", "crc"))
_SUM = len(b',"crc":"00000000"}')
_ENTRY = b'{"seq":'
_AT_ONCE = 200
"""Lines that are read as one piece of JSON: quicker than one by one, and they share the texts of their keys."""


class Kept(NamedTuple):
    """What is known of a journal's committed part: where it ends, its last number, where its newest metadata is (0: in
    the head), how many messages it has (None: of a fork)."""

    end: int
    seq: int
    meta: int
    messages: int | None


def head_line(head: JSONObject) -> bytes:
    """The first line of a file."""
    return _line(head, "")


def commit_lines(entries: Sequence[JSONObject], kept: Kept) -> tuple[bytes, Kept]:
    """The lines of one commit, and what is known after it. Raises `InvalidArgument` if they do not come next."""
    end, seq, meta, messages = kept
    lines: list[bytes] = []
    for left, entry in zip(range(len(entries) - 1, -1, -1), entries, strict=True):
        seq += 1
        if entry.get("seq") != seq:
            raise InvalidArgument(f"the next entry's number is {seq}, not {entry.get('seq')!r}")
        kind = entry.get("type")
        own = ',"more":true' if left else ""
        if messages is not None:
            messages += kind == "message"
            own += f',"n":{messages}'
        if kind == "metadata":
            meta = end
        if meta:
            own += f',"meta":{meta}'
        line = _line(entry, own)
        end += len(line)
        lines.append(line)
    return b"".join(lines), Kept(end, seq, meta, messages)


def _line(entry: JSONObject, own: str) -> bytes:
    """The entry's line, with the file's own members before its checksum."""
    if not _OWN.isdisjoint(entry):
        raise InvalidArgument(f"an entry cannot have {sorted(_OWN.intersection(entry))}: the file's own members")
    return _summed(f"{_encode(entry)[:-1]}{own}".encode())


def _summed(line: bytes) -> bytes:
    return b'%b,"crc":"%08x"}\n' % (line, crc32(line))


def is_intact(line: bytes) -> bool:
    """Whether the line, without its newline, is as it was written."""
    return line[-_SUM:] == b',"crc":"%08x"}' % crc32(line[:-_SUM]) and len(line) > _SUM  # of nothing, the sum is 0


def intact_end(line: bytes) -> int:
    """Where in a damaged line an intact entry begins, which the damage to a newline joined to it; 0: nowhere."""
    at = line.find(_ENTRY, 1)
    while at > 0:
        if is_intact(line[at:]):
            return at
        at = line.find(_ENTRY, at + 1)
    return 0


def read_line(line: bytes) -> JSONObject | None:
    """The object on the line, with the file's own members; None if there is none, or if the line is damaged."""
    return any_object(line) if is_intact(line) else None


def any_object(line: bytes) -> JSONObject | None:
    """The object on the line, whether the line is intact or not."""
    found: JSONObject | None = _json(line)
    return found if isinstance(found, dict) else None


def _json(text: bytes) -> Any:  # Any: a JSON value
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        return None


def objects(lines: Sequence[bytes]) -> list[JSONObject]:
    """The objects on these intact lines, without their checksums, up to the first line that holds something else."""
    found: list[JSONObject] = []
    for at in range(0, len(lines), _AT_ONCE):
        some = [line[:-_SUM] for line in lines[at : at + _AT_ONCE]]
        values: list[JSONObject] = _json(b"[%b}]" % b"},".join(some)) or []
        if len(values) == len(some) and all(type(each) is dict for each in values):
            found += values
            continue
        for line in some:
            value = any_object(line + b"}")
            if value is None:
                return found
            found.append(value)
    return found


def without_own(entry: JSONObject) -> JSONObject:
    """The entry as it was given, the file's own members taken out."""
    for name in _OWN:
        entry.pop(name, None)
    return entry
