"""The arguments of a call, from the JSON text that a model sent."""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import Any

from ._text import well_formed
from .violations import SchemaViolation, described

MAX_DEPTH = 200
"""How deep JSON may be nested: far more than any tool needs, far less than where Python's own limits begin."""

_EXPECTED = "a JSON object"
_STRINGS_AND_BRACKETS = r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]'


class _Refused(ValueError):
    """A number that is no JSON, or that Python cannot hold."""


def _refuse_constant(text: str) -> Any:
    raise _Refused(f"{text}, which is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise _Refused("a number too large for a float")
    return number


_decoder = JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)


def parse_arguments(text: str) -> dict[str, Any] | SchemaViolation:  # Any: JSON values
    """The object that the JSON text says, or what is wrong with it; raises nothing.

    "", white space and `null` mean {}. The JSON is strict: no NaN, no infinity, also not as 1e999. Of equal names the
    last wins. A lone surrogate becomes U+FFFD, in names too. Nesting is limited to `MAX_DEPTH`, integers to the digits
    that Python converts (`sys.set_int_max_str_digits`).
    """
    if not text.isascii():
        text = well_formed(text)
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return SchemaViolation("$", _EXPECTED, f"JSON that is nested more than {MAX_DEPTH} deep")
    try:
        value = _decoded(text)
    except JSONDecodeError as error:
        if not text.strip():
            return {}
        return SchemaViolation("$", _EXPECTED, f"text that is not valid JSON ({error.msg} at character {error.pos})")
    except _Refused as error:
        return SchemaViolation("$", _EXPECTED, str(error))
    except (ValueError, RecursionError):  # the digits of an int; a caller that is itself near the recursion limit
        return SchemaViolation("$", _EXPECTED, "an integer of too many digits, or nesting too deep to read")
    if value.__class__ is not dict:
        return {} if value is None else SchemaViolation("$", _EXPECTED, described(value))
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        value = _cleaned(value)
    made: dict[str, Any] = value
    return made


def _decoded(text: str) -> Any:
    """What the text says. `raw_decode` alone is half the cost, and enough where no white space surrounds the object."""
    if text[:1] == "{":
        value, end = _decoder.raw_decode(text)
        if end == len(text):
            return value
    return _decoder.decode(text)


def _depth(text: str) -> int:
    depth = deepest = 0
    for token in re.finditer(_STRINGS_AND_BRACKETS, text, re.DOTALL):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
    return deepest


def _cleaned(value: Any) -> Any:
    if value.__class__ is str:
        return well_formed(value)
    if value.__class__ is list:
        return [_cleaned(item) for item in value]
    if value.__class__ is dict:
        return {well_formed(name): _cleaned(item) for name, item in value.items()}
    return value
