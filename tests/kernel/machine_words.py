"""The words of the state machine: lines of its log, what befalls a run, how an agent is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gotato_testkit as kit
from gotato_py import Limits

BOUND = 5.0
"""Seconds that anything here waits at most, in a test that is about to fail."""
NO_LIMITS = Limits()
"""The default ones, large enough to be none here."""


class Entry(NamedTuple):
    """One line of the log. `size` is the number of messages in the transcript at that moment."""

    kind: str
    value: Any  # of the kind
    size: int


@dataclass(frozen=True)
class Fault:
    """Something that happens at the `nth` probe of the kind `at` ("any" counts all of them)."""

    at: str
    nth: int
    action: str


@dataclass(frozen=True)
class Make:
    """How an agent is made. With `steady`, no tool has a timeout: everything runs in one thread, and comes out the
    same each time."""

    limits: Limits = NO_LIMITS
    attempts: int = 3
    points: tuple[str, ...] = ()
    sourced: bool = False
    native: bool = False
    watched: bool = True
    steady: bool = False
    built: bool = False


@dataclass(frozen=True)
class Mood:
    """What the extension of that number does at a point: at each call in turn, then nothing special."""

    who: int
    point: str
    does: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """One run: what the model does, what goes wrong, and how the caller takes it."""

    steps: Sequence[kit.Step] = ()
    faults: Sequence[Fault] = ()
    moods: Sequence[Mood] = ()
    offers: Sequence[str] = ()
    builds: Sequence[str] = ()
    grumbles: frozenset[str] = field(default_factory=frozenset)
    way: str = "run"
    leave_after: int = 0
    timeout: float | None = None
    output: type | None = None


class Accepted(NamedTuple):
    """A message that an agent took for the run that goes on."""

    control: str
    id: str
    run_id: str
