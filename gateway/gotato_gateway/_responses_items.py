"""The history as input items of the responses dialect ("Create a model response" in OpenAI's API reference).

A pure function of the messages: the same history gives the same bytes, and a longer one begins with them. Nothing in it
refers to what a server has stored: items go without the ids that they had there, but for reasoning, which needs its.
What an answer's messages said of their phase goes back only where reasoning stood before them, which remembers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolMessage,
    UserMessage,
)

from ._call_arguments import sendable_arguments
from ._common_parts import NO_IMAGES, answer_text, file_held, file_text, result_text
from ._json import Object, dump_text
from ._openai_parts import audio_block, image_detail, image_url
from ._responses_output import CALL, MESSAGE, REASONING
from ._responses_reasoning import Sealed, unseal
from ._tool_ids import WireIds
from ._tool_names import wire_name
from ._turns import NO_OUTPUT, NO_TEXT, Turn, turns
from .quirks import Quirks

_DETAILS = ("low", "high", "original")


def input_items(messages: Sequence[Message], quirks: Quirks, origin: str) -> list[Object]:
    """The `input` of a request. `origin` names whose reasoning may go back."""
    sent: list[Object] = []
    ids = WireIds("responses")
    for turn in turns(messages):
        if isinstance(turn, UserMessage):
            sent.append({"role": "user", "content": _user_content(turn.parts, quirks)})
        else:
            wire = [ids.take(call.id) for call in turn.answer.tool_calls]
            sent += _answer(turn.answer, wire, quirks, origin)
            sent += _results(turn, wire, quirks)
    return sent


def _user_content(parts: Iterable[Part], quirks: Quirks) -> str | list[Object]:
    """A str where text is all there is. Blank texts are left out."""
    blocks = [block for part in parts for block in _block(part, quirks)]
    if all(block["type"] == "input_text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks) or NO_TEXT
    return blocks


def _block(part: Part, quirks: Quirks) -> Iterator[Object]:
    if isinstance(part, TextPart):
        if part.text.strip():
            yield {"type": "input_text", "text": part.text}
    elif isinstance(part, JSONPart):
        yield {"type": "input_text", "text": dump_text(part.value)}
    elif isinstance(part, ImagePart):
        if quirks.images:
            yield {"type": "input_image", "image_url": image_url(part), "detail": image_detail(part, _DETAILS)}
        else:
            yield {"type": "input_text", "text": NO_IMAGES}
    elif isinstance(part, AudioPart):
        yield audio_block(part)
    elif isinstance(part, FilePart):
        yield _file_block(part)


def _file_block(part: FilePart) -> Object:
    held = file_held(part)
    if held is None:  # a URL comes without a name: the server takes the URL's
        return {"type": "input_file", "file_url": part.url}
    words = file_text(part, held)
    if words is not None:
        return {"type": "input_text", "text": words}
    return {"type": "input_file", "filename": part.filename or "file", "file_data": held.data_url}


class _Said(NamedTuple):
    """An item of an answer; of reasoning, what was sealed as well."""

    kind: str
    item: Object
    sealed: Sealed | None = None


def _answer(message: AssistantMessage, wire: Sequence[str], quirks: Quirks, origin: str) -> list[Object]:
    """The items of an answer, each reasoning before the item that it led to. None at all for an empty answer."""
    said: list[_Said] = []
    before_call: dict[int, list[_Said]] = {}
    chain: list[_Said] = []  # reasoning that led to more of it, and goes where that goes
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            sealed = unseal(part) if part.origin == origin and quirks.encrypted_reasoning else None
            if sealed is not None:
                chain.append(_Said(REASONING, sealed.item, sealed))
                if sealed.follower != REASONING:
                    place = said if sealed.call is None else before_call.setdefault(sealed.call, [])
                    place += chain
                    chain = []
        elif said and said[-1].kind == MESSAGE:
            said[-1].item["content"] += answer_text(part)
        else:
            said.append(_Said(MESSAGE, {"role": "assistant", "content": answer_text(part)}))
    said = [each for each in said if each.kind != MESSAGE or each.item["content"].strip()]
    for position, call in enumerate(message.tool_calls):
        said += before_call.get(position, [])
        item = {
            "call_id": wire[position],
            "name": wire_name(call.name),
            "arguments": sendable_arguments(call.arguments),
        }
        said.append(_Said(CALL, {"type": "function_call", **item}))
    return _with_followers(said)


def _with_followers(said: Sequence[_Said]) -> list[Object]:
    """The items, but for reasoning that is not followed by what it led to: the server refuses the one alone."""
    kept: list[Object] = []
    following = ""
    for each in reversed(said):
        if each.sealed is not None:
            if not following or each.sealed.follower not in (None, following):
                continue
            if each.sealed.phase and following == MESSAGE:
                kept[-1]["phase"] = each.sealed.phase
        kept.append(each.item)
        following = each.kind
    return kept[::-1]


def _results(turn: Turn, wire: Sequence[str], quirks: Quirks) -> Iterator[Object]:
    """The results in the order of the calls, then the sound in them, which only a user message can hold."""
    attached: list[Object] = []
    for position, result in turn.results:
        blocks = [block for part in result.parts for block in _block(part, quirks)]
        sounds = [block for block in blocks if block["type"] == "input_audio"]
        output = _result_output(result, [block for block in blocks if block["type"] != "input_audio"], bool(sounds))
        yield {"type": "function_call_output", "call_id": wire[position], "output": output}
        if sounds:
            name = turn.answer.tool_calls[position].name
            attached += [{"type": "input_text", "text": f"Audio from tool {wire[position]} ({name}):"}, *sounds]
    if attached:
        yield {"role": "user", "content": attached}


def _result_output(result: ToolMessage, blocks: list[Object], attached: bool) -> str | list[Object]:
    if any(block["type"] != "input_text" for block in blocks):
        return blocks
    text = result_text(result, [block["text"] for block in blocks])
    return text if text.strip() else "(see attached audio)" if attached else NO_OUTPUT
