"""Requests in Anthropic's dialect: options, parts, marks for the cache, and histories of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gotato_gateway import Quirks
from gotato_gateway._anthropic_request import messages_body
from gotato_gateway._claude_models import claude_quirks
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
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)

from .answers import tools

ORIGIN = "anthropic:claude"
HOME = "https://api.anthropic.com"
OLD = claude_quirks(HOME, "claude-sonnet-4-5")
NEW = claude_quirks(HOME, "claude-opus-5-5")
PDF, PNG = b"%PDF-1.7", b"\x89PNG\r\n\x1a\n"
CALL = AssistantMessage((), (ToolCall("toolu_1", "f"),))
RESULT = ToolMessage(ToolResult("toolu_1", "ok", "done"))


def sent(request: ModelRequest, quirks: Quirks = OLD, origin: str = ORIGIN) -> Any:
    """The body of a request, parsed."""
    return json.loads(messages_body("m", request, quirks, origin))


def conversation(*messages: Message, quirks: Quirks = OLD, **options: Any) -> Any:
    """The body for these messages."""
    return sent(ModelRequest(messages=messages, options=ModelOptions(**options)), quirks)


def optioned(quirks: Quirks = OLD, declared: tuple[ToolSpec, ...] = (), **options: Any) -> Any:
    """The body for one message with these options."""
    return sent(ModelRequest(messages=(UserMessage("x"),), tools=declared, options=ModelOptions(**options)), quirks)


def user(*parts: Part, quirks: Quirks = OLD) -> Any:
    """The blocks of one user message."""
    (message,) = conversation(UserMessage(parts), quirks=quirks)["messages"]
    assert message["role"] == "user"
    return message["content"]


def roles(body: Any) -> list[str]:
    """Who speaks, in order."""
    return [message["role"] for message in body["messages"]]


class TestOptions:
    """What a caller may ask of the model."""

    def test_every_option_has_its_member(self) -> None:
        """Sampling, limits and stops arrive under the dialect's names, and none that was not given is sent."""
        body = optioned(temperature=0.5, top_p=0.9, max_tokens=7, stop=("END",), metadata={"user_id": "u", "x": 1})
        assert {name: body[name] for name in ("temperature", "top_p", "max_tokens", "stop_sequences", "metadata")} == {
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 7,
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u"},
        }
        assert optioned().keys() == {"model", "max_tokens", "messages", "stream"}

    def test_metadata_without_a_user_is_left_out(self) -> None:
        """Only `user_id` is known to the server, as text."""
        assert "metadata" not in optioned(metadata={"team": "a"})
        assert optioned(metadata={"user_id": 5})["metadata"] == {"user_id": "5"}

    def test_a_blank_stop_is_refused(self) -> None:
        """The server takes no stop sequence of white space."""
        with pytest.raises(InvalidRequest, match=r"options\.stop"):
            optioned(stop=("\n\n",))

    @pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_p": 0.5}])
    def test_sampling_is_refused_where_the_model_has_none(self, options: dict[str, Any]) -> None:
        """A newer model refuses sampling, so the request is not sent at all."""
        with pytest.raises(InvalidRequest, match="leave out options"):
            optioned(NEW, **options)

    @pytest.mark.parametrize(
        ("model", "tokens"),
        [
            ("claude-3-haiku-20240307", 4096),
            ("claude-3-5-sonnet-20241022", 8192),
            ("claude-sonnet-4-5", 32_000),
            ("claude-opus-5-5", 32_000),
            ("kimi-k2", 8192),
        ],
    )
    def test_a_limit_is_always_sent(self, model: str, tokens: int) -> None:
        """The dialect demands `max_tokens`; without one the model's default goes."""
        quirks = claude_quirks(HOME, model)
        assert optioned(quirks)["max_tokens"] == tokens
        assert optioned(quirks, max_tokens=9)["max_tokens"] == 9

    def test_what_only_the_server_knows(self) -> None:
        """`extra_body` is added to every request."""
        assert optioned(Quirks(extra_body={"service_tier": "auto"}))["service_tier"] == "auto"

    def test_nan_is_refused(self) -> None:
        """What JSON cannot say is an InvalidRequest."""
        with pytest.raises(InvalidRequest, match="JSON"):
            optioned(Quirks(extra_body={"x": float("nan")}))


class TestTools:
    """Tools and the choice among them."""

    def test_a_tool(self) -> None:
        """A tool has its name, description and schema; blank descriptions are left out."""
        spec = ToolSpec("f", "Does it.", {"properties": {"a": {"type": "string"}}, "type": "object"})
        first, second = optioned(declared=(spec, *tools("g")))["tools"]
        assert first == {"name": "f", "description": "Does it.", "input_schema": dict(spec.input_schema)}
        assert second == {"name": "g", "input_schema": {"type": "object"}}

    @pytest.mark.parametrize(
        ("choice", "parallel", "expected"),
        [
            (None, None, None),
            (None, True, None),
            (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
            ("auto", None, {"type": "auto"}),
            ("none", False, {"type": "none"}),
            ("required", None, {"type": "any"}),
            ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
            ("f", None, {"type": "tool", "name": "f"}),
        ],
    )
    def test_the_choice(self, choice: str | None, parallel: bool | None, expected: object) -> None:
        """Each choice has its word, and one call at a time is part of it."""
        body = optioned(declared=tools("f"), tool_choice=choice, parallel_tool_calls=parallel)
        assert body.get("tool_choice") == expected

    def test_a_choice_that_is_none(self) -> None:
        """The name of no tool, and a forced call that the model refuses, are errors before anything is sent."""
        with pytest.raises(InvalidRequest, match="neither auto"):
            optioned(declared=tools("f"), tool_choice="g")
        for choice in ("required", "f"):
            with pytest.raises(InvalidRequest, match="refuses a forced call"):
                optioned(NEW, tools("f"), tool_choice=choice)
        assert optioned(NEW, tools("f"), tool_choice="auto")["tool_choice"] == {"type": "auto"}


class TestParts:
    """Pictures, files and the like."""

    def test_pictures(self) -> None:
        """A picture goes as bytes or as a URL; bytes inside a URL are bytes."""
        by_url, held, inline = user(
            ImagePart(url="https://h/x.png"), ImagePart(PNG), ImagePart(url="data:image/png;base64,iVBORw0KGgo=")
        )
        assert by_url == {"type": "image", "source": {"type": "url", "url": "https://h/x.png"}}
        assert held == inline
        assert held["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

    def test_documents(self) -> None:
        """A PDF goes as bytes or as a URL, a text as text, both with their names; a picture in a file is a picture."""
        pdf, by_url, words, picture = user(
            FilePart(PDF, filename="a.pdf"),
            FilePart(url="https://h/a.pdf"),
            FilePart(b"x,y", media_type="text/csv", filename="t.csv"),
            FilePart(PNG),
        )
        source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="}
        assert pdf == {"type": "document", "source": source, "title": "a.pdf"}
        assert by_url == {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}}
        assert words["source"] == {"type": "text", "media_type": "text/plain", "data": "x,y"}
        assert picture["type"] == "image"

    @pytest.mark.parametrize(
        ("part", "said"),
        [
            (AudioPart(b"RIFF\0\0\0\0WAVE"), "transcript"),
            (FilePart(b"PK", media_type="application/zip"), "convert it"),
            (FilePart(b"\0\1"), "media_type"),
            (FilePart(url="https://h/a.csv", media_type="text/csv"), "pass its data"),
        ],
    )
    def test_what_cannot_be_said(self, part: Part, said: str) -> None:
        """Sound and other files are refused, with what to do."""
        with pytest.raises(InvalidRequest, match=said):
            user(part)

    def test_json_and_blank_texts(self) -> None:
        """JSON goes as text; blank texts are left out, and a message of nothing else says that it is one."""
        assert user(JSONPart({"a": 1}), TextPart(" ")) == [{"type": "text", "text": '{"a":1}'}]
        assert user(TextPart("\n")) == [{"type": "text", "text": "(no text)"}]
        assert user(FilePart(b" ", media_type="text/plain"))[0]["source"]["data"] == "(no text)"
