"""What follows from the entries of a session: everything that can be read of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from gotato_py import RunRecord, ToolMessage, Usage, UserMessage, WaitingCall

from ._entries import (
    BranchEntry,
    CompactionEntry,
    Entry,
    EventEntry,
    GapEntry,
    LabelEntry,
    MessageEntry,
    MetadataEntry,
    RunEntry,
    SettlementEntry,
    StartedEntry,
    WaitingEntry,
)
from ._path import Path

Node = MessageEntry | CompactionEntry
"""An entry of the tree."""


class State:
    """The entries, folded. `applied` says how many commits were taken in whole, `seq` is the last entry's number."""

    __slots__ = (
        "applied", "event_bytes", "events", "gaps", "held", "labels", "leaf", "nodes", "path", "results", "run_ids",
        "runs", "seq", "settled", "started", "time", "usage", "values", "waiting",
    )  # fmt: skip

    def __init__(self, metadata: Mapping[str, str]) -> None:
        self.applied: int = 0
        self.seq: int = 0
        self.time: float = 0.0
        self.nodes: dict[str, Node] = {}  # by id, in the order in which they came
        self.leaf: str = ""
        self.path: Path = Path()
        self.started: dict[str, None] = {}
        self.results: dict[str, ToolMessage] = {}  # the first result of each call, by its key
        self.waiting: dict[str, tuple[WaitingCall, ...]] = {}  # by the id of the message at the tail then
        self.settled: dict[str, str] = {}  # the id of the message that completed a pending call, by the call's key
        self.held: dict[str, UserMessage] = {}  # those messages that have no place yet
        self.runs: list[RunRecord] = []
        self.run_ids: set[str] = set()
        self.usage: Usage = Usage()
        self.values: dict[str, str] = dict(metadata)
        self.labels: dict[str, str] = {}
        self.events: list[str] = []
        self.event_bytes: int = 0
        self.gaps: list[str] = []

    def forked(self, at: str | None = None) -> State:
        """The state with which a fork begins, at that entry or at the newest: messages, marks, results, labels and
        metadata; nothing waits there, and its runs are its own."""
        made = State(self.values)
        made.seq, made.time, made.nodes = self.seq, self.time, dict(self.nodes)
        made.leaf = self.leaf if at is None else at
        made.path = self.path.copy() if made.leaf == self.leaf else self.path_to(made.leaf)
        made.started, made.results, made.settled = dict(self.started), dict(self.results), dict(self.settled)
        made.held = dict(self.held)  # a completion that is settled has to be told here as well
        made.labels, made.gaps = dict(self.labels), list(self.gaps)
        return made

    def take(self, entries: Iterable[Entry]) -> None:
        """Takes in the next commit. It never raises, but an interrupt may leave it half done: `applied` comes last."""
        for entry in entries:
            self.add(entry)
        self.applied += 1

    def add(self, entry: Entry) -> None:
        """Takes in one entry of a commit."""
        match entry:
            case MessageEntry():
                self._add_message(entry)
            case StartedEntry():
                self.started[entry.key] = None
            case WaitingEntry():
                self.waiting[self.path.anchor] = entry.calls
            case CompactionEntry():
                self.nodes[entry.compaction.summary.id] = entry
                self.leaf = entry.compaction.summary.id
                self.path.compact(entry.compaction)
            case RunEntry():
                self.runs.append(entry.record)
                self.run_ids.add(entry.record.run_id)
                self.usage += entry.record.usage
            case BranchEntry():
                self.leaf, self.path = entry.to, self.path_to(entry.to)
            case LabelEntry():
                self.labels[entry.name] = entry.entry_id
            case MetadataEntry():
                self.values = entry.values
            case SettlementEntry():
                self.settled[entry.key] = entry.message.id
                self.held[entry.message.id] = entry.message
            case EventEntry():
                self.events.append(entry.event)
                self.event_bytes += len(entry.event.encode())
            case GapEntry():
                self.gaps.append(entry.text)
            case _:
                assert_never(entry)
        self.seq, self.time = entry.seq, entry.time

    def _add_message(self, entry: MessageEntry) -> None:
        message = entry.message
        self.nodes[message.id] = entry
        self.leaf = message.id
        self.path.add(message)
        if isinstance(message, ToolMessage):
            if message.result.key:
                self.results.setdefault(message.result.key, message)
        elif self.held:
            self.held.pop(message.id, None)

    def waiting_on(self, path: Path) -> tuple[WaitingCall, ...]:
        """The calls of the batch at the tail of the path that wait, answered ones too."""
        return self.waiting.get(path.anchor, ())

    @property
    def waiting_calls(self) -> tuple[WaitingCall, ...]:
        """Those of the current branch."""
        return self.waiting_on(self.path)

    def ids_to(self, entry_id: str) -> list[str]:
        """The ids from the first entry to that one."""
        found: list[str] = []
        while entry_id:
            found.append(entry_id)
            entry_id = self.nodes[entry_id].parent
        return found[::-1]

    def path_to(self, entry_id: str) -> Path:
        """The branch that ends with that entry; what it has in common with the current one is not gone through."""
        known = {} if self.path.compactions else {message.id: at for at, message in enumerate(self.path.history)}
        new: list[str] = []
        while entry_id and entry_id not in known:
            new.append(entry_id)
            entry_id = self.nodes[entry_id].parent
        path = self.path.up_to(known[entry_id]) if entry_id else Path()
        for each in reversed(new):
            node = self.nodes[each]
            if isinstance(node, MessageEntry):
                path.add(node.message)
            else:
                path.compact(node.compaction)
        return path
