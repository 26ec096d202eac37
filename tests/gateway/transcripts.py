"""Any transcript that a dialect may be asked to send: reasoning of its own and of others, media that servers take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    ModelOptions,
    Part,
    ReasoningPart,
    ToolMessage,
    replace,
)
from gotato_testkit import strategies as gst

PNG, PDF, WAV = b"\x89PNG\r\n\x1a\n", b"%PDF-1.7", b"RIFF\x00\x00\x00\x00WAVE"
"""What a picture, a document and a sound begin with."""


def options(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[ModelOptions]:
    """Options that most dialects can say, each mostly not given; `more` are added or replace them."""
    said: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.sampled_from([None, None, 1.0]),
        "top_p": st.sampled_from([None, None, 0.9]),
        "max_tokens": st.sampled_from([None, 9000]),
        "reasoning_effort": st.sampled_from([None, "low", "high"]),
        "reasoning_summary": st.sampled_from([None, "auto"]),
        "tool_choice": st.sampled_from([None, "auto", "none", "required", "look.up"]),
        "parallel_tool_calls": st.sampled_from([None, True, False]),
        "response_schema": st.none() | gst.schemas(objects=True),
        "metadata": st.sampled_from([{}, {"user_id": "u", "n": 1}]),
    }
    return st.builds(ModelOptions, **(said | more))


@st.composite
def transcripts(
    draw: st.DrawFn, own: st.SearchStrategy[ReasoningPart], *, max_turns: int = 3, most: int = 2
) -> list[Message]:
    """Conversations in which some answers hold reasoning as `own` makes it, up to `most` parts, anywhere in them.

    In half of them the pictures, sounds and files are what they say; in the others they are any bytes.
    """
    real, made = draw(st.booleans()), list[Message]()
    for message in draw(gst.histories(max_turns=max_turns)):
        if isinstance(message, ToolMessage):
            result = message.result
            message = replace(message, result=replace(result, parts=_real(result.parts) if real else result.parts))
        else:
            message = replace(message, parts=_real(message.parts) if real else message.parts)
        if isinstance(message, AssistantMessage):
            parts = draw(st.permutations([*message.parts, *draw(st.lists(own, max_size=most))]))
            message = replace(message, parts=parts)
        made.append(message)
    return made


def _real(parts: Sequence[Part]) -> list[Part]:
    return [_real_part(part) for part in parts]


def _real_part(part: Part) -> Part:
    """The same kind of part, with content that every server takes."""
    if isinstance(part, ImagePart):
        if part.data is None:
            return replace(part, url="https://x.example/a.png")
        return replace(part, data=PNG + part.data)
    if isinstance(part, AudioPart):
        return replace(part, data=WAV + part.data)
    return replace(part, data=PDF, url=None) if isinstance(part, FilePart) else part
