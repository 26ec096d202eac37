"""What a session is made of: a list of entries that only grows, each numbered, with the time when it was made.

The messages and summaries among them make a tree: each has a parent, the entry that was the newest of the current
branch then ("" for the first). JSON data is kept as text: nobody can change it from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from gotato_py import Compaction, Message, RunRecord, UserMessage, WaitingCall


@dataclass(slots=True)
class MessageEntry:
    """A message; the entry has its id."""

    seq: int
    time: float
    parent: str
    message: Message


@dataclass(slots=True)
class StartedEntry:
    """A call's tool is about to run."""

    seq: int
    time: float
    key: str


@dataclass(slots=True)
class WaitingEntry:
    """The calls that wait in the batch at the tail; it replaces the last such entry of that batch."""

    seq: int
    time: float
    calls: tuple[WaitingCall, ...]


@dataclass(slots=True)
class CompactionEntry:
    """A summary in the place of what it covers; the entry has the summary's id."""

    seq: int
    time: float
    parent: str
    compaction: Compaction


@dataclass(slots=True)
class RunEntry:
    """A run has ended."""

    seq: int
    time: float
    record: RunRecord


@dataclass(slots=True)
class BranchEntry:
    """The session goes on from the entry with that id; "" is before the first."""

    seq: int
    time: float
    to: str


@dataclass(slots=True)
class LabelEntry:
    """A name for a place: the id of an entry, or "" for before the first."""

    seq: int
    time: float
    name: str
    entry_id: str


@dataclass(slots=True)
class MetadataEntry:
    """All of the metadata from here on: the JSON texts of its values."""

    seq: int
    time: float
    values: dict[str, str]


@dataclass(slots=True)
class SettlementEntry:
    """What came of a call that was pending. The message gets its place in the tree by an entry of its own."""

    seq: int
    time: float
    key: str
    message: UserMessage


@dataclass(slots=True)
class EventEntry:
    """An event, as JSON text."""

    seq: int
    time: float
    event: str


@dataclass(slots=True)
class GapEntry:
    """Here something is missing, in a copy that was made of a damaged session."""

    seq: int
    time: float
    text: str


Entry = (
    MessageEntry
    | StartedEntry
    | WaitingEntry
    | CompactionEntry
    | RunEntry
    | BranchEntry
    | LabelEntry
    | MetadataEntry
    | SettlementEntry
    | EventEntry
    | GapEntry
)
