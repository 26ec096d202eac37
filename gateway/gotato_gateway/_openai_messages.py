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

from ._json import Object, dump_text, is_object, items, parse_strict
from ._media import from_data_url, image, media
from ._tool_ids import WireIds
from ._tool_names import wire_name
from .quirks import Quirks

NO_OUTPUT = "(no output)"
NO_TEXT = "(no text)"
BRIDGE = "OK"
_AUDIO = {"audio/wav": "wav", "audio/mp3": "mp3"}


def chat_messages(system: str, messages: Sequence[Message], quirks: Quirks, origin: str) -> list[Object]:
    """The `messages` of a request. `origin` names whose reasoning may go back."""
    sent: list[Object] = [{"role": quirks.system_role, "content": system}] if system.strip() else []
    ids = WireIds(quirks.tool_ids)
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if isinstance(message, UserMessage):
            _add_user(sent, _user_content(message.parts, quirks), quirks)
        elif isinstance(message, ToolMessage):
            raise InvalidRequest("messages: a tool result does not follow the message that called the tool")
        else:
            results: list[ToolMessage] = []
            while index < len(messages) and isinstance(follower := messages[index], ToolMessage):
                results.append(follower)
                index += 1
            wire = [ids.take(call.id) for call in message.tool_calls]
            sent += _assistant(message, wire, quirks, origin)
            _add_results(sent, message, results, wire, quirks)
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
        yield _audio_block(part)
    elif isinstance(part, FilePart):
        yield _file_block(part, quirks)


def _image_block(part: ImagePart, quirks: Quirks) -> Object:
    if not quirks.images:
        return {"type": "text", "text": "(an image was left out: this model takes none)"}
    url = part.url or ""
    inline = from_data_url(url) if part.data is None else None
    if part.data is not None:
        url = image(part.data, part.media_type).data_url
    elif inline is not None:
        url = image(inline.data, inline.media_type).data_url
    detail = {} if part.detail in ("", "auto") else {"detail": part.detail}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _audio_block(part: AudioPart) -> Object:
    sound = media(part.data, part.media_type)
    form = _AUDIO.get(sound.media_type)
    if form is None:
        raise InvalidRequest(f"audio of type {sound.media_type or 'unknown'} cannot be sent: convert it to wav or mp3")
    return {"type": "input_audio", "input_audio": {"data": sound.base64, "format": form}}


def _file_block(part: FilePart, quirks: Quirks) -> Object:
    """A text file goes as text, which every model reads; others in the `file` part of the dialect."""
    held = media(part.data, part.media_type) if part.data is not None else from_data_url(part.url or "")
    if held is None:
        if not quirks.file_urls:
            raise InvalidRequest("a file given by URL cannot be sent in this dialect: pass its data")
        return {"type": "file", "file": {"filename": part.filename or "file", "file_data": part.url}}
    if held.media_type.startswith("text/") or held.media_type == "application/json":
        title = f"{part.filename}:\n" if part.filename else ""
        return {"type": "text", "text": title + (held.data.decode("utf-8", "replace") or NO_TEXT)}
    if not held.media_type:
        raise InvalidRequest("a file of unknown type cannot be sent: give its media_type")
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": held.data_url}}


def _assistant(message: AssistantMessage, wire: Sequence[str], quirks: Quirks, origin: str) -> Iterator[Object]:
    """The answer as it was; nothing at all for one without text and calls, which servers refuse for ever."""
    text = "".join(_assistant_text(part) for part in message.parts)
    if not text.strip():
        if not message.tool_calls:
            return
        text = ""
    sent: Object = {"role": "assistant", "content": text or (None if quirks.null_content else "")}
    sent.update(_reasoning(message.parts, quirks, origin))
    if message.tool_calls:
        sent["tool_calls"] = [_call(call, wire_id) for call, wire_id in zip(message.tool_calls, wire, strict=True)]
    yield sent


def _assistant_text(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, JSONPart):
        return dump_text(part.value)
    return "" if isinstance(part, ReasoningPart) else "(an attachment was left out)"


def _reasoning(parts: Iterable[Part], quirks: Quirks, origin: str) -> Object:
    """The model's own reasoning in the field that it wants back; everybody else's is left out."""
    own = [part for part in parts if isinstance(part, ReasoningPart) and part.origin == origin]
    if not own or not quirks.reasoning_replay:
        return {}
    text = "".join(part.text for part in own)
    if quirks.reasoning_replay == "reasoning_details":
        details = [detail for part in own for detail in _details(part)]
        return {"reasoning_details": details} if details else {"reasoning": text} if text else {}
    return {quirks.reasoning_replay: text} if text else {}


def _details(part: ReasoningPart) -> list[Any]:
    if not part.signature:
        return []
    try:
        return items(parse_strict(part.signature))
    except ValueError:
        return []


def _call(call: ToolCall, wire_id: str) -> Object:
    function = {"name": wire_name(call.name), "arguments": _arguments(call.arguments)}
    return {"id": wire_id, "type": "function", "function": function}


def _arguments(raw: str) -> str:
    """Valid JSON of an object: as the model wrote it where that is one, else an empty one; nothing is repaired."""
    try:
        parsed = parse_strict(raw)
    except ValueError:
        return "{}"
    if not is_object(parsed):
        return "{}"
    return dump_text(parsed) if "\\ud" in raw.lower() else raw  # an escape may stand for half a character


def _add_results(
    sent: list[Object], message: AssistantMessage, results: Sequence[ToolMessage], wire: Sequence[str], quirks: Quirks
) -> None:
    """The results in the order of the calls, then what a tool message cannot hold, in one user message."""
    attached: list[Object] = []
    for position, result in sorted(_paired(message, results), key=lambda pair: pair[0]):
        call, wire_id = message.tool_calls[position], wire[position]
        text, blocks = _result_content(result, quirks)
        sent.append({"role": "tool", "tool_call_id": wire_id, "content": text})
        if blocks:
            kind = "Image" if all(block["type"] == "image_url" for block in blocks) else "Attachment"
            attached += [{"type": "text", "text": f"{kind} from tool {wire_id} ({call.name}):"}, *blocks]
    if attached:
        _add_user(sent, attached, quirks)


def _paired(message: AssistantMessage, results: Sequence[ToolMessage]) -> Iterator[tuple[int, ToolMessage]]:
    """Each result with the place of its call: by key, else by position, never by a provider's id."""
    taken: set[int] = set()
    for position, result in enumerate(results):
        owner, _, number = result.result.key.rpartition(":")
        if owner and owner == message.id and number.isdecimal():
            position = int(number)
        if position >= len(message.tool_calls) or position in taken:
            raise InvalidRequest("messages: there are more tool results than calls before them")
        taken.add(position)
        yield position, result


def _result_content(message: ToolMessage, quirks: Quirks) -> tuple[str, list[Object]]:
    blocks = [block for part in message.parts for block in _block(part, quirks)]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    others = [block for block in blocks if block["type"] != "text"]
    if all(isinstance(part, TextPart) for part in message.parts):
        text = message.text
    else:
        text = "\n".join(texts)
    if not text.strip():
        text = (
            NO_OUTPUT
            if not others
            else "(see attached image)"
            if others[0]["type"] == "image_url"
            else "(see attachment)"
        )
    return text, others
