"""A JSON Schema for an answer: its name, and whether the provider can hold the model to it strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ._json import Object, items, obj, text

_STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "$ref", "$defs", "$schema",
}  # fmt: skip


def schema_name(schema: Mapping[str, Any]) -> str:
    """A name as OpenAI takes it, from the schema's title: at most 64 of `[A-Za-z0-9_-]`."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text(schema.get("title")))[:64].strip("_") or "answer"


def fits_strict(schema: object) -> bool:
    """Whether strict mode takes the schema ("Structured outputs", OpenAI): closed objects with all members required."""
    if not isinstance(schema, Mapping):
        return False
    keywords: Object = obj(dict(schema))  # pyright: ignore[reportUnknownArgumentType]  # as in obj
    if not keywords.keys() <= _STRICT_KEYWORDS:
        return False
    properties = obj(keywords.get("properties"))
    closed = keywords.get("additionalProperties") is False
    if (keywords.get("type") == "object" or properties) and not (
        closed and set(items(keywords.get("required"))) == properties.keys()
    ):
        return False
    inner = [*properties.values(), *obj(keywords.get("$defs")).values(), *items(keywords.get("anyOf"))]
    return all(fits_strict(each) for each in inner) and ("items" not in keywords or fits_strict(keywords["items"]))
