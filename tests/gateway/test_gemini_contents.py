"""The history in Gemini's dialect: roles, results, signatures at their places, and that all of it can be sent."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gotato_gateway import Gemini, Quirks
from gotato_gateway._gemini_request import gemini_body
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    AssistantMessage,
    AudioPart,
    ImagePart,
    InvalidRequest,
    JSONPart,
    Message,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    collect,
)
from gotato_testkit import strategies as gst

from .answers import HI, local
from .cases import load, pieces_in
from .recordings import COPIED, Recording
from .server import Reply, Server
from .transcripts import PNG, transcripts

ORIGIN = "gemini:gemini"
OLD, NEW = (quirks_for("https://h.example", model) for model in ("gemini-2.5-flash", "gemini-3-pro-preview"))
NONE = "skip_thought_signature_validator"
LARGE = '{"a": ' + "9" * 400 + ".5}"
"""A number that no float holds."""


def contents(*messages: Message, quirks: Quirks = OLD, origin: str = ORIGIN) -> list[dict[str, Any]]:
    """The contents of a request."""
    sent: list[dict[str, Any]] = json.loads(gemini_body("m", ModelRequest("", messages), quirks, origin))["contents"]
    return sent


def answered(*parts: Any, calls: tuple[ToolCall, ...] = (), quirks: Quirks = OLD) -> list[dict[str, Any]]:
    """The parts of an answer that is sent back."""
    results = [ToolMessage(ToolResult(call.id, "ok", "x")) for call in calls]
    sent = contents(UserMessage("x"), AssistantMessage(parts, calls), *results, quirks=quirks)
    return next((content["parts"] for content in sent if content["role"] == "model"), [])


def streamed(reply: Reply) -> AssistantMessage:
    """The message that the kernel makes of a stream."""
    with Server(reply) as server:
        return collect(local(server.url, Gemini), HI)


def test_44_signatures_go_back_to_their_places(shared: Path) -> None:
    """What came on text, on a call and on an empty last part goes back there, thoughts as thoughts."""
    message = streamed(Reply(pieces_in(load(shared, "44")["input"])))
    (content,) = [each for each in contents(UserMessage("x"), message, origin="gemini:m") if each["role"] == "model"]
    assert content["parts"] == [
        {"text": "I should look.", "thought": True},
        {"text": "Looking", "thoughtSignature": "U0lHMQ=="},
        {"functionCall": {"name": "list_dir", "args": {"path": "."}}, "thoughtSignature": "U0lHMg=="},
        {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}},
        {"text": "", "thoughtSignature": "U0lHMw=="},
    ]


@pytest.mark.parametrize("recording", [each for each in COPIED if each.dialect == "gemini"], ids=str)
def test_a_recorded_answer_goes_back_as_it_came(recording: Recording) -> None:
    """Each signature goes back on the words or the call that it came on; those of the server's own tools where it may
    use them again."""
    wanted = [part for part in _parts_of(recording) if "thoughtSignature" in part]
    quirks = Quirks(extra_body={"tools": []})
    sent = contents(UserMessage("x"), streamed(recording.reply()), quirks=quirks, origin="gemini:m")
    found = [part for content in sent for part in content["parts"] if "thoughtSignature" in part]
    for part in (*wanted, *found):
        part.get("functionCall", {}).pop("id", None)
    assert found == wanted
    plain = contents(UserMessage("x"), streamed(recording.reply()), origin="gemini:m")
    assert not any(part.keys() & {"toolCall", "toolResponse"} for content in plain for part in content["parts"])


def _parts_of(recording: Recording) -> list[dict[str, Any]]:
    events = [json.loads(line[5:]) for line in recording.body.decode().splitlines() if line.startswith("data:")]
    return [part for event in events for part in event["candidates"][0]["content"].get("parts", [])]


def test_signed_text_keeps_its_borders() -> None:
    """A signature between two pieces of text is the first one's; one without text before it stands alone."""
    signed = ReasoningPart("", "QQ==", ORIGIN)
    assert answered(TextPart("a"), signed, TextPart("b")) == [{"text": "a", "thoughtSignature": "QQ=="}, {"text": "b"}]
    assert answered(signed, TextPart("b")) == [{"text": "", "thoughtSignature": "QQ=="}, {"text": "b"}]
    assert answered(TextPart("a"), signed, signed)[1:] == [{"text": "", "thoughtSignature": "QQ=="}]
    assert answered(ReasoningPart("t", "QQ==", ORIGIN), TextPart("b"))[0] == {
        "text": "t",
        "thought": True,
        "thoughtSignature": "QQ==",
    }


def test_reasoning_of_other_origins_is_never_text() -> None:
    """It is dropped, with its signatures, and an answer of nothing else with it."""
    foreign = ReasoningPart("secret thought", "U2VjcmV0", "anthropic:claude")
    call = ToolCall("c", "f", signature="U2VjcmV0", origin="openai-chat:gpt")
    assert answered(foreign, TextPart("a"), calls=(call,)) == [
        {"text": "a"},
        {"functionCall": {"name": "f", "args": {}}},
    ]
    assert answered(foreign) == answered(ReasoningPart("own", "", ORIGIN)) == []
    assert "thought" not in json.dumps(contents(UserMessage((foreign, TextPart("x")))))


def test_calls_of_other_origins_can_be_sent_to_models_that_want_signatures() -> None:
    """The first call of an answer without a signature of its own gets the documented word; own ones stay."""
    own, foreign = (
        ToolCall("a", "f", signature="QQ==", origin=ORIGIN),
        ToolCall("b", "g", signature="QQ==", origin="x:y"),
    )
    assert [part.get("thoughtSignature") for part in answered(calls=(foreign, foreign), quirks=NEW)] == [NONE, None]
    assert [part.get("thoughtSignature") for part in answered(calls=(own, foreign), quirks=NEW)] == ["QQ==", None]
    assert [part.get("thoughtSignature") for part in answered(calls=(foreign, own), quirks=OLD)] == [None, "QQ=="]


def test_neighbours_of_one_role_are_one_content() -> None:
    """Users and answers in a row are merged, but never with the results of calls."""
    call = AssistantMessage("b", (ToolCall("c", "f"),))
    result = ToolMessage(ToolResult("c", "ok", "x"))
    sent = contents(
        UserMessage("1"), UserMessage("2"), AssistantMessage("a"), call, result, UserMessage("3"), UserMessage("4")
    )
    assert [(each["role"], len(each["parts"])) for each in sent] == [
        ("user", 2),
        ("model", 3),
        ("user", 1),
        ("user", 2),
    ]
    assert sent[2]["parts"][0].keys() == {"functionResponse"}


@pytest.mark.parametrize("messages", [(), (AssistantMessage(()),), (AssistantMessage("a"),)])
def test_a_history_begins_with_a_user(messages: tuple[Message, ...]) -> None:
    """Where none has spoken yet, one without words stands there: the API wants contents, and a user's first."""
    assert contents(*messages)[0] == {"role": "user", "parts": [{"text": "(no text)"}]}


def test_results_say_what_became_of_the_call() -> None:
    """What a tool gave is its output, all else an error in the words that say whether it ran; JSON is text."""
    calls = tuple(ToolCall(each, "f") for each in "abcd")
    results = (
        ToolResult("a", "ok", (TextPart("rows"), JSONPart([1]))),
        ToolResult("b", "timed_out", error="no answer"),
        ToolResult("c", "pending", "later"),
        ToolResult("d", "failed", "boom"),
    )
    sent = contents(UserMessage("x"), AssistantMessage((), calls), *map(ToolMessage, results))
    told = [part["functionResponse"]["response"] for part in sent[2]["parts"]]
    assert told[0] == {"output": "rows\n[1]"}
    assert "effect is unknown" in told[1]["error"]
    assert told[2:] == [{"output": "later"}, {"error": "boom"}]


def test_results_are_paired_by_key() -> None:
    """Results in another order than the calls are sent in the order of the calls; orphans are refused."""
    batch = AssistantMessage((), (ToolCall("a", "f"), ToolCall("b", "g")), id="m1")
    late = ToolMessage(ToolResult("b", "ok", "second", key="m1:1"))
    early = ToolMessage(ToolResult("a", "ok", "first", key="m1:0"))
    told = [part["functionResponse"] for part in contents(UserMessage("x"), batch, late, early)[2]["parts"]]
    assert [(each["name"], each["response"]["output"]) for each in told] == [("f", "first"), ("g", "second")]
    for messages in ((early,), (UserMessage("x"), batch, late, early, early)):
        with pytest.raises(InvalidRequest):
            contents(*messages)


def test_media_that_a_result_cannot_hold_follow_it() -> None:
    """Sound and what is given by URL come in a content of their own, with the tool's name, also for new models."""
    call = AssistantMessage((), (ToolCall("a", "my tool"),))
    parts = (ImagePart(PNG), ImagePart(url="https://x.example/a.png"), AudioPart(b"ID3"))
    sent = contents(UserMessage("x"), call, ToolMessage(ToolResult("a", "ok", parts)), quirks=NEW)
    response = sent[2]["parts"][0]["functionResponse"]
    assert [part["inlineData"]["mimeType"] for part in response["parts"]] == ["image/png"]
    assert response["response"] == {"output": "(see attachment)"}
    assert [list(part) for part in sent[3]["parts"]] == [["text"], ["fileData"], ["inlineData"]]
    assert sent[3]["parts"][0]["text"].startswith("From tool my_tool_")


def test_an_answers_other_parts_are_named_or_left_out() -> None:
    """In an answer, JSON is text, blank text is nothing, and an attachment is said to be left out."""
    parts = answered(TextPart(" "), JSONPart([1]), ImagePart(url="https://x.example/a.png"))
    assert parts == [{"text": "[1]"}, {"text": "(an attachment was left out)"}]


@pytest.mark.parametrize(
    "raw",
    [LARGE, "", "null", "[1]", '"{}"', '{"a": NaN}', '{"a": 1e999}', '{"a"', '{"a":' * 100_000 + "1" + "}" * 100_000],
)
def test_arguments_that_are_no_object_go_back_as_an_empty_one(raw: str) -> None:
    """Whatever a model once wrote, its turn can be sent again; nothing is repaired."""
    assert answered(calls=(ToolCall("c", "f", raw),)) == [{"functionCall": {"name": "f", "args": {}}}]


def test_74_lone_surrogates() -> None:
    """Half a character becomes U+FFFD in texts, arguments and their escapes; whole ones survive."""
    call = ToolCall("call_1", "cat", '{"path": "x\udcff.txt", "other": "\\udcff", "\\ud83d\\ude48": 1}')
    result = ToolMessage(ToolResult("call_1", "ok", "a\ud83d b \U0001f648"))
    sent = contents(UserMessage("\udc00"), AssistantMessage((), (call,)), result)
    assert sent[0]["parts"] == [{"text": "\ufffd"}]
    assert sent[1]["parts"][0]["functionCall"]["args"] == {"path": "x\ufffd.txt", "other": "\ufffd", "\U0001f648": 1}
    assert sent[2]["parts"][0]["functionResponse"]["response"]["output"] == "a\ufffd b \U0001f648"


@pytest.mark.parametrize("signature", ["{", "{}", '{"a": NaN}'])
def test_a_damaged_part_of_the_server_is_no_harm(signature: str) -> None:
    """What should be a part and is none is left out."""
    part = ReasoningPart("", signature, ORIGIN, redacted=True)
    assert answered(part, TextPart("a"), quirks=Quirks(extra_body={"tools": []})) == [{"text": "a"}]


signed_reasoning = st.builds(
    ReasoningPart, gst.texts(), st.sampled_from(["", "QQ==", "{}"]), st.sampled_from([ORIGIN, "x:y"]), st.booleans()
)


@settings(max_examples=30)
@given(transcripts(signed_reasoning), st.sampled_from([OLD, NEW, Quirks(images=False)]))
def test_any_history_can_be_sent(history: list[Message], quirks: Quirks) -> None:
    """Every request is strict UTF-8 JSON with results for all calls and no empty content, or a clear refusal."""
    try:
        body = gemini_body("m", ModelRequest("s", history), quirks, ORIGIN)
    except InvalidRequest as refused:
        event(str(refused))
        return
    sent = json.loads(body.decode())["contents"]
    assert body == gemini_body("m", ModelRequest("s", history), quirks, ORIGIN)
    assert sent[0]["role"] == "user"
    open_calls = 0
    for content in sent:
        kinds = [next(iter(part.keys() - {"thought", "thoughtSignature"})) for part in content["parts"]]
        assert kinds
        results = kinds.count("functionResponse")
        assert results in (0, len(kinds))
        assert results == open_calls
        open_calls = kinds.count("functionCall")
        for part in content["parts"]:
            assert part.get("text", "x") or part.get("thoughtSignature")
            assert base64.b64decode(part.get("thoughtSignature", "").replace("_", "/")) is not None


def test_the_same_history_gives_the_same_bytes() -> None:
    """A longer history begins with the bytes of the shorter, so prompt caches hold."""
    calls = (ToolCall("", "f"), ToolCall("x y", "g"))
    results = (ToolMessage(ToolResult("", "ok", "1")), ToolMessage(ToolResult("x y", "ok", "2")))
    history: tuple[Message, ...] = (UserMessage("a"), AssistantMessage("b", calls), *results)
    short = gemini_body("m", ModelRequest("s", history), NEW, "")
    longer = gemini_body("m", ModelRequest("s", (*history, UserMessage("c"))), NEW, "")
    assert short == gemini_body("m", ModelRequest("s", history), NEW, "")
    assert longer.startswith(short.removesuffix(b"]}"))
