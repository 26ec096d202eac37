"""Transcripts at a glance."""

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from gotato_testkit import FakeTool, Raise, ScriptedModel, call, outline, say


def test_a_run_at_a_glance() -> None:
    """Each message is one line: who, text, calls with their ids, and how each call went."""
    tools = [FakeTool("weather", "Sunny"), FakeTool("time", Raise(ValueError("no clock")))]
    script = [say("I'll look.") + call("weather", city="Oslo", days=2) + call("time") + call("tide"), say("Sunny.")]
    agent = Agent(ScriptedModel(script), tools=tools)
    agent.run("Is it nice?")
    assert outline(agent.transcript.messages) == [
        "user: Is it nice?",
        """assistant: I'll look. [weather(city="Oslo", days=2) #call_1, time() #call_2, tide() #call_3]""",
        "tool weather: ok Sunny",
        "tool time: failed ValueError: no clock",
        'tool tide: not_run no tool "tide"; available: time, weather',
        "assistant: Sunny.",
    ]


def test_parts_that_are_no_text_stand_in_angle_brackets() -> None:
    """Thoughts, pictures, sound and files are named; JSON is written as it is."""
    parts: list[Part] = [
        ReasoningPart("hm"),
        ReasoningPart(redacted=True),
        ImagePart(data=b"x", media_type="image/png"),
        ImagePart(url="https://example.org/a"),
        AudioPart(b"x"),
        FilePart(data=b"x", filename="a.pdf"),
        FilePart(data=b"x"),
        JSONPart({"a": 1}),
        TextPart("end"),
    ]
    assert outline([AssistantMessage(parts)]) == [
        'assistant: <thought: hm> <thought> <image/png> <image> <audio> <a.pdf> <file> {"a": 1} end'
    ]


def test_an_unusual_end_is_told() -> None:
    """A cut or cancelled answer says so in round brackets."""
    assert outline([AssistantMessage("1. fi", stop_reason="max_tokens")]) == ["assistant: 1. fi (max_tokens)"]


def test_lines_are_single_and_bounded() -> None:
    """White space runs become one space, and a line is never longer than `width`."""
    (line,) = outline([UserMessage("a\n\n b\t" + "c" * 500)], width=20)
    assert line == "user: a b cccccccccc"[:19] + "…"
    assert len(line) == 20


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "7"])
def test_arguments_that_are_no_object_are_shown_as_they_came(arguments: str) -> None:
    """Malformed arguments stay visible."""
    (line,) = outline([AssistantMessage("", [ToolCall("c", "t", arguments)])])
    assert line == " ".join(f"assistant: [t({arguments}) #c]".split())


def test_results_find_their_call_by_key_first() -> None:
    """With the same provider id twice, the key tells which tool answered; an unknown call is `?`."""
    calls = [ToolCall("x", "inc"), ToolCall("x", "dec")]
    messages: list[Message] = [
        AssistantMessage("", calls, id="m1"),
        ToolMessage(ToolResult("x", "ok", "1", key="m1:0")),
        ToolMessage(ToolResult("x", "ok", "2", key="m1:1")),
        ToolMessage(ToolResult("y", "cancelled", error="stopped")),
    ]
    assert outline(messages)[1:] == ["tool inc: ok 1", "tool dec: ok 2", "tool ?: cancelled stopped"]


@pytest.mark.parametrize("given", ["x", 5, None, {"role": "user"}])
def test_what_is_no_message_is_refused(given: object) -> None:
    """Anything but messages is InvalidArgument by its type's name."""
    with pytest.raises(InvalidArgument, match=f"outline: messages must hold messages, not {type(given).__name__}"):
        outline([given])  # type: ignore[list-item]  # wrong on purpose
