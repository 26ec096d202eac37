"""What a session is made of: a list of entries that only grows, each numbered from 1.

JSON data is kept as text: nobody can change it from outside, and its size is what a store will write.
"""

from __future__ import annotations

from dataclasses import dataclass

from gotato_py import Compaction, Message, RunRecord, WaitingCall


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message; the entry has its id."""

    seq: int
    message: Message


@dataclass(frozen=True, slots=True)
class StartedEntry:
    """A call's tool is about to run."""

    seq: int
    key: str


@dataclass(frozen=True, slots=True)
class WaitingEntry:
    """The calls that wait in the batch at the tail; it replaces the last such entry."""

    seq: int
    calls: tuple[WaitingCall, ...]


@dataclass(frozen=True, slots=True)
class CompactionEntry:
    """A summary in the place of what it covers; the entry has the summary's id."""

    seq: int
    compaction: Compaction


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run has ended."""

    seq: int
    record: RunRecord


@dataclass(frozen=True, slots=True)
class ValueEntry:
    """A value of the metadata, as JSON text."""

    seq: int
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """A name for a place: the id of an entry, or "" for before the first."""

    seq: int
    name: str
    entry_id: str


@dataclass(frozen=True, slots=True)
class EventEntry:
    """An event, as JSON text."""

    seq: int
    event: str


Entry = MessageEntry | StartedEntry | WaitingEntry | CompactionEntry | RunEntry | ValueEntry | LabelEntry | EventEntry
