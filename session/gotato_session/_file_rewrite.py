"""New files beside a journal, and in its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from gotato_py import InvalidState

from ._file_disk import Disk, Handle, write_all
from ._file_lines import Kept, commit_lines, head_line
from ._file_names import Names
from ._file_scan import first_number
from .journal import JSONObject


def file_of(head: JSONObject, commits: Iterable[Sequence[JSONObject]]) -> bytes:
    """A whole file; the entries are numbered anew, without gaps."""
    first = head_line(head)
    kept = Kept(len(first), first_number(head) - 1, 0, None if head.get("parent_id") else 0)
    parts = [first]
    for entries in commits:
        lines, kept = commit_lines([{**each, "seq": at} for at, each in enumerate(entries, kept.seq + 1)], kept)
        parts.append(lines)
    return b"".join(parts)


def create(names: Names, data: bytes, disk: Disk, *, durable: bool) -> None:
    """Makes the journal, whole or not at all. Raises `InvalidState` if it is there already."""
    names.folder.mkdir(parents=True, exist_ok=True)
    path = names.folder / f".{names.id}~{os.urandom(8).hex()}"
    try:
        handle = Handle(path, "x")
        try:
            write_all(disk, handle.fileno(), data, 0)
            if durable:
                disk.sync(handle.fileno())
        finally:
            handle.let_go()
        names.journal.hardlink_to(path)
    except FileExistsError:
        raise InvalidState(f"there is a session {names.id!r} in {names.folder} already; open it") from None
    finally:
        path.unlink(missing_ok=True)
    if durable:
        disk.sync_folder(names.folder)


def replace(names: Names, data: bytes, disk: Disk) -> Handle:
    """Puts a file with that content, locked, in the journal's place. For who has put up the fence."""
    names.copy.unlink(missing_ok=True)  # of one who died
    handle = Handle(names.copy, "x+")
    try:
        handle.lock()
        _fill(handle, names, data, disk)
        names.copy.replace(names.journal)
        disk.sync_folder(names.folder)
    except BaseException:
        handle.let_go()
        names.copy.unlink(missing_ok=True)
        raise
    return handle


def put_aside(names: Names, kind: str, data: bytes, disk: Disk) -> Path:
    """A new side file with that content; when it returns, the file would survive a power cut."""
    path, handle = _first_free(names, kind)
    try:
        _fill(handle, names, data, disk)
        disk.sync_folder(names.folder)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        handle.let_go()
    return path


def _first_free(names: Names, kind: str) -> tuple[Path, Handle]:
    number = 1
    while True:
        path = names.side(kind, number)
        try:
            return path, Handle(path, "x")
        except FileExistsError:
            number += 1


def _fill(handle: Handle, names: Names, data: bytes, disk: Disk) -> None:
    file = handle.fileno()
    os.fchmod(file, stat.S_IMODE(names.journal.stat().st_mode))  # who may not read the one may not read the other
    write_all(disk, file, data, 0)
    disk.sync(file)


def remove(names: Names, versions: int) -> None:
    """Removes the journal, then what stands beside it. For who has put up the fence."""
    names.journal.unlink(missing_ok=True)
    for kind in ("torn", *(f"version-{each}" for each in range(1, versions))):
        number = 1
        while (path := names.side(kind, number)).exists():
            path.unlink()
            number += 1
    for path in (names.lease, names.copy):
        path.unlink(missing_ok=True)
