"""What a schema is while it is drawn: the schema beside strategies for values that fit it and values that do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from hypothesis import strategies as st

from .data import JSON, json_objects, json_values, texts

Schema = dict[str, JSON] | bool
Values = st.SearchStrategy[JSON]

VALUES: Mapping[str, Values] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "number": st.integers(-100, 100) | st.floats(allow_nan=False, allow_infinity=False, width=32),
    "string": texts(),
    "array": st.lists(json_values(max_leaves=2), max_size=3),
    "object": json_objects(max_size=2),
}
"""Values of each type. `integer` is none here: 1.5 misses it as 5 misses a maximum of 4."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema, values that fit it, and values that miss it though they are of one of its `types` (None: none do)."""

    schema: Schema
    fits: Values
    misses_inside: Values | None
    types: frozenset[str] = frozenset(VALUES)
    definitions: Mapping[str, Schema] = field(default_factory=dict[str, Schema])

    @property
    def misses(self) -> Values | None:
        """Values that do not fit, of a right type or of another one; None where everything fits."""
        outside = [VALUES[kind] for kind in VALUES if kind not in self.types]
        inside = [] if self.misses_inside is None else [self.misses_inside]
        return st.one_of(*inside, *outside) if inside or outside else None


def typed(kind: str, schema: Schema, fits: Values, misses_inside: Values | None, *parts: Shape) -> Shape:
    """A shape of one type; `parts` are the shapes within it, whose definitions it hands on."""
    return Shape(schema, fits, misses_inside, frozenset({kind}), joined(parts))


def joined(shapes: Sequence[Shape]) -> dict[str, Schema]:
    """The definitions of several shapes. Equal names stand for equal schemas."""
    found: dict[str, Schema] = {}
    for shape in shapes:
        found.update(shape.definitions)
    return found


def referred(shape: Shape) -> Shape:
    """The same shape by way of a `$ref`, its schema among the definitions."""
    name = definition_name(shape.schema)
    definitions = {**shape.definitions, name: shape.schema}
    return Shape({"$ref": f"#/$defs/{name}"}, shape.fits, shape.misses_inside, shape.types, definitions)


def definition_name(schema: Schema) -> str:
    """A name that only this schema has, so that definitions drawn apart from each other can be put together."""
    return f"d{crc32(json.dumps(schema, sort_keys=True).encode()):x}"


def key_of(value: JSON) -> object:
    """A key that is equal where JSON calls values equal: `True` is not 1, 1 is 1.0."""
    if isinstance(value, bool):
        return "boolean", value
    kind: object = value.__class__
    if kind is list:
        return "array", tuple(key_of(item) for item in value)
    if kind is dict:
        return "object", frozenset((name, key_of(item)) for name, item in value.items())
    return value


def type_of(value: JSON) -> str:
    """The JSON type of a value, "number" for integers too."""
    if value is None:
        return "null"
    known = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return known[type(value)]
