"""Journals in files for tests: plain entries, a store whose disk fails on demand, and what a file holds."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gotato_session._file_disk import Disk
from gotato_session.file_store import FileStore
from gotato_session.journal import Journal

ID = "s-1"
HEAD: dict[str, Any] = {"gotato_session": 1, "id": ID, "created_at": 1000.0}


def entry(seq: int, type: str = "message", **members: Any) -> dict[str, Any]:  # Any: JSON values
    """A plain entry with that number."""
    return {"seq": seq, "v": 1, "type": type, "time": 1000.0 + seq, **members}


def message(seq: int, text: str = "häh? 🙂") -> dict[str, Any]:
    """An entry with a text that has characters of one to four bytes."""
    return entry(
        seq, parent=f"m-{seq - 1}", message={"role": "user", "id": f"m-{seq}", "text": f"{text}\n\u2028\0{seq}"}
    )


def opened(
    store: FileStore, id: str = ID, *, owner: str = "me", read_only: bool = False, steal: bool = False
) -> Journal:
    """The journal of the store."""
    return store.open_journal(id, owner, read_only, steal)


def filled(folder: Path, count: int, *, text: str = "häh? 🙂", sync: str = "never") -> tuple[FileStore, Path]:
    """A store with one session of that many messages, which nobody has open, and its file."""
    store = FileStore(folder, sync=sync)
    store.create_journal(ID, HEAD)
    journal = opened(store)
    for seq in range(1, count + 1):
        journal.append([message(seq, text)])
    journal.close()
    return store, folder / f"{ID}.jsonl"


def numbers(journal: Journal) -> list[int]:
    """The numbers of its entries, read from the store."""
    return [each["seq"] for each in journal.entries()[1:]]


def numbers_in(store: FileStore, id: str = ID) -> list[int]:
    """The numbers of the entries in the file, as a reader sees them."""
    return numbers(opened(store, id, read_only=True))


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the folder with the time of its last change and its content."""
    return {each.name: (each.stat().st_mtime_ns, each.read_bytes()) for each in folder.iterdir()}


class Faults(Disk):
    """A disk that asks `fail` before each act, "write", "sync", "sync folder" or "cut", and raises what it returns.

    It takes at most `at_once` bytes at a time, and none beyond the offset `full`.
    """

    def __init__(self, fail: Callable[[str], OSError | None] = lambda act: None) -> None:
        self.fail = fail
        self.at_once = 1 << 30
        self.full = 1 << 60
        self.acts: list[str] = []

    def _ask(self, act: str) -> None:
        self.acts.append(act)
        error = self.fail(act)
        if error is not None:
            raise error

    def write(self, file: int, data: bytes | memoryview, at: int) -> int:
        self._ask("write")
        if at >= self.full:
            raise no_space()
        return super().write(file, data[: min(self.at_once, self.full - at)], at)

    def sync(self, file: int) -> None:
        self._ask("sync")
        super().sync(file)

    def sync_folder(self, folder: Path) -> None:
        self._ask("sync folder")
        super().sync_folder(folder)

    def cut(self, file: int, end: int) -> None:
        self._ask("cut")
        super().cut(file, end)


class Quick(Disk):
    """A disk that is not asked for anything that takes long."""

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


def no_space() -> OSError:
    """What the system says when the disk is full."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken() -> OSError:
    """What the system says when the disk is broken."""
    return OSError(errno.EIO, os.strerror(errno.EIO))


def store_on(disk: Disk, folder: Path, *, sync: str = "commit") -> FileStore:
    """A store on that disk."""

    class OnDisk(FileStore):
        _disk = disk

    return OnDisk(folder, sync=sync)
