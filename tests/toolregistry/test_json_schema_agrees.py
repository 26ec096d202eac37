"""The full compiler against the kernel's and against `jsonschema` itself: they accept and refuse the same values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gotato_py import compile_schema
from gotato_toolregistry import jsonschema_compiler
from gotato_toolregistry._full_schema import compile_full

from ..effort import costly
from ..kernel.test_schema import COUNT, JSON, schemas

INNER: list[Any] = [
    True,
    False,
    {"type": "integer"},
    {"type": ["object", "array"]},
    {"const": 1},
    {"minLength": 2},
    {"minItems": 1},
    {"prefixItems": [{"type": "integer"}]},
    {"items": {"type": "null"}},
    {"contains": {"type": "null"}},
    {"required": ["a"]},
    {"maxProperties": 1},
    {"properties": {"a": {"type": "integer"}, "b": True}},
    {"additionalProperties": {"type": "null"}},
    {"anyOf": [{"type": "null"}, {"properties": {"c": True}}]},
    {"$ref": "#/$defs/x"},
]
DEFINITIONS = st.sampled_from([True, {"type": "integer"}, {"type": ["array", "null"]}])


def wrapped(schema: Any, definition: Any) -> dict[str, Any]:
    """A schema of the strategies as a whole one."""
    return {"allOf": [schema], "$defs": {"x": definition}}


def beyond_the_subset() -> st.SearchStrategy[Any]:
    """Schemas with the keywords that only the full draft has."""
    inner = st.sampled_from(INNER)
    property_map = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "contains": inner,
            "minContains": COUNT,
            "maxContains": COUNT,
            "properties": property_map,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "[bc]$"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": st.sampled_from([True, False, {"maxLength": 1}, {"enum": ["a", "b"]}]),
            "dependentRequired": st.dictionaries(
                st.sampled_from("abc"), st.lists(st.sampled_from("abc"), unique=True, max_size=2), max_size=2
            ),
            "dependentSchemas": property_map,
            "unevaluatedProperties": inner,
            "unevaluatedItems": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
        },
    )


@costly(2)
@given(schemas(), DEFINITIONS, JSON)
def test_agrees_with_the_kernel(schema: Any, definition: Any, value: Any) -> None:
    """For a schema of the kernel's subset, the full draft accepts what the kernel accepts."""
    whole = wrapped(schema, definition)
    expected = compile_schema(whole)(value)
    assert (compile_full(whole)(value) is None) is (expected is None)
    assert jsonschema_compiler(whole)(value) == expected


def one_property_each(value: Any) -> Any:
    """The value with at most one property in each object: of several that are wrong, either may be told."""
    if isinstance(value, dict):
        return {name: one_property_each(each) for name, each in list(value.items())[:1]}
    return [one_property_each(each) for each in value] if isinstance(value, list) else value


def one_constant_each(schema: Any) -> Any:
    """The schema without const where there is an enum, too: the kernel tells of both in one."""
    if isinstance(schema, dict):
        dropped = "const" if "enum" in schema else ""
        return {
            name: each if name in {"enum", "const"} else one_constant_each(each)
            for name, each in schema.items()
            if name != dropped
        }
    return [one_constant_each(each) for each in schema] if isinstance(schema, list) else schema


@costly(2)
@given(schemas().map(one_constant_each), DEFINITIONS, JSON.map(one_property_each))
def test_says_what_the_kernel_says(schema: Any, definition: Any, value: Any) -> None:
    """The full compiler tells the kernel's first violation, with its path, in its words."""
    whole = wrapped(schema, definition)
    assert str(compile_full(whole)(value)) == str(compile_schema(whole)(value))


@costly(2)
@given(beyond_the_subset(), DEFINITIONS, JSON)
def test_agrees_with_jsonschema(schema: Any, definition: Any, value: Any) -> None:
    """For any other schema, it accepts what `jsonschema` itself accepts, and its violations are complete."""
    whole = wrapped(schema, definition)
    found = jsonschema_compiler(whole)(value)
    assert (found is None) is Draft202012Validator(whole).is_valid(value)
    if found is not None:
        assert found.path.startswith("$")
        assert found.expected
        assert found.got
