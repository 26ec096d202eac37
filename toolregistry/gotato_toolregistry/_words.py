"""What `jsonschema` found wrong, in the kernel's words and with its paths.

Its own messages quote values, and those may be prompts. Where the kernel knows the keyword, the words are asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from jsonschema import ValidationError

from gotato_py import SchemaViolation, compile_schema

_NOTHING = "nothing"  # with it a violation reads "missing, and it is required"
_LONGEST_LIST = 300
_LONGEST_PATTERN = 60
_CONSTANTS = frozenset({"enum", "const"})
_refuse_all = compile_schema({"allOf": [False]})

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A violation whose path is still in steps; `of_constant`: a constant did not match, which inside an alternative
    often says that it is the wrong one."""

    steps: Steps
    expected: str
    got: str
    of_constant: bool = False

    def violation(self) -> SchemaViolation:
        """The violation, its path written out from the root."""
        return SchemaViolation("$" + "".join([_written(step) for step in self.steps]), self.expected, self.got)


def pointer_of(steps: Sequence[str | int]) -> str:
    """The steps as places in a schema are written."""
    return "".join([f"/{step}" for step in steps])


def failure_of(error: ValidationError) -> Failure:
    """What an error says; the steps are relative to the error that it is part of."""
    steps: Steps = tuple(error.relative_path)
    keyword: Any = error.validator  # Any: None for the schema `false`, which the stubs do not know
    return _TELL.get(keyword, _as_the_kernel)(steps, error)


def _of(error: ValidationError) -> tuple[Any, Any]:  # Any: the stubs see a mark there for "not set"
    """The keyword's value, and the value that it was held against."""
    return error.validator_value, error.instance


def _described(value: object) -> str:
    found = _refuse_all(value)
    return "" if found is None else found.got


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    found = compile_schema({"properties": {step: False}})({step: None})
    return "" if found is None else found.path[1:]


def _as_the_kernel(steps: Steps, error: ValidationError) -> Failure:
    keyword = str(error.validator)
    found = compile_schema({keyword: error.validator_value})(error.instance)
    # None would mean that the two disagree, which the tests know no case of.
    expected = f'a value that fits "{keyword}"' if found is None else found.expected
    return Failure(steps, expected, _described(error.instance) if found is None else found.got, keyword in _CONSTANTS)


def _of_alternatives(steps: Steps, error: ValidationError) -> Failure:
    """What to say when no alternative fits: the failure deepest inside the value, of what may be the one meant."""
    if not error.context:
        return Failure(steps, "a value that fits exactly one of the alternatives", error.message)
    first_of: dict[object, ValidationError] = {}
    for each in error.context:
        first_of.setdefault(each.schema_path[0], each)
    failures = [failure_of(each) for each in first_of.values()]
    inside = [failure for failure in failures if failure.steps]
    candidates = [failure for failure in inside if not failure.of_constant] or inside or failures
    deepest = max([len(failure.steps) for failure in candidates])
    furthest = [failure for failure in candidates if len(failure.steps) == deepest]
    first = furthest[0]
    if any(failure.steps != first.steps for failure in furthest):
        return Failure(steps, "a value that fits one of the alternatives", _described(error.instance))
    expected = " or ".join(dict.fromkeys([each.expected for each in furthest]))
    return Failure((*steps, *first.steps), expected, first.got)


def _missing(steps: Steps, error: ValidationError) -> Failure:
    needed, value = _of(error)
    name = next(each for each in needed if each not in value)
    return Failure((*steps, name), "a required property", _NOTHING)


def _missing_with_another(steps: Steps, error: ValidationError) -> Failure:
    needs, value = _of(error)
    name, missing = next(
        (name, each) for name, needed in needs.items() if name in value for each in needed if each not in value
    )
    return Failure((*steps, missing), f"a property that {dumps(name)} requires", _NOTHING)


def _additional(steps: Steps, error: ValidationError) -> Failure:
    around: Any = error.schema  # Any: a schema
    known = dict.fromkeys(around.get("properties", ()), True)
    found = compile_schema({"properties": known, "additionalProperties": False})({steps[-1]: error.instance})
    expected = "no such property" if found is None else found.expected
    patterns = " or ".join([repr(each) for each in around.get("patternProperties", ())])
    if patterns:
        expected = f"{expected.removesuffix(')')}; others must match {patterns[:_LONGEST_LIST]})"
    return Failure(steps, expected, _described(error.instance))


def _unevaluated(steps: Steps, error: ValidationError) -> Failure:
    given, value = _of(error)
    expected = "no such property" if given is False else 'a property that fits "unevaluatedProperties"'
    # Only the message knows which property it is. Should it ever be worded otherwise, the path is that of the object.
    named = [name for name in value if repr(name) in error.message][:1]
    return Failure((*steps, *named), expected, _described(value[named[0]] if named else value))


def _extra_item(steps: Steps, error: ValidationError) -> Failure:
    around: Any = error.schema  # Any: a schema
    index = len(around.get("prefixItems", ()))
    _, value = _of(error)
    return Failure((*steps, index), "nothing at all", _described(value[index]))


def _name(steps: Steps, error: ValidationError) -> Failure:
    inner = failure_of(error.context[0])
    return Failure(steps, f"a property name that is {inner.expected}", inner.got)


def _regex(steps: Steps, error: ValidationError) -> Failure:
    shown = f"{error.instance!r:.{_LONGEST_PATTERN}}"  # a schema's own text, so it may be shown
    return Failure(steps, "a regular expression that Python knows", f"{shown} ({error.cause})")


def _saying(expected: str) -> Callable[[Steps, ValidationError], Failure]:
    """Words in which `{}` is the keyword's value."""
    return lambda steps, error: Failure(steps, expected.format(error.validator_value), _described(error.instance))


_TELL: dict[str | None, Callable[[Steps, ValidationError], Failure]] = {
    None: _saying("nothing at all"),
    "additionalProperties": _additional,
    "anyOf": _of_alternatives,
    "contains": _saying('an array with an item that fits "contains"'),
    "dependentRequired": _missing_with_another,
    "format": _regex,
    "items": _extra_item,
    "maxContains": _saying('an array of at most {} items that fit "contains"'),
    "minContains": _saying('an array of at least {} items that fit "contains"'),
    "not": _saying('a value that does not fit "not"'),
    "oneOf": _of_alternatives,
    "propertyNames": _name,
    "required": _missing,
    "unevaluatedItems": _saying("an array without other items than its schema tells of"),
    "unevaluatedProperties": _unevaluated,
}
"""The keywords with words of their own; the others, which the kernel has too, are said in its words."""
