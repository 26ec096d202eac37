"""Histories in Anthropic's dialect: answers, results, marks for the cache, and transcripts of any content."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gotato_gateway._anthropic_request import messages_body
from gotato_gateway._claude_models import claude_quirks
from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
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

from ..effort import costly
from .answers import tools
from .test_anthropic_request import CALL, ORIGIN, PNG, RESULT, conversation, roles, sent
from .transcripts import transcripts

LARGE = '{"a": ' + "9" * 400 + ".5}"
"""A number that no float holds."""


class TestHistory:
    """Answers, results and their order."""

    def test_own_reasoning_goes_back(self) -> None:
        """Signed thinking, thinking without words and redacted thinking go back as they came, in their places."""
        parts = (
            ReasoningPart("", "sig-a", ORIGIN),
            ReasoningPart("", "data", ORIGIN, redacted=True),
            ReasoningPart("Now.", "sig-b", ORIGIN),
            TextPart("Done."),
        )
        assert conversation(UserMessage("x"), AssistantMessage(parts), UserMessage("y"))["messages"][1]["content"] == [
            {"type": "thinking", "thinking": "", "signature": "sig-a"},
            {"type": "redacted_thinking", "data": "data"},
            {"type": "thinking", "thinking": "Now.", "signature": "sig-b"},
            {"type": "text", "text": "Done."},
        ]

    def test_thinking_of_models_that_sign_none(self) -> None:
        """DeepSeek's unsigned thinking goes back as it came; what came without any gets an empty block before calls."""
        url, origin = "https://api.deepseek.com/anthropic", "anthropic:deepseek"
        quirks = claude_quirks(url, "deepseek-v4-pro")
        history = (
            UserMessage("x"),
            AssistantMessage((ReasoningPart("hm", "", origin),), CALL.tool_calls),
            RESULT,
            CALL,
            RESULT,
        )

        def thinking(**options: Any) -> list[Any]:
            request = ModelRequest("", history, options=ModelOptions(**options))
            body = json.loads(messages_body("deepseek-v4-pro", request, quirks, origin))
            answers = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
            return [body.get("thinking"), *(content[0] for content in answers if content[0]["type"] == "thinking")]

        empty = {"type": "thinking", "thinking": "", "signature": ""}
        assert thinking() == [None, {**empty, "thinking": "hm"}, empty]
        assert thinking(reasoning_effort="none") == [{"type": "disabled"}]

    @pytest.mark.parametrize(
        "part", [ReasoningPart("hm", "s", "gemini:gemini"), ReasoningPart("hm", "", ORIGIN), ReasoningPart("hm", "s")]
    )
    def test_other_reasoning_is_dropped(self, part: ReasoningPart) -> None:
        """Reasoning of another origin, or without a signature, never gets into the request, as text neither."""
        body = conversation(UserMessage("x"), AssistantMessage((part, TextPart("y"))), UserMessage("z"))
        assert body["messages"][1]["content"] == [{"type": "text", "text": "y"}]

    def test_reasoning_at_the_end_of_an_answer_is_dropped(self) -> None:
        """A message may not end with thinking, so an answer of nothing else is left out."""
        lone = AssistantMessage((ReasoningPart("hm", "s", ORIGIN), TextPart(" ")))
        assert roles(conversation(UserMessage("x"), lone, UserMessage("y"))) == ["user"]

    def test_an_error_says_so(self) -> None:
        """A result that is none says so, and its words; one with a picture must not."""
        failed = ToolMessage(ToolResult("toolu_1", "failed", error="ValueError: no"))
        shown = ToolMessage(ToolResult("toolu_1", "failed", (TextPart("no"), ImagePart(PNG))))
        pending = ToolMessage(ToolResult("toolu_1", "pending", "wait"))
        blocks = [conversation(UserMessage("x"), CALL, each)["messages"][2]["content"][0] for each in (failed, shown)]
        assert blocks[0]["is_error"] is True
        assert "ValueError: no" in blocks[0]["content"][0]["text"]
        assert "is_error" not in blocks[1]
        assert "is_error" not in conversation(UserMessage("x"), CALL, pending)["messages"][2]["content"][0]

    def test_results_stand_first_in_the_order_of_the_calls(self) -> None:
        """Results are paired by key, and what the user says next follows them in the same message."""
        batch = AssistantMessage((), (ToolCall("a", "f"), ToolCall("a", "g")), id="m1")
        late = ToolMessage(ToolResult("a", "ok", "second", key="m1:1"))
        early = ToolMessage(ToolResult("a", "ok", "first", key="m1:0"))
        body = conversation(UserMessage("x"), batch, late, early, UserMessage("and?"))
        assert roles(body) == ["user", "assistant", "user"]
        first, second, said = body["messages"][2]["content"]
        assert [first["content"][0]["text"], second["content"][0]["text"]] == ["first", "second"]
        assert [block["id"] for block in body["messages"][1]["content"]] == [
            first["tool_use_id"],
            second["tool_use_id"],
        ]
        assert said == {"type": "text", "text": "and?"}

    def test_a_call_without_a_result_is_refused(self) -> None:
        """The server would refuse it for ever, so it is not sent."""
        with pytest.raises(InvalidRequest, match="no result"):
            conversation(UserMessage("x"), CALL)

    def test_a_history_that_begins_with_an_answer(self) -> None:
        """The server wants a user first; an empty history gets one too."""
        assert roles(conversation(AssistantMessage("hi"), UserMessage("x"))) == ["user", "assistant", "user"]
        assert roles(conversation()) == ["user"]

    @pytest.mark.parametrize("raw", ["", "[1]", '{"a": 1e999}', '{"a": NaN}', '{"a":', "[" * 5000 + "]" * 5000, LARGE])
    def test_arguments_that_are_no_object(self, raw: str) -> None:
        """The server wants an object; what is none was answered with an error, and goes as an empty one."""
        call = AssistantMessage((), (ToolCall("toolu_1", "f", raw),))
        assert conversation(UserMessage("x"), call, RESULT)["messages"][1]["content"][0]["input"] == {}


class TestCache:
    """Marks for the prompt cache."""

    HISTORY = (UserMessage("a"), AssistantMessage("b"), UserMessage("c"), CALL, RESULT, UserMessage("d"))

    def marked(self, *breakpoints: str | int, system: str = "S") -> list[str]:
        """Where the marks are: system, tools, or the text of the block."""
        request = ModelRequest(system, self.HISTORY, tools("f"), cache_breakpoints=breakpoints)
        body = sent(request)
        found = ["system"] if "cache_control" in json.dumps(body.get("system", "")) else []
        found += ["tools"] if "cache_control" in json.dumps(body["tools"]) else []
        blocks = [block for message in body["messages"] for block in message["content"]]
        return found + [block.get("text", block["type"]) for block in blocks if "cache_control" in block]

    def test_marks_stand_where_they_were_asked_for(self) -> None:
        """System, tools and messages each have a mark on their last block."""
        assert self.marked() == []
        assert self.marked("system", "tools", 4) == ["system", "tools", "tool_result"]
        assert self.marked(0, 5) == ["a", "d"]

    def test_four_at_most(self) -> None:
        """Of more than four marks those of system and tools stay, then the newest."""
        assert self.marked(0, 1, 2, 3, "tools", 4, "system") == ["system", "tools", "tool_use", "tool_result"]
        assert self.marked(0, 1, 2, 3, 4, 5) == ["c", "tool_use", "tool_result", "d"]

    def test_what_is_not_there_takes_no_mark(self) -> None:
        """A blank system prompt, an index behind the end and one place twice cost nothing."""
        assert self.marked("system", 0, 1, 2, 5, 5, 99, system=" ") == ["a", "b", "c", "d"]

    def test_a_message_that_is_left_out_marks_what_is_before_it(self) -> None:
        """The prefix up to an empty answer ends with the message before it."""
        messages = (UserMessage("a"), AssistantMessage(" "), UserMessage("b"))
        (message,) = sent(ModelRequest("", messages, cache_breakpoints=(1,)))["messages"]
        assert ["cache_control" in block for block in message["content"]] == [True, False]


def check_rules(body: Any) -> None:
    """What the server demands of every history ("Create a message", "Handle tool calls", "Thinking")."""
    turns = body["messages"]
    assert roles(body) == [("user", "assistant")[index % 2] for index in range(len(turns))]
    assert turns[-1]["role"] == "user"
    pending: list[str] = []
    for message in turns:
        blocks = message["content"]
        assert blocks
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results
        assert [block["tool_use_id"] for block in results] == pending
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")
        for block in [*blocks, *(inner for result in results for inner in result["content"])]:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "tool_use" or re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["id"])
            assert block["type"] != "tool_use" or re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["name"])
            assert block["type"] != "tool_result" or block["content"]
            assert block["type"] != "thinking" or block["signature"]
    assert not pending
    assert bool(body.get("tools")) is any(b["type"] == "tool_use" for m in turns for b in m["content"])
    assert json.dumps(body).count("cache_control") <= 4


own_thinking = st.builds(
    lambda thought, signature, redacted: ReasoningPart(thought, signature, ORIGIN, redacted),
    st.sampled_from(["", "hm"]),
    st.sampled_from(["", "sig"]),
    st.booleans(),
)


@costly(4)
@given(messages=transcripts(own_thinking), system=st.text(max_size=5), marks=st.lists(st.integers(0, 9), max_size=6))
def test_any_transcript_can_be_sent(messages: list[Message], system: str, marks: list[int]) -> None:
    """A transcript of any content keeps the server's rules; only a part that cannot be said at all is refused."""
    request = ModelRequest(system, messages, cache_breakpoints=("system", "tools", *marks))
    try:
        body = sent(request)
    except InvalidRequest:
        assert any(isinstance(part, AudioPart | FilePart | ImagePart) for message in messages for part in message.parts)
    else:
        check_rules(body)


@settings(max_examples=40)
@given(messages=transcripts(own_thinking, max_turns=2), data=st.data())
def test_a_longer_history_begins_with_the_same_blocks(messages: list[Message], data: st.DataObject) -> None:
    """What was sent for a history stays the beginning of what is sent for a longer one, for the prompt cache."""
    size = data.draw(st.integers(0, len(messages)))
    cut = size < len(messages) and isinstance(messages[size], ToolMessage)
    if cut or not size or isinstance(messages[size - 1], AssistantMessage):
        return  # a request ends with neither
    try:
        whole, part = (
            [block for message in conversation(*each)["messages"] for block in message["content"]]
            for each in (messages, messages[:size])
        )
    except InvalidRequest:
        return  # a part that cannot be said
    assert whole[: len(part)] == part
