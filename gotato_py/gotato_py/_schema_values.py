"""The checks of a compiled JSON Schema that look at one value: its type, constants, strings, numbers.

A check is a closure that returns None for what fits, else a `Failure`. Each guards its own type: a keyword says nothing
about a value of another one. The fast case of a test comes first: the exact class that `json` makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import dumps
from math import isfinite
from typing import Any

from .violations import Failure, described

Check = Callable[[Any], Failure | None]  # Any: a JSON value, looked at by its class
Schema = Mapping[str, object]

ARRAY: Any = (list, tuple)  # Any: else pyright narrows what is tested to list[Unknown], here and wherever it is used
MAPPING: Any = Mapping
LONGEST_LIST = 300


class Malformed(Exception):  # never leaves the compiler, which turns it into InvalidArgument
    """A keyword whose value is not what the keyword takes."""

    def __init__(self, keyword: str, problem: str) -> None:
        super().__init__(keyword, problem)
        self.keyword, self.problem = keyword, problem


# Reading keywords


def mapping_of(schema: Schema, keyword: str) -> Mapping[str, object]:
    """The value of a keyword that takes an object."""
    given: Any = schema.get(keyword, {})
    if not isinstance(given, MAPPING) or not all(isinstance(name, str) for name in given):
        raise Malformed(keyword, "must be an object")
    read: Mapping[str, object] = given
    return read


def names_of(schema: Schema, keyword: str) -> tuple[str, ...]:
    """The value of a keyword that takes a list of names."""
    given: Any = schema.get(keyword, ())
    if not isinstance(given, ARRAY) or not all(isinstance(name, str) for name in given):
        raise Malformed(keyword, "must be a list of strings")
    return tuple(given)


def count_of(schema: Schema, keyword: str) -> int | None:
    """The value of a keyword that takes a count; None where it is left out."""
    if keyword not in schema:
        return None
    given: Any = schema[keyword]
    if not is_integer(given) or given < 0:
        raise Malformed(keyword, "must be an integer of at least 0")
    return int(given)


def number_of(schema: Schema, keyword: str) -> Any:  # Any: an int, a float or None
    """The value of a keyword that takes a number; None where it is left out."""
    if keyword not in schema:
        return None
    given: Any = schema[keyword]
    if not is_number(given):
        raise Malformed(keyword, "must be a number")
    return given


# Types


def is_integer(value: Any) -> bool:
    """Whether JSON calls it an integer: 5.0 is one, True is none."""
    kind = value.__class__
    if kind is int:
        return True
    return (kind is float and value.is_integer()) or (kind is not bool and isinstance(value, int))


def is_number(value: Any) -> bool:
    """Whether JSON calls it a number: True is none, and neither are NaN and infinity."""
    kind = value.__class__
    if kind is int:
        return True
    return (isinstance(value, float) and isfinite(value)) or (kind is not bool and isinstance(value, int))


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: value.__class__ is str or isinstance(value, str)),
    "integer": ("an integer", is_integer),
    "number": ("a number", is_number),
    "boolean": ("a boolean", lambda value: value is True or value is False),
    "null": ("null", lambda value: value is None),
    "object": ("an object", lambda value: value.__class__ is dict or isinstance(value, MAPPING)),
    "array": ("an array", lambda value: value.__class__ is list or isinstance(value, ARRAY)),
}


def nothing(value: Any) -> Failure | None:
    """The schema `false`."""
    return Failure("nothing at all", described(value))


def type_check(schema: Schema) -> Check:
    """type: one name or a list of names."""
    given: Any = schema["type"]
    names: Any = [given] if isinstance(given, str) else given
    if not isinstance(names, ARRAY) or not names or not all(type(name) is str and name in _TYPES for name in names):
        raise Malformed("type", f"must be one of {', '.join(_TYPES)}, or a list of them")
    expected = " or ".join([_TYPES[name][0] for name in names])
    tests = [_TYPES[name][1] for name in names]
    if len(tests) == 1:
        only = tests[0]
        if names[0] == "string":  # by far the most frequent one, spared a call

            def check_string(value: Any) -> Failure | None:
                if value.__class__ is str or isinstance(value, str):
                    return None
                return Failure(expected, described(value))

            return check_string
        if names[0] == "object":  # that of every call's arguments

            def check_object(value: Any) -> Failure | None:
                if value.__class__ is dict or isinstance(value, MAPPING):
                    return None
                return Failure(expected, described(value))

            return check_object

        return lambda value: None if only(value) else Failure(expected, described(value))

    def check(value: Any) -> Failure | None:
        for test in tests:
            if test(value):
                return None
        return Failure(expected, described(value))

    return check


# Constants


def json_key(value: Any) -> Any:  # Any: something hashable
    """A key that is equal for values that are equal in JSON: True is not 1, 1 is 1.0, the order of names is nothing."""
    kind = value.__class__
    if kind is str or kind is int or kind is float or value is None:
        return value
    if kind is bool:
        return ("true",) if value else ("false",)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, ARRAY):
        return ("array", *[json_key(item) for item in value])
    if isinstance(value, MAPPING):
        return ("object", frozenset([(name, json_key(item)) for name, item in value.items()]))
    if isinstance(value, int | float):
        return value
    return ("no JSON", id(value))


def constants(schema: Schema) -> Check:
    given: Any = schema["enum"] if "enum" in schema else [schema["const"]]
    if not isinstance(given, ARRAY):
        raise Malformed("enum", "must be a list of values")
    if "enum" in schema and "const" in schema:
        given = [each for each in given if json_key(each) == json_key(schema["const"])]
    keys = {json_key(each) for each in given}
    said = ", ".join([_shown(each) for each in given])
    if len(said) > LONGEST_LIST:
        said = said[:LONGEST_LIST] + ", ..."
    expected = said if len(given) == 1 else f"one of {said}" if given else "no value: none fits its enum and const"

    def check(value: Any) -> Failure | None:
        if json_key(value) in keys:
            return None
        failure = Failure(expected, f"another value, {described(value)}")
        failure.of_constant = True
        return failure

    return check


def _shown(constant: object) -> str:
    try:
        return dumps(constant)
    except (TypeError, ValueError):
        raise Malformed("enum", "must hold JSON values") from None


# Strings and numbers


def string_check(schema: Schema) -> Check:
    least, most = count_of(schema, "minLength") or 0, count_of(schema, "maxLength")
    search: Callable[[str], object] = bool
    expected = ""
    if "pattern" in schema:
        given = schema["pattern"]
        if not isinstance(given, str):
            raise Malformed("pattern", "must be a string")
        try:
            search = re.compile(given).search
        except (re.error, OverflowError, RecursionError) as error:
            raise Malformed("pattern", f"is no regular expression that Python knows: {error}") from None
        expected = f"a string that matches {given[:LONGEST_LIST]!r}"

    def check(value: Any) -> Failure | None:
        if not isinstance(value, str):
            return None
        size = len(value)
        if size < least:
            return Failure(f"a string of at least {least} characters", described(value))
        if most is not None and size > most:
            return Failure(f"a string of at most {most} characters", described(value))
        if expected and search(value) is None:
            return Failure(expected, "a string that does not match")
        return None

    return check


def number_check(schema: Schema) -> Check:
    least, most = number_of(schema, "minimum"), number_of(schema, "maximum")
    above, below = number_of(schema, "exclusiveMinimum"), number_of(schema, "exclusiveMaximum")

    def check(value: Any) -> Failure | None:
        if value.__class__ is bool or not isinstance(value, int | float):
            return None
        if least is not None and value < least:
            return Failure(f"at least {least}", described(value))
        if most is not None and value > most:
            return Failure(f"at most {most}", described(value))
        if above is not None and value <= above:
            return Failure(f"more than {above}", described(value))
        if below is not None and value >= below:
            return Failure(f"less than {below}", described(value))
        return None

    return check


def multiple_check(schema: Schema) -> Check:
    unit = number_of(schema, "multipleOf")
    if unit <= 0:
        raise Malformed("multipleOf", "must be a number greater than 0")
    unit_digits, unit_power = _decimal(unit)

    def check(value: Any) -> Failure | None:
        if not is_number(value):
            return None
        digits, power = _decimal(value)
        lowest = min(power, unit_power)
        if (digits * 10 ** (power - lowest)) % (unit_digits * 10 ** (unit_power - lowest)) == 0:
            return None
        return Failure(f"a multiple of {unit}", described(value))

    return check


def _decimal(number: int | float) -> tuple[int, int]:
    """The number as digits and a power of ten, from the decimal notation that it has in JSON."""
    if isinstance(number, int):
        return number, 0
    mantissa, _, power = float.__repr__(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(power or 0) - len(fraction)
