"""The schema by which an output is asked for: an object, whatever the type; tools and providers take nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._definitions import JSONSchema
from ._schema_values import ARRAY, MAPPING
from .schema import ANNOTATIONS

VALUE = "value"

_IN_DEFS = "#/$defs/"
# Beside `"type": "object"` at the top, providers refuse these.
_NOT_AT_THE_TOP = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "if", "not", "oneOf"})
_UNMOVABLE = frozenset({"$defs", "$id"})  # what is inside of them is found by where they stand
_OF_THE_DOCUMENT = frozenset({"$defs", "$id", "$schema"})
_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DATA = frozenset({"const", "default", "enum", "examples"})


def as_object(schema: JSONSchema) -> tuple[JSONSchema, bool]:
    """A schema for an object, and whether it wraps the one given: as the property `value`, its `$defs` at the root."""
    root = _without_ref(schema)
    if root.get("type") == "object" and _NOT_AT_THE_TOP.isdisjoint(root):
        return root, False
    return _wrapped(schema), True


def _without_ref(schema: JSONSchema) -> JSONSchema:
    """The schema with what its own $ref leads to in the place of that: providers want to see `type` at the top."""
    definitions = _definitions(schema)
    root, followed = schema, set[str]()
    while isinstance(pointer := root.get("$ref"), str) and pointer not in followed:
        followed.add(pointer)
        notes = {keyword: each for keyword, each in root.items() if keyword not in ("$ref", "$defs")}
        body: Any = definitions.get(pointer.removeprefix(_IN_DEFS))
        if not (pointer.startswith(_IN_DEFS) and isinstance(body, MAPPING) and notes.keys() <= ANNOTATIONS):
            break
        if not _UNMOVABLE.isdisjoint(body):
            break
        root = {**body, **notes, "$defs": definitions}
    return root


def _definitions(schema: JSONSchema) -> Mapping[str, Any]:
    found: Any = schema.get("$defs")
    return found if isinstance(found, MAPPING) else {}  # an agent's own compiler may not mind what this one would


def _wrapped(schema: JSONSchema) -> JSONSchema:
    definitions = _definitions(schema)
    name, moved = VALUE, list[str]()
    while name in definitions:
        name += "_"

    def refer(pointer: str) -> str:
        if pointer.startswith(_IN_DEFS) or not (pointer == "#" or pointer.startswith("#/")):
            return pointer
        moved.append(pointer)
        return f"{_IN_DEFS}{name}{pointer.removeprefix('#')}"

    inner = _referring({key: each for key, each in schema.items() if key not in _OF_THE_DOCUMENT}, refer)
    lifted = {key: _referring(each, refer) for key, each in definitions.items()}
    if moved:  # the schema refers to its own root, which is elsewhere now: give it a name
        lifted[name] = inner
        inner = {"$ref": f"{_IN_DEFS}{name}"}
    made: JSONSchema = {"type": "object", "properties": {VALUE: inner}, "required": [VALUE]}
    made["additionalProperties"] = False
    return made | {"$defs": lifted} if lifted else made


def _referring(schema: Any, refer: Callable[[str], str]) -> Any:  # Any: a schema is an object or a boolean
    """A copy with other references."""
    if not isinstance(schema, MAPPING):
        return schema
    keywords: Mapping[str, Any] = schema
    made: JSONSchema = {}
    for keyword, each in keywords.items():
        if keyword == "$ref" and isinstance(each, str):
            made[keyword] = refer(each)
        elif keyword in _BY_NAME and isinstance(each, MAPPING):
            made[keyword] = {name: _referring(inner, refer) for name, inner in each.items()}
        elif keyword in _DATA:
            made[keyword] = each
        elif isinstance(each, ARRAY):
            made[keyword] = [_referring(inner, refer) for inner in each]
        else:
            made[keyword] = _referring(each, refer)
    return made
