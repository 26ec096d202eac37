"""The JSON Schema subset: what it accepts, what it says about what it does not, and what it refuses to compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gotato_py import InvalidArgument
from gotato_py.schema import compile_schema
from gotato_py.violations import SchemaViolation

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0, -2.0, 3.5])
    | st.text("abé", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
COUNT = st.integers(0, 3)
NUMBER = st.integers(-3, 3) | st.sampled_from([0.5, 2.5])
TYPES = ["string", "integer", "number", "boolean", "null", "object", "array"]


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of the subset. multipleOf is left to integers and halves, where binary and decimal agree."""
    leaf = st.booleans() | st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "enum": st.lists(JSON, min_size=1, max_size=3),
            "const": JSON,
            "minLength": COUNT,
            "maxLength": COUNT,
            "pattern": st.sampled_from(["a", "^b", "é$", "^[ab]*$"]),
            "minimum": NUMBER,
            "maximum": NUMBER,
            "exclusiveMinimum": NUMBER,
            "exclusiveMaximum": NUMBER,
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minItems": COUNT,
            "maxItems": COUNT,
            "uniqueItems": st.booleans(),
            "minProperties": COUNT,
            "maxProperties": COUNT,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "title": st.just("note"),
        },
    )
    return st.recursive(leaf, _nested, max_leaves=6)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": several,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "$ref": st.just("#/$defs/x"),
        },
    )


def violation(schema: Mapping[str, object], value: object) -> SchemaViolation:
    """The violation that there must be."""
    found = compile_schema(schema)(value)
    assert found is not None
    return found


@given(schemas(), st.sampled_from([True, {"type": "integer"}, {"type": ["array", "null"]}]), JSON)
def test_agrees_with_jsonschema(schema: Any, definition: Any, value: Any) -> None:
    """A value fits a schema of the subset exactly if the reference implementation says so."""
    whole = {"allOf": [schema], "$defs": {"x": definition}}
    expected = Draft202012Validator(whole).is_valid(value)
    assert (compile_schema(whole)(value) is None) is expected


@given(schemas(), JSON)
def test_violation_is_bounded_and_rooted(schema: Any, value: object) -> None:
    """Every violation has a path from the root and says both sides in words, whatever the schema."""
    found = compile_schema({"allOf": [schema], "$defs": {"x": True}})(value)
    if found is not None:
        assert found.path.startswith("$")
        assert found.expected
        assert found.got
        told = (
            "missing, and it is required" if found.got == "nothing" else f"expected {found.expected}, got {found.got}"
        )
        assert str(found) == f"{found.path}: {told}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 5.0),
        ({"type": "number"}, 10**400),
        ({"const": 1}, 1.0),
        ({"enum": [{"a": [1, True]}]}, {"a": [1.0, True]}),
        ({"multipleOf": 0.1}, 0.3),
        ({"multipleOf": 1e-300}, 1.0),
        ({"minLength": 1, "maxLength": 1}, "😀"),
        ({"pattern": "b"}, "abc"),
        ({"type": "array"}, (1, 2)),
        ({"format": "date", "default": 1, "$comment": "note"}, "no date"),
        ({}, object()),
    ],
)
def test_accepts(schema: Mapping[str, object], value: object) -> None:
    """What JSON means is accepted: integral floats, equal constants, decimal multiples, code points, notes."""
    assert compile_schema(schema)(value) is None


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, True, "$: expected an integer, got true"),
        ({"type": "integer"}, "5", "$: expected an integer, got a string of 1 character"),
        ({"type": "number"}, True, "$: expected a number, got true"),
        ({"type": "number"}, float("nan"), "$: expected a number, got nan"),
        ({"type": "integer"}, 5.5, "$: expected an integer, got 5.5"),
        ({"type": ["string", "null"]}, [], "$: expected a string or null, got an empty array"),
        ({"type": "null"}, {}, "$: expected null, got an object"),
        ({"type": "null"}, "", "$: expected null, got an empty string"),
        ({"type": "null"}, 10**30, "$: expected null, got an integer of more than 20 digits"),
        ({"type": "object"}, object(), "$: expected an object, got a Python object"),
        ({"const": True}, 1, "$: expected true, got another value, 1"),
        ({"enum": ["a", "b"]}, "c", '$: expected one of "a", "b", got another value, a string of 1 character'),
        ({"enum": ["a"]}, object(), '$: expected "a", got another value, a Python object'),
        ({"enum": ["a", 1], "const": 1}, "a", "$: expected 1, got another value, a string of 1 character"),
        ({"enum": [1], "const": 2}, 1, "$: expected no value: none fits its enum and const, got another value, 1"),
        ({"minLength": 2}, "a", "$: expected a string of at least 2 characters, got a string of 1 character"),
        ({"maxLength": 1}, "ab", "$: expected a string of at most 1 characters, got a string of 2 characters"),
        ({"pattern": "^a"}, "ba", "$: expected a string that matches '^a', got a string that does not match"),
        ({"minimum": 1}, 0, "$: expected at least 1, got 0"),
        ({"maximum": 1}, 2, "$: expected at most 1, got 2"),
        ({"exclusiveMinimum": 1}, 1, "$: expected more than 1, got 1"),
        ({"exclusiveMaximum": 1}, 1, "$: expected less than 1, got 1"),
        ({"multipleOf": 0.1}, 0.35, "$: expected a multiple of 0.1, got 0.35"),
        ({"minItems": 1}, [], "$: expected an array of at least 1 items, got an empty array"),
        ({"maxItems": 1}, [1, 2], "$: expected an array of at most 1 items, got an array of 2 items"),
        ({"uniqueItems": True}, [1, 1.0], "$: expected an array of different items, got an array with equal ones"),
        ({"required": ["a"]}, {}, "$.a: missing, and it is required"),
        ({"minProperties": 1}, {}, "$: expected an object of at least 1 properties, got one of 0"),
        ({"maxProperties": 0}, {"a": 1}, "$: expected an object of at most 0 properties, got one of 1"),
        (
            {"properties": {"a": True}, "additionalProperties": False},
            {"b": 1},
            '$.b: expected no such property (there are "a"), got 1',
        ),
        ({"additionalProperties": False}, {"b": 1}, "$.b: expected no such property (there are none), got 1"),
        ({"properties": {"a": False}}, {"a": None}, "$.a: expected nothing at all, got null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "$: expected a string or null, got 1"),
        (
            {"oneOf": [True, True]},
            1,
            "$: expected a value that fits exactly one of the alternatives, got one that fits 2 of them",
        ),
        ({"oneOf": [{"type": "string"}]}, 1, "$: expected a string, got 1"),
    ],
)
def test_says_what_is_wrong(schema: Mapping[str, object], value: object, said: str) -> None:
    """A violation names the place, what was expected there, and what came, never the text that came."""
    assert str(violation(schema, value)) == said


def test_path_leads_to_the_value() -> None:
    """The path goes through arrays and objects to the value at fault, names that are no identifiers in brackets."""
    price = {"type": "object", "properties": {"price": {"type": "number"}}}
    schema = {"properties": {"items": {"items": price}, "a b": {"prefixItems": [True, {"type": "null"}]}}}
    assert violation(schema, {"items": [{}, {}, {"price": "x"}]}).path == "$.items[2].price"
    assert violation(schema, {"a b": [0, 0]}).path == '$["a b"][1]'
    assert len(violation({"additionalProperties": False}, {"x" * 5000: 1}).path) < 100


def test_nearest_alternative_is_told() -> None:
    """Where no alternative of anyOf fits, the one that came furthest into the value is told."""
    schema = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "integer"}}}]}
    assert str(violation(schema, {"a": "x"})) == "$.a: expected an integer, got a string of 1 character"


def test_tagged_alternatives() -> None:
    """Of alternatives told apart by a constant, the one whose constant matches is told; else the constants."""
    cat = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}}
    dog = {"properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}}
    schema = {"oneOf": [cat, dog, {"type": "null"}]}
    assert str(violation(schema, {"kind": "dog", "name": 1})) == "$.name: expected a string, got 1"
    assert str(violation(schema, {"kind": 1})) == '$.kind: expected "cat" or "dog", got another value, 1'
    either = {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}]}
    assert (
        str(violation(either, {"a": 1, "b": 1}))
        == "$: expected a value that fits one of the alternatives, got an object"
    )


def test_long_lists_are_cut() -> None:
    """A violation stays short however many constants or properties the schema has."""
    names = [f"name{number}" for number in range(1000)]
    assert len(violation({"enum": names}, 1).expected) < 400
    properties = dict.fromkeys(names, True)
    assert len(violation({"properties": properties, "additionalProperties": False}, {"x": 1}).expected) < 400


def test_recursive_reference() -> None:
    """A definition may refer to itself inside the value, from the root too."""
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}, "type": "object"}}}
    assert compile_schema(schema)({"next": {"next": {}}}) is None
    assert violation(schema, {"next": {"next": 1}}).path == "$.next.next"
    root = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert violation(root, {"a": {"b": 1}}).path == "$.a.b"
    assert compile_schema({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": True}})({"a": 1}) is None


def test_reference_is_a_json_pointer() -> None:
    """$ref understands the escapes of JSON pointers and URIs, and goes below a definition."""
    schema = {
        "anyOf": [{"$ref": "#/$defs/a~1b%20c~0/items"}, {"$ref": "#/$defs/l/anyOf/1"}],
        "$defs": {"a/b c~": {"items": {"type": "null"}}, "l": {"anyOf": [True, {"type": "boolean"}]}},
    }
    validate = compile_schema(schema)
    assert validate(None) is None
    assert validate(True) is None
    assert validate(1) is not None


def test_deep_value_is_a_violation() -> None:
    """A value nested deeper than Python can follow is a violation, not an exception."""
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"next": value}
    assert violation({"additionalProperties": {"$ref": "#"}}, value).path == "$"
    while value:
        value = value.pop("next")  # freed from the outside in, which needs no recursion


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"if": True}, "#/if"),
        ({"properties": {"a": {"not": {}}}}, "#/properties/a/not"),
        ({"$defs": {"x": {"contains": {}}}}, "#/$defs/x/contains"),
        ({"properties": {"a": {"$defs": {"b": {"x-mine": 1}}}}}, "#/properties/a/$defs/b/x-mine"),
        ({"type": "int"}, "#/type"),
        ({"type": []}, "#/type"),
        ({"type": 1}, "#/type"),
        ({"enum": "abc"}, "#/enum"),
        ({"enum": [{1}]}, "#/enum"),
        ({"properties": []}, "#/properties"),
        ({"properties": {"a": 1}}, "#/properties/a"),
        ({"required": "a"}, "#/required"),
        ({"required": [1]}, "#/required"),
        ({"minLength": -1}, "#/minLength"),
        ({"maxItems": True}, "#/maxItems"),
        ({"minimum": "1"}, "#/minimum"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"uniqueItems": 1}, "#/uniqueItems"),
        ({"pattern": "("}, "#/pattern"),
        ({"pattern": 1}, "#/pattern"),
        ({"items": [True]}, "#/items"),
        ({"prefixItems": []}, "#/prefixItems"),
        ({"anyOf": {}}, "#/anyOf"),
        ({"$defs": 1}, "#/$defs"),
        ({"$ref": 1}, "#/$ref"),
        ({"$ref": "#/properties/a"}, "#/$ref"),
        ({"$ref": "https://example.org/schema"}, "#/$ref"),
        ({"$ref": "#/$defs/x"}, "#/$ref"),
        ({"$defs": {"x": {"anyOf": [True]}}, "$ref": "#/$defs/x/anyOf/1"}, "#/$ref"),
        ({"$ref": "#"}, "#/$ref"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}, "#/$defs/a/$ref"),
    ],
)
def test_refuses_to_compile(schema: Mapping[str, object], place: str) -> None:
    """A keyword outside the subset and a malformed one are refused, with the place in the schema."""
    with pytest.raises(InvalidArgument) as caught:
        compile_schema(schema, where="tool 'add'")
    assert str(caught.value).startswith(f"tool 'add': JSON Schema at {place}: ")
    assert place.rpartition("/")[2] in str(caught.value)


def test_refuses_what_is_no_schema() -> None:
    """Only a mapping can be compiled, and only one that is not nested without end."""
    with pytest.raises(InvalidArgument, match="must be a mapping, not bool"):
        compile_schema(True)  # type: ignore[arg-type]  # on purpose
    endless: dict[str, Any] = {}
    endless["items"] = endless
    with pytest.raises(InvalidArgument, match="nested too deeply"):
        compile_schema(endless)


def test_values_of_other_types_pass_a_keyword() -> None:
    """A keyword says nothing about values of another type than its own."""
    schema = {"minLength": 9, "minimum": 9, "multipleOf": 9, "minItems": 9, "items": False, "required": ["a"]}
    assert compile_schema(schema)(None) is None
    assert compile_schema(schema)(True) is None


def test_subclasses_are_their_json_type() -> None:
    """Subclasses of int, float and str count as what they are in JSON."""

    class Number(int):
        pass

    class Text(str):
        __slots__ = ()

    assert compile_schema({"type": "integer", "enum": [3]})(Number(3)) is None
    assert compile_schema({"type": "number", "const": "x"})(Number(3)) is not None
    assert compile_schema({"type": "string", "enum": ["x"]})(Text("x")) is None
