"""Messages as plain text, for a summary: without calls and results as such, no pair can be torn apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from gotato_py import (
    AssistantMessage,
    AudioPart,
    ImagePart,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolMessage,
)

from ._clipping import Note, clip, left_out


def rendered(messages: Sequence[Message], most: int, note: Note = left_out) -> list[str]:
    """A block of text for each message: who, what was said, called or returned, each text within `most` characters.

    Reasoning is left out, pictures, sound and files go by what they are.
    """
    names: dict[str, str] = {}
    blocks: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            for index, call in enumerate(message.tool_calls):
                names[call.id] = names[f"{message.id}:{index}"] = call.name
        blocks.append(_block(message, names, lambda text: clip(text, most, note)))
    return blocks


def _block(message: Message, names: dict[str, str], short: Callable[[str], str]) -> str:
    if isinstance(message, ToolMessage):
        result = message.result
        name = names.get(result.key) or names.get(result.call_id) or "a tool"
        said = [_words(part) for part in result.parts] if result.parts else [result.text]
        lines = [f"[result of {name}: {result.status.value}]"]
    else:
        said = [_words(part) for part in message.parts]
        lines = [f"[{message.role}]"]
    text = "\n".join(each for each in said if each)
    if text:
        lines.append(short(text))
    if isinstance(message, AssistantMessage):
        lines.extend(f"[calls {call.name} with {short(call.arguments or '{}')}]" for call in message.tool_calls)
    return "\n".join(lines)


def _words(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ReasoningPart():
            return ""
        case JSONPart():
            return json.dumps(part.value, ensure_ascii=False)
        case ImagePart():
            return "(a picture)"
        case AudioPart():
            return "(sound)"
        case _:
            return f"(a file: {part.filename or part.media_type or 'without a name'})"
