"""Words for the tests of sessions: messages with ids, calls, results."""

from __future__ import annotations

from typing import Any

from gotato_py import (
    AssistantMessage,
    Compaction,
    RunRecord,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)


def user(message_id: str, text: str = "hi") -> UserMessage:
    """A user message."""
    return UserMessage(text, id=message_id)


def answer(message_id: str, text: str = "well", *, calls: int = 0) -> AssistantMessage:
    """An answer with so many calls, all of one provider id."""
    return AssistantMessage(text, [ToolCall("same", "look")] * calls, id=message_id)


def result(message_id: str, key: str) -> ToolMessage:
    """A result for the call with that key."""
    return ToolMessage(ToolResult("same", "ok", "seen", key=key), id=message_id)


def summary(through: str, message_id: str = "", **more: Any) -> Compaction:
    """A compaction up to the message with that id."""
    return Compaction(UserMessage("so far", id=message_id), through, **more)


def run_record(run_id: str, tokens: int = 0, status: str = "completed") -> RunRecord:
    """What is recorded of a run."""
    return RunRecord(run_id, "a-1", status, "", 0.0, 1.0, 1, 0, Usage(tokens, tokens))
