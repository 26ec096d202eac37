"""A JSON Schema for the answer as Anthropic takes it ("Structured outputs" in its documentation).

Every object has to be closed, and no bounds on numbers or lengths can be said: they go into the description, and the
kernel checks the answer against the schema as it was given. What cannot be said at all (an object with any members, a
schema within itself, one with more optional members or choices than the server compiles) is told in the system prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ._json import Object, dump_text, is_array, items, obj, text

_KEPT = ("type", "enum", "const", "title", "description", "default", "required", "$ref")
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_SILENT = ("$schema", "$id", "$comment", "examples", "discriminator")
_DEEPEST = 40
_DEFINITIONS = ("$defs", "definitions")
_MOST_OPTIONAL, _MOST_CHOICES = 24, 16
"""What the server compiles ("Schema complexity limits")."""


class _Unsayable(Exception):
    """The schema has no form here."""


def wire_schema(schema: Mapping[str, object]) -> Object | None:
    """The schema to send; None if this dialect cannot say it."""
    try:
        if _within_itself(schema):
            return None
        sent = _said(schema, 0)
        optional, choices = _complexity(sent)
        return sent if optional <= _MOST_OPTIONAL and choices <= _MOST_CHOICES else None
    except _Unsayable:
        return None


def schema_instruction(schema: Mapping[str, object]) -> str:
    """The schema as a line of the system prompt."""
    return f"Answer with nothing but JSON that fits this JSON Schema:\n{dump_text(schema)}"


def _said(schema: object, depth: int) -> Object:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        raise _Unsayable
    given = cast("Mapping[str, object]", schema)
    sent: Object = {key: given[key] for key in _KEPT if key in given}
    for key in _DEFINITIONS:
        if key in given:
            sent[key] = {name: _said(each, depth + 1) for name, each in obj(dict(_mapping(given[key]))).items()}
    if "$ref" in given:
        return {key: value for key, value in sent.items() if key.startswith("$")}
    rest = {key: value for key, value in given.items() if key not in sent and key not in _SILENT}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in rest:
            sent["anyOf" if key == "oneOf" else key] = [_said(each, depth + 1) for each in _sequence(rest.pop(key))]
    if "object" in _types(given) or "properties" in given:
        sent.update(_closed(rest, depth))
    if "items" in rest:
        sent["items"] = _said(rest.pop("items"), depth + 1)
    if rest.get("minItems") in (0, 1):
        sent["minItems"] = rest.pop("minItems")
    if rest.get("format") in _FORMATS:
        sent["format"] = rest.pop("format")
    _check(sent)
    if rest:
        bounds = ", ".join(f"{key}: {dump_text(value)}" for key, value in rest.items())
        sent["description"] = f"{text(sent.get('description'))} ({bounds})".strip()
    return sent


def _check(sent: Object) -> None:
    """Refuses what fits anything, values that are no scalars, and references among several that all have to fit."""
    values = [*_sequence(sent.get("enum", ())), sent.get("const")]
    referring = any("$ref" in obj(each) for each in items(sent.get("allOf")))
    if not sent.keys() & {"type", "enum", "const", "anyOf", "allOf"} or referring:
        raise _Unsayable
    if any(isinstance(each, Mapping | list | tuple) for each in values):
        raise _Unsayable


def _closed(rest: Object, depth: int) -> Object:
    """The members of an object; one that takes others too cannot be said."""
    more = rest.pop("additionalProperties", None)
    members = _mapping(rest.pop("properties", {}))
    if more not in (None, False) or (more is None and not members) or "patternProperties" in rest:
        raise _Unsayable
    return {
        "properties": {name: _said(each, depth + 1) for name, each in members.items()},
        "additionalProperties": False,
    }


def _types(schema: Mapping[str, object]) -> list[object]:
    kind = schema.get("type")
    return list(items(kind)) if is_array(kind) else [kind]


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _Unsayable
    return cast("Mapping[str, object]", value)


def _sequence(value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise _Unsayable
    return list(cast("list[object]", value))


def _complexity(sent: Object) -> tuple[int, int]:
    """How many members may be left out, and how many places take one of several, in a schema and those inside it."""
    members = obj(sent.get("properties"))
    optional = len(members.keys() - set(items(sent.get("required"))))
    choices = int("anyOf" in sent or is_array(sent.get("type")))
    inner = [*members.values(), *items(sent.get("anyOf")), *items(sent.get("allOf")), sent.get("items")]
    inner += [each for key in _DEFINITIONS for each in obj(sent.get(key)).values()]
    found = [_complexity(obj(each)) for each in inner if each is not None]
    return optional + sum(each[0] for each in found), choices + sum(each[1] for each in found)


def _within_itself(schema: Mapping[str, object]) -> bool:
    """Whether a definition can be reached from itself."""
    reached = {
        f"#/{key}/{name}": set(_references(each))
        for key in _DEFINITIONS
        for name, each in _mapping(schema.get(key, {})).items()
    }
    reached["#"] = set(_references({key: value for key, value in schema.items() if key not in _DEFINITIONS}))
    for _ in reached:
        for names in reached.values():
            names |= {further for name in names for further in reached.get(name, ())}
    return any(name in names for name, names in reached.items())


def _references(value: object) -> list[str]:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        own = [text(members["$ref"])] if text(members.get("$ref")) else []
        return own + [name for each in members.values() for name in _references(each)]
    if isinstance(value, list | tuple):
        return [name for each in cast("list[object]", value) for name in _references(each)]
    return []
