"""The history as Gemini's `contents` ("Function calling" and "Thought signatures", Gemini API documentation).

A pure function of the messages: the same history gives the same bytes. Neighbours of one role are one content, but the
results of calls stand alone: their number has to be that of the calls before them. Calls and results go without ids and
are matched by their places, as the documentation has it for servers that give none.

Reasoning and signatures go back to the model family that they came from, each to its place; see `_gemini_stream` for
how that is kept. Where a model refuses calls without a signature, the first of an answer that has none of its own gets
the word that the documentation gives for calls of other origins.
"""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import (
    AssistantMessage,
    Message,
    ReasoningPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from ._call_arguments import sendable_object
from ._common_parts import answer_text, result_text
from ._gemini_parts import wire_parts
from ._json import Object, obj, parse_strict
from ._tool_names import wire_name
from ._turns import NO_OUTPUT, NO_TEXT, Turn, turns
from .quirks import Quirks

_RESULT_MEDIA = ("image/png", "image/jpeg", "image/webp", "application/pdf")


def gemini_contents(messages: Sequence[Message], quirks: Quirks, origin: str) -> list[Object]:
    """The `contents` of a request; the first is a user's. `origin` names whose reasoning may go back."""
    sent: list[Object] = []
    for turn in turns(messages):
        if isinstance(turn, UserMessage):
            _add(sent, "user", wire_parts(turn.parts, quirks) or [{"text": NO_TEXT}])
        else:
            _add(sent, "model", _answer(turn.answer, quirks, origin))
            _add_results(sent, turn, quirks)
    if not sent or sent[0]["role"] != "user":
        sent.insert(0, {"role": "user", "parts": [{"text": NO_TEXT}]})
    return sent


def _add(sent: list[Object], role: str, parts: list[Object]) -> None:
    if not parts:
        return
    if sent and sent[-1]["role"] == role and "functionResponse" not in sent[-1]["parts"][0]:
        sent[-1]["parts"] += parts
    else:
        sent.append({"role": role, "parts": parts})


def _answer(message: AssistantMessage, quirks: Quirks, origin: str) -> list[Object]:
    """The answer as it was; nothing at all for one without text and calls."""
    parts: list[Object] = []
    last: list[Object] = []
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            if part.origin == origin:
                _add_reasoning(parts, part, quirks)
        elif (said := answer_text(part)).strip():
            parts.append({"text": said})
    if message.tool_calls and parts and parts[-1].get("text") == "":
        last = [parts.pop()]  # an empty part that only carries a signature is the last of an answer
    calls = [
        _call(call, "" if position else quirks.call_signature, origin)
        for position, call in enumerate(message.tool_calls)
    ]
    if not calls and not any(part.get("text") and not part.get("thought") for part in parts):
        return []
    return [*parts, *calls, *last]


def _add_reasoning(parts: list[Object], part: ReasoningPart, quirks: Quirks) -> None:
    signed: Object = {"thoughtSignature": part.signature} if part.signature else {}
    before = parts[-1] if parts else {}
    if part.signature.startswith("{"):  # what the server did by itself, which it takes only where it may do so again
        if "tools" in quirks.extra_body:
            parts += _parsed(part.signature)
    elif part.text:
        parts.append({"text": part.text, "thought": True, **signed})
    elif part.signature:
        if not part.redacted and "text" in before and not before.keys() & {"thought", "thoughtSignature"}:
            before.update(signed)
        else:
            parts.append({"text": "", **signed})


def _parsed(signature: str) -> list[Object]:
    try:
        part = obj(parse_strict(signature))
    except ValueError:
        return []
    return [part] if part else []


def _call(call: ToolCall, otherwise: str, origin: str) -> Object:
    signature = (call.signature if call.origin == origin else "") or otherwise
    sent: Object = {"functionCall": {"name": wire_name(call.name), "args": sendable_object(call.arguments)}}
    if signature:
        sent["thoughtSignature"] = signature
    return sent


def _add_results(sent: list[Object], turn: Turn, quirks: Quirks) -> None:
    """The results in one content, then what a result cannot hold, in another one."""
    results: list[Object] = []
    attached: list[Object] = []
    for position, message in turn.results:
        call = turn.answer.tool_calls[position]
        result, others = _result(call, message, quirks)
        results.append({"functionResponse": result})
        if others:
            attached += [{"text": f"From tool {wire_name(call.name)}:"}, *others]
    if results:
        sent.append({"role": "user", "parts": results})
    _add(sent, "user", attached)


def _result(call: ToolCall, message: ToolMessage, quirks: Quirks) -> tuple[Object, list[Object]]:
    parts = wire_parts(message.parts, quirks)
    others = [part for part in parts if "text" not in part]
    words = result_text(message, [part["text"] for part in parts if "text" in part])
    if not words.strip():
        pictures = all(_media_type(part).startswith("image/") for part in others)
        words = NO_OUTPUT if not others else "(see attached image)" if pictures else "(see attachment)"
    key = "output" if message.result.status in ("ok", "pending") else "error"
    sent: Object = {"name": wire_name(call.name), "response": {key: words}}
    inside = [part for part in others if quirks.result_media and _media_type(part) in _RESULT_MEDIA]
    if inside:
        sent["parts"] = inside
    return sent, [part for part in others if part not in inside]


def _media_type(part: Object) -> str:
    """The type of media that are held here; for those given by URL it is guessed, and they cannot go into a result."""
    return str(obj(part.get("inlineData")).get("mimeType", ""))
