"""JSON from strangers and for strangers: readers that never raise on a wrong type, text that is always valid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

Object = dict[str, Any]
"""A JSON object whose members nobody has checked."""

_READ = json.JSONDecoder().raw_decode
"""Reads the value that a text begins with; for a small one that takes a third less than `json.loads`."""


def obj(value: object) -> Object:
    """The value if it is an object, else an empty one."""
    return cast(Object, value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  # nobody knows


def is_object(value: object) -> bool:
    """Whether the value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> bool:
    """Whether the value is an array."""
    return isinstance(value, list)


def text(value: object) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A number of things: a non-negative integer, also written as a float; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 1e15 else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def parse_strict(source: str) -> Any:
    """Parses JSON as the standard has it: no NaN, no Infinity. Raises ValueError, also for nesting without end."""
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_lenient(source: str) -> Any:
    """Parses JSON and the NaN that some servers put into log probabilities. Raises ValueError."""
    try:
        value, end = _READ(source) if source.startswith("{") else (None, -1)
        return value if end == len(source) else json.loads(source)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_beginning(source: str) -> Any:
    """Parses the JSON value that a text begins with, whatever follows it. Raises ValueError."""
    try:
        return _READ(source)[0]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def clean(source: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; proper pairs become the character that they stand for."""
    try:
        source.encode()
    except UnicodeEncodeError:
        return source.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return source


def dump_text(value: object) -> str:
    """Compact JSON text. Raises ValueError for NaN and TypeError for what JSON cannot say."""
    try:
        return clean(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"JSON cannot say a {type(value).__name__}")
