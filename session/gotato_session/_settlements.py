"""What the model is told when work that was pending has come to its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from gotato_py import InvalidArgument, Message, TextPart, ToolMessage, ToolResult, ToolResultStatus, UserMessage

from ._arguments import with_fields
from ._entries import MessageEntry
from ._state import State

TOOL_UPDATE = "tool_update"
"""The key in the message's `metadata` under which the key of the call stands."""


def settled_message(state: State, key: str, result: ToolResult | str) -> UserMessage:
    """The user message that says what came of the call, with the parts of the result."""
    if isinstance(result, str):
        result = ToolResult("", "ok", result)
    if not isinstance(result, ToolResult):
        text = f"Session.complete_call: result must be a ToolResult or a str, not {type(result).__name__}"
        raise InvalidArgument(text)
    if result.status == "pending":
        raise InvalidArgument("Session.complete_call: result is pending still; give the one that it came to")
    name = _name_of(state, key)
    told = TextPart(f"The pending call of the tool {name} has come to its end ({result.status.value}). Its result:\n")
    if all(part == TextPart("") for part in result.parts):
        result = with_fields(result, parts=())
    parts = result.parts or (TextPart(result.text or "(no output)"),)
    return UserMessage((told, *parts), metadata={TOOL_UPDATE: key})


def _name_of(state: State, key: str) -> str:
    """The name of the tool that the call named."""
    message_id, _, index = key.rpartition(":")
    node = state.nodes.get(message_id)
    calls = getattr(getattr(node, "message", None), "tool_calls", ())
    return calls[int(index)].name if index.isdecimal() and int(index) < len(calls) else key


def untold(state: State, history: Sequence[Message], results: Iterable[ToolResult]) -> dict[str, UserMessage]:
    """What came of pending calls, by their keys, whose results are in the history, or come now, while the messages are
    elsewhere: the branch began before they came, or the session was in another one then."""
    if not state.settled:
        return {}
    told = {message.metadata.get(TOOL_UPDATE) for message in history if isinstance(message, UserMessage)}
    found: dict[str, UserMessage] = {}
    for result in chain((message.result for message in history if isinstance(message, ToolMessage)), results):
        if result.status is ToolResultStatus.PENDING and result.key not in told:
            node = state.nodes.get(state.settled.get(result.key, ""))  # none: it waits for its place, and gets one here
            if isinstance(node, MessageEntry) and isinstance(node.message, UserMessage):
                found[result.key] = node.message
    return found
