"""What is wrong with a JSON value: where, what was expected, what came. Never the value itself: it may be a prompt."""

from __future__ import annotations

from json import dumps
from typing import Any

from ._value import value

NOTHING = "nothing"
_LONGEST_STEP = 60
_ARRAY: Any = (list, tuple)  # Any: else pyright narrows what is tested to list[Unknown]


@value
class SchemaViolation:
    """A value that does not fit: `path` in it ("$.items[2].price"), what was `expected` there, and what was `got`."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        if self.got == NOTHING:
            return f"{self.path}: missing, and it is required"
        return f"{self.path}: expected {self.expected}, got {self.got}"


def too_deep(done: str) -> SchemaViolation:
    """The violation of a value that is nested too deeply to be `done`."""
    return SchemaViolation("$", f"a value that is not nested too deeply to be {done}", "deeper nesting")


class Failure:
    """A violation on its way up: each container adds its step, so that a valid value never pays for a path.

    `of_constant`: a constant did not match, which inside an alternative often says that it is the wrong one.
    """

    __slots__ = ("expected", "got", "of_constant", "steps")

    def __init__(self, expected: str, got: str, *steps: object) -> None:
        self.expected: str = expected
        self.got: str = got
        self.of_constant: bool = False
        self.steps: list[object] = list(steps)

    def violation(self) -> SchemaViolation:
        """The violation, its path written out from the root."""
        return SchemaViolation(
            "$" + "".join([_written(step) for step in reversed(self.steps)]), self.expected, self.got
        )


def _written(step: object) -> str:
    if isinstance(step, str):
        if step.isidentifier() and len(step) <= _LONGEST_STEP:
            return f".{step}"
        return f"[{dumps(step if len(step) <= _LONGEST_STEP else step[:_LONGEST_STEP] + '...')}]"
    return f"[{step}]"


def described(value: Any) -> str:  # Any: whatever came where JSON was expected
    """A JSON value in a few words: its type, and its content only where that is a constant or a short number."""
    kind = value.__class__
    if value is None or kind is bool:
        return dumps(value)
    if kind is int or kind is float:
        # An int of many digits may not even be printable.
        return repr(value) if kind is float or -(10**20) < value < 10**20 else "an integer of more than 20 digits"
    if isinstance(value, str):
        return "an empty string" if not value else f"a string of {len(value)} character{'s' * (len(value) > 1)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, _ARRAY):
        return f"an array of {len(value)} items" if value else "an empty array"
    return f"a Python {kind.__name__}"
