"""Stores in memory that are broken, each in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any
from uuid import uuid4

from gotato_py import InvalidState, NotFound, SessionBusy
from gotato_session import MemoryStore, SessionSummary


class Wrapped:
    """A journal that passes everything on."""

    def __init__(self, journal: Any) -> None:
        self.journal = journal
        self.lease = journal.lease

    def entries(self) -> list[Any]:
        """Everything that is kept."""
        return list(self.journal.entries())

    def append(self, entries: Sequence[Any]) -> None:
        """Keeps them."""
        self.journal.append(entries)

    def sync(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Lets it go."""
        self.journal.close()


class WithJournals(MemoryStore):
    """Opens journals of another kind."""

    kind: type[Any] = Wrapped

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        return type(self).kind(super().open_journal(id, owner, read_only, steal))


def without(kind: str) -> type[MemoryStore]:
    """A store that keeps no entries of that type, and something else in their places."""

    class Forgetful(Wrapped):
        """Says that there was something."""

        def append(self, entries: Sequence[Any]) -> None:
            super().append([_gap(each) if each["type"] == kind else each for each in entries])

    return type(f"No_{kind}", (WithJournals,), {"kind": Forgetful})


def _gap(entry: dict[str, Any]) -> dict[str, Any]:
    return {**{name: entry[name] for name in ("seq", "v", "time")}, "type": "gap", "text": "lost"}


class LosesTheTailJournal(Wrapped):
    """Counts what it keeps itself."""

    def __init__(self, journal: Any) -> None:
        super().__init__(journal)
        kept = super().entries()
        self.found = kept[:-1] if len(kept) > 2 else kept

    def entries(self) -> list[Any]:
        return self.found


class LosesTheTail(WithJournals):
    """Gives back all but the last commit, when it is opened."""

    kind = LosesTheTailJournal


class WritesASCIIJournal(Wrapped):
    """A lossy encoding."""

    def entries(self) -> list[Any]:
        return [_ascii(each) for each in super().entries()]


class WritesASCII(WithJournals):
    """Gives back text without the characters that it could not write."""

    kind = WritesASCIIJournal


def _ascii(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("ascii", "replace").decode()
    if isinstance(value, dict):
        return {_ascii(key): _ascii(each) for key, each in value.items()}
    return [_ascii(each) for each in value] if isinstance(value, list) else value


class Overwrites(MemoryStore):
    """Makes a session anew where there is one."""

    def create_journal(self, id: str, head: Any) -> None:
        self._sessions.pop(id, None)
        super().create_journal(id, head)


class MakesWhatIsNotThere(MemoryStore):
    """Makes a session where it is to open one."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        if id not in self._sessions:
            self.create_journal(id, {"gotato_session": 1, "id": id, "created_at": 1.0})
        return super().open_journal(id, owner, read_only, steal)


class CutsIds(MemoryStore):
    """Takes what stands before a dot for the whole id."""

    def create_journal(self, id: str, head: Any) -> None:
        try:
            super().create_journal(id.partition(".")[0], {**head, "id": id.partition(".")[0]})
        except InvalidState:
            if "." not in id:
                raise

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        journal = super().open_journal(id.partition(".")[0], owner, read_only, steal)
        wrapped = Wrapped(journal)
        wrapped.entries = lambda: [{**journal.entries()[0], "id": id}, *journal.entries()[1:]]  # type: ignore[method-assign]
        return wrapped


class CountsSessions(MemoryStore):
    """Gives the same id again."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = {"session": count(1), "message": count(1)}
        self.ids = lambda kind: f"{kind}-{min(3, next(self.numbers[kind])) if kind == 'session' else uuid4().hex}"


class ListsHeads(MemoryStore):
    """Tells of metadata as they were at first."""

    def summaries(self) -> Iterator[SessionSummary]:
        for each in super().summaries():
            head = self._sessions[each.id].head
            yield _with(each, metadata=head.get("metadata", {}))


class ListsNoParents(MemoryStore):
    """Does not say which sessions are forks."""

    def summaries(self) -> Iterator[SessionSummary]:
        return iter([_with(each, parent_id="") for each in super().summaries()])


class ListsInAnyOrder(MemoryStore):
    """The oldest first."""

    def list(self, *, where: Any = None, limit: int | None = None) -> Iterator[SessionSummary]:
        found = sorted(super().list(where=where), key=lambda each: each.created_at)
        return islice(found, limit)


def _with(summary: SessionSummary, **changes: Any) -> SessionSummary:
    names = ("id", "parent_id", "created_at", "updated_at", "size", "metadata", "messages")
    return SessionSummary(**{name: changes.get(name, getattr(summary, name)) for name in names})


class RemovesNothing(MemoryStore):
    """Says it did."""

    def delete_journal(self, id: str) -> None:
        if id not in self._sessions:
            raise NotFound("not there")
        if self._sessions[id].lease:
            raise SessionBusy("busy")


class KeepsHalfACommitJournal(Wrapped):
    """Forgets the rest."""

    def append(self, entries: Sequence[Any]) -> None:
        super().append(list(entries)[:1])


class KeepsHalfACommit(WithJournals):
    """Keeps the first entry of a commit only."""

    kind = KeepsHalfACommitJournal


class TakesAClosedOneJournal(Wrapped):
    """Has no end."""

    def append(self, entries: Sequence[Any]) -> None:
        if entries:
            self.journal._kept.commits.append(tuple(entries))


class TakesAClosedOne(WithJournals):
    """Keeps what is appended behind its end."""

    kind = TakesAClosedOneJournal


class Miscounts(MemoryStore):
    """Says that there is one entry more."""

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        return type("Miscounting", (Wrapped,), {"last_seq": 10**6})(super().open_journal(id, owner, read_only, steal))
