"""What journals ask of the operating system: files that no forked child keeps, locks, writes that can fail."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

_flush: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class Handle(io.FileIO):
    """An open file. A forked child has its copy closed: the lock on the file is the parent's, and ends with it.

    One that is dropped closes itself, in C, where no interrupt can keep it from that, with a `ResourceWarning`.
    """

    def __init__(self, path: Path, mode: str = "r+") -> None:
        self._pid = os.getpid()
        _handles.add(self)  # before there is anything to close, so that a fork meanwhile finds it
        super().__init__(path, mode)
        found = os.fstat(self.fileno())
        self._place = found.st_dev, found.st_ino

    def lock(self) -> bool:
        """Takes the lock on the file; False, at once, if another has it."""
        try:
            fcntl.flock(self.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that opened it."""
        return os.getpid() != self._pid

    def let_go(self) -> None:
        """Unlocks and closes it: for all copies that there are, as a child that was just forked may not be rid of its
        own yet."""
        try:
            if not self.closed and not self.forked:
                fcntl.flock(self.fileno(), fcntl.LOCK_UN)
        finally:
            self.close()

    def is_at(self, path: str | Path) -> bool:
        """Whether the path still leads to this file."""
        try:
            found = os.stat(path)  # noqa: PTH116  # asked at every commit, where a Path would cost as much as the call
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._place


_handles = WeakSet[Handle]()


def _close_in_child() -> None:
    """Only the copies of the descriptors are closed; to unlock them would take the parent's lock."""
    for handle in list(_handles):
        handle.close()


os.register_at_fork(after_in_child=_close_in_child)


class Disk:
    """What can fail for want of space or of a sound disk. Its own class, so that tests can give one that does fail."""

    def write(self, file: int, data: bytes | memoryview, at: int) -> int:
        """Writes at that offset and returns how many bytes it took."""
        return os.pwrite(file, data, at)

    def sync(self, file: int) -> None:
        """Returns when the file's content would survive a power cut."""
        _flush(file)

    def cut(self, file: int, end: int) -> None:
        """Takes away what stands after that offset."""
        os.ftruncate(file, end)

    def sync_folder(self, folder: Path) -> None:
        """Returns when the names in the folder would survive a power cut."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def write_all(disk: Disk, file: int, data: bytes, at: int) -> None:
    """Writes all of it; the system may take less at once, near the end of the space there is."""
    written = disk.write(file, data, at)
    if written < len(data):
        rest = memoryview(data)
        while written < len(data):
            written += disk.write(file, rest[written:], at + written)
