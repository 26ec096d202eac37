"""Types of the standard library that JSON has no form for, found by where they are defined: none is imported here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ._conversion import Convert, Rejected
from .violations import Failure, described

_INTEGER = r"-?[0-9]{1,4000}"


class Standard:
    """How JSON says a type: the schema, how to read it (given the type), and what a reader expects."""

    __slots__ = ("expected", "reader", "schema")

    def __init__(self, schema: Mapping[str, Any], reader: Callable[[Any], Convert], expected: str) -> None:
        self.schema = schema
        self.reader = reader  # takes the type, whose constructors are its own
        self.expected = expected


def _text(form: str, reader: Callable[[Any], Convert], expected: str) -> Standard:
    return Standard({"type": "string", "format": form}, reader, expected)


def _iso(kind: Any) -> Convert:
    read: Convert = kind.fromisoformat
    return read


def _itself(kind: Any) -> Convert:
    read: Convert = kind
    return read


def _seconds(kind: Any) -> Convert:
    return lambda value: kind(seconds=value)


def _decimal(kind: Any) -> Convert:
    def read(value: Any) -> Any:
        number = kind(str(value))
        if not number.is_finite():
            raise ValueError("not a finite number")
        return number

    return read


_PATH = _text("path", _itself, "a path")

STANDARD: Mapping[tuple[str, str], Standard] = {
    ("datetime", "datetime"): _text("date-time", _iso, "a date and time in ISO 8601 format"),
    ("datetime", "date"): _text("date", _iso, "a date in ISO 8601 format"),
    ("datetime", "time"): _text("time", _iso, "a time in ISO 8601 format"),
    ("datetime", "timedelta"): Standard(
        {"type": "number", "description": "in seconds"}, _seconds, "a number of seconds"
    ),
    ("uuid", "UUID"): _text("uuid", _itself, "a UUID"),
    ("decimal", "Decimal"): Standard({"type": ["string", "number"], "format": "decimal"}, _decimal, "a decimal number"),
    ("pathlib", "Path"): _PATH,
    ("pathlib", "PurePath"): _PATH,
    ("pathlib", "PosixPath"): _PATH,
    ("pathlib", "PurePosixPath"): _PATH,
    ("pathlib", "WindowsPath"): _PATH,
    ("pathlib", "PureWindowsPath"): _PATH,
}
"""By the top-level module and the qualified name of the type."""


def key_converter(schema: Mapping[str, Any], convert: Convert | None) -> tuple[Convert | None] | None:
    """How the names of an object become keys of the described type; None if that type cannot be a key."""
    if schema.get("type") == "integer":
        return (_integer_key,)
    if schema and schema.get("type") != "string":
        return None
    constants = schema.get("enum")
    if constants is None:
        return (convert,)
    known = frozenset(constants)

    def convert_known(name: Any) -> Any:
        if name not in known:
            raise Rejected(Failure(f"one of the names {', '.join(constants)}", "another name"))
        return name if convert is None else convert(name)

    return (convert_known,)


def _integer_key(name: Any) -> int:
    if re.fullmatch(_INTEGER, name) is None:
        raise Rejected(Failure("a name that is an integer", described(name)))
    return int(name)
