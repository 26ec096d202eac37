"""A store that tells of each operation before it begins and after it has returned, so that a kill is known to be either
before, within or behind it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gotato_py import SystemClock
from gotato_session import Journal, Lease, SessionSummary, StoreBase

JSONObject = dict[str, Any]
Tell = Callable[[str, str, list[JSONObject]], object]
"""What is told: "begin", "done" or "create", "created", "delete", "deleted"; of which session; and the entries."""


class TellingStore(StoreBase):
    """Passes everything on, and tells of it."""

    def __init__(self, store: StoreBase, tell: Tell) -> None:
        self.clock = SystemClock()
        self._store = store
        self._tell = tell

    def create_journal(self, id: str, head: JSONObject) -> object:
        self._tell("create", id, [head])
        made = self._store.create_journal(id, head)
        self._tell("created", id, [])
        return made

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Journal:
        return _TellingJournal(id, self._store.open_journal(id, owner, read_only, steal), self._tell)

    def summaries(self) -> Iterator[SessionSummary]:
        return self._store.summaries()

    def delete_journal(self, id: str) -> None:
        self._tell("delete", id, [])
        self._store.delete_journal(id)
        self._tell("deleted", id, [])


class _TellingJournal:
    def __init__(self, id: str, journal: Journal, tell: Tell) -> None:
        self._id = id
        self._journal = journal
        self._tell = tell

    @property
    def lease(self) -> Lease | None:
        return self._journal.lease

    @property
    def last_seq(self) -> int:
        seq: int = self._journal.last_seq  # type: ignore[attr-defined]  # all of ours have it
        return seq

    def entries(self) -> list[JSONObject]:
        return self._journal.entries()

    def append(self, entries: Sequence[JSONObject]) -> None:
        self._tell("begin", self._id, [*entries])
        self._journal.append(entries)
        self._tell("done", self._id, [])

    def sync(self) -> None:
        self._journal.sync()

    def close(self) -> None:
        self._journal.close()


def telling_through(pipe: int) -> Tell:
    """Tells it through a pipe: a line is read by another process even if this one is killed right behind it."""

    def tell(what: str, id: str, entries: list[JSONObject]) -> None:
        data = json.dumps([what, id, entries]).encode() + b"\n"
        while data:
            data = data[os.write(pipe, data) :]

    return tell


class Ledger:
    """What has to be in the place: the entries of each session, and the operation that had begun and not returned."""

    def __init__(self) -> None:
        self.kept: dict[str, list[JSONObject]] = {}
        self.begun: tuple[str, str, list[JSONObject]] | None = None
        self.commits = 0

    def tell(self, what: str, id: str, entries: list[JSONObject]) -> None:
        """Notes what was told."""
        if what in ("begin", "create", "delete"):
            self.begun = (what, id, entries)
            return
        self._took_place()

    def _took_place(self) -> None:
        assert self.begun is not None
        what, id, entries = self.begun
        self.begun = None
        if what == "begin":
            self.kept[id] += entries
            self.commits += 1
        elif what == "create":
            self.kept[id] = entries
        else:
            del self.kept[id]

    def found(self, place: dict[str, list[JSONObject]]) -> str:
        """What is wrong with what the place holds now, "" if nothing; what had begun may have taken place or not."""
        if place == self.kept:
            self.begun = None
            return ""
        before = {id: len(entries) for id, entries in self.kept.items()}
        if self.begun is not None:
            self._took_place()
            if place == self.kept:
                return ""
        now = {id: len(entries) for id, entries in place.items()}
        return f"the place holds {now}, after {before} and what had begun {self.kept.keys() - before.keys()}"
