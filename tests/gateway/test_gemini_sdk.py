"""Gemini's dialect beside the official SDK, where that is there: it takes our requests, and reads streams as we do."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from gotato_gateway._gemini_request import gemini_body
from gotato_gateway.quirks import quirks_for
from gotato_py import InvalidRequest, Message, ModelOptions, ModelRequest, ToolSpec
from gotato_testkit import strategies as gst

from .sdk import sdk
from .test_gemini_contents import ORIGIN, signed_reasoning
from .test_gemini_stream import chunk, heard
from .transcripts import options, transcripts

OPTIONS = options(stop=st.lists(st.text(min_size=1, max_size=2), max_size=5).map(tuple))


@given(
    transcripts(signed_reasoning), OPTIONS, gst.schemas(), st.sampled_from(["gemini-3-pro-preview", "gemini-2.5-flash"])
)
def test_the_sdk_takes_any_request(
    history: list[Message], options: ModelOptions, schema: dict[str, Any], model: str
) -> None:
    """Every member has a name and a type that the SDK knows; it refuses all others."""
    types = sdk("google.genai.types")
    request = ModelRequest("s", history, (ToolSpec("look.up", "does f", schema),), options)
    try:
        body = json.loads(gemini_body(model, request, quirks_for("https://h.example", model), ORIGIN))
    except InvalidRequest:
        assume(False)
    types.Content.model_validate(body.pop("systemInstruction"))
    for content in body.pop("contents"):
        types.Content.model_validate(content)
    for tool in body.pop("tools"):
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(body.pop("toolConfig", {}))
    types.GenerationConfig.model_validate(body.pop("generationConfig", {}))
    assert not body


words = st.text("aé\U0001f648\n ", max_size=3)
wire_parts = st.one_of(
    st.fixed_dictionaries({"text": words}, optional={"thought": st.booleans(), "thoughtSignature": st.just("QQ==")}),
    st.fixed_dictionaries(
        {"functionCall": st.fixed_dictionaries({"name": st.just("f")}, optional={"args": gst.json_objects()})},
        optional={"thoughtSignature": st.just("QQ==")},
    ),
    st.just({"executableCode": {"language": "PYTHON", "code": "1"}}),
)


@given(st.lists(st.lists(wire_parts, max_size=3), min_size=1, max_size=4))
def test_a_stream_means_what_the_sdk_makes_of_it(chunks: list[list[dict[str, Any]]]) -> None:
    """Text, thoughts, calls and signatures of random streams are those that the SDK finds in their chunks."""
    types = sdk("google.genai.types")
    streamed = [chunk(*parts) for parts in chunks[:-1]] + [chunk(*chunks[-1], finish="STOP")]
    parts = [
        part
        for each in streamed
        for part in types.GenerateContentResponse.model_validate(each).candidates[0].content.parts or ()
    ]
    answer = heard(*streamed)
    assert answer.error is None
    assert answer.text == "".join(part.text or "" for part in parts if not part.thought)
    assert answer.reasoning == "".join(part.text or "" for part in parts if part.thought)
    called = [part.function_call for part in parts if part.function_call]
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [
        (call.name, call.args or {}) for call in called
    ]
    signed = [bool(part.thought_signature) for part in parts if part.function_call]
    assert [bool(call.signature) for call in answer.calls] == signed
