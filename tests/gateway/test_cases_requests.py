"""Wire cases 43 and 64 to 76: a neutral request in the dialect, for each target."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import Quirks
from gotato_gateway._openai_request import chat_body
from gotato_gateway._tool_names import wire_name
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    AssistantMessage,
    InvalidRequest,
    Message,
    ModelOptions,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from .answers import ask, local, tools
from .case_requests import image_part, neutral
from .cases import load
from .server import Reply, Server, sse

PLAIN = Quirks()


def sent(request: ModelRequest, quirks: Quirks = PLAIN, model: str = "m", origin: str = "openai-chat:m") -> Any:
    """The body of a request, parsed."""
    return json.loads(chat_body(model, request, quirks, origin))


def test_43_reasoning_goes_back_to_deepseek_only(shared: Path) -> None:
    """DeepSeek gets its reasoning back in its field; no other server gets the field or the text."""
    case = load(shared, "43")
    hosts = {"deepseek": "https://api.deepseek.com", "groq": "https://api.groq.com/openai/v1"}
    for variant in case["input"]["variants"]:
        asked = variant["request"]
        request = ModelRequest(messages=neutral(asked["messages"], "openai-chat:deepseek"))
        quirks = quirks_for(hosts[asked["provider"]], asked["model"])
        origin = f"openai-chat:{asked['model'].split('-')[0]}"
        wanted = case["expect"]["each"][variant["name"][0]]["json"]["messages"]
        assert sent(request, quirks, asked["model"], origin)["messages"] == wanted


def test_43_reasoning_of_another_model_family_is_dropped() -> None:
    """DeepSeek does not get back what another model thought, but the field that it demands in every answer."""
    request = ModelRequest(
        messages=(UserMessage("x"), AssistantMessage((ReasoningPart("hm", origin="anthropic:claude"), TextPart("y"))))
    )
    quirks = quirks_for("https://api.deepseek.com", "deepseek-chat")
    answer = {"role": "assistant", "content": "y", "reasoning_content": ""}
    assert sent(request, quirks, origin="openai-chat:deepseek")["messages"][1] == answer


@pytest.mark.parametrize(
    ("url", "model", "demanded"),
    [
        ("https://api.deepseek.com", "deepseek-v4-pro", True),
        ("https://api.moonshot.ai/v1", "kimi-k2.5", True),
        ("https://openrouter.ai/api/v1", "deepseek/deepseek-v4-flash", True),
        ("https://openrouter.ai/api/v1", "deepseek/deepseek-r1", False),
        ("https://api.z.ai/api/paas/v4", "glm-4.6", False),
        ("https://h.example/v1", "m", False),
    ],
)
def test_a_call_made_without_reasoning(url: str, model: str, demanded: bool) -> None:
    """DeepSeek and Kimi refuse a call of the history whose reasoning is missing: an empty one stands for it."""
    call = ToolCall("c1", "f")
    turns = (UserMessage("x"), AssistantMessage((), (call,)), ToolMessage(ToolResult("c1", "ok", "y")))
    answer = sent(ModelRequest(messages=turns), quirks_for(url, model), origin="openai-chat:m")["messages"][1]
    assert answer.get("reasoning_content") == ("" if demanded else None)


def test_openrouter_gets_its_reasoning_details_back_unchanged() -> None:
    """Signed details travel in the signature and go back as they were; unsigned reasoning goes back as text."""
    quirks = quirks_for("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5")
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]
    signed = ReasoningPart("hm", json.dumps(details), "openai-chat:claude")
    plain = ReasoningPart("so", origin="openai-chat:claude")
    request = ModelRequest(
        messages=(
            UserMessage("x"),
            AssistantMessage((signed, TextPart("y"))),
            UserMessage("x"),
            AssistantMessage((plain, TextPart("z"))),
        )
    )
    messages = sent(request, quirks, origin="openai-chat:claude")["messages"]
    assert messages[1]["reasoning_details"] == details
    assert messages[3]["reasoning"] == "so"


def test_64_empty_content(shared: Path) -> None:
    """An empty answer is left out, blank texts too, and an empty result says that it is empty."""
    case = load(shared, "64")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    assert sent(request)["messages"] == case["expect"]["by_dialect"]["openai-chat"]["messages"]


def test_65_mistral_wants_a_word_between_tool_and_user(shared: Path) -> None:
    """For Mistral, an assistant's word stands between a tool's result and the next user message."""
    variant = load(shared, "65")["input"]["variants"][1]
    quirks = quirks_for("https://api.mistral.ai/v1", "mistral-large-latest")
    messages = sent(ModelRequest(messages=neutral(variant["messages"])), quirks)["messages"]
    assert messages[3:] == [{"role": "assistant", "content": "OK"}, {"role": "user", "content": "and now?"}]


def test_67_image_in_a_tool_result(shared: Path) -> None:
    """An image from a tool follows all the results of the batch in one user message."""
    case = load(shared, "67")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    assert sent(request)["messages"][2:] == case["expect"]["by_dialect"]["openai-chat"]["messages[2:]"]


def test_67_without_image_support(shared: Path) -> None:
    """A server that takes no images is told that one was left out, and never gets base64 as text."""
    request = ModelRequest(messages=neutral(load(shared, "67")["input"]["request"]["messages"]))
    messages = sent(request, Quirks(images=False))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    assert "left out" in messages[2]["content"]
    assert "iVBOR" not in json.dumps(messages)


def test_68_system_prompt_role(shared: Path) -> None:
    """The role of the system prompt follows the server, and the model only where the server is known."""
    case = load(shared, "68")
    for variant in case["input"]["variants"]:
        if "base_url" in variant:
            request = ModelRequest("Be brief.", (UserMessage("hi"),))
            role = sent(request, quirks_for(variant["base_url"], variant["model"]))["messages"][0]["role"]
            assert role in case["expect"]["each"][variant["name"]]["messages[0].role"], variant["name"]


def test_70_tool_names(shared: Path) -> None:
    """Names are legal, different and the same in every request; valid ones stay, and calls are mapped back."""
    asked = load(shared, "70")["input"]["request"]
    names = [tool["name"] for tool in asked["tools"]]
    request = ModelRequest(
        messages=neutral(asked["messages"]), tools=tools(*names), options=ModelOptions(tool_choice="files.read")
    )
    wire = [tool["function"]["name"] for tool in sent(request)["tools"]]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) for name in wire)
    assert len(set(wire)) == len(names)
    assert wire[1] == "files_read"
    assert sent(request)["messages"][1]["tool_calls"][0]["function"]["name"] == wire[0]
    assert sent(request)["tool_choice"]["function"]["name"] == wire[0]
    entry = {"index": 0, "id": "call_2", "function": {"name": wire[0], "arguments": "{}"}}
    reply = Reply(sse({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}))
    with Server(reply) as server:
        assert [call.name for call in ask(local(server.url), request).calls] == ["files.read"]


def test_71_tool_call_ids_per_target(shared: Path) -> None:
    """Ids have the target's form, a call and its result share one, others differ, and Kimi's stay as they are."""
    history = load(shared, "71")["input"]["request"]["history_ids"]
    turns: list[Message] = []
    for number, call_id in enumerate(history):
        call = ToolCall(call_id, "f")
        turns += [UserMessage(str(number)), AssistantMessage((), (call,)), ToolMessage(ToolResult(call_id, "ok", "x"))]
    for base_url, form in {
        "https://api.openai.com/v1": r"[A-Za-z0-9_-]{1,40}",
        "https://api.mistral.ai/v1": r"[a-zA-Z0-9]{9}",
        "https://api.moonshot.ai/v1": r".+",
    }.items():
        messages = sent(ModelRequest(messages=turns), quirks_for(base_url, "m"))["messages"]
        called = [message["tool_calls"][0]["id"] for message in messages if "tool_calls" in message]
        assert called == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert all(re.fullmatch(form, each) for each in called)
        assert len(set(called)) == len(history)
        shorter = sent(ModelRequest(messages=turns[:9]), quirks_for(base_url, "m"))["messages"]
        assert shorter == messages[: len(shorter)]
        if "moonshot" in base_url:
            assert called[2] == "functions.read_file:0"


def test_an_id_used_twice_is_sent_as_two() -> None:
    """Two calls with one id, or none, get different ids, and each result follows its own call."""
    batch = AssistantMessage((), (ToolCall("a", "f"), ToolCall("a", "g"), ToolCall("", "h"), ToolCall("", "i")))
    results = [ToolMessage(ToolResult(call.id, "ok", call.name)) for call in batch.tool_calls]
    messages = sent(ModelRequest(messages=(UserMessage("x"), batch, *results)))["messages"]
    ids = [call["id"] for call in messages[1]["tool_calls"]]
    assert len(set(ids)) == 4
    assert [(message["tool_call_id"], message["content"]) for message in messages[2:]] == list(
        zip(ids, "fghi", strict=True)
    )


def test_results_are_paired_by_key() -> None:
    """Results in another order than the calls are sent in the order of the calls."""
    batch = AssistantMessage((), (ToolCall("a", "f"), ToolCall("b", "g")), id="m1")
    late = ToolMessage(ToolResult("b", "ok", "second", key="m1:1"))
    early = ToolMessage(ToolResult("a", "ok", "first", key="m1:0"))
    messages = sent(ModelRequest(messages=(UserMessage("x"), batch, late, early)))["messages"]
    assert [message["content"] for message in messages[2:]] == ["first", "second"]


def test_73_no_tools(shared: Path) -> None:
    """Without tools nothing about tools is sent; where calls in the history need declared tools, they are."""
    for variant in load(shared, "73")["input"]["variants"]:
        options = ModelOptions(tool_choice="auto", parallel_tool_calls=False)
        request = ModelRequest(messages=neutral(variant["messages"]), options=options)
        body = sent(request)
        assert not {"tools", "tool_choice", "parallel_tool_calls", "functions"} & body.keys()
        assert all(message.get("tool_calls") != [] for message in body["messages"])
        body = sent(request, Quirks(tools_for_history=True))
        assert ("tools" in body) is (variant["name"] == "b-calls-in-history")
        assert body.get("tool_choice") in (None, "none")


def test_74_lone_surrogates(shared: Path) -> None:
    """Half a character becomes U+FFFD in texts, arguments and their escapes; whole ones survive."""
    assert load(shared, "74")["dialect"] == "all"
    call = ToolCall("call_1", "cat", '{"path": "x\udcff.txt", "other": "\\udcff", "\\ud83d\\ude48": 1}')
    result = ToolMessage(ToolResult("call_1", "ok", "a\ud83d b \U0001f648 \ud83d\ude48"))
    request = ModelRequest("\udc00", (UserMessage("run"), AssistantMessage((), (call,)), result))
    messages = json.loads(chat_body("m", request, PLAIN, ""))["messages"]
    assert messages[0]["content"] == "\ufffd"
    arguments = json.loads(messages[2]["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"path": "x\ufffd.txt", "other": "\ufffd", "\U0001f648": 1}
    assert messages[3]["content"] == "a\ufffd b \U0001f648 \U0001f648"


def test_76_image_media_type(shared: Path) -> None:
    """The bytes decide what an image is; a type that no provider takes is refused before it is sent."""
    case = load(shared, "76")
    for variant in case["input"]["variants"]:
        given, expect = variant["image"], case["expect"]["each"][variant["name"][0]]
        request = ModelRequest(messages=(UserMessage(image_part(given)),))
        if expect.get("type") == "error":
            with pytest.raises(InvalidRequest, match="image/heic") as caught:
                sent(request)
            assert not caught.value.retryable
        else:
            source = expect["source"]
            url = sent(request)["messages"][0]["content"][0]["image_url"]["url"]
            assert url == f"data:{source['media_type']};base64,{source['data']}"


def test_a_name_is_mapped_the_same_everywhere() -> None:
    """The mapping is a pure function of the name, and what it makes is left alone."""
    for name in ("a b", "9lives", "über", "x" * 65, "", "_x", "\udcff"):
        assert wire_name(name) == wire_name(name)
        assert wire_name(wire_name(name)) == wire_name(name)
