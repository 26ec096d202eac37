"""JSON Schemas of the subset that the kernel compiles, each with values that fit it and values that do not.

The values are made with the schema, not found by trying: that they fit is known without asking any validator.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from ._scalar_shapes import scalars
from ._shapes import Schema, Shape, Values, definition_name, joined, key_of, referred, typed
from .data import JSON, json_values, texts

_NAMES = ("city", "a", "b", "größe")
_KINDS = ("scalar", "object", "map", "array", "tuple", "alternatives", "split", "reference", "chain")
_NOTHING: dict[str, JSON] = {}
_EXTRA_NAMES = st.sampled_from(["x-1", "x-2"])


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema, values that fit it (at least one), and values that do not (none where everything fits)."""

    schema: dict[str, JSON]
    fitting: tuple[JSON, ...]
    unfitting: tuple[JSON, ...]


@st.composite
def schema_cases(draw: st.DrawFn, *, objects: bool = False, depth: int = 2) -> SchemaCase:
    """Schemas with their values; with `objects` the root describes an object, as the schema of a tool does.

    `depth` is how many schemas may lie within each other.
    """
    shape = draw(_objects(depth) if objects else _shapes(depth))
    schema: dict[str, JSON] = {} if isinstance(shape.schema, bool) else dict(shape.schema)
    if shape.definitions:
        schema["$defs"] = dict(shape.definitions)
    fitting = draw(st.lists(shape.fits, min_size=1, max_size=3))
    misses = shape.misses
    unfitting = [] if misses is None else draw(st.lists(misses, min_size=1, max_size=3))
    return SchemaCase(schema, tuple(fitting), tuple(unfitting))


def schemas(*, objects: bool = False, depth: int = 2) -> st.SearchStrategy[dict[str, JSON]]:
    """Schemas alone."""
    return schema_cases(objects=objects, depth=depth).map(lambda case: case.schema)


@st.composite
def _shapes(draw: st.DrawFn, depth: int) -> Shape:
    """Any shape; one that holds others where `depth` allows it. The kind is drawn first: none crowds out another."""
    kind = draw(st.sampled_from(_KINDS)) if depth > 0 else "scalar"
    if kind == "chain":
        return _chain(draw(scalars()))
    if kind == "split":
        return _split(draw(scalars()))
    if kind == "reference":
        return referred(draw(_shapes(depth - 1)))
    nested = {"object": _objects, "array": _arrays, "tuple": _tuples, "alternatives": _alternatives}
    if kind in nested:
        return draw(nested[kind](depth))
    return draw(_maps() if kind == "map" else scalars())


@st.composite
def _objects(draw: st.DrawFn, depth: int) -> Shape:
    names = draw(st.lists(st.sampled_from(_NAMES), max_size=3, unique=True))
    parts = {name: draw(_shapes(depth - 1)) for name in names}
    required = [name for name in names if draw(st.booleans())]
    additional = draw(st.sampled_from([True, False]) | scalars())
    schema: dict[str, JSON] = {"type": "object", "properties": {name: parts[name].schema for name in names}}
    if required:
        schema["required"] = required
    shapes = list(parts.values())
    if isinstance(additional, Shape):
        schema["additionalProperties"] = additional.schema
        shapes.append(additional)
    elif not additional:
        schema["additionalProperties"] = False
    optional = {name: shape.fits for name, shape in parts.items() if name not in required}
    fits = st.fixed_dictionaries({name: parts[name].fits for name in required}, optional=optional)
    misses = [_with(fits, st.just(name), shape.misses) for name, shape in parts.items() if shape.misses is not None]
    if required:
        misses.append(st.tuples(fits, st.sampled_from(required)).map(lambda drawn: _without(*drawn)))
    if isinstance(additional, Shape):
        if additional.misses is not None:
            misses.append(_with(fits, _EXTRA_NAMES, additional.misses))
        fits |= _with(fits, _EXTRA_NAMES, additional.fits)
    elif additional:
        fits |= _with(fits, _EXTRA_NAMES, json_values(max_leaves=2))
    else:
        misses.append(_with(fits, _EXTRA_NAMES, json_values(max_leaves=2)))
    return typed("object", schema, fits, st.one_of(*misses) if misses else None, *shapes)


def _with(objects: Values, names: st.SearchStrategy[str], values: Values) -> Values:
    return st.tuples(objects, names, values).map(lambda drawn: {**drawn[0], drawn[1]: drawn[2]})


def _without(given: dict[str, JSON], name: str) -> dict[str, JSON]:
    return {each: value for each, value in given.items() if each != name}


@st.composite
def _maps(draw: st.DrawFn) -> Shape:
    """Objects of any names, which are counted, and one schema for all values."""
    value = draw(scalars())
    least = draw(st.integers(0, 2))
    most = least + draw(st.integers(0, 2))
    schema: dict[str, JSON] = {
        "type": "object",
        "additionalProperties": value.schema,
        "minProperties": least,
        "maxProperties": most,
    }
    names = texts(max_size=4)
    misses: Values = st.dictionaries(names, value.fits, min_size=most + 1, max_size=most + 2)
    if least:
        misses |= st.dictionaries(names, value.fits, max_size=least - 1)
    if value.misses is not None:
        misses |= st.dictionaries(names, value.misses, min_size=1, max_size=3)
    return typed("object", schema, st.dictionaries(names, value.fits, min_size=least, max_size=most), misses, value)


@st.composite
def _arrays(draw: st.DrawFn, depth: int) -> Shape:
    item = draw(_shapes(depth - 1))
    least = draw(st.integers(0, 2))
    most = least + draw(st.integers(0, 2))
    schema: dict[str, JSON] = {"type": "array", "items": item.schema}
    fits: Values = st.lists(item.fits, min_size=least, max_size=most)
    misses: list[Values] = []
    kind = draw(st.sampled_from(["free", "bounded", "different"]))
    if kind == "bounded":
        schema |= {"minItems": least, "maxItems": most}
        misses.append(st.lists(item.fits, min_size=most + 1, max_size=most + 2))
    elif kind == "different":
        schema["uniqueItems"] = True
        misses.append(item.fits.map(lambda each: [each, each]))
        fits = st.lists(item.fits, max_size=most, unique_by=key_of)
    if item.misses is not None:
        misses.append(st.tuples(fits, item.misses).map(lambda drawn: [*drawn[0], drawn[1]]))
    return typed("array", schema, fits, st.one_of(*misses) if misses else None, item)


@st.composite
def _tuples(draw: st.DrawFn, depth: int) -> Shape:
    """`prefixItems`, with or without more items behind them."""
    first = draw(st.lists(_shapes(depth - 1), min_size=1, max_size=2))
    schema: dict[str, JSON] = {"type": "array", "prefixItems": [shape.schema for shape in first]}
    fits: Values = st.tuples(*[shape.fits for shape in first]).map(list)
    misses: list[Values] = [
        _replaced(fits, index, shape.misses) for index, shape in enumerate(first) if shape.misses is not None
    ]
    if draw(st.booleans()):
        schema["items"] = False
        misses.append(st.tuples(fits, json_values(max_leaves=1)).map(lambda drawn: [*drawn[0], drawn[1]]))
    return typed("array", schema, fits, st.one_of(*misses) if misses else None, *first)


def _replaced(lists: Values, index: int, values: Values) -> Values:
    return st.tuples(lists, values).map(lambda drawn: [*drawn[0][:index], drawn[1], *drawn[0][index + 1 :]])


@st.composite
def _alternatives(draw: st.DrawFn, depth: int) -> Shape:
    """`anyOf` or `oneOf`. The alternatives have no type in common, so what fits one of them misses the others."""
    shapes: list[Shape] = []
    for shape in draw(st.lists(_shapes(depth - 1), min_size=1, max_size=3)):
        if not any(shape.types & other.types for other in shapes):
            shapes.append(shape)
    keyword = draw(st.sampled_from(["anyOf", "oneOf"]))
    misses = [shape.misses_inside for shape in shapes if shape.misses_inside is not None]
    return Shape(
        {keyword: [shape.schema for shape in shapes]},
        st.one_of(*[shape.fits for shape in shapes]),
        st.one_of(*misses) if misses else None,
        frozenset[str]().union(*[shape.types for shape in shapes]),
        joined(shapes),
    )


def _split(shape: Shape) -> Shape:
    """`allOf`: the keywords of a scalar, each in a schema of its own."""
    return Shape(_one_each(shape.schema), shape.fits, shape.misses_inside, shape.types)


def _one_each(schema: Schema) -> Schema:
    if isinstance(schema, bool) or len(schema) < 2:
        return {"allOf": [schema]}
    return {"allOf": [{keyword: value} for keyword, value in schema.items()]}


def _chain(value: Shape) -> Shape:
    """A schema that refers to itself: values linked to each other by "next"."""
    name = definition_name({"chain of": value.schema})
    node: Schema = {
        "type": "object",
        "properties": {"value": value.schema, "next": {"$ref": f"#/$defs/{name}"}},
        "required": ["value"],
    }
    ends = value.fits.map(lambda each: {"value": each})
    links: Values = st.recursive(ends, lambda rest: _link(value.fits, rest), max_leaves=3)
    broken: Values = st.just(_NOTHING)
    if value.misses is not None:
        broken |= value.misses.map(lambda each: {"value": each})
    misses = broken | _link(value.fits, broken)
    shape = typed("object", {"$ref": f"#/$defs/{name}"}, links, misses, value)
    return Shape(shape.schema, shape.fits, shape.misses_inside, shape.types, {**shape.definitions, name: node})


def _link(values: Values, rest: Values) -> Values:
    return st.tuples(values, rest).map(lambda drawn: {"value": drawn[0], "next": drawn[1]})
