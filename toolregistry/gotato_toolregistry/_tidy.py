"""A schema in the order in which its keywords are checked, and where in a schema there are schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

# The keywords in the kernel's order, so that the first violation is the same: what a value is before what is in it,
# and alternatives, which cost most and say least, last.
_ORDER = (
    "type", "enum", "const", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "required", "dependentRequired",
    "propertyNames", "properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties",
    "prefixItems", "items", "contains", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if",
    "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_RANK = {keyword: rank for rank, keyword in enumerate(_ORDER)}

_ONE = frozenset(
    {
        "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DATA = frozenset({"$vocabulary", "const", "default", "dependentRequired", "enum", "examples", "required"})
IN_PLACE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""The keywords whose schemas look at the same value as the schema around them."""


def is_object(given: object) -> TypeGuard[dict[str, Any]]:  # Any: JSON data, here and below
    """Whether a piece of JSON data is an object."""
    return isinstance(given, dict)


def _is_array(given: object) -> TypeGuard[list[Any]]:
    return isinstance(given, list)


def tidied(schema: dict[str, Any]) -> dict[str, Any]:
    """A copy with its keywords in order, without `$schema`, and with each `false` in a list or mapping of schemas put
    into an `allOf`.

    Drafts older than 2020-12 are read as if they were it, as the kernel does; `jsonschema` would change over to the
    draft that it finds there, in the middle of a schema. And of a bare `false` it forgets the place in the value.
    """
    made: dict[str, Any] = {}
    for keyword in sorted(schema, key=lambda keyword: _RANK.get(keyword, len(_RANK))):
        given = schema[keyword]
        if keyword == "$schema":
            continue
        if keyword in _DATA:
            made[keyword] = given
        elif keyword in _NAMED and is_object(given):
            made[keyword] = {name: _one_of_many(each) for name, each in given.items()}
        elif keyword in _LISTED and _is_array(given):
            made[keyword] = [_one_of_many(each) for each in given]
        else:
            made[keyword] = _anything(given)
    return made


def _one_of_many(given: Any) -> Any:
    return {"allOf": [False]} if given is False else _anything(given)


def _anything(given: Any) -> Any:
    if _is_array(given):
        return [_anything(each) for each in given]
    return tidied(given) if is_object(given) else given


def parts_of(schema: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The schemas directly inside a well-formed one: each with its keyword and its place below the schema."""
    for keyword, given in schema.items():
        if keyword in _ONE:
            yield keyword, f"/{keyword}", given
        elif keyword in _LISTED:
            for index, each in enumerate(given):
                yield keyword, f"/{keyword}/{index}", each
        elif keyword in _NAMED:
            for name, each in given.items():
                yield keyword, f"/{keyword}/{name}", each
