"""Anthropic's official SDK, where it is there: its types take what is sent, and it hears the same in a stream."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from gotato_gateway._anthropic_request import messages_body
from gotato_gateway._claude_models import claude_quirks
from gotato_py import InvalidRequest, Message, ModelOptions, ModelRequest, ReasoningDone, ToolSpec, Usage
from gotato_testkit.strategies import schemas

from .anthropic_stream import STOP, begin, call, decoded, end, more, over
from .sdk import check, sdk, validator
from .test_anthropic_history import own_thinking
from .test_anthropic_request import ORIGIN
from .transcripts import options, transcripts

MODELS = ("claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5-5", "claude-opus-5-5", "other")
OPTIONS = options(stop=st.sampled_from([(), ("END",)]))
SAMPLING = {"temperature", "top_p"}
pieces = st.lists(st.text("aé\U0001f648\n ", max_size=3), max_size=3)


@given(transcripts(own_thinking), OPTIONS, schemas(), st.sampled_from(MODELS))
def test_the_sdk_takes_any_request(
    messages: list[Message], options: ModelOptions, schema: dict[str, Any], model: str
) -> None:
    """A request with everything in it fits the types of the official SDK.

    On purpose there is more in it: we ask for the API's version of 2023, which lets callers choose how an answer is
    sampled, where the model does; the SDK asks for that of October 2026, which has nothing of it any more.
    """
    params = sdk("anthropic.types.message_create_params")
    quirks = claude_quirks("https://llm.internal", model)
    tools, breakpoints = (ToolSpec("look.up", "Looks it up.", schema), ToolSpec("f")), ("system", "tools", 0, 1, 2)
    try:
        body = messages_body(
            model, ModelRequest("s", messages, tools, options, cache_breakpoints=breakpoints), quirks, ORIGIN
        )
    except InvalidRequest:
        assume(False)
    sent = {name: value for name, value in json.loads(body).items() if name not in SAMPLING}
    check(params.MessageCreateParamsStreaming, sent)


@st.composite
def blocks(draw: st.DrawFn, index: int) -> list[dict[str, Any]]:
    """The events of one block."""
    kind, said = draw(st.sampled_from(["text", "thinking", "redacted", "call", "server"])), draw(pieces)
    if kind == "text":
        deltas = [more(index, "text_delta", text=piece) for piece in said]
        return [begin(index, "text", text=""), *deltas, over(index)]
    if kind == "thinking":
        deltas = [more(index, "thinking_delta", thinking=piece) for piece in said]
        signature = more(index, "signature_delta", signature=f"s{index}")
        return [begin(index, "thinking", thinking="", signature=""), *deltas, signature, over(index)]
    if kind == "redacted":
        return [begin(index, "redacted_thinking", data=f"d{index}"), over(index)]
    arguments = json.dumps({"a": said})
    cut = draw(st.integers(0, len(arguments)))
    made = call(arguments[:cut], arguments[cut:], index=index, call_id=f"toolu_{index}", name="web_search")
    if kind == "server":
        made[0]["content_block"]["type"] = "server_tool_use"
    return made


counts = st.fixed_dictionaries(
    {"input_tokens": st.integers(1, 99)},
    optional={"cache_read_input_tokens": st.integers(1, 99), "cache_creation_input_tokens": st.integers(1, 99)},
)


@given(data=st.data(), many=st.integers(0, 4), first=counts, last=counts)
def test_the_sdk_hears_the_same(data: st.DataObject, many: int, first: dict[str, int], last: dict[str, int]) -> None:
    """The official SDK's accumulator finds the same texts, thinking, calls and counts in any well-formed stream."""
    accumulator = sdk("anthropic.lib.streaming._messages")
    kinds = validator(sdk("anthropic.types").RawMessageStreamEvent)
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c"}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"output_tokens": 1, **first}}
    inner = [event for index in range(many) for event in data.draw(blocks(index))]
    finish = end("max_tokens", **last)
    finish["delta"] |= {"stop_sequence": None, "stop_details": None, "container": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, *inner, finish, STOP]
    snapshot, buffers = None, dict[int, bytes]()
    for event in events:
        snapshot = accumulator.accumulate_event(
            event=kinds.validate_python(event), current_snapshot=snapshot, json_bufs=buffers
        )
    assert snapshot is not None
    answer, found = decoded(*events), snapshot.content
    assert answer.text == "".join(block.text for block in found if block.type == "text")
    assert answer.reasoning == "".join(block.thinking for block in found if block.type == "thinking")
    assert [event.signature for event in answer.events if isinstance(event, ReasoningDone)] == [
        block.data if block.type == "redacted_thinking" else block.signature
        for block in found
        if block.type in ("thinking", "redacted_thinking")
    ]
    calls = [(block.id, block.input) for block in found if block.type == "tool_use"]
    assert [(each.id, json.loads(each.arguments)) for each in answer.calls] == calls
    told = snapshot.usage
    read, written = told.cache_read_input_tokens or 0, told.cache_creation_input_tokens or 0
    assert answer.done.usage == Usage(told.input_tokens + read + written, told.output_tokens, read, written)
