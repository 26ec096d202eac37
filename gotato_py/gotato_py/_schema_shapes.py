"""The checks of a compiled JSON Schema that look inside a value, and those that combine other checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json import dumps
from typing import Any

from ._schema_values import (
    ARRAY,
    LONGEST_LIST,
    MAPPING,
    Check,
    Malformed,
    Schema,
    constants,
    count_of,
    json_key,
    multiple_check,
    number_check,
    string_check,
    type_check,
)
from .violations import NOTHING, Failure, described

OBJECT_KEYWORDS = frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"})


def size_check(schema: Schema) -> Check:
    least, most = count_of(schema, "minItems") or 0, count_of(schema, "maxItems")
    unique: Any = schema.get("uniqueItems", False)
    if unique.__class__ is not bool:
        raise Malformed("uniqueItems", "must be a boolean")

    def check(value: Any) -> Failure | None:
        if not isinstance(value, ARRAY):
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
        if value.__class__ is not list and not isinstance(value, ARRAY):
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
    if len(said) > LONGEST_LIST:
        said = said[:LONGEST_LIST] + ", ..."
    expected = f"no such property (there are {said})" if said else "no such property (there are none)"
    return lambda value: Failure(expected, described(value))


def object_check(
    required: Sequence[str],
    properties: Mapping[str, Check | None],
    additional: Check | None,
    least: int | None,
    most: int | None,
) -> Check:
    """properties, required, additionalProperties, minProperties and maxProperties in one pass."""
    look_at_items = additional is not None or any(check is not None for check in properties.values())
    bounded = least is not None or most is not None

    def check(value: Any) -> Failure | None:
        if value.__class__ is not dict and not isinstance(value, MAPPING):
            return None
        for name in required:
            if name not in value:
                return Failure("a required property", NOTHING, name)
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
    """What to say when no alternative fits: the failure deepest inside the value, of what may be the one meant."""
    inside = [failure for failure in failures if failure.steps]
    candidates = [failure for failure in inside if not failure.of_constant] or inside or failures
    deepest = max([len(failure.steps) for failure in candidates])
    furthest = [failure for failure in candidates if len(failure.steps) == deepest]
    first = furthest[0]
    if any(failure.steps != first.steps for failure in furthest):
        return Failure("a value that fits one of the alternatives", described(value))
    return Failure(" or ".join(dict.fromkeys([each.expected for each in furthest])), first.got, *first.steps)


GROUPS: tuple[tuple[frozenset[str], Callable[[Schema], Check]], ...] = (
    (frozenset({"type"}), type_check),
    (frozenset({"enum", "const"}), constants),
    (frozenset({"minLength", "maxLength", "pattern"}), string_check),
    (frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}), number_check),
    (frozenset({"multipleOf"}), multiple_check),
    (frozenset({"minItems", "maxItems", "uniqueItems"}), size_check),
)
"""The keywords that say something about the value itself, and the check that each group of them becomes."""
