"""A transcript at a glance: one short line a message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

_USUAL_ENDS = {StopReason.END_TURN, StopReason.TOOL_CALLS, StopReason.NONE}


def outline(messages: Iterable[Message], *, width: int = 120) -> list[str]:
    """One line a message, at most `width` characters long: who, the text on one line, the calls, how it went.

    Arguments are written as JSON, those that are none as they came. An end other than the usual ones stands in round
    brackets, thoughts, pictures and the like in angle brackets.

    >>> from gotato_py import ToolCall, UserMessage
    >>> asked = AssistantMessage("I'll look.", [ToolCall("call_1", "weather", '{"city": "Oslo"}')])
    >>> told = ToolMessage(ToolResult("call_1", "ok", "Sunny"))
    >>> for line in outline([UserMessage("Nice in Oslo?"), asked, told]):
    ...     print(line)
    user: Nice in Oslo?
    assistant: I'll look. [weather(city="Oslo") #call_1]
    tool weather: ok Sunny
    """
    names: dict[str, str] = {}
    lines: list[str] = []
    for message in messages:
        if not isinstance(message, UserMessage | AssistantMessage | ToolMessage):
            raise InvalidArgument(f"outline: messages must hold messages, not {type(message).__name__}")
        if isinstance(message, ToolMessage):
            result = message.result
            name = names.get(result.key) or names.get(result.call_id, "?")
            line = f"tool {name}: {result.status.value} {_result_words(result)}"
        else:
            line = f"{message.role}: {' '.join(_words(part) for part in message.parts)}"
        if isinstance(message, AssistantMessage):
            for index, call in enumerate(message.tool_calls):
                names[call.id] = names[f"{message.id}:{index}"] = call.name
            line += _calls(message.tool_calls)
            if message.stop_reason not in _USUAL_ENDS:
                line += f" ({message.stop_reason.value})"
        lines.append(_bounded(" ".join(line.split()), width))
    return lines


def call_words(call: ToolCall) -> str:
    """A call as it could be written: `weather(city="Oslo")`."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return f"{call.name}({call.arguments})"
    named = cast("dict[str, object]", given)
    said = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in named.items())
    return f"{call.name}({', '.join(said)})"


def _calls(calls: tuple[ToolCall, ...]) -> str:
    return f" [{', '.join(f'{call_words(call)} #{call.id}' for call in calls)}]" if calls else ""


def _result_words(result: ToolResult) -> str:
    if result.error:
        return result.error  # the parts tell the model the outcome in words that `status` has said already
    return " ".join(_words(part) for part in result.parts)


def _words(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ReasoningPart():
            return f"<thought: {part.text}>" if part.text else "<thought>"
        case JSONPart():
            return json.dumps(part.value, ensure_ascii=False)
        case ImagePart():
            return f"<{part.media_type or 'image'}>"
        case AudioPart():
            return f"<{part.media_type or 'audio'}>"
        case FilePart():
            return f"<{part.filename or part.media_type or 'file'}>"


def _bounded(line: str, width: int) -> str:
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"
