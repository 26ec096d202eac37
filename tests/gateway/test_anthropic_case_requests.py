"""Wire cases 64 to 76 in Anthropic's dialect."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import AnthropicMessages, Quirks
from gotato_gateway._anthropic_request import messages_body
from gotato_py import (
    AssistantMessage,
    InvalidRequest,
    Message,
    ModelOptions,
    ModelRequest,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from .answers import ask, local, tools
from .anthropic_stream import START, call, end, events
from .case_requests import image_part, neutral
from .cases import load
from .server import Reply, Server

ORIGIN = "anthropic:claude"
PLAIN = Quirks()


def sent(request: ModelRequest, quirks: Quirks = PLAIN, origin: str = ORIGIN) -> Any:
    """The body of a request, parsed."""
    return json.loads(messages_body("m", request, quirks, origin))


def test_64_empty_content(shared: Path) -> None:
    """An empty answer is left out and its neighbours become one; blank texts go; an empty result says so."""
    case = load(shared, "64")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    assert sent(request)["messages"] == case["expect"]["by_dialect"]["anthropic"]["messages"]


def test_65_several_users_in_a_row(shared: Path) -> None:
    """Messages of users that follow each other are one."""
    case = load(shared, "65")
    request = ModelRequest(messages=neutral(case["input"]["variants"][0]["messages"]))
    assert sent(request)["messages"] == case["expect"]["each"]["a"]["messages"]


def test_65_an_answer_at_the_end(shared: Path) -> None:
    """An answer at the end loses its last white space, and a user asks to go on."""
    case = load(shared, "65")
    messages = sent(ModelRequest(messages=neutral(case["input"]["variants"][2]["messages"])))["messages"]
    assert messages[1] == case["expect"]["each"]["c"]["messages[1]"]
    assert messages[2] == {"role": "user", "content": [{"type": "text", "text": "Continue."}]}


def test_67_image_in_a_tool_result(shared: Path) -> None:
    """An image from a tool is inside its result; a model that takes none is told that one was left out."""
    case = load(shared, "67")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    results = sent(request)["messages"][2]["content"]
    assert results[0] == case["expect"]["by_dialect"]["anthropic"]["block"]
    assert results[1]["content"] == [{"type": "text", "text": "a.txt"}]
    without = sent(request, Quirks(images=False))["messages"][2]["content"][0]["content"]
    assert "left out" in without[0]["text"]
    assert "iVBOR" not in json.dumps(without)


def test_68_system_prompt(shared: Path) -> None:
    """The system prompt is a member of its own; a blank one is none."""
    assert load(shared, "68")["expect"]["each"]["anthropic"] == {"system": "Be brief."}
    assert sent(ModelRequest("Be brief.", (UserMessage("hi"),)))["system"] == "Be brief."
    assert "system" not in sent(ModelRequest(" \n", (UserMessage("hi"),)))


def test_70_tool_names(shared: Path) -> None:
    """Names are legal, different and the same everywhere in the request, and calls are mapped back."""
    asked = load(shared, "70")["input"]["request"]
    names = [tool["name"] for tool in asked["tools"]]
    options = ModelOptions(tool_choice="files.read")
    request = ModelRequest(messages=neutral(asked["messages"]), tools=tools(*names), options=options)
    body = sent(request)
    wire = [tool["name"] for tool in body["tools"]]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) for name in wire)
    assert len(set(wire)) == len(names)
    assert wire[1] == "files_read"
    assert body["messages"][1]["content"][0]["name"] == body["tool_choice"]["name"] == wire[0]
    with Server(Reply(events(START, *call("{}", name=wire[0]), end("tool_use")))) as server:
        assert [each.name for each in ask(local(server.url, AnthropicMessages), request).calls] == ["files.read"]


def test_71_tool_call_ids(shared: Path) -> None:
    """Ids have the dialect's form, a call and its result share one, others differ, and none depends on what follows."""
    history = load(shared, "71")["input"]["request"]["history_ids"]
    turns: list[Message] = []
    for number, call_id in enumerate(history):
        call = ToolCall(call_id, "f")
        turns += [UserMessage(str(number)), AssistantMessage((), (call,)), ToolMessage(ToolResult(call_id, "ok", "x"))]
    messages = sent(ModelRequest(messages=turns))["messages"]
    blocks = [block for message in messages for block in message["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert called == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each) for each in called)
    assert len(set(called)) == len(history)
    assert called[3] == "toolu_01ABC"
    shorter = sent(ModelRequest(messages=turns[:9]))["messages"]
    assert json.dumps(messages).startswith(json.dumps(shorter)[:-3])


def test_73_no_tools(shared: Path) -> None:
    """Without tools nothing about tools is sent; those that the history calls are declared, and none may be called."""
    for variant in load(shared, "73")["input"]["variants"]:
        options = ModelOptions(tool_choice="auto", parallel_tool_calls=False)
        body = sent(ModelRequest(messages=neutral(variant["messages"]), options=options))
        if variant["name"] == "a-no-history":
            assert not {"tools", "tool_choice"} & body.keys()
        else:
            assert [tool["name"] for tool in body["tools"]] == ["list_dir"]
            assert body["tool_choice"] == {"type": "none"}


def test_74_lone_surrogates(shared: Path) -> None:
    """Half a character becomes U+FFFD in texts, arguments and their escapes; whole ones survive."""
    assert load(shared, "74")["dialect"] == "all"
    call = ToolCall("call_1", "cat", '{"path": "x\udcff.txt", "other": "\\udcff", "\\ud83d\\ude48": 1}')
    result = ToolMessage(ToolResult("call_1", "ok", "a\ud83d b \U0001f648 \ud83d\ude48"))
    body = sent(ModelRequest("\udc00", (UserMessage("run"), AssistantMessage((), (call,)), result)))
    assert body["system"] == "\ufffd"
    assert body["messages"][1]["content"][0]["input"] == {"path": "x\ufffd.txt", "other": "\ufffd", "\U0001f648": 1}
    assert body["messages"][2]["content"][0]["content"][0]["text"] == "a\ufffd b \U0001f648 \U0001f648"


def test_76_image_media_type(shared: Path) -> None:
    """The bytes decide what an image is; a type that no provider takes is refused before it is sent."""
    case = load(shared, "76")
    for variant in case["input"]["variants"]:
        expect = case["expect"]["each"][variant["name"][0]]
        request = ModelRequest(messages=(UserMessage(image_part(variant["image"])),))
        if expect.get("type") == "error":
            with pytest.raises(InvalidRequest, match="image/heic"):
                sent(request)
        else:
            assert sent(request)["messages"][0]["content"][0]["source"] == expect["source"]
