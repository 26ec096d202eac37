"""The words of the state machine: lines of its log, what befalls a run, how an agent is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Accepted(NamedTuple):
    """A message that an agent took for the run that goes on."""

    control: str
    id: str
    run_id: str
