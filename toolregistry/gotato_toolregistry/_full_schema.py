"""The full draft 2020-12 over the package `jsonschema`, with the kernel's idea of values and its words.

What differs from `jsonschema` as it comes: types, constants, uniqueness and multiples are the kernel's, which knows
that NaN is no number, that 0.3 is a multiple of 0.1 and that [[1], [true], [1]] holds equal items; additional
properties are looked at in their order in the value, not in that of a set; nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators

from gotato_py import InvalidArgument, SchemaViolation, Validator, compile_schema

from ._references import SPECIFICATIONS, check_references
from ._tidy import tidied
from ._words import failure_of, pointer_of

TOO_DEEP = SchemaViolation("$", "a value that is not nested too deeply to be checked", "deeper nesting")

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]
"""How `jsonschema` calls the check of a keyword: the validator, the keyword's value, the value checked, the schema
around the keyword. All of them Any there, too."""


def compile_full(schema: dict[str, Any]) -> Validator:
    """Compiles a schema, plain JSON data that nobody else holds. Raises `InvalidArgument`, naming the place."""
    tidy = tidied(schema)
    check_references(tidy, check_form)
    checker: Any = _Dialect(tidy, registry=SPECIFICATIONS)  # Any: the stubs do not know what `extend` makes

    def validate(value: object) -> SchemaViolation | None:
        try:
            error = next(checker.iter_errors(value), None)
            return None if error is None else failure_of(error).violation()
        except RecursionError:
            return TOO_DEEP

    return validate


def check_form(schema: object, place: str) -> None:
    """Raises `InvalidArgument` for what the draft's metaschema does not allow."""
    error = next(_METASCHEMA.iter_errors(schema), None)
    if error is not None:
        failure = failure_of(error)
        where = f"{place}{pointer_of(failure.steps)}"
        raise InvalidArgument(f"JSON Schema at {where}: expected {failure.expected}, got {failure.got}")


# The dialect


def _type_check(name: str) -> Callable[[object, object], bool]:
    check = compile_schema({"type": name})
    return lambda _, value: check(value) is None


def _by_the_kernel(keyword: str) -> Keyword:
    def check(checker: Any, given: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if compile_schema({keyword: given})(instance) is not None:
            yield ValidationError("")

    return check


def _additional_properties(checker: Any, given: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not checker.is_type(instance, "object"):
        return
    named: Mapping[str, Any] = schema.get("properties", {})
    patterns: Mapping[str, Any] = schema.get("patternProperties", {})
    for name, item in instance.items():
        if name in named or any(re.search(pattern, name) for pattern in patterns):
            continue
        if given is False:
            yield ValidationError("", path=[name], instance=item)
        else:
            yield from checker.descend(item, given, path=name)


def _property_names(checker: Any, given: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not checker.is_type(instance, "object"):
        return
    for name in instance:
        error = next(checker.descend(name, given), None)
        if error is not None:
            yield ValidationError("", path=[name], instance=name, context=[error])


def _one_of(checker: Any, given: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    found = [next(checker.descend(instance, each, schema_path=index), None) for index, each in enumerate(given)]
    errors = [error for error in found if error is not None]
    fitting = len(given) - len(errors)
    if fitting == 0:
        yield ValidationError("", context=errors)
    elif fitting > 1:
        yield ValidationError(f"one that fits {fitting} of them")


_extend: Any = getattr(validators, "extend")  # noqa: B009  # Any: its stub has no types
_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
_Dialect = _extend(
    Draft202012Validator,
    {
        **{keyword: _by_the_kernel(keyword) for keyword in ("const", "enum", "multipleOf", "uniqueItems")},
        "additionalProperties": _additional_properties,
        "oneOf": _one_of,
        "propertyNames": _property_names,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({name: _type_check(name) for name in _TYPES}),
)

_REGEX = FormatChecker(formats=())


@_REGEX.checks("regex", raises=(re.error, OverflowError, RecursionError))
def _is_regex(text: object) -> bool:
    return not isinstance(text, str) or bool(re.compile(text))


_METASCHEMA: Any = Draft202012Validator(
    Draft202012Validator.META_SCHEMA, format_checker=_REGEX, registry=SPECIFICATIONS
)  # Any: as above
