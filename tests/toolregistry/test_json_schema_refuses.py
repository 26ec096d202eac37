"""What `jsonschema_compiler` refuses to compile: broken schemas, and references that lead nowhere or elsewhere."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from gotato_py import InvalidArgument
from gotato_toolregistry import jsonschema_compiler

OUTSIDE = {"not": False}
"""A keyword outside of the kernel's subset that changes nothing: with it, the full compiler has to do the work."""


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "int", **OUTSIDE}, "#/type: expected one of "),
        ({"properties": {"a": {"minLength": -1, **OUTSIDE}}}, "#/properties/a/minLength: expected at least 0, got -1"),
        ({"not": 1}, "#/not: expected an object or a boolean, got 1"),
        ({"if": [True]}, "#/if: expected an object or a boolean, got an array of 1 items"),
        ({"dependentRequired": {"a": "b"}}, "#/dependentRequired/a: expected an array, got a string of 1 character"),
        ({"items": [True], **OUTSIDE}, "#/items: expected an object or a boolean, got an array of 1 items"),
        ({"title": 1, **OUTSIDE}, "#/title: expected a string, got 1"),
        ({"pattern": "(", **OUTSIDE}, "#/pattern: expected a regular expression that Python knows, got '(' (missing )"),
        (
            {"patternProperties": {"(": True}},
            "#/patternProperties: expected a regular expression that Python knows, got '(' (missing )",
        ),
        ({"$ref": "#/$defs/x", **OUTSIDE}, "#/$ref: there is no #/$defs/x in the schema"),
        ({"properties": {"a": {"$ref": "#x"}}}, "#/properties/a/$ref: there is no #x in the schema"),
        ({"title": "abc", "$ref": "#/title/0"}, "#/$ref: #/title/0 is no schema"),
        ({"title": "abc", "$ref": "#/title/x"}, "#/$ref: there is no #/title/x in the schema"),
        ({"maximum": 1, "$ref": "#/maximum/x"}, "#/$ref: there is no #/maximum/x in the schema"),
        ({"x-lib": {"type": "int"}, "$ref": "#/x-lib"}, "#/$ref/type: expected one of "),
        ({"x-lib": {"$ref": "#/x-lib/b"}, "$ref": "#/x-lib"}, "#/$ref/$ref: there is no #/x-lib/b in the schema"),
        (
            {"$defs": {"x": {"$ref": "https://x.example/y"}}},
            "#/$defs/x/$ref: it leads to another document, and none is ever",
        ),
        ({"$ref": "other.json"}, "#/$ref: it leads to another document"),
        ({"$ref": "http://[bad"}, "#/$ref: it leads to another document"),
        ({"$ref": "#"}, "#: its references only lead back to itself"),
        ({"not": {"$ref": "#"}}, "#: its references only lead back to itself"),
        (
            {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"if": {"$ref": "#/$defs/b"}}}},
            "#/$defs/b: its references only",
        ),
        ({"$dynamicAnchor": "a", "$dynamicRef": "#a"}, "#: its references only lead back to itself"),
        (
            {"dependencies": {"a": ["b"]}},
            "#/dependencies: draft 2020-12 has no keyword 'dependencies'; it has dependentRequired",
        ),
        ({"items": {"$recursiveRef": "#", **OUTSIDE}}, "#/items/$recursiveRef: draft 2020-12 has no keyword"),
        ({"default": object()}, "#/default: must be JSON data, not object"),
    ],
)
def test_refuses_to_compile(schema: Mapping[str, object], said: str) -> None:
    """A broken schema is refused when it is compiled, with the place in it."""
    with pytest.raises(InvalidArgument) as caught:
        jsonschema_compiler(schema)
    assert str(caught.value).startswith(f"JSON Schema at {said}")
    assert len(str(caught.value)) < 300


def test_refuses_what_is_no_schema() -> None:
    """Only a mapping can be compiled, and only one that is not nested without end."""
    wrong: Any = True
    with pytest.raises(InvalidArgument, match="must be a mapping, not bool"):
        jsonschema_compiler(wrong)
    endless: dict[str, Any] = {}
    endless["not"] = endless
    with pytest.raises(InvalidArgument, match="JSON Schema is nested too deeply, or holds itself"):
        jsonschema_compiler(endless)
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"not": deep}
    with pytest.raises(InvalidArgument, match="the JSON Schema is nested too deeply"):
        jsonschema_compiler(deep)


def test_nothing_is_fetched() -> None:
    """A reference to another document is refused without a connection to where it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        reference = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        with pytest.raises(InvalidArgument) as caught:
            jsonschema_compiler({"properties": {"a": {"$ref": reference}}})
        assert reference not in str(caught.value), "an address may hold a key"
        with pytest.raises(BlockingIOError):
            server.accept()
