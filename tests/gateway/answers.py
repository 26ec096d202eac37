"""What an adapter answered, in a form that is easy to compare, and the cases' notation of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gotato_gateway import Adapter, OpenAIChat
from gotato_py import (
    Done,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    RateLimits,
    ReasoningDelta,
    ReasoningDone,
    Scope,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    ToolSpec,
    Usage,
    UsageUpdate,
    UserMessage,
)

HI = ModelRequest(messages=(UserMessage("hi"),))
STOP_REASONS = {"tool_use": "tool_calls"}


@dataclass
class Answer:
    """The events of one answer, and the error that ended it, if one did."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """The text, joined."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        """The reasoning, joined."""
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that are complete."""
        return [event.call for event in self.events if isinstance(event, ToolCallReady)]

    @property
    def done(self) -> Done:
        """The one Done, which is the last event."""
        (done,) = [event for event in self.events if isinstance(event, Done)]
        assert self.events[-1] is done
        return done


def gather(events: Iterable[ModelEvent]) -> Answer:
    """Everything that comes, up to the end or a `ModelError`."""
    answer = Answer()
    try:
        for event in events:
            answer.events.append(event)
    except ModelError as error:
        answer.error = error
    return answer


def ask(model: Model, request: ModelRequest = HI, scope: Scope | None = None) -> Answer:
    """One attempt."""
    return gather(model.stream(request, scope or Scope()))


def local(url: str, adapter: type[Adapter] = OpenAIChat, **options: Any) -> Adapter:
    """An adapter for a server of the tests, with a key."""
    settings: dict[str, Any] = {"api_key": "sk-test-0123456789", "base_url": url, **options}
    return adapter(settings.pop("model", "m"), **settings)


def tools(*names: str) -> tuple[ToolSpec, ...]:
    """Tools of these names."""
    return tuple(ToolSpec(name) for name in names)


def in_case_notation(answer: Answer) -> list[dict[str, Any]]:
    """The events as the cases write them: deltas joined, calls parsed, usage before done."""
    found: list[dict[str, Any]] = []
    for event in answer.events:
        found += _notation(event)
    joined: list[dict[str, Any]] = []
    for each in found:
        if joined and each["type"] in ("text_delta", "reasoning_delta") and joined[-1]["type"] == each["type"]:
            joined[-1]["text"] += each["text"]
        else:
            joined.append(each)
    return joined


def _notation(event: ModelEvent) -> list[dict[str, Any]]:
    match event:
        case TextDelta(text):
            return [{"type": "text_delta", "text": text}]
        case ReasoningDelta(text):
            return [{"type": "reasoning_delta", "text": text}]
        case ReasoningDone():
            return [{"type": "reasoning_done", "signature": event.signature or None}]
        case ToolCallReady(call):
            return [{"type": "tool_call", "id": call.id, "name": call.name, **_parsed(call.arguments)}]
        case Done():
            usage = [] if event.usage is None else [{"type": "usage", **_usage(event.usage)}]
            return [*usage, {"type": "done", "stop_reason": event.stop_reason.value}]
        case UsageUpdate(usage):
            return [{"type": "usage", **_usage(usage)}]
        case RateLimits() | ToolCallDelta():
            return []
        case _:
            raise AssertionError(f"unexpected {event}")


def _usage(usage: Usage) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    return {name: getattr(usage, name) for name in names}


def _parsed(arguments: str) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return {"arguments": json.loads(arguments, parse_constant=refuse)}
    except ValueError:
        return {"arguments": None, "arguments_raw": arguments, "invalid": "json"}


def expected_events(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A case's events without what has no place here: the raw finish word, the error, how the deltas were cut."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "error":
            continue
        kept = {key: value for key, value in event.items() if key != "raw"}
        if kept["type"] == "done":
            kept["stop_reason"] = STOP_REASONS.get(kept["stop_reason"], kept["stop_reason"])
        if found and kept["type"] in ("text_delta", "reasoning_delta") and found[-1]["type"] == kept["type"]:
            found[-1]["text"] += kept["text"]
        else:
            found.append(kept)
    return found
