"""The history in Anthropic's Messages API ("Create a message" in its API reference).

A pure function of the messages: the same history gives the same blocks, and a longer one begins with them. Neighbours
of one role become one message; the results of a batch come first in the message that follows it. A history that ends
with an answer gets a line that asks to go on, since newer models refuse to continue a given beginning; one that begins
with an answer gets a user's message before it.

Reasoning of the own origin goes back as it came, words or none, where it has a signature; without one only to models
that give none. Reasoning that nothing follows in its message is left out, since a message may not end with it. Where a
server demands reasoning before calls, an empty one stands for what is missing. Blocks of tools that ran on the server
were never kept, so a paused answer goes on from its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gotato_py import (
    AssistantMessage,
    InvalidRequest,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from ._anthropic_parts import blocks_of, text_block
from ._call_arguments import sendable_object
from ._common_parts import answer_text
from ._json import Object
from ._tool_ids import WireIds
from ._tool_names import wire_name
from ._turns import NO_OUTPUT, NO_TEXT, Turn, turns
from .quirks import Quirks

GO_ON = "Continue."
THINKING = ("thinking", "redacted_thinking")
_FINE = ("ok", "pending")


class History(NamedTuple):
    """The messages to send, and for each neutral message the block that ends the history up to it (None: no block)."""

    messages: list[Object]
    ends: list[Object | None]


def history(messages: Sequence[Message], quirks: Quirks, origin: str) -> History:
    """The `messages` of a request. `origin` names whose reasoning may go back."""
    sent: list[Object] = []
    ends: list[Object | None] = []
    ids = WireIds("anthropic")
    for turn in turns(messages):
        if isinstance(turn, UserMessage):
            _add(sent, "user", blocks_of(turn.parts, quirks) or [text_block(NO_TEXT)])
            ends.append(_end(sent))
            continue
        wire = [ids.take(call.id) for call in turn.answer.tool_calls]
        _add(sent, "assistant", _answer(turn.answer, wire, quirks, origin))
        ends.append(_end(sent))
        for block in _results(turn, wire, quirks):
            _add(sent, "user", [block])
            ends.append(block)
    if sent and sent[-1]["role"] == "assistant":
        _strip_end(sent[-1]["content"][-1])
        _add(sent, "user", [text_block(GO_ON)])
    if not sent or sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [text_block(NO_TEXT)]})
    return History(sent, ends)


def _add(sent: list[Object], role: str, blocks: list[Object]) -> None:
    if not blocks:
        return
    if sent and sent[-1]["role"] == role:
        sent[-1]["content"] += blocks
    else:
        sent.append({"role": role, "content": blocks})


def _end(sent: list[Object]) -> Object | None:
    return sent[-1]["content"][-1] if sent else None


def _strip_end(block: Object) -> None:
    """Without white space at the end, which is refused there."""
    if block["type"] == "text":
        block["text"] = block["text"].rstrip()


def _answer(message: AssistantMessage, wire: Sequence[str], quirks: Quirks, origin: str) -> list[Object]:
    blocks = [block for part in message.parts for block in _answer_block(part, quirks, origin)]
    thinks = origin and quirks.reasoning_demanded  # there is no origin where thinking is turned off
    if thinks and message.tool_calls and not any(block["type"] in THINKING for block in blocks):
        blocks.insert(0, _thinking(ReasoningPart()))
    blocks += [_call(call, wire_id) for call, wire_id in zip(message.tool_calls, wire, strict=True)]
    while blocks and blocks[-1]["type"] in THINKING:
        del blocks[-1]
    return blocks


def _answer_block(part: Part, quirks: Quirks, origin: str) -> Iterator[Object]:
    if isinstance(part, ReasoningPart):
        if part.origin == origin and (part.signature or (part.text and quirks.unsigned_thinking)):
            yield _thinking(part)
    elif (said := answer_text(part)).strip():
        yield text_block(said)


def _thinking(part: ReasoningPart) -> Object:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _call(call: ToolCall, wire_id: str) -> Object:
    return {"type": "tool_use", "id": wire_id, "name": wire_name(call.name), "input": sendable_object(call.arguments)}


def _results(turn: Turn, wire: Sequence[str], quirks: Quirks) -> Iterator[Object]:
    if len(turn.results) < len(wire):
        raise InvalidRequest("messages: a tool call has no result, and this dialect needs one for each")
    for position, result in turn.results:
        yield _result(result, wire[position], quirks)


def _result(message: ToolMessage, wire_id: str, quirks: Quirks) -> Object:
    if all(isinstance(part, TextPart) for part in message.parts):
        content = [text_block(message.text)] if message.text.strip() else []
    else:
        content = blocks_of(message.parts, quirks)
    content = content or [text_block(NO_OUTPUT)]
    block: Object = {"type": "tool_result", "tool_use_id": wire_id, "content": content}
    # An error may hold nothing but text ("Handle tool calls").
    if message.result.status not in _FINE and all(each["type"] == "text" for each in content):
        block["is_error"] = True
    return block
