"""Converters: from a JSON value that fits the schema of a type to a value of that type.

A converter returns the value or raises `Rejected`; None stands for one that has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._schema_values import json_key
from .normalise import describe_exception
from .schema import Validator
from .violations import Failure, described

Convert = Callable[[Any], Any]  # Any: JSON goes in, a value of the annotated type comes out

_LONGEST_REASON = 300


class Rejected(Exception):  # never leaves the code that runs converters
    """A value that fits the schema and is still none of the type; `failure` says why, `__cause__` what was raised."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.expected)
        self.failure = failure

    def at(self, step: object) -> Rejected:
        """The same, seen from the container that holds the value under `step`."""
        self.failure.steps.append(step)
        return self


def attempt(make: Convert, expected: str) -> Convert:
    """A converter from a function that may raise: what it raises becomes the reason."""

    def convert(value: Any) -> Any:
        try:
            return make(value)
        except Exception as error:
            raise Rejected(Failure(expected, reason(error))) from error

    return convert


def reason(error: BaseException) -> str:
    """What was raised, in a short line."""
    text = describe_exception(error)
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "..."


def to_int(value: Any) -> Any:
    """5.0 is 5."""
    return value if value.__class__ is int else int(value)


def _float(value: Any) -> float:
    return float(value)


_to_float = attempt(_float, "a number that a float can hold")


def to_float(value: Any) -> Any:
    """5 is 5.0."""
    return value if value.__class__ is float else _to_float(value)


def constant(values: Mapping[Any, object]) -> Convert:
    """From the JSON value of a constant to the constant; `values` is keyed by `json_key`."""
    return lambda value: values[json_key(value)]


def items(make: Convert | None, item: Convert | None) -> Convert | None:
    """For arrays of one type; `make` builds the container from a list."""
    if item is None:
        return None if make is None else attempt(make, "an array that can be converted")
    build = None if make is None else attempt(make, "an array that can be converted")
    one = item

    def convert(value: Any) -> Any:
        made: list[Any] = []
        try:
            for each in value:
                made.append(one(each))  # noqa: PERF401  # its length is the index of the item that fails
        except Rejected as error:
            raise error.at(len(made)) from error.__cause__
        return made if build is None else build(made)

    return convert


def positions(converts: Sequence[Convert | None]) -> Convert:
    """For tuples with a type for each position."""

    def convert(value: Any) -> Any:
        made: list[Any] = []
        try:
            for each, one in zip(value, converts, strict=True):
                made.append(each if one is None else one(each))
        except Rejected as error:
            raise error.at(len(made)) from error.__cause__
        return tuple(made)

    return convert


def pairs(key: Convert | None, item: Convert | None) -> Convert | None:
    """For objects whose names are data."""
    if key is None and item is None:
        return None

    def convert(value: Any) -> Any:
        made: dict[Any, Any] = {}
        for name, each in value.items():
            try:
                made[name if key is None else key(name)] = each if item is None else item(each)
            except Rejected as error:
                raise error.at(name) from error.__cause__
        return made

    return convert


def fields(converts: Mapping[str, Convert | None], make: Callable[..., object] | None, name: str) -> Convert | None:
    """For objects with known names: converted, then given to `make` as keywords; without it they stay a dict."""
    needed = [(field, convert) for field, convert in converts.items() if convert is not None]
    if make is None and not needed:
        return None
    build = None if make is None else attempt(lambda made: make(**made), f"a valid {name}")

    def convert(value: Any) -> Any:
        made = convert_fields(needed, value)
        return made if build is None else build(made)

    return convert


def convert_fields(needed: Sequence[tuple[str, Convert]], value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the object with those of its fields converted that need it and are there."""
    made = dict(value)
    for name, convert in needed:
        if name in made:
            try:
                made[name] = convert(made[name])
            except Rejected as error:
                raise error.at(name) from error.__cause__
    return made


def optional(convert: Convert) -> Convert:
    """For `T | None`."""
    return lambda value: None if value is None else convert(value)


_OF_VALUES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, type(None))
"""What a constructor says of a value that it does not take; only then is the next alternative tried."""


def union(validators: Callable[[], Sequence[Validator]], converts: Sequence[Convert | None]) -> Convert:
    """For other unions: the first alternative whose schema the value fits and that takes it.

    `validators` is asked at the first value: the schemas are complete by then.
    """
    compiled: list[Validator] = []

    def convert(value: Any) -> Any:
        if not compiled:
            compiled[:] = validators()
        refusal: Rejected | None = None
        for fits, one in zip(compiled, converts, strict=True):
            if fits(value) is None:
                try:
                    return value if one is None else one(value)
                except Rejected as error:
                    if not isinstance(error.__cause__, _OF_VALUES):  # perhaps what is to interrupt the run
                        raise
                    refusal = refusal or error
        raise refusal or Rejected(Failure("a value that fits one of the alternatives", described(value)))

    return convert
