"""A store whose operations fail by plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gotato_py import InvalidArgument
from gotato_session import Journal, Lease, SessionSummary, StoreBase

from ._failing import Fail, Failing

JSONObject = dict[str, Any]  # Any: JSON values


class FaultyStore(StoreBase):
    """A store whose operations fail by plan. What `fail` returns is raised before the operation, of which nothing is
    done then: a failed "append" keeps nothing, a failed "close" holds the lease until it is closed again.

    The operations are those that a store's author writes: "create", "open", "list", "delete" and "salvage" of the
    store; "entries", "append" (a commit), "sync" and "close" of its journals. Each is counted from 1, over all sessions
    of the store. Clock, ids and whatever else the store has are its own.

    >>> from gotato_py import Agent
    >>> from gotato_session import MemoryStore
    >>> from gotato_testkit import Fault, FaultPlan, ScriptedModel, say
    >>> store = FaultyStore(MemoryStore(), FaultPlan([Fault("append", 1, OSError(28, "No space left on device"))]))
    >>> result = Agent(ScriptedModel([say("Hi.")]), transcript=store.create("s-1")).run("Hello", check=False)
    >>> result.status.value, result.error.code.value
    ('failed', 'store_failure')

    Raises `InvalidArgument` for what is no store, and for a `fail` that cannot be called.
    """

    def __init__(self, store: StoreBase, fail: Fail) -> None:
        if not isinstance(store, StoreBase):
            raise InvalidArgument(f"FaultyStore.store must be a StoreBase, not {type(store).__name__}")
        if not callable(fail):
            said = "must be callable with an operation and its number"
            raise InvalidArgument(f"FaultyStore.fail {said}, not {type(fail).__name__}")
        self.clock, self.ids = store.clock, store.ids
        self._store = store
        self._failing = Failing(fail)

    def __repr__(self) -> str:
        return f"FaultyStore({self._store!r})"

    def create_journal(self, id: str, head: JSONObject) -> object:
        """Fails, or makes the journal."""
        self._failing.before("create")
        return self._store.create_journal(id, head)

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Journal:
        """Fails, or opens the journal, whose own operations may fail."""
        self._failing.before("open")
        return _FaultyJournal(self._store.open_journal(id, owner, read_only, steal), self._failing)

    def summaries(self) -> Iterator[SessionSummary]:
        """Fails, or tells of the sessions."""
        self._failing.before("list")
        return self._store.summaries()

    def delete_journal(self, id: str) -> None:
        """Fails, or removes the journal."""
        self._failing.before("delete")
        self._store.delete_journal(id)

    def salvage_journal(self, id: str) -> Sequence[JSONObject]:
        """Fails, or reads what is left of the journal."""
        self._failing.before("salvage")
        return self._store.salvage_journal(id)

    def __getattr__(self, name: str) -> Any:  # Any: whatever the store has under that name
        return getattr(self._store, name)


class _FaultyJournal:
    def __init__(self, journal: Journal, failing: Failing) -> None:
        self._journal = journal
        self._failing = failing

    @property
    def lease(self) -> Lease | None:
        return self._journal.lease

    def entries(self) -> list[JSONObject]:
        self._failing.before("entries")
        return self._journal.entries()

    def append(self, entries: Sequence[JSONObject]) -> None:
        self._failing.before("append")
        self._journal.append(entries)

    def sync(self) -> None:
        self._failing.before("sync")
        self._journal.sync()

    def close(self) -> None:
        self._failing.before("close")
        self._journal.close()

    def __getattr__(self, name: str) -> Any:  # Any: an optional member of the journal
        return getattr(self._journal, name)
