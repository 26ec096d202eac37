"""Models that answer without a script and without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from gotato_py import (
    AssistantMessage,
    Done,
    Message,
    ModelEvent,
    ModelRequest,
    Scope,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)

from ._planning import Plan, plan_calls
from .answers import split_words
from .outlines import call_words


class EchoModel:
    """Answers with the text of the last user message, word by word.

    >>> from gotato_py import Agent
    >>> Agent(EchoModel()).run("Hello?").text
    'Hello?'
    """

    name = "echo"

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Streams the answer."""
        text = _last_user_text(request.messages)
        yield from _told(text if text.strip() else "(no text)", request, scope, self.name, delay=0.0)


class DemoModel:
    """A model by a few rules: it understands simple questions, calls the tools that fit, and tells what came of it.

    It works with any tools: a clause that names a tool, and has what its parameters need, becomes a call; several
    clauses become several calls of one answer. The same request always gets the same answer. Words count as tokens,
    and `delay` is the time between two of them, in seconds.

    >>> from gotato_py import Agent
    >>> def weather(city: str) -> str:
    ...     return f"It is sunny in {city}"
    >>> Agent(DemoModel(), tools=[weather]).run("What is the weather in Oslo and Rome?").text
    'It is sunny in Oslo. It is sunny in Rome.'
    """

    name = "demo"

    def __init__(self, *, delay: float = 0.0) -> None:
        self._delay = delay

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Streams calls while the question is open, then the answer."""
        question, results = _question_and_results(request.messages)
        usable = () if request.options.tool_choice == "none" else request.tools
        plan = [] if results else plan_calls(question, usable)
        if plan:
            yield from _calls(plan, request, scope, self.name)
        else:
            text = _answer(results) if results else _at_a_loss(usable)
            yield from _told(text, request, scope, self.name, delay=self._delay)


def _last_user_text(messages: Sequence[Message]) -> str:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            return message.text
    return ""


def _question_and_results(messages: Sequence[Message]) -> tuple[str, list[tuple[ToolCall, ToolResult]]]:
    """The last user message, and what was called for it since: each call with its result, in call order."""
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            return message.text, list(zip(calls, results, strict=False))
        if isinstance(message, AssistantMessage):
            calls[:0] = message.tool_calls
        else:
            results.insert(0, message.result)
    return "", list(zip(calls, results, strict=False))


def _answer(results: list[tuple[ToolCall, ToolResult]]) -> str:
    return " ".join(_sentence(call, result) for call, result in results)


def _sentence(call: ToolCall, result: ToolResult) -> str:
    text = result.text.strip()
    if result.status != "ok":
        text = f"{call_words(call)} did not work: {result.error or text}"
    elif " " not in text:  # no sentence: say what it is
        text = f"{call_words(call)}: {text or 'done'}"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _at_a_loss(tools: Sequence[ToolSpec]) -> str:
    if not tools:
        return "I am a demo model: without tools I know nothing."
    known = ", ".join(f"{tool.name}({', '.join(_parameters(tool))})" for tool in tools)
    return f"I am a demo model, and no tool fits that. I know {known}."


def _parameters(tool: ToolSpec) -> list[str]:
    return list(cast("Mapping[str, object]", tool.input_schema.get("properties", {})))


def _calls(plan: Plan, request: ModelRequest, scope: Scope, name: str) -> Iterator[ModelEvent]:
    scope.check()
    for index, (tool, arguments) in enumerate(plan):
        text = json.dumps(arguments, ensure_ascii=False)
        yield ToolCallDelta(index, tool, text)
        yield ToolCallReady(ToolCall(f"call_{index + 1}", tool, text))
    yield Done(StopReason.TOOL_CALLS, _usage(request, len(plan)), model=name)


def _told(text: str, request: ModelRequest, scope: Scope, name: str, *, delay: float) -> Iterator[ModelEvent]:
    words = split_words(text)
    for word in words:
        if delay:
            scope.wait(delay)
        scope.check()
        yield TextDelta(word)
    yield Done(StopReason.END_TURN, _usage(request, len(words)), model=name)


def _usage(request: ModelRequest, output: int) -> Usage:
    given = sum(len(message.text.split()) for message in request.messages)
    return Usage(len(request.system.split()) + given, output)
