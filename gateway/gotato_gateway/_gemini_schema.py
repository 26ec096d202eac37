"""JSON Schemas as Gemini takes them ("Structured output" and "FunctionDeclaration", Gemini API reference).

The whole of JSON Schema may be sent, but only a part of it is heeded. What can be said inside that part is: `const` as
an `enum`, an exclusive bound as an inclusive one, an `allOf` of one as that one. Beside a `$ref` nothing may stand. The
kernel checks arguments and answers against the schema as it was given, so nothing gets through that should not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ._json import Object, is_array, items

_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not")
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_DROPPED = ("$schema", "examples", "discriminator")


def wire_schema(schema: Mapping[str, object]) -> Object:
    """The schema to send. Raises `RecursionError` where it is nested without end."""
    sent: Object = {}
    for key, value in schema.items():
        if key in _DROPPED:
            continue
        if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            sent[key] = {name: _inner(each) for name, each in cast("Mapping[str, object]", value).items()}
        elif key in _SCHEMA_LISTS and isinstance(value, list | tuple):
            sent[key] = [_inner(each) for each in cast("list[object]", value)]
        elif key in _SCHEMAS:
            sent[key] = _inner(value)
        else:
            sent[key] = value
    return _said_otherwise(sent)


def _inner(schema: object) -> object:
    return wire_schema(cast("Mapping[str, object]", schema)) if isinstance(schema, Mapping) else schema


def _said_otherwise(sent: Object) -> Object:
    only = items(sent.get("allOf"))
    if len(only) == 1 and isinstance(only[0], Mapping):
        del sent["allOf"]
        sent = {**only[0], **sent}
    if "$ref" in sent:
        return {key: value for key, value in sent.items() if key.startswith("$")}
    if "const" in sent:
        sent["enum"] = [sent.pop("const")]
    for exclusive, inclusive in _BOUNDS.items():
        bound = sent.pop(exclusive, None)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            sent.setdefault(inclusive, bound)
    values = sent.get("enum")
    if is_array(values) and not all(isinstance(each, str | int | float) for each in items(values)):
        del sent["enum"]  # of strings and numbers only
    return sent
