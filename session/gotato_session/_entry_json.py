"""Entries as plain JSON data and back. Schema version 1:

    {"seq": 5, "v": 1, "type": "message", "time": 1.7e9, "parent": "m-1", "message": {"role": "user", …}}

`type` is one of message, started, waiting, compaction, run, branch, label, metadata, settlement, event, gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, assert_never

from gotato_py import (
    Compaction,
    InvalidArgument,
    Message,
    NotSupported,
    RunRecord,
    UserMessage,
    WaitingCall,
    message_from_dict,
    message_to_dict,
    record_from_dict,
    record_to_dict,
)

from ._arguments import is_time
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
from ._json import is_list, is_object, json_object, json_text, json_value
from .journal import JSONObject

VERSION = 1
"""Of the entries that this release writes; it reads no newer ones."""

T = TypeVar("T")


def entry_to_dict(entry: Entry) -> JSONObject:
    """The entry as plain JSON data. Raises `InvalidArgument` for what JSON cannot hold."""
    written: JSONObject = {"seq": entry.seq, "v": VERSION, "type": _TYPES[type(entry)], "time": entry.time}
    match entry:
        case MessageEntry():
            written["parent"] = entry.parent
            written["message"] = message_to_dict(entry.message)
        case StartedEntry():
            written["key"] = entry.key
        case WaitingEntry():
            written["calls"] = [record_to_dict(call) for call in entry.calls]
        case CompactionEntry():
            written["parent"] = entry.parent
            written["compaction"] = record_to_dict(entry.compaction)
        case RunEntry():
            written["record"] = record_to_dict(entry.record)
        case BranchEntry():
            written["to"] = entry.to
        case LabelEntry():
            written["name"], written["entry_id"] = entry.name, entry.entry_id
        case MetadataEntry():
            written["metadata"] = {key: json_value(text) for key, text in entry.values.items()}
        case SettlementEntry():
            written["key"], written["message"] = entry.key, message_to_dict(entry.message)
        case EventEntry():
            written["event"] = json_value(entry.event)
        case GapEntry():
            written["text"] = entry.text
        case _:
            assert_never(entry)
    return written


def entry_from_dict(data: JSONObject) -> Entry:
    """The entry that `entry_to_dict` wrote.

    Raises `NotSupported` for an entry of a newer release, `InvalidArgument` for what is none.
    """
    version = data.get("v")
    if version != VERSION and _field(data, "v", int) > VERSION:
        raise NotSupported(f"a newer release wrote it (entry version {version}, this one reads {VERSION})")
    reader = _READERS.get(_field(data, "type", str))
    if reader is None:
        raise InvalidArgument(f"type {data['type']!r} is unknown")
    time = data.get("time", 0.0)
    if not is_time(time):
        raise InvalidArgument("time must be a number of Unix seconds")
    return reader(_field(data, "seq", int), float(time), data)


def _field(data: JSONObject, name: str, kind: type[T]) -> T:
    given = data.get(name)
    if type(given) is not kind:
        raise InvalidArgument(f"{name} must be a JSON {kind.__name__}, not {type(given).__name__}")
    return given


def _object(data: JSONObject, name: str) -> JSONObject:
    given = data.get(name)
    if not is_object(given):
        raise InvalidArgument(f"{name} must be a JSON object, not {type(given).__name__}")
    return given


def _list(data: JSONObject, name: str) -> list[Any]:  # Any: JSON values
    given = data.get(name)
    if not is_list(given):
        raise InvalidArgument(f"{name} must be a JSON array, not {type(given).__name__}")
    return given


def _message(seq: int, time: float, data: JSONObject) -> Entry:
    message: Message = message_from_dict(_object(data, "message"))
    if not message.id:
        raise InvalidArgument("message.id is missing")
    return MessageEntry(seq, time, _field(data, "parent", str), message)


def _started(seq: int, time: float, data: JSONObject) -> Entry:
    return StartedEntry(seq, time, _field(data, "key", str))


def _waiting(seq: int, time: float, data: JSONObject) -> Entry:
    return WaitingEntry(seq, time, tuple([_record(each, WaitingCall) for each in _list(data, "calls")]))


def _compaction(seq: int, time: float, data: JSONObject) -> Entry:
    compaction = _record(data.get("compaction"), Compaction)
    if not compaction.summary.id:
        raise InvalidArgument("compaction.summary.id is missing")
    return CompactionEntry(seq, time, _field(data, "parent", str), compaction)


def _run(seq: int, time: float, data: JSONObject) -> Entry:
    return RunEntry(seq, time, _record(data.get("record"), RunRecord))


def _branch(seq: int, time: float, data: JSONObject) -> Entry:
    return BranchEntry(seq, time, _field(data, "to", str))


def _label(seq: int, time: float, data: JSONObject) -> Entry:
    return LabelEntry(seq, time, _field(data, "name", str), _field(data, "entry_id", str))


def _metadata(seq: int, time: float, data: JSONObject) -> Entry:
    return MetadataEntry(seq, time, json_object("metadata", _object(data, "metadata")))


def _settlement(seq: int, time: float, data: JSONObject) -> Entry:
    message = message_from_dict(_object(data, "message"))
    if not isinstance(message, UserMessage) or not message.id:
        raise InvalidArgument("message must be a user message with an id")
    return SettlementEntry(seq, time, _field(data, "key", str), message)


def _event(seq: int, time: float, data: JSONObject) -> Entry:
    return EventEntry(seq, time, json_text("event", _object(data, "event")))


def _gap(seq: int, time: float, data: JSONObject) -> Entry:
    return GapEntry(seq, time, _field(data, "text", str))


def _record(data: Any, kind: type[T]) -> T:  # Any: JSON data
    if not is_object(data):
        raise InvalidArgument(f"a record must be a JSON object, not {type(data).__name__}")
    record = record_from_dict(data)
    if not isinstance(record, kind):
        raise InvalidArgument(f"a record must be a {kind.__name__}, not a {type(record).__name__}")
    return record


_Reader = Callable[[int, float, JSONObject], Entry]
_READERS: dict[str, _Reader] = {
    "message": _message,
    "started": _started,
    "waiting": _waiting,
    "compaction": _compaction,
    "run": _run,
    "branch": _branch,
    "label": _label,
    "metadata": _metadata,
    "settlement": _settlement,
    "event": _event,
    "gap": _gap,
}
_TYPES: dict[type[Entry], str] = {
    MessageEntry: "message",
    StartedEntry: "started",
    WaitingEntry: "waiting",
    CompactionEntry: "compaction",
    RunEntry: "run",
    BranchEntry: "branch",
    LabelEntry: "label",
    MetadataEntry: "metadata",
    SettlementEntry: "settlement",
    EventEntry: "event",
    GapEntry: "gap",
}
