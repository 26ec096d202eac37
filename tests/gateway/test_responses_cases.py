"""The wire cases in the responses dialect: its own, and what the shared ones mean here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import OpenAIResponses, Quirks
from gotato_gateway._responses_request import responses_body
from gotato_py import (
    AssistantMessage,
    ConnectionFailed,
    ContextOverflow,
    InvalidRequest,
    Message,
    ModelOptions,
    ModelRequest,
    ReasoningDone,
    ReasoningPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from .answers import HI, ask, in_case_notation, local, tools
from .case_requests import image_part, neutral
from .cases import ERRORS, answer_to, check_error, check_events, load, pieces_in, variants
from .server import Reply, Server

DIALECT, ORIGIN = "openai-responses", "openai-responses:gpt"


def sent(request: ModelRequest, quirks: Quirks | None = None) -> Any:
    """The body of a request, parsed."""
    return json.loads(responses_body("gpt-5.4", request, quirks or Quirks(), ORIGIN))


def test_31_incomplete_is_an_end(shared: Path) -> None:
    """`response.incomplete` ends the answer, with its reason and its usage."""
    case = load(shared, "31")
    for name, variant, expect in variants(case, DIALECT):
        check_events(answer_to(variant, case, OpenAIResponses), expect, name)


@pytest.mark.parametrize(("word", "reason"), [("content_filter", "content_filter"), ("max_tool_calls", "max_tokens")])
def test_31_every_reason_has_a_meaning(shared: Path, word: str, reason: str) -> None:
    """A filter's cut is one, and a cut for a reason that nobody knows is still a cut, so that no call of it runs."""
    body = b"".join(pieces_in(load(shared, "31")["input"])).replace(b"max_output_tokens", word.encode())
    with Server(Reply([body])) as server:
        answer = ask(local(server.url, OpenAIResponses))
    assert (answer.text, answer.done.stop_reason) == ("Half an", reason)


def test_31_without_its_end(shared: Path) -> None:
    """A stream that ends before its terminal event was cut off, whatever came."""
    with Server(Reply(pieces_in(load(shared, "31")["input"])[:-1], framing="close")) as server:
        answer = ask(local(server.url, OpenAIResponses))
    assert answer.text == "Half an"
    assert type(answer.error) is ConnectionFailed


def test_32_refusal(shared: Path) -> None:
    """A refusal is shown as text, and the stop reason says so."""
    case = load(shared, "32")
    name, variant, expect = list(variants(case, DIALECT))[1]
    check_events(answer_to(variant, case, OpenAIResponses), expect, name)


def test_46_encrypted_reasoning(shared: Path) -> None:
    """Overlapping calls keep their own arguments and call ids; sealed reasoning is asked for and given out."""
    case = load(shared, "46")
    with Server(Reply(pieces_in(case["input"]))) as server:
        answer = ask(local(server.url, OpenAIResponses, model="gpt-5.4"))
    found = in_case_notation(answer)
    events = case["expect"]["events"]
    events[-1] = {"type": "done", "stop_reason": "tool_calls"}
    sealed = json.loads(found[1]["signature"])
    assert sealed.items() >= events[1]["signature"].items()
    assert sealed["summary"] == ["Two lookups."]
    assert [found[0], *found[2:]] == [events[0], *events[2:]]
    assert server.received[0].json.items() >= case["input"]["request_must"].items()


def test_46_goes_back_as_it_came(shared: Path) -> None:
    """What the stream of this case gave can be sent again: the reasoning, then the call that it led to."""
    with Server(Reply(pieces_in(load(shared, "46")["input"]))) as server:
        model = local(server.url, OpenAIResponses, model="gpt-5.4")
        answer = ask(model)
        (closed,) = [event for event in answer.events if isinstance(event, ReasoningDone)]
        turn = AssistantMessage(ReasoningPart(answer.reasoning, closed.signature, closed.origin), answer.calls)
        results = [ToolMessage(ToolResult(call.id, "ok", "x")) for call in answer.calls]
        ask(model, ModelRequest(messages=(UserMessage("hi"), turn, *results)))
    items = server.received[1].json["input"]
    assert [item.get("type", "message") for item in items] == [
        *("message", "reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
    ]
    summary = [{"type": "summary_text", "text": "Two lookups."}]
    assert items[1] == {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "ENC=="}


def test_47_reasoning_goes_back_in_pairs(shared: Path) -> None:
    """Reasoning goes back with what it led to, and alone or unsealed not at all; no foreign id is sent."""
    case = load(shared, "47")
    messages = neutral(case["input"]["request"]["messages"], ORIGIN)
    body = sent(ModelRequest(messages=messages))
    wanted = case["expect"]["json"]
    for item in wanted["input"]:
        if item.get("type") == "function_call":
            item.pop("id", None)  # the case accepts a call without the id that it had on the server
        if item.get("role") == "user":
            item["content"] = item["content"][0]["text"]  # and a user's text as a string
    assert {name: body[name] for name in wanted} == wanted


def test_52_context_overflow(shared: Path) -> None:
    """A request that is too large is ContextOverflow, as a refusal and inside a stream."""
    case = load(shared, "52")
    for name, variant, expect in variants(case, DIALECT):
        check_error(answer_to(variant, case, OpenAIResponses).error, expect, name)
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
    for event in ({"type": "error", **error}, {"type": "response.failed", "response": {"error": error}}):
        with Server(Reply([f"data: {json.dumps(event)}\n\n".encode()])) as server:
            assert type(ask(local(server.url, OpenAIResponses)).error) is ContextOverflow


@pytest.mark.parametrize("number", ["49", "53", "58"])
def test_refusals_mean_the_same_in_every_dialect(shared: Path, number: str) -> None:
    """The category of a refusal does not depend on the adapter."""
    case = load(shared, number)
    for name, variant, expect in variants(case, DIALECT):
        error = answer_to(variant, case, OpenAIResponses).error
        assert type(error) is ERRORS[expect["category"]], name


def test_64_empty_content(shared: Path) -> None:
    """An empty answer is left out, blank texts too, and an empty result says that it is empty."""
    request = ModelRequest(messages=neutral(load(shared, "64")["input"]["request"]["messages"]))
    assert sent(request)["input"] == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "again"},
        {"type": "function_call", "call_id": "call_1", "name": "list_dir", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "(no output)"},
    ]


def test_67_image_in_a_tool_result(shared: Path) -> None:
    """An image is a part of the result itself; a server that takes none is told that it was left out."""
    case = load(shared, "67")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    items = sent(request)["input"]
    wanted = case["expect"]["by_dialect"][DIALECT]["input_item"]
    wanted["output"][0]["detail"] = "auto"  # the case accepts it, and servers that check by the SDK's types ask for it
    assert items[3] == wanted
    assert items[4] == {"type": "function_call_output", "call_id": "call_2", "output": "a.txt"}
    told = sent(request, Quirks(images=False))["input"][3]["output"]
    assert "left out" in told
    assert "iVBOR" not in told


def test_68_system_prompt(shared: Path) -> None:
    """The system prompt is `instructions`; a blank one is not sent."""
    wanted = load(shared, "68")["expect"]["each"][DIALECT]
    assert sent(ModelRequest("Be brief.", HI.messages)).items() >= wanted.items()
    assert "instructions" not in sent(ModelRequest(" \n", HI.messages))


def test_70_tool_names(shared: Path) -> None:
    """Names are legal and different, the same in tools, history and choice; calls are mapped back."""
    asked = load(shared, "70")["input"]["request"]
    names = [tool["name"] for tool in asked["tools"]]
    options = ModelOptions(tool_choice="files.read")
    request = ModelRequest(messages=neutral(asked["messages"]), tools=tools(*names), options=options)
    body = sent(request)
    wire = [tool["name"] for tool in body["tools"]]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) for name in wire)
    assert len(set(wire)) == len(names)
    assert body["input"][1]["name"] == body["tool_choice"]["name"] == wire[0]
    item = {"type": "function_call", "id": "fc", "call_id": "call_2", "name": wire[0], "arguments": "{}"}
    event = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    with Server(Reply([f"data: {json.dumps(event)}\n\n".encode()])) as server:
        assert [call.name for call in ask(local(server.url, OpenAIResponses), request).calls] == ["files.read"]


def test_71_tool_call_ids(shared: Path) -> None:
    """Ids are legal, a call and its result share one, and a longer history begins with the same items."""
    history = load(shared, "71")["input"]["request"]["history_ids"]
    turns: list[Message] = []
    for number, call_id in enumerate([*history, "call_ends_with_", "call_1"]):
        call = ToolCall(call_id, "f")
        turns += [UserMessage(str(number)), AssistantMessage((), (call,)), ToolMessage(ToolResult(call_id, "ok", "x"))]
    items = sent(ModelRequest(messages=turns))["input"]
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert called == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]", each) for each in called)
    assert len(set(called)) == len(history) + 2
    assert called[3] == "toolu_01ABC"
    assert sent(ModelRequest(messages=turns[:9]))["input"] == items[:9]


def test_73_no_tools(shared: Path) -> None:
    """Without tools nothing about tools is sent, also when the history has calls."""
    for variant in load(shared, "73")["input"]["variants"]:
        options = ModelOptions(tool_choice="auto", parallel_tool_calls=False)
        body = sent(ModelRequest(messages=neutral(variant["messages"]), options=options))
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_74_lone_surrogates(shared: Path) -> None:
    """Half a character becomes U+FFFD in texts, arguments and their escapes; whole ones survive."""
    assert load(shared, "74")["dialect"] == "all"
    call = ToolCall("call_1", "cat", '{"path": "x\udcff.txt", "other": "\\udcff", "\\ud83d\\ude48": 1}')
    result = ToolMessage(ToolResult("call_1", "ok", "a\ud83d b \U0001f648 \ud83d\ude48"))
    body = sent(ModelRequest("\udc00", (UserMessage("run"), AssistantMessage((), (call,)), result)))
    assert body["instructions"] == "\ufffd"
    arguments = json.loads(body["input"][1]["arguments"])
    assert arguments == {"path": "x\ufffd.txt", "other": "\ufffd", "\U0001f648": 1}
    assert body["input"][2]["output"] == "a\ufffd b \U0001f648 \U0001f648"


def test_76_image_media_type(shared: Path) -> None:
    """The bytes decide what an image is; a type that no provider takes is refused before it is sent."""
    case = load(shared, "76")
    image = {"type": "input_image", "detail": "auto"}
    for variant in case["input"]["variants"]:
        expect = case["expect"]["each"][variant["name"][0]]
        request = ModelRequest(messages=(UserMessage(image_part(variant["image"])),))
        if expect.get("type") == "error":
            with pytest.raises(InvalidRequest, match="image/heic"):
                sent(request)
        else:
            url = f"data:{expect['source']['media_type']};base64,{expect['source']['data']}"
            assert sent(request)["input"][0]["content"] == [image | {"image_url": url}]
