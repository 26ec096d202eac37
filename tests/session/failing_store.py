"""A store in memory that fails when it is told to, and whose sessions can be damaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gotato_session import Journal, Lease, MemoryStore


class FailingStore(MemoryStore):
    """`fail` is raised by the next commits to any journal, None lets them pass. `damage` changes what journals give
    back; `left` is what can be salvaged."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: Exception | None = None
        self.damage: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
        self.left: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Journal:  # type: ignore[override]
        """The journal, which may fail."""
        return FailingJournal(self, id, super().open_journal(id, owner, read_only, steal))

    def salvage_journal(self, id: str) -> Sequence[dict[str, Any]]:
        """What is left of the session."""
        entries = super().open_journal(id, "", True, False).entries()
        return entries if self.left is None else self.left(entries)


class FailingJournal:
    """A journal of that store. It has no `last_seq`: what is kept has to be read from the entries."""

    def __init__(self, store: FailingStore, id: str, inner: Journal) -> None:
        self._store = store
        self._id = id
        self._inner = inner

    @property
    def lease(self) -> Lease | None:
        """The lease of the journal."""
        return self._inner.lease

    def entries(self) -> list[dict[str, Any]]:
        """Everything that is kept, damaged where the store says so; a session that was repaired is whole."""
        entries = self._inner.entries()
        damage = self._store.damage
        return entries if damage is None or "." in self._id else damage(entries)

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Keeps them, or fails."""
        if self._store.fail is not None:
            raise self._store.fail
        self._inner.append(entries)

    def sync(self) -> None:
        """Fails like a commit."""
        if self._store.fail is not None:
            raise self._store.fail

    def close(self) -> None:
        """Lets the session go."""
        self._inner.close()
