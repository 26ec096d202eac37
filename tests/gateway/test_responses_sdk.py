"""Any transcript in the responses dialect, checked by rules of our own and, where it is there, by the official SDK."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from gotato_gateway._responses_reasoning import seal
from gotato_gateway._responses_request import responses_body
from gotato_gateway.quirks import quirks_for
from gotato_py import InvalidRequest, Message, ModelOptions, ModelRequest, ReasoningPart, ToolSpec
from gotato_testkit import strategies as gst

from ..effort import costly
from .responses_events import Event, added, decoded, done, end, event, text
from .sdk import check, sdk
from .transcripts import options, transcripts

ORIGIN = "openai-responses:gpt"
FOLLOWERS = ["message", "function_call", "reasoning", "web_search_call", ""]

sealed_parts = st.builds(
    lambda follower, call: ReasoningPart("", seal("rs_1", ["a"], "E", follower, call), ORIGIN),
    st.sampled_from(FOLLOWERS),
    st.none() | st.integers(0, 2),
)


def body_of(messages: list[Message], options: ModelOptions, schema: dict[str, Any]) -> dict[str, Any]:
    """The body that is sent; transcripts with what no server takes (unknown files, say) are passed over."""
    quirks = quirks_for("https://api.openai.com/v1", "gpt-5")
    request = ModelRequest("s", messages, (ToolSpec("look.up", "Looks it up.", schema), ToolSpec("f")), options)
    try:
        body: dict[str, Any] = json.loads(responses_body("gpt-5", request, quirks, ORIGIN))
    except InvalidRequest:
        assume(False)
    return body


@costly(4)
@given(messages=transcripts(sealed_parts, most=3))
def test_any_transcript_can_be_sent(messages: list[Message]) -> None:
    """Calls have results and legal ids, nothing is empty, reasoning is sealed and followed by what it led to."""
    items = body_of(messages, ModelOptions(), {})["input"]
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert called == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert len(set(called)) == len(called)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in called)
    for item, follower in pairwise([*items, {"role": "user"}]):
        kind = item.get("type")
        if kind == "reasoning":
            assert item["encrypted_content"]
            assert follower.get("role") != "user"
        elif kind == "function_call":
            assert isinstance(json.loads(item["arguments"]), dict)
        else:
            said = item["output"] if kind == "function_call_output" else item["content"]
            assert said
            assert isinstance(said, list) or said.strip()


@given(transcripts(sealed_parts, most=3), options(), gst.schemas())
def test_the_sdk_takes_any_request(messages: list[Message], options: ModelOptions, schema: dict[str, Any]) -> None:
    """The request fits the types of the official SDK, but for sound: the API's reference has it, they have not."""
    body = body_of(messages, options, schema)
    body["input"] = [item for item in body["input"] if "input_audio" not in json.dumps(item)]
    check(sdk("openai.types.responses.response_create_params").ResponseCreateParamsStreaming, body)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """A well-formed stream: calls overlap with each other and all else; text and reasoning come one after the other."""
    kinds = draw(st.lists(st.sampled_from(["message", "reasoning", "function_call"]), max_size=4))
    pieces = [draw(st.lists(st.text("aé\U0001f648\n ", min_size=1, max_size=3), max_size=3)) for _ in kinds]
    made = [_item_events(kind, index, said) for index, (kind, said) in enumerate(zip(kinds, pieces, strict=True))]
    created = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    events = [created, *(first for first, *_ in made)]
    rest = [others for kind, (_, *others) in zip(kinds, made, strict=True) if kind == "function_call"]
    rest.append(
        [each for kind, (_, *others) in zip(kinds, made, strict=True) for each in others if kind != "function_call"]
    )
    while any(rest):
        events.append(draw(st.sampled_from([others for others in rest if others])).pop(0))
    output = [each[-1]["item"] for each in made]
    return [*events, end(output=output)]


def _item_events(kind: str, index: int, pieces: list[str]) -> list[Event]:
    said = "".join(pieces)
    if kind == "message":
        deltas = [text(piece, index) | {"logprobs": []} for piece in pieces]
        part = {"type": "output_text", "text": "", "annotations": []}
        begun = added(kind, index, role="assistant", status="in_progress", content=[])
        opened = event("content_part.added", index, content_index=0, part=part)
        whole = done(kind, index, role="assistant", status="completed", content=[part | {"text": said}])
        return [begun, opened, *deltas, whole]
    if kind == "reasoning":
        deltas = [event("reasoning_summary_text.delta", index, summary_index=0, delta=piece) for piece in pieces]
        summary = [{"type": "summary_text", "text": said}] if said else []
        return [added(kind, index, summary=[]), *deltas, done(kind, index, summary=summary)]
    deltas = [event("function_call_arguments.delta", index, delta=piece) for piece in pieces]
    call = {"call_id": f"call_{index}", "name": "f"}
    return [added(kind, index, arguments="", **call), *deltas, done(kind, index, arguments=said, **call)]


@given(events=streams())
def test_the_sdk_hears_the_same(events: list[Event]) -> None:
    """The official SDK's accumulator finds the same texts and calls; nothing for arguments is an empty object here."""
    accumulator = sdk("openai.lib.streaming.responses._responses")
    types, build = sdk("openai.types.responses"), sdk("openai._models").construct_type
    state = accumulator.ResponseStreamState(input_tools=[], text_format=sdk("openai").omit)
    told: list[Any] = []
    for number, each in enumerate(events):
        told = state.handle_event(build(value=each | {"sequence_number": number}, type_=types.ResponseStreamEvent))
    response, answer = told[-1].response, decoded(*events)
    assert answer.text == response.output_text
    calls = [item for item in response.output if item.type == "function_call"]
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        (call.call_id, call.name, (call.arguments.strip() and call.arguments) or "{}") for call in calls
    ]
    summaries = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    assert answer.reasoning == "".join(summaries)
