"""A session's journal in a file: the writer's, which has the lock, and the reader's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from gotato_py import ForkedProcess, GotatoError, InvalidState, LeaseLost, StoreFailure

from ._file_disk import Handle, write_all
from ._file_format import Format
from ._file_lines import commit_lines
from ._file_lock import not_found, read_lease
from ._file_manner import Manner
from ._file_names import Names
from ._file_scan import Scan, first_number, scan
from .journal import JSONObject
from .lease import Lease


class FileJournal:
    """The writer's: `found` is what the file holds, its torn tail already taken away.

    What is committed is what `_kept` says, which is one store at the very end of `append`. Whatever else stands in the
    file, because an append failed or was interrupted, is cut off by the next one, or by `close`.
    """

    def __init__(
        self, names: Names, handle: Handle, found: Scan, lease: Lease, manner: Manner, recovered: Sequence[str]
    ) -> None:
        self.recovered: Sequence[str] = tuple(recovered)
        self._names = names
        self.handle = handle
        self._kept = found.kept
        self._found: list[JSONObject] | None = found.entries
        self._lease = lease
        self._paths = str(names.fence), str(names.journal)  # asked for at every commit
        self._sync = manner.sync
        self._disk = manner.disk
        self._form = manner.form
        self._lost = False
        self._refuses: OSError | None = None

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def last_seq(self) -> int:
        """The number of the last entry that is kept."""
        return self._kept.seq

    def entries(self) -> list[JSONObject]:
        self._check_open()
        found, self._found = self._found, None  # what opening it has read is given out once, and then read again
        if found is not None:
            return found
        self.handle.seek(0)
        data = self.handle.readall() or b""
        return scan(data[: self._kept.end], self._names.id, self._form).entries

    def append(self, entries: Sequence[JSONObject]) -> None:
        self._check_open()
        self._check_fit()
        if not entries:
            return
        file, end = self.handle.fileno(), self._kept.end
        data, kept = commit_lines(entries, self._kept)
        self._found = None
        self._cut_leftovers(file, end)
        try:
            write_all(self._disk, file, data, end)
        except OSError:
            self._take_back(file, end)
            raise
        if self._sync == "commit":
            self._flush(file)
        self._check_mine(file, end)
        self._kept = kept

    def sync(self) -> None:
        self._check_open()
        self._check_fit()
        if self._sync == "run":
            self._flush(self.handle.fileno())
            self._check_mine(self.handle.fileno(), self._kept.end)

    def close(self) -> None:
        try:
            if not self.handle.closed and not self.handle.forked:
                self._cut_leftovers(self.handle.fileno(), self._kept.end)
        except (OSError, StoreFailure):
            pass  # the next writer will judge it
        finally:
            self.handle.let_go()

    def _check_open(self) -> None:
        if self.handle.forked:
            text = f"session {self._names.id!r} was open when the process forked, and stays with the parent"
            raise ForkedProcess(f"{text}; open it anew, read-only, or once the parent has closed it")
        if self.handle.closed:
            raise InvalidState(f"session {self._names.id!r} is closed; open it again")

    def _check_fit(self) -> None:
        if self._lost:
            raise self._lease_lost()
        if self._refuses is not None:
            text = f"session {self._names.id!r} takes nothing more: an earlier sync of its file failed"
            raise StoreFailure(f"{text}, so what the disk has is not known; open it again", cause=self._refuses)

    def _cut_leftovers(self, file: int, end: int) -> None:
        """Takes away what an append left that did not come to its end."""
        size = os.fstat(file).st_size
        if size > end:
            self._disk.cut(file, end)
        elif size < end:
            text = f"the file of session {self._names.id!r} is shorter than what was written to it"
            raise StoreFailure(f"{text}: {size} bytes instead of {end}; open it again to see what is left")

    def _take_back(self, file: int, end: int) -> None:
        try:
            self._disk.cut(file, end)
        except OSError:
            pass  # the next append will try again

    def _flush(self, file: int) -> None:
        end = self._kept.end
        try:
            self._disk.sync(file)
        except OSError as error:
            self._refuses = error  # the system may have dropped what it could not write: a second try would lie
            self._take_back(file, end)
            raise

    def _check_mine(self, file: int, end: int) -> None:
        """Raises `LeaseLost` if another has the session now; `_file_lock` says why in this order."""
        fence, journal = self._paths
        if os.access(fence, os.F_OK) or not self.handle.is_at(journal):
            self._lost = True
            self._take_back(file, end)
            raise self._lease_lost()

    def _lease_lost(self) -> LeaseLost:
        now = read_lease(self._names)
        if now is None or now.token == self._lease.token:
            now = Lease("", "", 0, 0.0)
        by = f" by {now.owner!r} (process {now.pid} on {now.host})" if now.owner else ""
        text = f"session {self._names.id!r} was taken over{by}, or removed; this owner can write to it no more"
        return LeaseLost(text, owner=now.owner, host=now.host, pid=now.pid, since=now.since)


class ReadOnlyJournal:
    """The reader's. It asks for no lock, writes nothing, and sees what is committed whenever `entries` is called."""

    lease: Lease | None = None

    def __init__(self, names: Names, form: Format) -> None:
        self.recovered: Sequence[str] = ()
        self._names = names
        self._form = form
        self._last_seq = 0
        self._marks: Marks = ()  # of what was first read
        self._found: list[JSONObject] | None = None
        self._found = self.entries()

    @property
    def last_seq(self) -> int:
        """The number of the last entry that was there when the entries were last read."""
        return self._last_seq

    def entries(self) -> list[JSONObject]:
        found, self._found = self._found, None
        if found is None:
            read = read_entries(self._names, self._form)
            found = read.entries
            if read.torn:
                text = f"{read.torn} bytes of an unfinished commit are at the end"
                text = f"{text}; who opens it for writing moves them aside"
                self.recovered = (text,)
            self._marks = self._marks or read.marks
            self._last_seq = first_number(found[0]) + len(found) - 2
        return found

    def is_kept(self) -> bool:
        """Whether the file holds what was first read; little of it is looked at."""
        try:
            with self._names.journal.open("rb") as file:
                return all(file.seek(at) == at and file.read(len(line)) == line for at, line in self._marks)
        except FileNotFoundError:
            return False

    def append(self, entries: Sequence[JSONObject]) -> None:
        raise InvalidState(f"session {self._names.id!r} was opened read-only")

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


Marks = tuple[tuple[int, bytes], ...]
"""Lines of a file, each with its place."""


class Reading(NamedTuple):
    """What is committed in a file, how many bytes of a torn tail follow it, and by which lines to know it again: the
    first and the last. A session that was made anew has another head, a file that was rewritten another entry there."""

    entries: list[JSONObject]
    torn: int
    marks: Marks


def read_entries(names: Names, form: Format) -> Reading:
    """What is committed in the file, read without a lock.

    A writer may take an append back and write another while the file is read, and what was read be part of both; what
    is damaged is damaged when it is read again.
    """
    while True:
        data = read_file(names)
        try:
            found = scan(data, names.id, form)
            end = found.kept.end
            first, last = data.find(b"\n", 0, end), data.rfind(b"\n", 0, end - 1) + 1
            marks = (0, data[: first + 1] if first >= 0 else data[:end]), (last, data[last:end])
            return Reading(form.upgrade(found.entries), max(0, len(data) - end), marks)
        except GotatoError:
            if read_file(names) == data:
                raise


def read_file(names: Names) -> bytes:
    """The bytes of the file. Raises `NotFound`."""
    try:
        return names.journal.read_bytes()
    except FileNotFoundError:
        raise not_found(names) from None
