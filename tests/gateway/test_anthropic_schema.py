"""JSON Schemas for the answer, as Anthropic takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gotato_gateway._anthropic_schema import wire_schema
from gotato_gateway._claude_models import claude_quirks
from gotato_py import InvalidRequest
from gotato_testkit.strategies import schemas

from ..effort import costly
from .test_anthropic_request import HOME, NEW, OLD, optioned

PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_an_answer_by_schema() -> None:
    """The schema goes into `output_config`, closed, beside the effort."""
    config = optioned(NEW, response_schema=PERSON, reasoning_effort="low")["output_config"]
    assert config == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": {**PERSON, "additionalProperties": False}},
    }


def test_a_model_without_a_format() -> None:
    """An older model takes none, which is an error that says so."""
    with pytest.raises(InvalidRequest, match="response_schema"):
        optioned(claude_quirks(HOME, "claude-opus-4-1"), response_schema=PERSON)


def test_bounds_become_words() -> None:
    """What the format cannot hold the model to is told in the description; the kernel checks it all the same."""
    given_schema = {"type": "integer", "minimum": 1, "description": "How many", "examples": [3]}
    assert wire_schema(given_schema) == {"type": "integer", "description": "How many (minimum: 1)"}
    listed = {"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1, "maxItems": 3}
    assert wire_schema(listed) == {
        "type": "array",
        "items": {"type": "string", "format": "date"},
        "minItems": 1,
        "description": "(maxItems: 3)",
    }


def test_references_and_choices() -> None:
    """Definitions stay, a reference stands alone, and one of several is any of them."""
    schema = {"$defs": {"P": PERSON}, "oneOf": [{"$ref": "#/$defs/P", "title": "x"}, {"type": "null"}]}
    assert wire_schema(schema) == {
        "$defs": {"P": {**PERSON, "additionalProperties": False}},
        "anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "array", "items": True},
        {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
        {"definitions": {"N": {"type": "array", "items": {"$ref": "#/definitions/N"}}}, "$ref": "#/definitions/N"},
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {"enum": [{"a": 1}]},
        {"const": [1]},
        {"$defs": {"P": PERSON}, "allOf": [{"$ref": "#/$defs/P"}]},
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(25)}},
        {"type": "array", "items": {"anyOf": [{"type": ["string", "null"]} for _ in range(16)]}},
    ],
)
def test_what_the_format_cannot_say_is_said_in_words(schema: dict[str, Any]) -> None:
    """A schema with open objects, or within itself, goes into the system prompt; nothing is lost."""
    assert wire_schema(schema) is None
    body = optioned(OLD, response_schema=schema)
    assert "output_config" not in body
    assert json.dumps(schema, separators=(",", ":")) in body["system"]


@costly(4)
@given(schema=schemas())
def test_every_object_is_closed(schema: dict[str, Any]) -> None:
    """Whatever the schema, what is sent has closed objects only and none of the bounds that the server refuses."""
    sent = wire_schema(schema)
    if sent is not None:
        check(sent)


def check(schema: dict[str, Any]) -> None:
    """The server's rules, for a schema and those inside it."""
    assert not schema.keys() & {"minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems", "pattern"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        check(each)
