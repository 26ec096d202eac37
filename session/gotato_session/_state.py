"""What follows from the entries of a session: everything that can be read of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gotato_py import MemoryTranscript, Message, RunRecord, Usage

from ._calls import OpenCalls
from ._entries import (
    CompactionEntry,
    Entry,
    EventEntry,
    LabelEntry,
    MessageEntry,
    RunEntry,
    StartedEntry,
    ValueEntry,
    WaitingEntry,
)


class State:
    """The entries, folded. `applied` is the number of the last one that was taken in whole.

    `context` is what the model may see now, `history` every message. They are one object until something is compacted.
    """

    __slots__ = (
        "applied", "calls", "context", "events", "history", "ids", "labels", "last_id", "run_ids", "runs", "started",
        "usage", "values",
    )  # fmt: skip

    def __init__(self, metadata: Mapping[str, str]) -> None:
        self.applied: int = 0
        self.history: MemoryTranscript = MemoryTranscript()
        self.context: MemoryTranscript = self.history
        self.calls: OpenCalls = OpenCalls()
        self.started: set[str] = set()
        self.ids: set[str] = set()
        self.last_id: str = ""
        self.runs: list[RunRecord] = []
        self.run_ids: set[str] = set()
        self.usage: Usage = Usage()
        self.values: dict[str, str] = dict(metadata)
        self.labels: dict[str, str] = {}
        self.events: list[str] = []

    def apply(self, entry: Entry) -> None:
        """Takes in the next entry. It never raises, but an interrupt may leave it half done: `applied` comes last."""
        match entry:
            case MessageEntry():
                self._take_message(entry.message)
            case StartedEntry():
                self.started.add(entry.key)
            case WaitingEntry():
                self.context.mark_waiting(entry.calls)
            case CompactionEntry():
                self._compact(entry)
            case RunEntry():
                self.runs.append(entry.record)
                self.run_ids.add(entry.record.run_id)
                self.usage += entry.record.usage
            case ValueEntry():
                self.values[entry.key] = entry.value
            case LabelEntry():
                self.labels[entry.name] = entry.entry_id
            case EventEntry():
                self.events.append(entry.event)
            case _:
                assert_never(entry)
        self.applied = entry.seq

    def _take_message(self, message: Message) -> None:
        self.ids.add(message.id)
        self.last_id = message.id
        self.calls.add(message)
        self.history.append(message)
        if self.context is not self.history:
            self.context.append(message)

    def _compact(self, entry: CompactionEntry) -> None:
        summary_id = entry.compaction.summary.id
        self.ids.add(summary_id)
        self.last_id = summary_id
        if self.context is self.history:
            self.context = copied(self.history)
        self.context.replace(entry.compaction)


def copied(context: MemoryTranscript) -> MemoryTranscript:
    """A context of its own with the same messages and waiting calls and the same past."""
    made = MemoryTranscript(context.messages)
    made.mark_waiting(context.waiting)
    return made
