"""Hypothesis strategies for messages and their pieces, shared by the kernel's tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
)
from gotato_testkit.strategies import json_objects, json_values, texts

raw_text = texts(surrogates=True)
"""Any text, lone surrogates included."""
clean_text = texts()
json_data = json_values()
metadata = json_objects()
extra = st.dictionaries(clean_text.map("x-{}".format), json_data, max_size=2)
sources = st.tuples(st.binary(max_size=8), st.none()) | st.tuples(st.none(), raw_text)


def _sourced(kind: Any) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda source, media_type, word, extra: kind(source[0], source[1], media_type, word, extra=extra),
        sources,
        raw_text,
        raw_text,
        extra,
    )


parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, raw_text, extra=extra),
    st.builds(ReasoningPart, raw_text, raw_text, raw_text, st.booleans(), extra=extra),
    _sourced(ImagePart),
    st.builds(AudioPart, st.binary(max_size=8), raw_text, extra=extra),
    _sourced(FilePart),
    st.builds(JSONPart, json_data, extra=extra),
)
usages = st.builds(Usage, *[st.integers(0, 10**6)] * 5, extra=extra)
calls = st.builds(ToolCall, raw_text, raw_text, raw_text, raw_text, raw_text, extra=extra)
results = st.builds(
    ToolResult,
    raw_text,
    st.sampled_from(ToolResultStatus),
    st.lists(parts, max_size=2),
    raw_text,
    raw_text,
    metadata,
    extra=extra,
)
user_messages = st.builds(UserMessage, st.lists(parts, max_size=3), id=raw_text, metadata=metadata, extra=extra)
assistant_messages = st.builds(
    AssistantMessage,
    st.lists(parts, max_size=3),
    st.lists(calls, max_size=2),
    usage=usages,
    stop_reason=st.sampled_from(StopReason),
    model=raw_text,
    id=raw_text,
    metadata=metadata,
    extra=extra,
)
tool_messages = st.builds(ToolMessage, results, id=raw_text, metadata=metadata, extra=extra)
messages: st.SearchStrategy[Message] = st.one_of(user_messages, assistant_messages, tool_messages)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Short histories near the rules: small batches, right, wrong and missing keys, results in any order."""
    made: list[Message] = []
    for turn in range(draw(st.integers(0, 3))):
        ident = draw(st.sampled_from([f"m{turn}", "same", ""]))
        count = draw(st.integers(0, 3))
        said = draw(st.sampled_from(["", " \n", "text"]))
        made.append(AssistantMessage(said, [ToolCall(draw(st.sampled_from("ab")), "t")] * count, id=ident))
        keys = draw(st.permutations([f"{ident}:{index}" for index in range(count)]))
        keys = keys[: draw(st.integers(0, len(keys)))] if draw(st.booleans()) else keys
        for key in keys:
            given = draw(st.sampled_from([key, key, key, "", "m0:0", "other:1", "same:0"]))
            made.append(ToolMessage(ToolResult(draw(st.sampled_from("ab")), "ok", "r", key=given)))
        if draw(st.booleans()):
            between: list[Message] = [UserMessage("u"), ToolMessage(ToolResult("a", "ok"))]
            made.append(draw(st.sampled_from(between)))
    return made
