"""Requests in Gemini's dialect: wire cases 64 to 76, and what no case covers."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import Gemini, Quirks
from gotato_gateway._gemini_request import gemini_body
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    AudioPart,
    FilePart,
    ImagePart,
    InvalidRequest,
    JSONPart,
    ModelOptions,
    ModelRequest,
    Part,
    TextPart,
    ToolCall,
    ToolSpec,
    UserMessage,
)

from .answers import ask, local, tools
from .case_requests import image_part, neutral
from .cases import load
from .server import Reply, Server, sse
from .test_gemini_stream import call, chunk

ORIGIN = "gemini:gemini"
OLD, NEW = (quirks_for("https://h.example", model) for model in ("gemini-2.5-flash", "gemini-3-flash-preview"))
OLD_PRO, NEW_PRO = (quirks_for("https://h.example", model) for model in ("gemini-2.5-pro", "gemini-3-pro-preview"))
PDF = b"%PDF-1.7"


def sent(request: ModelRequest, quirks: Quirks = OLD, origin: str = ORIGIN) -> Any:
    """The body of a request, parsed."""
    return json.loads(gemini_body("m", request, quirks, origin))


def user(*parts: Part, quirks: Quirks = OLD) -> Any:
    """The parts of one user message."""
    (content,) = sent(ModelRequest(messages=(UserMessage(parts),)), quirks)["contents"]
    assert content["role"] == "user"
    return content["parts"]


def optioned(quirks: Quirks = OLD, declared: tuple[ToolSpec, ...] = tools("f", "g.h"), **options: Any) -> Any:
    """The body of a request with these options and two tools."""
    return sent(ModelRequest(messages=(UserMessage("x"),), tools=declared, options=ModelOptions(**options)), quirks)


def config(quirks: Quirks = OLD, **options: Any) -> Any:
    """The `generationConfig` for these options, without tools."""
    return optioned(quirks, (), **options).get("generationConfig")


def test_64_empty_content(shared: Path) -> None:
    """An empty answer is left out, so its neighbours are one; blank texts too; an empty result says that it is one."""
    case = load(shared, "64")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    assert sent(request) == case["expect"]["by_dialect"]["gemini"]


def test_67_image_in_a_tool_result(shared: Path) -> None:
    """An image from a tool is inside its result where the model takes that, else in a content behind all results."""
    case = load(shared, "67")
    request = ModelRequest(messages=neutral(case["input"]["request"]["messages"]))
    inside = sent(request, NEW)["contents"][2]["parts"]
    assert inside[0] == case["expect"]["by_dialect"]["gemini-3"]["part"]
    assert inside[1] == {"functionResponse": {"name": "list_dir", "response": {"output": "a.txt"}}}
    results, attached = sent(request, OLD)["contents"][2:]
    assert [each["functionResponse"]["name"] for each in results["parts"]] == ["screenshot", "list_dir"]
    assert [list(each) for each in attached["parts"]] == [["text"], ["inlineData"]]
    assert {results["role"], attached["role"]} == {"user"}


def test_67_without_image_support(shared: Path) -> None:
    """A server that takes no images is told that one was left out, and never gets base64 as text."""
    request = ModelRequest(messages=neutral(load(shared, "67")["input"]["request"]["messages"]))
    contents = sent(request, Quirks(images=False))["contents"]
    assert "left out" in contents[2]["parts"][0]["functionResponse"]["response"]["output"]
    assert "iVBOR" not in json.dumps(contents)


def test_68_system_prompt(shared: Path) -> None:
    """The system prompt has a place of its own; a blank one is not sent."""
    wanted = load(shared, "68")["expect"]["each"]["gemini"]
    body = sent(ModelRequest("Be brief.", (UserMessage("hi"),)))
    assert body == {**wanted, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert "systemInstruction" not in sent(ModelRequest(" ", (UserMessage("hi"),)))


def test_70_tool_names(shared: Path) -> None:
    """Names are legal, different and the same in every request; calls are mapped back."""
    asked = load(shared, "70")["input"]["request"]
    names = [tool["name"] for tool in asked["tools"]]
    request = ModelRequest(
        messages=neutral(asked["messages"]), tools=tools(*names), options=ModelOptions(tool_choice="files.read")
    )
    body = sent(request)
    wire = [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) for name in wire)
    assert len(set(wire)) == len(names)
    assert wire[1] == "files_read"
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == wire[0]
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == wire[0]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [wire[0]]}}
    with Server(Reply(sse(chunk(call(wire[0]), finish="STOP"), done=False))) as server:
        assert [each.name for each in ask(local(server.url, Gemini), request).calls] == ["files.read"]


def test_73_no_tools(shared: Path) -> None:
    """Without tools nothing about tools is sent, also where the history has calls."""
    for variant in load(shared, "73")["input"]["variants"]:
        options = ModelOptions(tool_choice="auto", parallel_tool_calls=False)
        body = sent(ModelRequest(messages=neutral(variant["messages"]), options=options))
        assert body.keys() == {"contents"}


def test_76_image_media_type(shared: Path) -> None:
    """The bytes decide what an image is; a type that not every provider takes is refused before it is sent."""
    case = load(shared, "76")
    for variant in case["input"]["variants"]:
        part, expect = image_part(variant["image"]), case["expect"]["each"][variant["name"][0]]
        if expect.get("type") == "error":
            with pytest.raises(InvalidRequest, match="image/heic"):
                user(part)
        else:
            source = expect["source"]
            assert user(part) == [{"inlineData": {"mimeType": source["media_type"], "data": source["data"]}}]


def test_what_users_say() -> None:
    """Texts stay apart, blank ones are left out, JSON is text, and a message without words says so."""
    assert user(TextPart("a"), TextPart(" "), JSONPart({"b": [1]})) == [{"text": "a"}, {"text": '{"b":[1]}'}]
    assert user(TextPart(""), quirks=NEW) == [{"text": "(no text)"}]


def test_media_of_users() -> None:
    """Sound and files go as their bytes, text files as text, what is given by URL as a URL with its type."""

    def inline(kind: str, data: bytes) -> Any:
        return {"inlineData": {"mimeType": kind, "data": base64.b64encode(data).decode()}}

    wav = b"RIFF\x00\x00\x00\x00WAVE"
    assert user(AudioPart(wav), AudioPart(b"fLaC", "audio/flac")) == [
        inline("audio/wav", wav),
        inline("audio/flac", b"fLaC"),
    ]
    assert user(FilePart(PDF, filename="a.pdf"), FilePart(b"a,b", media_type="text/csv", filename="a.csv")) == [
        inline("application/pdf", PDF),
        {"text": "a.csv:\na,b"},
    ]
    assert user(
        ImagePart(url="https://x.example/a.PNG?size=1", detail="low"),
        FilePart(url="https://x.example/files/1"),
        FilePart(url="https://x.example/a", media_type="video/mp4"),
        FilePart(url="data:application/pdf;base64," + base64.b64encode(PDF).decode()),
    ) == [
        {"fileData": {"fileUri": "https://x.example/a.PNG?size=1", "mimeType": "image/png"}},
        {"fileData": {"fileUri": "https://x.example/files/1"}},
        {"fileData": {"fileUri": "https://x.example/a", "mimeType": "video/mp4"}},
        inline("application/pdf", PDF),
    ]


@pytest.mark.parametrize(
    "part",
    [
        AudioPart(b"x"),
        AudioPart(b"x", "video/mp4"),
        FilePart(b"\x00"),
        FilePart(url=" "),
        ImagePart(b"\x00"),
        ImagePart(url=""),
    ],
)
def test_media_of_no_known_type_are_refused(part: Part) -> None:
    """What no model takes is InvalidRequest before anything is sent."""
    with pytest.raises(InvalidRequest):
        user(part)


def test_options_in_the_dialect() -> None:
    """Every option has its member, and none that was not given is sent; metadata have no place."""
    given = config(temperature=0.5, top_p=0.9, max_tokens=7, stop=("a", "b"), metadata={"k": 1})
    assert given == {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 7, "stopSequences": ["a", "b"]}
    assert config() is None
    assert optioned().keys() == {"contents", "tools"}
    with pytest.raises(InvalidRequest, match=r"options\.stop"):
        config(stop=tuple("abcdef"))


def test_tool_choice() -> None:
    """The three words and a name each have their mode; an unknown name is refused."""

    def chosen(choice: str) -> Any:
        return optioned(tool_choice=choice)["toolConfig"]["functionCallingConfig"]

    assert [chosen(word) for word in ("auto", "none", "required")] == [
        {"mode": "AUTO"},
        {"mode": "NONE"},
        {"mode": "ANY"},
    ]
    assert chosen("f") == {"mode": "ANY", "allowedFunctionNames": ["f"]}
    with pytest.raises(InvalidRequest, match="tool_choice"):
        optioned(tool_choice="nobody")


@pytest.mark.parametrize(
    ("quirks", "options", "thinking"),
    [
        (NEW, {"reasoning_effort": "low"}, {"thinkingLevel": "low"}),
        (NEW, {"reasoning_effort": "none"}, {"thinkingLevel": "minimal"}),
        (OLD, {"reasoning_effort": "medium"}, {"thinkingBudget": 8192}),
        (OLD, {"reasoning_effort": "none"}, {"thinkingBudget": 0}),
        (NEW_PRO, {"reasoning_effort": "none"}, {"thinkingLevel": "low"}),
        (NEW_PRO, {"reasoning_effort": "minimal"}, {"thinkingLevel": "low"}),
        (OLD_PRO, {"reasoning_effort": "none"}, {"thinkingBudget": 128}),
        (NEW, {"reasoning_budget": 100, "reasoning_effort": "low"}, {"thinkingBudget": 100}),
        (OLD, {"reasoning_budget": 0}, {"thinkingBudget": 0}),
        (OLD, {"reasoning_summary": "auto"}, {"includeThoughts": True}),
    ],
)
def test_thinking(quirks: Quirks, options: dict[str, Any], thinking: dict[str, Any]) -> None:
    """Effort is a level or a budget, by the model's generation, and never less than the model takes; a budget goes
    before it; a summary shows thoughts.
    """
    assert config(quirks, **options) == {"thinkingConfig": thinking}


def test_thinking_that_cannot_be_asked_for() -> None:
    """A word without a number is refused by a model that wants numbers; no summary is none."""
    with pytest.raises(InvalidRequest, match="reasoning_budget"):
        config(reasoning_effort="xhigh")
    assert config(reasoning_summary="none") is None


def test_response_schema() -> None:
    """A schema is native; beside tools only where the model takes both, and not at all where a quirk says so."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    wanted = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert config(response_schema=schema) == wanted
    assert optioned(NEW, response_schema=schema)["generationConfig"] == wanted
    with pytest.raises(InvalidRequest, match="beside tools"):
        optioned(OLD, response_schema=schema)
    with pytest.raises(InvalidRequest, match="takes no JSON Schema"):
        config(Quirks(response_schema=False), response_schema=schema)


def test_tools_are_declared_with_their_schemas() -> None:
    """Description where there is one, and the schema as JSON Schema, with type and properties but beside a `$ref`."""
    spec = ToolSpec("f", "does f", {"type": "object", "properties": {"a": {"const": 1}}, "$schema": "x"})
    referring = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}
    untyped = ToolSpec("h", input_schema={"properties": {}}), ToolSpec("i", input_schema=referring)
    (declared,) = optioned(declared=(spec, ToolSpec("g"), *untyped))["tools"]
    assert declared["functionDeclarations"] == [
        {
            "name": "f",
            "description": "does f",
            "parametersJsonSchema": {"type": "object", "properties": {"a": {"enum": [1]}}},
        },
        {"name": "g", "parametersJsonSchema": {"type": "object", "properties": {}}},
        {"name": "h", "parametersJsonSchema": {"type": "object", "properties": {}}},
        {"name": "i", "parametersJsonSchema": referring},
    ]


def test_extra_body_is_merged() -> None:
    """Tools of the server come behind the caller's, objects are merged, all else is replaced."""
    extra = {
        "tools": ({"googleSearch": {}},),
        "toolConfig": {"includeServerSideToolInvocations": True},
        "generationConfig": {"seed": 1, "temperature": 2},
        "safetySettings": [],
    }
    body = optioned(Quirks(extra_body=extra), tool_choice="auto", temperature=1.0)
    assert [list(each) for each in body["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert body["toolConfig"].keys() == {"functionCallingConfig", "includeServerSideToolInvocations"}
    assert body["generationConfig"] == {"temperature": 2, "seed": 1}
    assert body["safetySettings"] == []


def test_what_json_cannot_say_is_refused() -> None:
    """NaN in a schema, or one that is nested without end, is InvalidRequest, not a crash and not a 400."""
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        deep = {"items": deep}
    for schema in ({"minimum": float("nan")}, deep):
        with pytest.raises(InvalidRequest):
            config(response_schema=schema)


def test_a_call_has_no_id() -> None:
    """Ids are left out: not every server takes them, and places say enough."""
    request = ModelRequest(messages=neutral([_called("x y"), _told("x y")]))
    assert "x y" not in json.dumps(sent(request))
    assert ToolCall("x y", "f").id == "x y"


def _called(call_id: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_call", "id": call_id, "name": "f", "arguments": {}}]}


def _told(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": [{"type": "text", "text": "done"}]}
