"""How a run is shown: as text for people, as one JSON object, or as a line of JSON for each event."""

from __future__ import annotations

import json
from typing import Any, Protocol

from gotato_py import (
    AssistantMessage,
    Event,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ModelRetry,
    RunResult,
    ToolCall,
    ToolExecutionStart,
    ToolResult,
    ToolResultCommitted,
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
    """The result as plain JSON types."""
    usage, metrics, error = result.usage, result.metrics, result.error
    return {
        "run_id": result.run_id,
        "status": result.status.value,
        "text": result.text,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "metrics": {
            "turns": metrics.turns,
            "tool_calls": metrics.tool_calls,
            "elapsed_s": metrics.elapsed_s,
            "model_s": metrics.model_s,
            "tool_s": metrics.tool_s,
        },
        "error": None if error is None else {"code": error.code.value, "message": str(error)},
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

    def __init__(self, output: Output) -> None:
        self._output = output
        self._calls: dict[str, ToolCall] = {}

    def show(self, event: Event) -> None:
        match event:
            case MessageUpdate():
                self._output.text(event.text)
            case MessageEnd(message=AssistantMessage() as message):
                self._output.end_line()
                self._calls = {f"{message.id}:{index}": call for index, call in enumerate(message.tool_calls)}
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
