"""`FileStore`: sessions as journals in a folder, one file of JSON lines each."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from gotato_py import GotatoError, InvalidArgument, InvalidState, StoreFailure

from ._file_disk import Disk
from ._file_format import Format
from ._file_journal import ReadOnlyJournal, read_file
from ._file_lines import head_line
from ._file_lock import busy, clear_fence, fenced, lock_journal
from ._file_manner import Manner
from ._file_names import Names
from ._file_opening import open_writer
from ._file_rewrite import create, remove
from ._file_salvage import salvage
from ._file_summary import summaries
from ._file_vacuum import vacuum
from .journal import Journal, JSONObject
from .store import StoreBase
from .summary import SessionSummary


class FileStore(StoreBase):
    """Sessions in a folder, which is made with the first of them: `<folder>/<id>.jsonl`, an entry a line.

    `sync` says what survives a power cut: "commit", whatever was committed; "run", what was there at the end of the
    last run; "never", what the system has happened to write. A killed process loses nothing in any of them.

    A file of these may be read, copied and moved with ordinary tools while no one has it open. What else the store
    puts there: `<id>.lease`, who opened it last; `<id>.torn-<n>`, the end of a file that was cut in the middle of a
    commit; `<id>.version-<v>-<n>`, a file as an older release wrote it; names that begin with a dot, for the moment.
    """

    _disk: ClassVar[Disk] = Disk()
    _format: ClassVar[Format] = Format()

    def __init__(self, dir: str | os.PathLike[str], *, sync: str = "commit") -> None:
        if sync not in ("commit", "run", "never"):
            raise InvalidArgument(f'sync must be "commit", "run" or "never", not {sync!r}')
        try:
            self._folder = Path(dir).absolute()
        except TypeError:
            raise InvalidArgument(f"dir must be a path, not {type(dir).__name__}") from None
        self._manner = Manner(sync, self._disk, self._format)

    def __repr__(self) -> str:
        return f"FileStore({str(self._folder)!r})"

    def create_journal(self, id: str, head: JSONObject) -> None:
        names = Names(self._folder, id)
        with _told(f"session {id!r} could not be created"):
            create(names, head_line(head), self._disk, durable=self._manner.sync != "never")

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Journal:
        names = Names(self._folder, id)
        with _told(f"session {id!r} could not be opened"):
            if read_only:
                return ReadOnlyJournal(names, self._format)
            return open_writer(names, owner, self.clock.time(), self._manner, steal=steal)

    def summaries(self) -> Iterator[SessionSummary]:
        with _told(f"{self._folder} could not be listed"):
            return summaries(self._folder, self._format)

    def delete_journal(self, id: str) -> None:
        names = Names(self._folder, id)
        with _told(f"session {id!r} could not be deleted"):
            handle = lock_journal(names)
            if handle is None:
                raise busy(names)
            try:
                clear_fence(names)
                with fenced(names, handle):
                    remove(names, self._format.version)
                if self._manner.sync != "never":
                    self._disk.sync_folder(self._folder)
            finally:
                handle.let_go()

    def salvage_journal(self, id: str) -> list[JSONObject]:
        names = Names(self._folder, id)
        with _told(f"session {id!r} could not be read"):
            return salvage(read_file(names), id, self._format)

    def vacuum(self, id: str) -> int:
        """Rewrites a session's file without recorded events and without metadata that was replaced since; returns how
        many bytes that freed. It cannot be undone.

        Raises `NotFound`, `SessionBusy` while it is open, `InvalidState` while it has forks (they name entries of it by
        number), `SessionCorrupt`, `StoreFailure`.
        """
        names = Names(self._folder, id)
        with _told(f"session {id!r} could not be rewritten"):
            forks = [each.id for each in summaries(self._folder, self._format) if each.parent_id == id]
            if forks:
                raise InvalidState(f"session {id!r} has forks, {forks[0]!r} among them; delete those first")
            return vacuum(names, self.clock.time(), self._manner)


@contextmanager
def _told(what: str) -> Generator[None, None, None]:
    """Tells the system's errors as a `StoreFailure`."""
    try:
        yield
    except GotatoError:  # some of which are an OSError too
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreFailure(f"{what}: {reason}", cause=error) from error
