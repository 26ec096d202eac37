"""The checks that a compiled JSON Schema is made of: closures that return None for what fits, else a `Failure`.

Each guards its own type: a keyword says nothing about a value of another one. The fast case of a test comes first:
the exact class that `json` makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from math import isfinite
from typing import Any

from .violations import Failure, described

Check = Callable[[Any], Failure | None]  # Any: a JSON value, looked at by its class
Schema = Mapping[str, object]

OBJECT_KEYWORDS = frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"})
_LONGEST_LIST = 300


class Malformed(Exception):  # noqa: N818  # never leaves the compiler, which turns it into InvalidArgument
    """A keyword whose value is not what the keyword takes."""

    def __init__(self, keyword: str, problem: str) -> None:
        super().__init__(keyword, problem)
        self.keyword, self.problem = keyword, problem


# Reading keywords


def mapping_of(schema: Schema, keyword: str) -> Mapping[str, object]:
    """The value of a keyword that takes an object."""
    given = schema.get(keyword, {})
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise Malformed(keyword, "must be an object")
    return given


def names_of(schema: Schema, keyword: str) -> tuple[str, ...]:
    """The value of a keyword that takes a list of names."""
    given = schema.get(keyword, ())
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise Malformed(keyword, "must be a list of strings")
    return tuple(given)


def count_of(schema: Schema, keyword: str) -> int | None:
    """The value of a keyword that takes a count; None where it is left out."""
    if keyword not in schema:
        return None
    given = schema[keyword]
    if not is_integer(given) or given < 0:
        raise Malformed(keyword, "must be an integer of at least 0")
    return int(given)


def number_of(schema: Schema, keyword: str) -> Any:  # Any: an int, a float or None
    """The value of a keyword that takes a number; None where it is left out."""
    if keyword not in schema:
        return None
    given = schema[keyword]
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
    "object": ("an object", lambda value: value.__class__ is dict or isinstance(value, Mapping)),
    "array": ("an array", lambda value: value.__class__ is list or isinstance(value, list | tuple)),
}


def nothing(value: Any) -> Failure | None:
    """The schema `false`."""
    return Failure("nothing at all", described(value))


def type_check(schema: Schema) -> Check:
    """type: one name or a list of names."""
    given = schema["type"]
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names or not all(type(name) is str and name in _TYPES for name in names):
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
    if isinstance(value, list | tuple):
        return ("array", *[json_key(item) for item in value])
    if isinstance(value, Mapping):
        return ("object", frozenset([(name, json_key(item)) for name, item in value.items()]))
    if isinstance(value, int | float):
        return value
    return ("no JSON", id(value))


def _constants(schema: Schema) -> Check:
    given = schema["enum"] if "enum" in schema else [schema["const"]]
    if not isinstance(given, list | tuple):
        raise Malformed("enum", "must be a list of values")
    if "enum" in schema and "const" in schema:
        given = [each for each in given if json_key(each) == json_key(schema["const"])]
    keys = {json_key(each) for each in given}
    said = ", ".join([_shown(each) for each in given])
    if len(said) > _LONGEST_LIST:
        said = said[:_LONGEST_LIST] + ", ..."
    expected = said if len(given) == 1 else f"one of {said}"
    return lambda value: None if json_key(value) in keys else Failure(expected, f"another value, {described(value)}")


def _shown(constant: object) -> str:
    try:
        return dumps(constant)
    except (TypeError, ValueError):
        raise Malformed("enum", "must hold JSON values") from None


# Strings and numbers


def _string(schema: Schema) -> Check:
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
        expected = f"a string that matches {given[:_LONGEST_LIST]!r}"

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


def _number(schema: Schema) -> Check:
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


def _multiple(schema: Schema) -> Check:
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


# Arrays and objects


def _array_size(schema: Schema) -> Check:
    least, most = count_of(schema, "minItems") or 0, count_of(schema, "maxItems")
    unique = schema.get("uniqueItems", False)
    if unique.__class__ is not bool:
        raise Malformed("uniqueItems", "must be a boolean")

    def check(value: Any) -> Failure | None:
        if not isinstance(value, list | tuple):
            return None
        if len(value) < least:
            return Failure(f"an array of at least {least} items", described(value))
        if most is not None and len(value) > most:
            return Failure(f"an array of at most {most} items", described(value))
        if unique and len({json_key(item) for item in value}) < len(value):
            return Failure("an array of different items", "an array with equal ones")
        return None

    return check


def items_check(first: Sequence[Check | None], rest: Check | None) -> Check | None:
    """prefixItems and items."""

    def check(value: Any) -> Failure | None:
        if value.__class__ is not list and not isinstance(value, list | tuple):
            return None
        for index, item in enumerate(value):
            test = first[index] if index < prefix else rest
            if test is not None:
                failure = test(item)
                if failure is not None:
                    failure.steps.append(index)
                    return failure
        return None

    prefix = len(first)
    return None if rest is None and all(test is None for test in first) else check


def no_such_property(names: Sequence[str]) -> Check:
    """additionalProperties: false."""
    said = ", ".join([dumps(name) for name in names])
    if len(said) > _LONGEST_LIST:
        said = said[:_LONGEST_LIST] + ", ..."
    expected = f"no such property (there are {said})" if said else "no such property (there are none)"
    return lambda value: Failure(expected, described(value))


def object_check(
    required: Sequence[str], properties: Mapping[str, Check | None], additional: Check | None, least: int | None, most: int | None
) -> Check:
    """properties, required, additionalProperties, minProperties and maxProperties in one pass."""
    look_at_items = additional is not None or any(check is not None for check in properties.values())
    bounded = least is not None or most is not None

    def check(value: Any) -> Failure | None:
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return None
        for name in required:
            if name not in value:
                return Failure("a required property", "nothing", name)
        if look_at_items:
            for name, item in value.items():
                test = properties.get(name, additional)
                if test is not None:
                    failure = test(item)
                    if failure is not None:
                        failure.steps.append(name)
                        return failure
        if bounded:
            if least is not None and len(value) < least:
                return Failure(f"an object of at least {least} properties", f"one of {len(value)}")
            if most is not None and len(value) > most:
                return Failure(f"an object of at most {most} properties", f"one of {len(value)}")
        return None

    return check


# Combinations


def every(tests: Sequence[Check]) -> Check | None:
    """All of the checks, the first failure first."""
    if len(tests) < 2:
        return tests[0] if tests else None
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) or second(value)

    def check(value: Any) -> Failure | None:
        for test in tests:
            failure = test(value)
            if failure is not None:
                return failure
        return None

    return check


def later(cell: Sequence[Check | None]) -> Check:
    """A check that is not yet compiled: the cell holds it by the time a value comes."""

    def check(value: Any) -> Failure | None:
        test = cell[0]
        return None if test is None else test(value)

    return check


def any_of(tests: Sequence[Check | None]) -> Check | None:
    """anyOf: at least one."""
    sure = [test for test in tests if test is not None]
    if len(sure) < len(tests):
        return None

    def check(value: Any) -> Failure | None:
        failures: list[Failure] = []
        for test in sure:
            failure = test(value)
            if failure is None:
                return None
            failures.append(failure)
        return _closest(failures, value)

    return check


def one_of(tests: Sequence[Check | None]) -> Check:
    """oneOf: exactly one."""

    def check(value: Any) -> Failure | None:
        failures: list[Failure] = []
        for test in tests:
            failure = None if test is None else test(value)
            if failure is not None:
                failures.append(failure)
        fitting = len(tests) - len(failures)
        if fitting == 1:
            return None
        if fitting > 1:
            return Failure("a value that fits exactly one of the alternatives", f"one that fits {fitting} of them")
        return _closest(failures, value)

    return check


def _closest(failures: Sequence[Failure], value: Any) -> Failure:
    """What to say when no alternative fits: the failure deepest inside the value, if one alternative came furthest."""
    depths = [len(failure.steps) for failure in failures]
    deepest = max(depths)
    if deepest > 0 and depths.count(deepest) == 1:
        return failures[depths.index(deepest)]
    expected = list(dict.fromkeys([failure.expected for failure in failures if not failure.steps]))
    return Failure(" or ".join(expected) or "a value that fits one of the alternatives", described(value))


GROUPS: tuple[tuple[frozenset[str], Callable[[Schema], Check]], ...] = (
    (frozenset({"type"}), type_check),
    (frozenset({"enum", "const"}), _constants),
    (frozenset({"minLength", "maxLength", "pattern"}), _string),
    (frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}), _number),
    (frozenset({"multipleOf"}), _multiple),
    (frozenset({"minItems", "maxItems", "uniqueItems"}), _array_size),
)
