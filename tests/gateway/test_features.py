"""The README's table of dialects and features says what the adapters do: it is made here, by asking them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from gotato_gateway import Adapter, AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from gotato_gateway._responses_reasoning import seal
from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidRequest,
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

README = Path(__file__).parents[2] / "README.md"
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels of a picture"
WAV = b"RIFF\x00\x00\x00\x00WAVE" + b"sound of a sound"
PDF = b"%PDF-1.7 pages of a file"
MODELS: Mapping[str, tuple[type[Adapter], str]] = {
    "`OpenAIChat`": (OpenAIChat, "gpt-5"),
    "`OpenAIResponses`": (OpenAIResponses, "gpt-5"),
    "`AnthropicMessages`": (AnthropicMessages, "claude-opus-4-6"),
    "`Gemini`": (Gemini, "gemini-3-flash"),
}
"""The columns; what a model takes beyond that is a matter of its quirks."""
SIGNATURES = {"`OpenAIResponses`": seal("rs_1", ["A thought."], "c2VhbGVk", "function_call", 0)}
"""What signs reasoning, where it is more than a word."""

TOOL = ToolSpec("look", "Looks.")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def said(*parts: Part) -> ModelRequest:
    """A request whose user says these parts."""
    return ModelRequest(messages=(UserMessage((TextPart("Look."), *parts)),), tools=(TOOL,))


def answered(*parts: Part, result: Part | None = None) -> ModelRequest:
    """A request in which a tool was called, and what it gave."""
    call = ToolCall("call_1", "look")
    given = ToolResult("call_1", "ok", (result or TextPart("a door"),))
    return ModelRequest(
        messages=(UserMessage("Look."), AssistantMessage(parts, (call,)), ToolMessage(given)), tools=(TOOL,)
    )


def asked(**options: object) -> ModelRequest:
    """A request with these options."""
    return ModelRequest(messages=(UserMessage("Look."),), tools=(TOOL,), options=ModelOptions(**options))  # type: ignore[arg-type]  # by name


PLAIN = asked()
MEDIA: Mapping[str, tuple[ModelRequest, bytes]] = {
    "images": (said(ImagePart(PNG)), PNG),
    "images in tool results": (answered(result=ImagePart(PNG)), PNG),
    "audio": (said(AudioPart(WAV)), WAV),
    "PDF files": (said(FilePart(PDF, filename="a.pdf")), PDF),
}
OPTIONS: Mapping[str, ModelRequest] = {
    "`temperature`": asked(temperature=0.5),
    "`max_tokens`": asked(max_tokens=99),
    "`stop`": asked(stop=("END",)),
    "`tool_choice`": asked(tool_choice="look"),
    "`parallel_tool_calls`": asked(parallel_tool_calls=False),
    "`response_schema`": asked(response_schema=SCHEMA),
    "`reasoning_effort`": asked(reasoning_effort="low"),
    "`reasoning_budget`": asked(reasoning_budget=2048),
    "`metadata`": asked(metadata={"user_id": "u-7"}),
}


def body(adapter: Adapter, request: ModelRequest) -> str:
    """What is sent; "" if it is refused before."""
    dialect = adapter._dialect
    try:
        return dialect.body("m", request, adapter.quirks, adapter._origin).decode()
    except InvalidRequest:
        return ""


def changed(adapter: Adapter, request: ModelRequest, plain: ModelRequest) -> str:
    """What becomes of what `request` says beyond `plain`."""
    sent = body(adapter, request)
    return "refused" if not sent else "left out" if sent == body(adapter, plain) else "yes"


def column(name: str) -> dict[str, str]:
    """What one adapter does."""
    kind, model = MODELS[name]
    adapter = kind(model, api_key="k-123456")
    found: dict[str, str] = {}
    for feature, (request, data) in MEDIA.items():
        sent = body(adapter, request)
        inside = base64.b64encode(data).decode() in sent
        found[feature] = "yes" if inside else "left out" if sent else "refused"
    thought = ReasoningPart("A thought.", signature=SIGNATURES.get(name, "c2lnbmVk"), origin=adapter._origin)
    found["own reasoning sent back"] = changed(adapter, answered(thought), answered())
    foreign = ReasoningPart("A thought.", signature="c2lnbmVk", origin="elsewhere:other")
    found["reasoning of others"] = changed(adapter, answered(foreign), answered())
    for feature, request in OPTIONS.items():
        found[feature] = changed(adapter, request, PLAIN)
    effort = OPTIONS["`reasoning_effort`"]
    shown = asked(reasoning_effort="low", reasoning_summary="auto")
    found["`reasoning_summary`, with an effort"] = changed(adapter, shown, effort)
    marked = ModelRequest(messages=PLAIN.messages, tools=PLAIN.tools, cache_breakpoints=("tools", 0))
    found["`cache_breakpoints`"] = changed(adapter, marked, PLAIN)
    return found


def table() -> list[str]:
    """The table as Markdown."""
    columns = {name: column(name) for name in MODELS}
    first = next(iter(columns.values()))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    return [*lines, *(f"| {row} | {' | '.join(each[row] for each in columns.values())} |" for row in first)]


@pytest.mark.parametrize("name", MODELS)
def test_reasoning_of_others_stays_where_it_is(name: str) -> None:
    """No adapter sends what another model has thought, and none shows it as text."""
    assert column(name)["reasoning of others"] == "left out"


def test_the_readme_has_this_table() -> None:
    """What the README says of each dialect is what its adapter does."""
    assert "\n".join(table()) in README.read_text("utf-8"), "put this into README.md:\n" + "\n".join(table())
