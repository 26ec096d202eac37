"""How a run is shown: as text for people, as one JSON object, or as a line of JSON for each event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from gotato_py import (
    AssistantMessage,
    Event,
    Message,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ModelRetry,
    RunResult,
    ToolCall,
    ToolExecutionStart,
    ToolResult,
    ToolResultCommitted,
    Usage,
    WaitingCall,
    record_to_dict,
)

from ._output import Output

Result = RunResult[None]


class Report(Protocol):
    """One way to show a run."""

    def show(self, event: Event) -> None:
        """Called for each event as it comes. May raise `CannotWrite`, which ends the run."""
        ...

    def finish(self, result: Result) -> None:
        """Called once, after the last event."""
        ...


def result_dict(result: Result) -> dict[str, Any]:
    """The result as plain JSON types; `waiting` is there where calls wait."""
    metrics, error = result.metrics, result.error
    told: dict[str, Any] = {
        "run_id": result.run_id,
        "status": result.status.value,
        "text": result.text,
        "usage": usage_dict(result.usage),
        "metrics": {
            "turns": metrics.turns,
            "tool_calls": metrics.tool_calls,
            "elapsed_s": metrics.elapsed_s,
            "model_s": metrics.model_s,
            "tool_s": metrics.tool_s,
        },
        "error": None if error is None else {"code": error.code.value, "message": str(error)},
    }
    if result.waiting:
        told["waiting"] = [_waiting_dict(call) for call in result.waiting]
    return told


def _waiting_dict(call: WaitingCall) -> dict[str, Any]:
    arguments: dict[str, Any] = record_to_dict(call).get("arguments", {})
    return {"key": call.key, "name": call.name, "arguments": arguments, "question": call.question}


def usage_dict(usage: Usage) -> dict[str, int]:
    """Tokens as plain JSON types."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


class AsJson:
    """One object, at the end."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def show(self, event: Event) -> None:
        pass

    def finish(self, result: Result) -> None:
        self._output.json_line(result_dict(result))


class AsEvents:
    """A line for each event, and one for the result."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def show(self, event: Event) -> None:
        self._output.json_line(event.to_dict())

    def finish(self, result: Result) -> None:
        self._output.json_line({"kind": "run_result", **result_dict(result)})


class AsText:
    """Text to stdout as it comes; a line for each call and each result to stderr."""

    def __init__(self, output: Output, before: Sequence[Message] = ()) -> None:
        """`before` are the messages that are there already: calls that waited among them may run now."""
        self._output = output
        last = next((each for each in reversed(before) if isinstance(each, AssistantMessage)), None)
        self._calls: dict[str, ToolCall] = {} if last is None else _keyed(last)

    def show(self, event: Event) -> None:
        match event:
            case MessageUpdate():
                self._output.text(event.text)
            case MessageEnd(message=AssistantMessage() as message):
                self._output.end_line()
                self._calls = _keyed(message)
            case MessageDiscarded():
                self._output.end_line()
                self._output.note("↺ that answer was cut off and does not count")
            case ModelRetry():
                reason = "" if event.error is None else f" ({event.error.message})"
                self._output.note(f"… asking the model again in {event.delay:.1f} s{reason}")
            case ToolExecutionStart():
                self._announce(event.key, event.name)
            case ToolResultCommitted():
                result = event.message.result
                self._announce(result.key, "?")  # a call that never started
                self._output.note(f"← {_result_words(result)}")
            case _:
                pass

    def finish(self, result: Result) -> None:
        self._output.end_line()

    def _announce(self, key: str, name: str) -> None:
        """Tells of a call once."""
        if key in self._calls:
            self._output.note(f"→ {_call_words(self._calls.pop(key))}")
        elif name != "?":
            self._output.note(f"→ {name}")


def _keyed(message: AssistantMessage) -> dict[str, ToolCall]:
    """The calls of the message, by their keys."""
    return {f"{message.id}:{index}": call for index, call in enumerate(message.tool_calls)}


def _call_words(call: ToolCall) -> str:
    """A call as it could be written: `weather(city="Oslo")`."""
    try:
        given: Any = json.loads(call.arguments or "{}")
        pairs = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]
    except (ValueError, AttributeError):  # no JSON, or no object: as the model sent it
        return f"{call.name}({call.arguments})"
    return f"{call.name}({', '.join(pairs)})"


def _result_words(result: ToolResult) -> str:
    text = result.error or result.text
    return f"{result.status.value}: {text}" if text else result.status.value
