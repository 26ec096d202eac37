"""`jsonschema_compiler`: what the full draft accepts, and what it says about what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import pytest

from gotato_py import SchemaViolation, compile_schema
from gotato_toolregistry import jsonschema_compiler

METASCHEMA = "https://json-schema.org/draft/2020-12/schema"
OUTSIDE = {"not": False}
"""A keyword outside of the kernel's subset that changes nothing: with it, the full compiler has to do the work."""


def violation(schema: Mapping[str, object], value: object) -> SchemaViolation:
    """The violation that there must be."""
    found = jsonschema_compiler(schema)(value)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", **OUTSIDE}, 5.0),
        ({"type": "number", **OUTSIDE}, 10**400),
        ({"type": "array", **OUTSIDE}, (1, 2)),
        ({"type": "object", **OUTSIDE}, MappingProxyType({"a": 1})),
        ({"multipleOf": 0.1, **OUTSIDE}, 0.3),
        ({"const": 1, **OUTSIDE}, 1.0),
        ({"format": "date", "default": 1, "x-mine": {"dependencies": 1}, **OUTSIDE}, "no date"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}}, "ab"),
        ({"contains": {"type": "null"}, "minContains": 0}, [1]),
        ({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False}, {"n_a": 1}),
        ({"dependentRequired": {"$schema": ["b"]}}, {"b": 1}),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}),
        ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "integer"}}}, 1),
        ({"$ref": "item", "$id": "https://x.example/", "$defs": {"x": {"$id": "item", "type": "integer"}}}, 1),
        ({"$ref": "#/x-lib/a%20b~1c", "x-lib": {"a b/c": {"type": "integer"}}}, 1),
        ({"properties": {"schema": {"$ref": METASCHEMA}}}, {"schema": {"type": "integer"}}),
    ],
)
def test_accepts(schema: Mapping[str, object], value: object) -> None:
    """The whole draft is known, values are what the kernel takes them for, and unknown keywords are notes."""
    assert jsonschema_compiler(schema)(value) is None


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer", **OUTSIDE}, True, "$: expected an integer, got true"),
        ({"type": "number", **OUTSIDE}, float("nan"), "$: expected a number, got nan"),
        ({"type": ["string", "null"], **OUTSIDE}, [], "$: expected a string or null, got an empty array"),
        ({"enum": ["a", 1], **OUTSIDE}, True, '$: expected one of "a", 1, got another value, true'),
        (
            {"uniqueItems": True, **OUTSIDE},
            [[1], [True], [1]],
            "$: expected an array of different items, got an array with equal ones",
        ),
        ({"required": ["a", "b"], **OUTSIDE}, {"a": 1}, "$.b: missing, and it is required"),
        ({"properties": {"a": False}, **OUTSIDE}, {"a": None}, "$.a: expected nothing at all, got null"),
        ({"prefixItems": [True], "items": False, **OUTSIDE}, [1, 2], "$[1]: expected nothing at all, got 2"),
        (
            {"oneOf": [True, {"type": "integer"}, {"type": "null"}], **OUTSIDE},
            1,
            "$: expected a value that fits exactly one of the alternatives, got one that fits 2 of them",
        ),
        (
            {"not": {"type": "string"}},
            "abc",
            '$: expected a value that does not fit "not", got a string of 3 characters',
        ),
        (
            {"if": {"type": "string"}, "then": {"minLength": 2}},
            "",
            "$: expected a string of at least 2 characters, got an empty string",
        ),
        (
            {"contains": {"type": "null"}},
            [1],
            '$: expected an array with an item that fits "contains", got an array of 1 items',
        ),
        (
            {"contains": {"type": "null"}, "minContains": 2},
            [None],
            '$: expected an array of at least 2 items that fit "contains", got an array of 1 items',
        ),
        (
            {"contains": {"type": "null"}, "maxContains": 1},
            [None, None],
            '$: expected an array of at most 1 items that fit "contains", got an array of 2 items',
        ),
        (
            {"properties": {"a": True}, "patternProperties": {"^n_": True}, "additionalProperties": False},
            {"b": 1},
            "$.b: expected no such property (there are \"a\"; others must match '^n_'), got 1",
        ),
        (
            {"patternProperties": {"^n_": {"type": "integer"}}},
            {"n_a": "x"},
            "$.n_a: expected an integer, got a string of 1 character",
        ),
        (
            {"additionalProperties": {"type": "null"}, **OUTSIDE},
            {"c": None, "b": 1, "a": 2},
            "$.b: expected null, got 1",
        ),
        (
            {"propertyNames": {"maxLength": 1}},
            {"a": 1, "ab": 1},
            "$.ab: expected a property name that is a string of at most 1 characters, got a string of 2 characters",
        ),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "$.b: missing, and it is required"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, "$.b: missing, and it is required"),
        (
            {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
            {"a": 1, "b": 2},
            "$.b: expected no such property, got 2",
        ),
        (
            {"unevaluatedProperties": {"type": "null"}},
            {"b": 2},
            '$.b: expected a property that fits "unevaluatedProperties", got 2',
        ),
        (
            {"prefixItems": [True], "unevaluatedItems": False},
            [1, 2],
            "$: expected an array without other items than its schema tells of, got an array of 2 items",
        ),
        ({"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", "type": "null"}}}, 1, "$: expected null, got 1"),
    ],
)
def test_says_what_is_wrong(schema: Mapping[str, object], value: object, said: str) -> None:
    """A violation names the place, what was expected there, and what came, in the kernel's style."""
    assert str(violation(schema, value)) == said


def test_path_leads_to_the_value() -> None:
    """The path goes through arrays and objects to the value at fault, names that are no identifiers in brackets."""
    price = {"type": "object", "properties": {"price": {"type": "number"}}}
    schema = {"properties": {"items": {"items": price}, "a b": {"prefixItems": [True, {"type": "null"}]}}, **OUTSIDE}
    assert violation(schema, {"items": [{}, {}, {"price": "x"}]}).path == "$.items[2].price"
    assert violation(schema, {"a b": [0, 0]}).path == '$["a b"][1]'
    assert len(violation({"additionalProperties": False, **OUTSIDE}, {"x" * 5000: 1}).path) < 100


def test_nearest_alternative_is_told() -> None:
    """Of alternatives told apart by a constant, the one whose constant matches is told; else what they share."""
    cat = {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}}
    dog = {"properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}}
    schema = {"oneOf": [cat, dog, {"type": "null"}], **OUTSIDE}
    assert str(violation(schema, {"kind": "dog", "name": 1})) == "$.name: expected a string, got 1"
    assert str(violation(schema, {"kind": 1})) == '$.kind: expected "cat" or "dog", got another value, 1'
    either = {"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": False}}], **OUTSIDE}
    said = "$: expected a value that fits one of the alternatives, got an object"
    assert str(violation(either, {"a": 1, "b": 1})) == said


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"type": "string"}},
        {"type": "integer", **OUTSIDE},
        {"const": "x", **OUTSIDE},
        {"anyOf": [{"type": "null"}, {"maxLength": 3}], **OUTSIDE},
        {"pattern": "^x", **OUTSIDE},
        {"if": True, "then": False},
    ],
)
def test_values_are_never_quoted(schema: Mapping[str, object]) -> None:
    """What came is told by its kind: it may be a prompt, and it may be long."""
    said = str(violation(schema, "a secret" * 1000))
    assert "secret" not in said
    assert len(said) < 200


def test_long_lists_are_cut() -> None:
    """A violation stays short however many names and patterns the schema has."""
    names = [f"name{number}" for number in range(100)]
    properties = {"properties": dict.fromkeys(names, True), "additionalProperties": False, **OUTSIDE}
    assert len(violation(properties, {"x": 1}).expected) < 400
    patterns = {"patternProperties": dict.fromkeys(names, True), "additionalProperties": False}
    assert len(violation(patterns, {"x": 1}).expected) < 400


def test_what_the_kernel_knows_is_left_to_it() -> None:
    """A schema of the kernel's subset gives the kernel's violations, word for word."""
    schema = {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"enum": ["all"]}]}}}
    values: list[object] = [{"n": 1}, {"n": "all"}, {"n": "none"}, []]
    for value in values:
        assert jsonschema_compiler(schema)(value) == compile_schema(schema)(value)


def test_ids_below_the_root_change_what_a_reference_means() -> None:
    """A reference is resolved against the nearest $id, which the kernel's subset takes for a note."""
    inner = {"$id": "inner", "$defs": {"x": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/x"}}}
    schema = {"properties": {"in": inner}, "$defs": {"x": {"type": "integer"}}}
    assert jsonschema_compiler(schema)({"in": {"a": None}}) is None
    assert str(violation(schema, {"in": {"a": 1}})) == "$.in.a: expected null, got 1"


def test_recursive_references() -> None:
    """A schema may refer to itself inside the value, by any of the ways that the draft has."""
    node = {"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}, "type": "object"}
    for schema in (
        node,
        {"$defs": {"n": node}, "$ref": "#node"},
        {"additionalProperties": {"$ref": "#"}, "type": "object", **OUTSIDE},
    ):
        assert jsonschema_compiler(schema)({"next": {"next": {}}}) is None
        assert violation(schema, {"next": {"next": 1}}).path == "$.next.next"


def test_older_drafts_are_read_as_this_one() -> None:
    """`$schema` is a note at any depth: it changes neither the draft nor what values are taken for."""
    old = {"$schema": "http://json-schema.org/draft-07/schema#"}
    schema = {
        **old,
        "$ref": "#/$defs/x",
        "maxItems": 1,
        "$defs": {"x": {**old, "type": "array", "prefixItems": [OUTSIDE]}},
    }
    assert jsonschema_compiler(schema)((1,)) is None
    assert str(violation(schema, (1, 2))) == "$: expected an array of at most 1 items, got an array of 2 items"


def test_deep_value_is_a_violation() -> None:
    """A value nested deeper than Python can follow is a violation, not an exception."""
    value: dict[str, Any] = {}
    for _ in range(2_000):
        value = {"next": value}
    found = violation({"additionalProperties": {"$ref": "#"}, **OUTSIDE}, value)
    assert str(found) == "$: expected a value that is not nested too deeply to be checked, got deeper nesting"


def test_equal_schemas_are_compiled_once() -> None:
    """Agents that are made with the same tools share what was compiled, and nobody can change it later."""
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "not": {"required": ["b"]}}
    validate = jsonschema_compiler(schema)
    assert jsonschema_compiler(MappingProxyType(json.loads(json.dumps(schema)))) is validate
    schema["required"].append("c")
    assert validate({"a": 1}) is None
    assert jsonschema_compiler(schema)({"a": 1}) is not None


def test_threads_share_a_validator() -> None:
    """A compiled schema may be used from any number of threads at once."""
    validate = jsonschema_compiler(
        {"$ref": "#/$defs/n", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}, "not": {"const": 1}}}}
    )

    def check(bad: int) -> str:
        return str(validate([[[]]] * bad + [[[1]]]))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(check, range(40)))
    assert found == [f'$[{bad}][0][0]: expected a value that does not fit "not", got 1' for bad in range(40)]


def test_importing_the_package_is_cheap() -> None:
    """`jsonschema` is imported when the first schema needs it, not before."""
    program = """
import sys
from gotato_toolregistry import jsonschema_compiler
assert jsonschema_compiler({"type": "object"})({}) is None
assert "jsonschema" not in sys.modules
assert jsonschema_compiler({"not": {"type": "object"}})({}) is not None
assert "jsonschema" in sys.modules
"""
    command = [sys.executable, "-c", f"import sys\nsys.path[:0] = {sys.path!r}\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
