"""What a session takes and what it refuses: one function an entry, before anything is changed."""

from __future__ import annotations

import os
import re
from typing import Any, TypeVar

from gotato_py import (
    AssistantMessage,
    Compaction,
    InvalidArgument,
    InvalidState,
    Message,
    NotFound,
    RunRecord,
    ToolMessage,
    UserMessage,
    WaitingCall,
)

from ._entries import CompactionEntry, LabelEntry, MessageEntry, RunEntry, StartedEntry, ValueEntry, WaitingEntry
from ._state import State, copied

T = TypeVar("T")

MESSAGE_TYPES = (UserMessage, AssistantMessage, ToolMessage)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def random_ids(kind: str) -> str:
    """An id that no other process makes."""
    return f"{kind[0]}-{os.urandom(12).hex()}"


def wrong(where: str, expected: str, got: object) -> InvalidArgument:
    """The error for a value of the wrong type; it names the type, never the value."""
    return InvalidArgument(f"{where} must be {expected}, not {type(got).__name__}")


def a_text(where: str, given: Any) -> str:
    """The argument, if it is a str that is not empty and that UTF-8 can say."""
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    if not given:
        raise InvalidArgument(f"{where} must not be empty")
    if not given.isascii() and any("\ud800" <= character <= "\udfff" for character in given):
        raise InvalidArgument(f"{where} must not hold a lone surrogate: no encoding can say it")
    return str(given)


def a_session_id(where: str, given: Any) -> str:
    """The argument, if it can be the id of a session: every store can use it as a name."""
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    if not _ID.fullmatch(given):
        said = "1 to 128 letters, digits, dots, underscores and hyphens (ASCII), the first a letter or digit"
        raise InvalidArgument(f"{where} must be {said}")
    return given


def with_fields(value: T, **changes: object) -> T:
    """The value with some fields changed."""
    changeable: Any = value  # Any: `__replace__`, which every value has, is declared from Python 3.13 on
    made: T = changeable.__replace__(**changes)
    return made


def message_entry(message: Message, state: State, seq: int) -> MessageEntry:
    """Refuses an id that the session has, a result without an open call, and anything else while a call is open."""
    operation = "Session.append"
    if message.id in state.ids:
        text = f"the session has an entry with the id {message.id!r}; an id comes once, leave it out to get a new one"
        raise InvalidArgument(text, operation=operation)
    if isinstance(message, ToolMessage):
        if not state.calls.takes(message.result):
            text = "a result without an open call: " + (
                "its key names none" if state.calls.count else "no call is open"
            )
            raise InvalidArgument(text, operation=operation)
    elif state.calls.count:
        text = f"{state.calls.count} call(s) at the tail are open: append their results first"
        raise InvalidState(text, operation=operation)
    return MessageEntry(seq, message)


def started_entry(key: str, state: State, seq: int) -> StartedEntry:
    """The mark, which may be set at any time."""
    return StartedEntry(seq, key)


def waiting_entry(calls: tuple[WaitingCall, ...], state: State, seq: int) -> WaitingEntry | None:
    """The record, or None where nothing waits and nothing did."""
    return WaitingEntry(seq, calls) if calls or state.context.waiting else None


def compaction_entry(compaction: Compaction, state: State, seq: int) -> CompactionEntry:
    """Tries the compaction on a copy, which refuses what would break the context."""
    tried = copied(state.context)
    tried.replace(compaction)
    kept = tried.compactions[-1]
    if kept.summary.id in state.ids:
        text = f"the session has an entry with the id of the summary, {kept.summary.id!r}; an id comes once"
        raise InvalidArgument(text, operation="Session.replace")
    return CompactionEntry(seq, kept)


def run_entry(record: RunRecord, state: State, seq: int) -> RunEntry | None:
    """The record, or None if that run has one."""
    return None if record.run_id in state.run_ids else RunEntry(seq, record)


def value_entry(key: str, value: str, state: State, seq: int) -> ValueEntry:
    """The value, which may be set at any time."""
    return ValueEntry(seq, key, value)


def label_entry(name: str, entry_id: str | None, state: State, seq: int) -> LabelEntry:
    """Refuses the id of no entry; None is the newest one, "" the place before the first."""
    if entry_id and entry_id not in state.ids:
        text = f"the session has no entry with the id {entry_id!r}: use that of a message or a summary"
        raise NotFound(text, operation="Session.label")
    return LabelEntry(seq, name, state.last_id if entry_id is None else entry_id)
