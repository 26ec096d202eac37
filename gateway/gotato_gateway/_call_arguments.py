"""The arguments of a call, as they came and as they go back: JSON text of an object, which is never repaired."""

from __future__ import annotations

import re

from ._json import Object, dump_text, is_object, obj, parse_strict

_LARGE = re.compile(r"\d[eE]\+?\d\d|\d{300}")  # a number that may be too large for a float
_SHALLOW, _AROUND = 100, 50

SEEDS = ("{}", "null", "")
"""What servers say for no arguments, and also before the real ones."""


def received_arguments(raw: str, cut: bool) -> str:
    """The arguments as the model sent them, but for what servers do to them: nothing for none, JSON inside a string.

    After a `cut` they stay as they came: half of them is nothing to repair.
    """
    if cut:
        return raw
    if raw.strip() in SEEDS:
        return "{}"
    if raw.lstrip().startswith('"'):
        try:
            inner = parse_strict(raw)
            if isinstance(inner, str) and is_object(parse_strict(inner)):
                return inner
        except ValueError:
            pass
    return raw


def sendable_arguments(raw: str) -> str:
    """Valid JSON of an object: as the model wrote it where that is one, else an empty one; nothing is repaired."""
    try:
        parsed = parse_strict(raw)
    except ValueError:
        return "{}"
    if not is_object(parsed):
        return "{}"
    return dump_text(parsed) if "\\ud" in raw.lower() else raw  # an escape may stand for half a character


def sendable_object(raw: str) -> Object:
    """The arguments as the object that they are, else an empty one; also where it could not be written again."""
    try:
        parsed = obj(parse_strict(raw))
        # Written once more only where it may fail: arguments are read for every request of their history.
        if _LARGE.search(raw) or raw.count("{") + raw.count("[") > _SHALLOW:
            dump_text(_deeper(parsed))
    except ValueError:
        return {}
    return parsed


def _deeper(value: object) -> object:
    """The value as deep as it will stand in a request, since the reader goes deeper than the writer."""
    for _ in range(_AROUND):
        value = [value]
    return value
