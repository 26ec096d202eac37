"""What can still be read of a damaged journal file."""

from __future__ import annotations

from collections.abc import Iterator

from gotato_py import SessionCorrupt

from ._file_format import VERSION_KEY, Format
from ._file_lines import intact_end, is_intact, read_line, without_own
from ._file_scan import first_number
from .journal import JSONObject


def salvage(data: bytes, id: str, form: Format) -> list[JSONObject]:
    """The head, then the intact entries as they were given, and a gap where something is missing or makes no sense.

    Raises `SessionCorrupt` if none of it is a session's, `NotSupported` for what a newer release wrote.
    """
    lines = data.split(b"\n")
    wrong: list[str] = []
    head = _head(lines[0], id, form, wrong)
    if head is None:
        if not any(is_intact(each) for each in lines[1:]):
            raise SessionCorrupt(f"session {id!r}: nothing in its file can be read", line=1)
        head = {VERSION_KEY: form.version, "id": id, "created_at": 0.0}
    found = [head]
    last = first_number(head) - 1
    joined: set[int] = set()
    for number, entry in _entries(lines, wrong):
        seq = entry.get("seq")
        if type(seq) is not int or seq <= last:
            wrong.append(f"line {number} has the number {str(seq)[:20]} again")
            continue
        form.check(entry, id)
        if seq > last + 1:
            missing = f"entry {last + 1} is" if seq == last + 2 else f"entries {last + 1} to {seq - 1} are"
            wrong.append(f"{missing} missing")
        found += _gaps(wrong)
        if entry.get("more"):
            joined.add(seq)
        found.append(without_own(entry))
        last = seq
    while found[-1].get("seq") in joined:
        wrong.append(f"entry {found.pop()['seq']} belongs to a commit whose end is missing")
    return form.upgrade([*found, *_gaps(wrong)])


def _head(line: bytes, id: str, form: Format, wrong: list[str]) -> JSONObject | None:
    """The head, if it can be read at all; `wrong` is told what is wrong with it."""
    try:
        head = form.read_head(line, id)
    except SessionCorrupt:
        wrong.append("the first line, with the metadata, cannot be read")
        return None
    if not is_intact(line):
        wrong.append("the first line, with the metadata, is damaged")
    return without_own(head)


def _entries(lines: list[bytes], wrong: list[str]) -> Iterator[tuple[int, JSONObject]]:
    """The intact entries with the number of their line; `wrong` is told of what stands between them."""
    for number, line in enumerate(lines[1:], 2):
        if not line and number == len(lines):
            return
        entry = read_line(line)
        if entry is None:
            at = intact_end(line)
            wrong.append(f"line {number} is damaged ({at or len(line)} bytes)")
            entry = read_line(line[at:]) if at else None
        if entry is not None:
            yield number, entry


def _gaps(wrong: list[str]) -> list[JSONObject]:
    """One gap that tells all of it, if there is something to tell; `wrong` is empty then."""
    text = "; ".join(wrong)
    wrong.clear()
    return [{"type": "gap", "text": text}] if text else []
