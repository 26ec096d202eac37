"""JSON Schemas for Gemini: what is said otherwise, and that all else stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gotato_gateway._gemini_schema import wire_schema
from gotato_testkit import strategies as gst

from ..effort import costly


@pytest.mark.parametrize(
    ("given_schema", "sent"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": None, "type": "null"}, {"type": "null"}),
        ({"enum": [1, "a"]}, {"enum": [1, "a"]}),
        ({"enum": [None, "a"]}, {}),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 9.5}, {"minimum": 0, "maximum": 9.5}),
        ({"exclusiveMinimum": 0, "minimum": 3}, {"minimum": 3}),
        ({"allOf": [{"$ref": "#/$defs/a"}], "description": "d"}, {"$ref": "#/$defs/a"}),
        ({"allOf": [{"type": "string"}], "title": "t"}, {"type": "string", "title": "t"}),
        ({"$ref": "#/$defs/a", "default": 1}, {"$ref": "#/$defs/a"}),
        ({"$schema": "s", "examples": [1], "discriminator": {}}, {}),
        ({"items": True, "additionalProperties": False}, {"items": True, "additionalProperties": False}),
    ],
)
def test_what_is_said_otherwise(given_schema: dict[str, Any], sent: dict[str, Any]) -> None:
    """Keywords that are not heeded are said with others, at every depth."""
    assert wire_schema(given_schema) == sent
    for deeper in ({"properties": {"const": given_schema}}, {"anyOf": [given_schema]}, {"items": given_schema}):
        (keyword, inner) = next(iter(wire_schema(deeper).items()))
        found = inner if keyword == "items" else inner["const"] if keyword == "properties" else inner[0]
        assert found == sent


def test_names_are_no_keywords() -> None:
    """A property may have the name of a keyword, and values stay what they are."""
    schema = {"type": "object", "properties": {"examples": {"type": "string"}}, "default": {"const": 1}}
    assert wire_schema(schema) == schema


@costly(4)
@given(gst.schemas())
def test_the_schema_that_was_given_is_left_alone(schema: dict[str, Any]) -> None:
    """The caller's schema does not change, and what is sent has none of the keywords that Gemini has no word for."""
    before = json.dumps(schema)
    sent = wire_schema(schema)
    assert json.dumps(schema) == before
    assert wire_schema(sent) == sent
