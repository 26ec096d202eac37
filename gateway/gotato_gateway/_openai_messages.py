"""The history in OpenAI's chat dialect ("Create chat completion" in OpenAI's API reference).

A pure function of the messages: the same history gives the same bytes, and a longer one begins with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidRequest,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from ._call_arguments import sendable_arguments
from ._common_parts import NO_IMAGES, answer_text, file_held, file_text, result_text
from ._json import Object, dump_text, items, parse_strict
from ._openai_parts import audio_block, image_detail, image_url
from ._tool_ids import WireIds
from ._tool_names import wire_name
from ._turns import NO_OUTPUT, NO_TEXT, Turn, turns
from .quirks import Quirks

BRIDGE = "OK"


def chat_messages(system: str, messages: Sequence[Message], quirks: Quirks, origin: str) -> list[Object]:
    """The `messages` of a request. `origin` names whose reasoning may go back."""
    sent: list[Object] = [{"role": quirks.system_role, "content": system}] if system.strip() else []
    ids = WireIds(quirks.tool_ids)
    for turn in turns(messages):
        if isinstance(turn, UserMessage):
            _add_user(sent, _user_content(turn.parts, quirks), quirks)
        else:
            wire = [ids.take(call.id) for call in turn.answer.tool_calls]
            sent += _assistant(turn.answer, wire, quirks, origin)
            _add_results(sent, turn, wire, quirks)
    return sent


def _add_user(sent: list[Object], content: str | list[Object], quirks: Quirks) -> None:
    if quirks.bridge_after_tool and sent and sent[-1]["role"] == "tool":
        sent.append({"role": "assistant", "content": BRIDGE})
    sent.append({"role": "user", "content": content})


def _user_content(parts: Iterable[Part], quirks: Quirks) -> str | list[Object]:
    """A str where text is all there is: some servers take nothing else. Blank texts are left out."""
    blocks = [block for part in parts for block in _block(part, quirks)]
    if all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks) or NO_TEXT
    return blocks


def _block(part: Part, quirks: Quirks) -> Iterator[Object]:
    if isinstance(part, TextPart):
        if part.text.strip():
            yield {"type": "text", "text": part.text}
    elif isinstance(part, JSONPart):
        yield {"type": "text", "text": dump_text(part.value)}
    elif isinstance(part, ImagePart):
        yield _image_block(part, quirks)
    elif isinstance(part, AudioPart):
        yield audio_block(part)
    elif isinstance(part, FilePart):
        yield _file_block(part, quirks)


def _image_block(part: ImagePart, quirks: Quirks) -> Object:
    if not quirks.images:
        return {"type": "text", "text": NO_IMAGES}
    detail = image_detail(part, ("low", "high"))
    return {
        "type": "image_url",
        "image_url": {"url": image_url(part)} | ({} if detail == "auto" else {"detail": detail}),
    }


def _file_block(part: FilePart, quirks: Quirks) -> Object:
    """A text file goes as text, which every model reads; others in the `file` part of the dialect."""
    held = file_held(part)
    if held is None:
        if not quirks.file_urls:
            raise InvalidRequest("a file given by URL cannot be sent in this dialect: pass its data")
        return {"type": "file", "file": {"filename": part.filename or "file", "file_data": part.url}}
    words = file_text(part, held)
    if words is not None:
        return {"type": "text", "text": words}
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": held.data_url}}


def _assistant(message: AssistantMessage, wire: Sequence[str], quirks: Quirks, origin: str) -> Iterator[Object]:
    """The answer as it was; nothing at all for one without text and calls, which servers refuse for ever."""
    text = "".join(answer_text(part) for part in message.parts)
    if not text.strip():
        if not message.tool_calls:
            return
        text = ""
    sent: Object = {"role": "assistant", "content": text or (None if quirks.null_content else "")}
    sent.update(_reasoning(message.parts, quirks, origin))
    if message.tool_calls:
        sent["tool_calls"] = [_call(call, wire_id) for call, wire_id in zip(message.tool_calls, wire, strict=True)]
    yield sent


def _reasoning(parts: Iterable[Part], quirks: Quirks, origin: str) -> Object:
    """The model's own reasoning in the field that it wants back; everybody else's is left out."""
    own = [part for part in parts if isinstance(part, ReasoningPart) and part.origin == origin]
    if not quirks.reasoning_replay:
        return {}
    text = "".join(part.text for part in own)
    if quirks.reasoning_replay == "reasoning_details":
        details = [detail for part in own for detail in _details(part)]
        return {"reasoning_details": details} if details else {"reasoning": text} if text else {}
    return {quirks.reasoning_replay: text} if text or quirks.reasoning_demanded else {}


def _details(part: ReasoningPart) -> list[Any]:
    if not part.signature:
        return []
    try:
        return items(parse_strict(part.signature))
    except ValueError:
        return []


def _call(call: ToolCall, wire_id: str) -> Object:
    function = {"name": wire_name(call.name), "arguments": sendable_arguments(call.arguments)}
    return {"id": wire_id, "type": "function", "function": function}


def _add_results(sent: list[Object], turn: Turn, wire: Sequence[str], quirks: Quirks) -> None:
    """The results in the order of the calls, then what a tool message cannot hold, in one user message."""
    attached: list[Object] = []
    for position, result in turn.results:
        call, wire_id = turn.answer.tool_calls[position], wire[position]
        text, blocks = _result_content(result, quirks)
        sent.append({"role": "tool", "tool_call_id": wire_id, "content": text})
        if blocks:
            kind = "Image" if all(block["type"] == "image_url" for block in blocks) else "Attachment"
            attached += [{"type": "text", "text": f"{kind} from tool {wire_id} ({call.name}):"}, *blocks]
    if attached:
        _add_user(sent, attached, quirks)


def _result_content(message: ToolMessage, quirks: Quirks) -> tuple[str, list[Object]]:
    blocks = [block for part in message.parts for block in _block(part, quirks)]
    others = [block for block in blocks if block["type"] != "text"]
    text = result_text(message, [block["text"] for block in blocks if block["type"] == "text"])
    if not text.strip():
        text = (
            NO_OUTPUT
            if not others
            else "(see attached image)"
            if others[0]["type"] == "image_url"
            else "(see attachment)"
        )
    return text, others
