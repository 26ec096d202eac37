"""Building requests: parts and options that no wire case covers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gotato_gateway import OpenAIChat, Quirks
from gotato_gateway._openai_request import chat_body
from gotato_gateway._responses_request import responses_body
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidRequest,
    JSONPart,
    Message,
    ModelOptions,
    ModelRequest,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)

OPENAI = quirks_for("https://api.openai.com/v1", "gpt-5")


def sent(request: ModelRequest, quirks: Quirks | None = None) -> Any:
    """The body of a request, parsed."""
    return json.loads(chat_body("m", request, quirks or Quirks(), "openai-chat:m"))


def user(*parts: Part, quirks: Quirks | None = None) -> Any:
    """The content of a user message."""
    return sent(ModelRequest(messages=(UserMessage(parts),)), quirks)["messages"][0]["content"]


def optioned(quirks: Quirks | None = None, **options: Any) -> Any:
    """The body of a request with these options and one tool."""
    tools = (ToolSpec("f"), ToolSpec("g.h"))
    return sent(ModelRequest(messages=(UserMessage("x"),), tools=tools, options=ModelOptions(**options)), quirks)


def test_texts_are_joined() -> None:
    """A message of texts is one string, which every server takes; one without words says so."""
    assert user(TextPart("a"), TextPart(" "), TextPart("b")) == "a\n\nb"
    assert user(TextPart("")) == "(no text)"
    assert user(JSONPart({"a": [1]})) == '{"a":[1]}'


def test_other_parts_become_blocks() -> None:
    """Images by URL, audio and files have their blocks, beside the text."""
    pdf = b"%PDF-1.7"
    content = user(
        TextPart("see"),
        ImagePart(url="https://x.example/a.png", detail="low"),
        AudioPart(b"RIFF\x00\x00\x00\x00WAVE"),
        FilePart(pdf, filename="a.pdf"),
        FilePart(b"a,b", media_type="text/csv", filename="a.csv"),
    )
    assert content == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png", "detail": "low"}},
        {
            "type": "input_audio",
            "input_audio": {"data": base64.b64encode(b"RIFF\x00\x00\x00\x00WAVE").decode(), "format": "wav"},
        },
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + base64.b64encode(pdf).decode()},
        },
        {"type": "text", "text": "a.csv:\na,b"},
    ]


@pytest.mark.parametrize(
    "part",
    [
        AudioPart(b"fLaC", media_type="audio/flac"),
        FilePart(url="https://x.example/a.pdf"),
        FilePart(b"\x00\x01"),
        ImagePart(b"\x00\x01"),
        ImagePart(url="data:image/png;base64,%%%"),
    ],
)
def test_what_the_dialect_cannot_say_is_refused(part: Part) -> None:
    """A part that no server takes is InvalidRequest before anything is sent."""
    with pytest.raises(InvalidRequest):
        user(part)


def test_a_file_url_goes_where_it_is_known() -> None:
    """OpenRouter takes files by URL."""
    content = user(FilePart(url="https://x.example/a.pdf"), quirks=quirks_for("https://openrouter.ai/api/v1", "m"))
    assert content[0]["file"]["file_data"] == "https://x.example/a.pdf"


def test_options_in_the_dialect() -> None:
    """Every option has its member, and none that was not given is sent."""
    plain: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "reasoning_effort": "low"}
    body = optioned(**plain, stop=("a", "b"), metadata={"k": 1})
    assert body.items() >= plain.items()
    assert (body["stop"], body["metadata"]) == (["a", "b"], {"k": "1"})
    assert optioned().keys() == {"model", "messages", "stream", "stream_options", "tools"}


def test_metadata_only_where_answers_are_stored() -> None:
    """OpenAI refuses metadata of an answer that it does not store, and nothing is stored unless the caller says so."""
    assert "metadata" not in optioned(OPENAI, metadata={"k": 1})
    stored = replace(OPENAI, extra_body={"store": True})
    assert optioned(stored, metadata={"k": 1})["metadata"] == {"k": "1"}


def test_the_limit_has_the_servers_name() -> None:
    """OpenAI wants `max_completion_tokens`."""
    assert optioned(OPENAI, max_tokens=7)["max_completion_tokens"] == 7


def test_usage_is_asked_for_where_it_must_be() -> None:
    """`stream_options` is sent, but not to servers that send usage anyway and refuse the member."""
    assert optioned()["stream_options"] == {"include_usage": True}
    assert "stream_options" not in optioned(quirks_for("https://api.mistral.ai/v1", "m"))


def test_tool_choice_and_parallel_calls() -> None:
    """The three words go as they are, a tool's name as a function, an unknown name is refused."""
    assert optioned(tool_choice="required", parallel_tool_calls=False)["tool_choice"] == "required"
    assert optioned(parallel_tool_calls=False)["parallel_tool_calls"] is False
    assert optioned(tool_choice="f")["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    with pytest.raises(InvalidRequest):
        optioned(tool_choice="nobody")


def test_tools_are_functions_with_properties() -> None:
    """A schema without type or properties gets them, since OpenAI refuses it otherwise; no description, no member."""
    function = optioned()["tools"][0]["function"]
    assert function == {"name": "f", "parameters": {"properties": {}, "type": "object"}}
    untyped = ToolSpec("f", input_schema={"properties": {"a": {}}})
    (tool,) = sent(ModelRequest(messages=(UserMessage("x"),), tools=(untyped,)))["tools"]
    assert tool["function"]["parameters"] == {"type": "object", "properties": {"a": {}}}


def test_reasoning_budget_is_refused_but_where_it_can_be_said() -> None:
    """A bound that would not be kept is an error; OpenRouter takes it, instead of an effort."""
    with pytest.raises(InvalidRequest, match="reasoning_budget"):
        optioned(reasoning_budget=100)
    quirks = quirks_for("https://openrouter.ai/api/v1", "m")
    assert optioned(quirks, reasoning_budget=100, reasoning_effort="low")["reasoning"] == {"max_tokens": 100}
    assert "reasoning_summary" not in optioned(reasoning_summary="auto")


def test_response_schema() -> None:
    """A schema becomes `response_format`, held to strictly where schema and server allow; some servers take none."""
    closed = {
        "type": "object",
        "title": "My Answer",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "required": ["a"],
        "additionalProperties": False,
    }
    loose = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
    asked = optioned(OPENAI, response_schema=closed)["response_format"]
    assert asked == {"type": "json_schema", "json_schema": {"name": "My_Answer", "schema": closed, "strict": True}}
    assert "strict" not in optioned(OPENAI, response_schema=loose)["response_format"]["json_schema"]
    assert "strict" not in optioned(response_schema=closed)["response_format"]["json_schema"]
    for host in ("https://api.deepseek.com", "https://api.groq.com/openai/v1"):
        with pytest.raises(InvalidRequest, match="response_schema"):
            optioned(quirks_for(host, "m"), response_schema=closed)


@pytest.mark.parametrize("body", [chat_body, responses_body])
def test_a_schema_beside_tools(body: Callable[..., bytes]) -> None:
    """Ollama would call no tool where there is a schema: it gets one of the two, and the adapter says so of itself."""
    url = "http://localhost:11434/v1"
    quirks, options = quirks_for(url, "qwen3"), ModelOptions(response_schema={"type": "object"})
    assert b"json_schema" in body("qwen3", ModelRequest(options=options), quirks, "")
    with pytest.raises(InvalidRequest, match="beside tools"):
        body("qwen3", ModelRequest(tools=(ToolSpec("look"),), options=options), quirks, "")
    assert OpenAIChat("qwen3", base_url=url).capabilities == {"images"}


def test_extra_body_is_added_last() -> None:
    """Members that only one server knows come from the quirks."""
    assert optioned(Quirks(extra_body={"thinking": {"type": "disabled"}}))["thinking"] == {"type": "disabled"}


def test_what_json_cannot_say_is_refused() -> None:
    """NaN in a schema is InvalidRequest, not a crash and not a 400."""
    with pytest.raises(InvalidRequest):
        optioned(response_schema={"minimum": float("nan")})


def test_foreign_reasoning_is_never_text() -> None:
    """Reasoning that cannot go back is dropped, and an answer of nothing else with it."""
    messages = (UserMessage("x"), AssistantMessage((ReasoningPart("secret thought"),)), UserMessage("y"))
    assert sent(ModelRequest(messages=messages))["messages"] == [
        {"role": "user", "content": "x"},
        {"role": "user", "content": "y"},
    ]


def test_results_keep_their_words() -> None:
    """A result without parts is told in the words that say whether the tool ran; JSON and text are joined."""
    batch = AssistantMessage((), (ToolCall("a", "f"), ToolCall("b", "f")))
    lost = ToolMessage(ToolResult("a", "timed_out", error="no answer"))
    mixed = ToolMessage(ToolResult("b", "ok", (TextPart("rows"), JSONPart([1]))))
    messages = sent(ModelRequest(messages=(UserMessage("x"), batch, lost, mixed)))["messages"]
    assert "effect is unknown" in messages[2]["content"]
    assert messages[3]["content"] == "rows\n[1]"


def test_a_result_without_its_call_is_refused() -> None:
    """Results that follow no call, or are more than the calls, are InvalidRequest."""
    result = ToolMessage(ToolResult("a", "ok", "x"))
    for messages in ((result,), (UserMessage("x"), AssistantMessage((), (ToolCall("a", "f"),)), result, result)):
        with pytest.raises(InvalidRequest):
            sent(ModelRequest(messages=messages))


def test_the_same_history_gives_the_same_bytes() -> None:
    """A longer history begins with the bytes of the shorter, so prompt caches hold."""
    calls = (ToolCall("", "f"), ToolCall("x y", "g"))
    results = (ToolMessage(ToolResult("", "ok", "1")), ToolMessage(ToolResult("x y", "ok", "2")))
    history: tuple[Message, ...] = (UserMessage("a"), AssistantMessage("b", calls), *results)
    short = chat_body("m", ModelRequest("s", history), OPENAI, "")
    longer = chat_body("m", ModelRequest("s", (*history, UserMessage("c"))), OPENAI, "")
    assert short == chat_body("m", ModelRequest("s", history), OPENAI, "")
    end = short.index(b'],"stream"')
    assert longer[:end] == short[:end]


def test_an_answers_other_parts_are_named_or_left_out() -> None:
    """In an answer, JSON is text and an attachment is said to be left out: the dialect has no place for it there."""
    answer = AssistantMessage((JSONPart([1]), ImagePart(url="https://x.example/a.png")))
    messages = sent(ModelRequest(messages=(UserMessage("x"), answer)))["messages"]
    assert messages[1]["content"] == "[1](an attachment was left out)"


@pytest.mark.parametrize("signature", ["", "no json", "{}"])
def test_a_signature_that_holds_no_details_is_not_sent(signature: str) -> None:
    """Reasoning whose signature is unreadable goes back as its text, if it has one."""
    quirks = quirks_for("https://openrouter.ai/api/v1", "m")
    for text, members in (("hm", {"reasoning": "hm"}), ("", {})):
        part = ReasoningPart(text, signature, "openai-chat:m")
        messages = (UserMessage((TextPart("x"), part)), AssistantMessage((part, TextPart("y"))))
        assert sent(ModelRequest(messages=messages), quirks)["messages"] == [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "y"} | members,
        ]


def test_a_strict_schema_may_be_nested_and_refer() -> None:
    """Strictness is decided all the way down."""
    inner: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    outer = inner | {
        "$defs": {"a": inner},
        "properties": {"x": {"anyOf": [inner, {"$ref": "#/$defs/a"}]}},
        "required": ["x"],
    }
    assert optioned(OPENAI, response_schema=outer)["response_format"]["json_schema"]["strict"] is True
    loose = outer | {"$defs": {"a": inner | {"additionalProperties": True}}}
    assert "strict" not in optioned(OPENAI, response_schema=loose)["response_format"]["json_schema"]
    assert "strict" not in optioned(OPENAI, response_schema=outer | {"items": True})["response_format"]["json_schema"]


def test_ids_are_legal_at_a_host_that_is_not_known() -> None:
    """What no server takes as an id is replaced, each call's by one of its own; usual ids go as they came."""
    odd = ("", " ", "a b", "ü", "x" * 65, "a\nb", 'a"b', "", "x" * 64, "x" * 64, "functions.look:0", "call_1")
    batch = AssistantMessage((), tuple(ToolCall(each, "f") for each in odd))
    results = tuple(ToolMessage(ToolResult(each, "ok", "x")) for each in odd)
    messages = sent(ModelRequest(messages=(UserMessage("x"), batch, *results)), quirks_for("https://h.example/v1", "m"))
    ids = [each["id"] for each in messages["messages"][1]["tool_calls"]]
    assert [each["tool_call_id"] for each in messages["messages"][2:]] == ids
    assert len(set(ids)) == len(odd)
    assert all(re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", each) for each in ids)
    assert (ids[8], *ids[10:]) == ("x" * 64, "functions.look:0", "call_1")


def test_an_answer_of_calls_alone_has_no_text() -> None:
    """Its content is null, or an empty text for servers that take no null."""
    history = (UserMessage("hi"), AssistantMessage("", [ToolCall("c", "f")]), ToolMessage(ToolResult("c", "ok", "1")))
    told = [sent(ModelRequest(messages=history), Quirks(null_content=null)) for null in (True, False)]
    assert [each["messages"][1]["content"] for each in told] == [None, ""]
