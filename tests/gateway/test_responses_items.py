"""Histories in the responses dialect: what no wire case covers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gotato_gateway import Quirks
from gotato_gateway._responses_reasoning import seal, unseal
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
    ModelRequest,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

ORIGIN = "openai-responses:gpt"
OPENAI = quirks_for("https://api.openai.com/v1", "gpt-5")
WAV = b"RIFF\x00\x00\x00\x00WAVE"


def sent(request: ModelRequest, quirks: Quirks | None = None) -> Any:
    """The body of a request, parsed."""
    return json.loads(responses_body("gpt-5", request, quirks or OPENAI, ORIGIN))


def items(*messages: Message, quirks: Quirks | None = None) -> Any:
    """The input items of a history."""
    return sent(ModelRequest(messages=messages), quirks)["input"]


def user(*parts: Part, quirks: Quirks | None = None) -> Any:
    """The content of a user message."""
    return items(UserMessage(parts), quirks=quirks)[0]["content"]


def thought(sealed: str, follower: str = "message", call: int | None = None, **more: Any) -> ReasoningPart:
    """Reasoning of this dialect with that content, followed by such an item."""
    return ReasoningPart("", seal(f"rs_{sealed}", [], sealed, follower, call, **more), ORIGIN, True)


def kinds(found: list[dict[str, Any]]) -> list[str]:
    """What the items are: reasoning by its content, messages by their text, calls by their names."""
    return [
        each.get("encrypted_content") or each.get("content") or each.get("name") or f"-> {each['output']}"
        for each in found
    ]


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        *(("gpt-5", True), ("o3", True), ("gpt-5.4-codex", True), ("gpt-oss-120b", True), ("openai.gpt-5.6", True)),
        *(
            ("gpt-4o", False),
            ("gpt-4.1-mini", False),
            ("openai/gpt-4o", False),
            ("ft:gpt-4o:x", False),
            ("chatgpt-4o-latest", False),
        ),
        *(("gpt-5-chat-latest", False), ("gpt-5.1-chat", False), ("gpt-3.5-turbo", False)),
    ],
)
def test_a_model_that_never_thinks_is_not_asked_for_it(model: str, thinks: bool) -> None:
    """For a model without reasoning neither the member is sent, which it refuses, nor another's reasoning."""
    for url in ("https://api.openai.com/v1", "http://llm.internal/v1"):
        body = sent(
            ModelRequest(messages=(UserMessage("a"), AssistantMessage((thought("E"), TextPart("x"))))),
            quirks_for(url, model),
        )
        assert ("include" in body) is thinks
        assert kinds(body["input"]) == (["a", "E", "x"] if thinks else ["a", "x"])


def test_texts_are_joined() -> None:
    """A message of texts is one string; one without words says so."""
    assert user(TextPart("a"), TextPart(" "), TextPart("b")) == "a\n\nb"
    assert user(TextPart("")) == "(no text)"
    assert user(JSONPart({"a": [1]})) == '{"a":[1]}'


def test_other_parts_become_blocks() -> None:
    """Images, sound and files have their blocks, beside the text; a file may be given by URL."""
    pdf = b"%PDF-1.7"
    content = user(
        TextPart("see"),
        ImagePart(url="https://x.example/a.png", detail="low"),
        ImagePart(url="https://x.example/a.png", detail="ultra"),
        AudioPart(WAV),
        FilePart(pdf, filename="a.pdf"),
        FilePart(url="https://x.example/a.pdf", filename="a.pdf"),
        FilePart(b"a,b", media_type="text/csv", filename="a.csv"),
    )
    sound = {"data": base64.b64encode(WAV).decode(), "format": "wav"}
    held = "data:application/pdf;base64," + base64.b64encode(pdf).decode()
    assert content == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "low"},
        {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"},
        {"type": "input_audio", "input_audio": sound},
        {"type": "input_file", "filename": "a.pdf", "file_data": held},
        {"type": "input_file", "file_url": "https://x.example/a.pdf"},
        {"type": "input_text", "text": "a.csv:\na,b"},
    ]


@pytest.mark.parametrize(
    "part",
    [
        AudioPart(b"fLaC", media_type="audio/flac"),
        FilePart(b"\x00\x01"),
        ImagePart(b"\x00\x01"),
        ImagePart(url=""),
        FilePart(url=" "),
        ImagePart(url="data:image/png;base64,%%%"),
    ],
)
def test_what_the_dialect_cannot_say_is_refused(part: Part) -> None:
    """A part that no server takes is InvalidRequest before anything is sent."""
    with pytest.raises(InvalidRequest):
        user(part)


def test_results_keep_their_words_and_blocks() -> None:
    """A result is told in its own words; pictures and files stay in it, sound follows all results of the batch."""
    calls = tuple(ToolCall(f"c{number}", "f") for number in range(5))
    results = (
        ToolResult("c0", "timed_out", error="no answer"),
        ToolResult("c1", "ok", (TextPart("rows"), JSONPart([1]))),
        ToolResult("c2", "ok", (TextPart("see"), FilePart(b"%PDF-1.7"), TextPart(" "))),
        ToolResult("c3", "ok", (AudioPart(WAV),)),
        ToolResult("c4", "ok", (TextPart("hear"), AudioPart(WAV))),
    )
    found = items(UserMessage("x"), AssistantMessage((), calls), *map(ToolMessage, results))[6:]
    outputs = [each["output"] for each in found[:5]]
    assert "effect is unknown" in outputs[0]
    assert outputs[1] == "rows\n[1]"
    assert [block["type"] for block in outputs[2]] == ["input_text", "input_file"]
    assert outputs[3:] == ["(see attached audio)", "hear"]
    assert found[5]["role"] == "user"
    assert [block["type"] for block in found[5]["content"]] == ["input_text", "input_audio"] * 2
    assert len(found) == 6


def test_an_answer_is_said_as_it_was() -> None:
    """Texts of one answer are one message, also with JSON; an attachment is named, a blank answer left out."""
    answer = AssistantMessage((TextPart("a"), JSONPart([1]), ImagePart(url="https://x.example/a.png")))
    found = items(UserMessage("x"), answer, UserMessage("y"), AssistantMessage(" "), UserMessage("z"))
    assert kinds(found) == ["x", "a[1](an attachment was left out)", "y", "z"]


def test_reasoning_stands_before_what_it_led_to() -> None:
    """Each sealed item goes before the message or the call that followed it, whatever stood between them."""
    parts = (
        thought("A"),
        TextPart("t1"),
        thought("B", "function_call", 1),
        thought("C", "function_call", 0),
        TextPart("t2"),
    )
    calls = (ToolCall("c0", "f"), ToolCall("c1", "g"))
    results = [ToolMessage(ToolResult(call.id, "ok", "1")) for call in calls]
    found = items(UserMessage("x"), AssistantMessage(parts, calls), *results)
    assert kinds(found) == ["x", "A", "t1t2", "C", "f", "B", "g", "-> 1", "-> 1"]


@pytest.mark.parametrize(
    "parts",
    [
        (thought("A", ""), TextPart("t")),
        (thought("A", "web_search_call"), TextPart("t")),
        (thought("A", "function_call", 3), TextPart("t")),
        (TextPart("t"), thought("A", "reasoning"), thought("B", "web_search_call")),
        (TextPart("t"), thought("A")),
        (thought("A", "reasoning"), TextPart("t")),
        (ReasoningPart("secret", seal("rs", [], "E", "message"), "openai-responses:o"), TextPart("t")),
        (ReasoningPart("secret", seal("rs", [], "E", "message"), "anthropic:claude"), TextPart("t")),
        (ReasoningPart("secret", "", ORIGIN), TextPart("t")),
        (ReasoningPart("secret", "no json", ORIGIN), TextPart("t")),
        (ReasoningPart("secret", "[1]", ORIGIN), TextPart("t")),
        (ReasoningPart("secret", '{"id": "rs", "encrypted_content": null}', ORIGIN), TextPart("t")),
        (ReasoningPart("secret", '{"encrypted_content": "E"}', ORIGIN), TextPart("t")),
    ],
)
def test_reasoning_that_cannot_go_back_is_dropped(parts: tuple[Part, ...]) -> None:
    """What has no seal, another origin or not its follower behind it is left out, and never turned into text."""
    found = items(UserMessage("x"), AssistantMessage(parts))
    assert kinds(found) == ["x", "t"]
    assert "secret" not in json.dumps(found)


def test_consecutive_reasoning_stays_together() -> None:
    """Reasoning that led to more reasoning goes back with it."""
    answer = AssistantMessage((thought("A", "reasoning"), thought("B"), TextPart("t")))
    assert kinds(items(UserMessage("x"), answer)) == ["x", "A", "B", "t"]
    parts = (thought("A", "reasoning"), thought("B", "function_call", 0), TextPart("t"))
    found = items(AssistantMessage(parts, (ToolCall("c", "f"),)), ToolMessage(ToolResult("c", "ok", "1")))
    assert kinds(found) == ["t", "A", "B", "f", "-> 1"]


def test_a_phase_goes_back_with_its_message() -> None:
    """What a message was, commentary or the final answer, is said again where reasoning remembers it."""
    answer = AssistantMessage((thought("A", phase="commentary"), TextPart("t")), (ToolCall("c", "f"),))
    found = items(UserMessage("x"), answer, ToolMessage(ToolResult("c", "ok", "1")))
    assert found[2] == {"role": "assistant", "content": "t", "phase": "commentary"}


def test_a_seal_is_read_as_it_was_written() -> None:
    """A signature gives back its item, with the parts of its summary, and what followed it."""
    sealed = unseal(ReasoningPart("joined", seal("rs_1", ["a", "b"], "E", "function_call", 2), ORIGIN))
    assert sealed is not None
    assert sealed.item["summary"] == [{"type": "summary_text", "text": each} for each in "ab"]
    assert (sealed.item["id"], sealed.follower, sealed.call, sealed.phase) == ("rs_1", "function_call", 2, "")


def test_the_same_history_gives_the_same_bytes() -> None:
    """A longer history begins with the bytes of the shorter, so prompt caches hold."""
    calls = (ToolCall("", "f"), ToolCall("x y", "g"))
    results = (ToolMessage(ToolResult("", "ok", "1")), ToolMessage(ToolResult("x y", "ok", "2")))
    parts = (thought("A"), TextPart("b"), thought("B", "function_call", 0))
    history: tuple[Message, ...] = (UserMessage("a"), AssistantMessage(parts, calls), *results)
    short = responses_body("m", ModelRequest("s", history), OPENAI, ORIGIN)
    longer = responses_body("m", ModelRequest("s", (*history, UserMessage("c"))), OPENAI, ORIGIN)
    assert short == responses_body("m", ModelRequest("s", history), OPENAI, ORIGIN)
    end = short.index(b'],"stream"')
    assert longer[:end] == short[:end]
