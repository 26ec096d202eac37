"""Stores in memory that are broken in who may write, each in its own way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from gotato_py import NotFound, SessionBusy
from gotato_session import MemoryStore

from .broken_stores import WithJournals, Wrapped

GIVE_UP = threading.Event()
"""Ends what waits, when its test is over."""


class NoLeases(MemoryStore):
    """Lets everybody write."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        return super().open_journal(id, owner, read_only, True)


class Nameless(MemoryStore):
    """Does not say who writes."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        try:
            return super().open_journal(id, owner, read_only, steal)
        except SessionBusy:
            raise SessionBusy("busy") from None


class Waits(MemoryStore):
    """Waits for the writer to go, where the writer can: not in the thread that opened the session itself."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        while True:
            try:
                return super().open_journal(id, owner, read_only, steal)
            except SessionBusy:
                if threading.current_thread() is threading.main_thread() or GIVE_UP.wait(0.005):
                    raise


class KeepsLeasesJournal(Wrapped):
    """Closing does nothing."""

    def close(self) -> None:
        """Nothing."""


class KeepsLeases(WithJournals):
    """Never lets a session go."""

    kind = KeepsLeasesJournal


class ReadersTakeLeases(MemoryStore):
    """Lets no one read beside a writer."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        journal = super().open_journal(id, owner, False, steal)
        if read_only:
            journal.close()
            journal = super().open_journal(id, owner, True, steal)
        return journal


class NoFence(MemoryStore):
    """Lets an owner who was replaced write on."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        journal = super().open_journal(id, owner, read_only, steal)
        return journal if read_only else Unfenced(journal)


class Unfenced(Wrapped):
    """Does not ask whose lease it is."""

    def append(self, entries: Sequence[Any]) -> None:
        if entries:
            self.journal._kept.commits.append(tuple(entries))


class StealsNothing(MemoryStore):
    """Does not know `steal`."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        return super().open_journal(id, owner, read_only, False)


class ClosesForOthersJournal(Wrapped):
    """Does not ask whose lease it is."""

    def close(self) -> None:
        if self.lease is not None:
            self.journal._kept.lease.pop("writer", None)


class ClosesForOthers(WithJournals):
    """Closing lets go of whoever has the session."""

    kind = ClosesForOthersJournal


class RemovesWhatIsOpen(MemoryStore):
    """Does not ask who writes."""

    def delete_journal(self, id: str) -> None:
        if id not in self._sessions:
            raise NotFound("not there")
        del self._sessions[id]
