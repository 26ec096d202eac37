"""`jsonschema_compiler`: arguments checked by the whole of JSON Schema, draft 2020-12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from gotato_py import InvalidArgument, Validator, compile_schema

from ._plain import plain_json

_KEPT = 256


def jsonschema_compiler(schema: Mapping[str, object]) -> Validator:
    """Compiles a JSON Schema for `Agent(schema_compiler=jsonschema_compiler)`: every keyword of draft 2020-12.

    What the kernel's own compiler knows is left to it, some twenty times as fast; the rest is checked by the package
    `jsonschema`, which is imported when the first such schema comes. Both agree on every value, and both tell the first
    violation in the same words. As in the kernel, True is no integer and 5.0 is one, `multipleOf` is exact in decimal
    notation, patterns are Python's `re`, and `format` is a note that checks nothing; so is `$schema`.

    Nothing is ever fetched: a $ref leads into the schema itself or to the draft's own metaschema. Raises
    `InvalidArgument`, naming the place, for a schema that is not JSON data or that the draft forbids, a $ref that leads
    elsewhere or only back to itself, a pattern that `re` does not know, and a keyword that only older drafts have.
    Equal schemas are compiled once, the last 256 of them are kept.
    """
    if not isinstance(schema, Mapping):
        raise InvalidArgument(f"a JSON Schema must be a mapping, not {type(schema).__name__}")
    try:
        return _compiled(json.dumps(plain_json("JSON Schema", schema)))
    except RecursionError:
        raise InvalidArgument("the JSON Schema is nested too deeply") from None


@lru_cache(maxsize=_KEPT)  # compiling the full draft takes milliseconds, and an agent is cheap enough to be used once
def _compiled(text: str) -> Validator:
    schema = json.loads(text)
    # An $id below the root changes what a $ref means, which the kernel's subset does not know.
    if text.count('"$id"') == ("$id" in schema):
        try:
            return compile_schema(schema)
        except InvalidArgument:
            pass  # outside the subset, or broken: the full compiler knows which
    full = import_module("gotato_toolregistry._full_schema")  # jsonschema takes 0.1 s to import
    validator: Validator = full.compile_full(schema)
    return validator
