"""How a writer comes to a journal file: lock, or copy and rename; then version, then a torn tail."""

from __future__ import annotations

from ._file_disk import Handle, write_all
from ._file_journal import FileJournal, read_file
from ._file_lock import busy, clear_fence, fenced, lock_journal, new_lease
from ._file_manner import Manner
from ._file_names import Names
from ._file_rewrite import file_of, put_aside, replace
from ._file_scan import Scan, scan


def open_writer(names: Names, owner: str, since: float, manner: Manner, *, steal: bool) -> FileJournal:
    """The journal, with its lock. Raises what `Store.open` names, and then has changed nothing."""
    handle = lock_journal(names)
    if handle is None:
        if not steal:
            raise busy(names)
        handle = _copied(names, manner)
    recovered: list[str] = []
    try:
        clear_fence(names)
        data = handle.readall() or b""
        found = scan(data, names.id, manner.form)
        if found.version < manner.form.version:
            old, handle = handle, _upgraded(names, handle, data, found, manner, recovered)
            old.let_go()
            found = scan(handle.readall() or b"", names.id, manner.form)
        else:
            found = _mended(names, handle, data, found, manner, recovered)
        return FileJournal(names, handle, found, new_lease(names, owner, since), manner, recovered)
    except BaseException:
        handle.let_go()
        raise


def _copied(names: Names, manner: Manner) -> Handle:
    """A copy in the journal's place, for a session whose owner lives. A damaged one is left to him."""
    scan(read_file(names), names.id, manner.form)
    with fenced(names, None):
        return replace(names, read_file(names), manner.disk)


def _upgraded(names: Names, holder: Handle, data: bytes, found: Scan, manner: Manner, recovered: list[str]) -> Handle:
    """The entries as this release writes them, in the journal's place, once the old file stands beside it."""
    old = found.version
    entries = manner.form.upgrade(found.entries)
    content = file_of(entries[0], [[each] for each in entries[1:]])
    with fenced(names, holder):
        aside = put_aside(names, f"version-{old}", data, manner.disk)
        handle = replace(names, content, manner.disk)
    recovered.append(f"rewritten from version {old} to {manner.form.version}; the old file is {aside.name}")
    return handle


def _mended(names: Names, handle: Handle, data: bytes, found: Scan, manner: Manner, recovered: list[str]) -> Scan:
    """Moves the torn tail to a side file, or gives the last line the newline that it lacks."""
    end, file = found.kept.end, handle.fileno()
    if not found.terminated:
        write_all(manner.disk, file, b"\n", end)
        found.kept = found.kept._replace(end=end + 1)
        recovered.append("the last line lacked its newline; its entry is whole and was kept")
    elif end < len(data):
        aside = put_aside(names, "torn", data[end:], manner.disk)
        manner.disk.cut(file, end)
        recovered.append(f"{len(data) - end} bytes of an unfinished commit at the end were moved to {aside.name}")
    else:
        return found
    if manner.sync != "never":
        manner.disk.sync(file)
    return found
