"""What the tests of recordings share: a request, a recording of it, what stands in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gotato_py import (
    GotatoError,
    Model,
    ModelRequest,
    RetryPolicy,
    Scope,
    UserMessage,
)
from gotato_testkit import (
    RecordingModel,
    ScriptedModel,
    Step,
)

ONCE = RetryPolicy(max_attempts=1)


def request(*texts: str, **more: Any) -> ModelRequest:
    """A request of user messages."""
    return ModelRequest("Be brief.", [UserMessage(text) for text in texts], **more)


def record(path: Path, steps: Sequence[Step], *requests: ModelRequest) -> None:
    """Records what a script answers."""
    model = RecordingModel(ScriptedModel(steps), path)
    for each in requests:
        outcome_of(model, each)


def outcome_of(model: Model, asked: ModelRequest) -> tuple[list[object], BaseException | None]:
    """The events that a model streams, and what it raises."""
    events: list[object] = []
    try:
        for event in model.stream(asked, Scope()):
            events.append(event)  # noqa: PERF402  # what came before an error counts too
    except GotatoError as error:
        return events, error
    return events, None


def lines_of(path: Path) -> list[Any]:
    """What stands in a recording."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
