"""What can be read of a session, by any thread, without waiting for anybody."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from gotato_py import (
    Compaction,
    Message,
    MessageView,
    Problem,
    RunRecord,
    ToolMessage,
    Usage,
    WaitingCall,
    check_messages,
)

from ._closing import closing_entries
from ._entries import MessageEntry
from ._json import json_value
from ._log import Log
from ._state import State
from .lease import Lease
from .stats import SessionStats, stats_of

T = TypeVar("T")

STORED = 0
"""`Problem.rule`: what is wrong with how the session is stored."""
PAIRING = 1
"""`Problem.rule`: a call without its one result."""


class SessionView:
    """The reading half of `Session`: what its log says now."""

    __slots__ = ("__weakref__", "_id", "_log", "_parent_id")

    _log: Log
    _id: str
    _parent_id: str

    @property
    def id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def parent_id(self) -> str:
        """The id of the session that this one was forked from, or ""."""
        return self._parent_id

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading alone."""
        return self._log.read_only

    @property
    def lease(self) -> Lease | None:
        """Who writes to it: this process. None in memory, read-only, and once it is closed."""
        return None if self._log.journal is None or self._log.closed else self._log.journal.lease

    @property
    def recovered(self) -> tuple[str, ...]:
        """What had to be mended when it was opened, and the gaps of a repaired copy: a line each, oldest first."""
        told: Sequence[str] = getattr(self._log.journal, "recovered", ())
        return (*self._log.state.gaps, *told)

    @property
    def messages(self) -> Sequence[Message]:
        """What the model may see now, the last summary and what follows it: an immutable view, O(1)."""
        return self._log.state.path.view()

    @property
    def history(self) -> Sequence[Message]:
        """Every message of the current branch, those under a summary too: an immutable view, O(1)."""
        history = self._log.state.path.history
        return MessageView(history, len(history))

    @property
    def started(self) -> Collection[str]:
        """The keys of all calls that were started."""
        return _Keys(self._log.state.started)

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """The calls at the tail that wait, answered ones too."""
        return self._log.state.waiting_calls

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        """What was replaced by summaries in the current branch, oldest first."""
        return self._log.state.path.compactions

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs that have ended, in the order of their ends."""
        return tuple(self._log.state.runs)

    @property
    def usage(self) -> Usage:
        """The tokens of all runs that have ended."""
        return self._log.state.usage

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Everything that was set, as a copy of its own: JSON data by key."""
        return {key: json_value(text) for key, text in dict(self._log.state.values).items()}

    def get(self, key: str, default: Any = None) -> Any:  # Any: a JSON value
        """A copy of the value that was set last, or `default`."""
        text = self._log.state.values.get(key)
        return default if text is None else json_value(text)

    @property
    def labels(self) -> Mapping[str, str]:
        """The id of the entry that each label names; "" is before the first."""
        return dict(self._log.state.labels)

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The events that were kept, oldest first, each as `event.to_dict()` says it, in a copy of its own."""
        return tuple([json_value(text) for text in list(self._log.state.events)])

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the entries of the current branch, messages and summaries, the first one first."""
        state = self._log.state
        return tuple(state.ids_to(state.leaf))

    @property
    def tree(self) -> Mapping[str, str]:
        """The id of each entry's parent, by its id, in the order in which they came; "" is that of the first ones."""
        return {id: node.parent for id, node in self._log.state.nodes.copy().items()}

    @property
    def leaves(self) -> tuple[str, ...]:
        """The ids of the entries that nothing follows, the oldest first: where branches end."""
        nodes = self._log.state.nodes.copy()
        parents = {node.parent for node in nodes.values()}
        return tuple([id for id in nodes if id not in parents])

    @property
    def stats(self) -> SessionStats:
        """How large it is, counted now."""
        return self._log.read(stats_of)

    def check(self) -> list[Problem]:
        """What is wrong, and would be mended when the session is opened for writing or goes on: calls that are open and
        do not wait, answers that say nothing, what a store has to mend (rule 0); an empty list where nothing is."""
        problems = self._log.read(_problems)
        if self.read_only:
            told: Sequence[str] = getattr(self._log.journal, "recovered", ())
            problems += [Problem(len(self.messages), STORED, text) for text in told]
        return problems


class _Keys(Set[str]):
    """The keys of a dict that only grows, for threads other than the one that adds to it."""

    __slots__ = ("_known",)

    def __init__(self, known: Mapping[str, None]) -> None:
        self._known = known

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> frozenset[T]:  # what `&` and `|` make
        return frozenset(it)


def _problems(state: State) -> list[Problem]:
    context, closing = state.path.view(), closing_entries(state, 0.0, lambda: "to-be")
    results = [entry.message for entry in closing if isinstance(entry, MessageEntry)]
    at = next((at for at in reversed(range(len(context))) if not isinstance(context[at], ToolMessage)), 0)
    open_calls = [
        Problem(at, PAIRING, f"call {_index(message)} has no result; it would get {message.result.status.value}")
        for message in results
        if isinstance(message, ToolMessage)
    ]
    closed = {message.result.key for message in results if isinstance(message, ToolMessage)}
    left = [WaitingCall(key) for key, _ in state.path.open_calls if key not in closed]  # they wait, or wait for others
    return [*check_messages([*context, *results], left), *open_calls]


def _index(message: ToolMessage) -> str:
    return message.result.key.rpartition(":")[2]
