"""How the demo model understands a prompt: a handful of rules over clauses, the tools' names and their parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from gotato_py import ToolSpec

Plan = list[tuple[str, dict[str, object]]]

_CLAUSE_ENDS = re.compile(r"[?!;.](?=\s|$)|,\s+|\s+and\s+|\s+then\s+", re.IGNORECASE)
_NAME = r"[^\W\d_][\w'’-]*"
_PROPER = r"(?-i:[A-ZÀ-ÖØ-Þ])[\w'’-]*(?:(?:\s+(?:de|da|do|la|am))?\s+(?-i:[A-ZÀ-ÖØ-Þ])[\w'’-]*)*"
_AFTER_PREPOSITION = re.compile(rf"\b(?:in|at|for|to|of|about)\s+(?:the\s+)?({_PROPER}|{_NAME})", re.IGNORECASE)
_ONLY_A_NAME = re.compile(rf"(?:in\s+)?({_PROPER})", re.IGNORECASE)
_ARITHMETIC = re.compile(r"[-+(]*\d[\d.\s()]*(?:(?:\*\*|[-+*/×÷^%])\s*[-+(\s]*\d[\d.\s()]*)+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_WORD = re.compile(r"[^\W\d_]+")

_LONGEST_TEXT, _LONGEST_CLAUSE = 4000, 200  # the patterns take quadratic time, and nobody asks at such length

_SEPARATED = re.compile(r"(?<=\d),(?=\d{3}\b)")
_SPOKEN = {
    re.compile(rf"(?<=\d)\s+{words}\s+(?=\d)", re.IGNORECASE): f" {sign} "
    for words, sign in {"times": "*", "plus": "+", "minus": "-", "divided by": "/"}.items()
}
_ARITHMETIC_NAMES = {"expression", "expr", "formula", "calculation", "equation"}
_SYNONYMS = {
    "weather": {
        "weather",
        "nice",
        "sunny",
        "rain",
        "raining",
        "rainy",
        "snow",
        "snowing",
        "cold",
        "warm",
        "temperature",
    },
    "forecast": {"forecast", "weather", "rain", "snow", "temperature"},
    "now": {"now", "time", "date", "clock", "today"},
    "time": {"time", "clock", "now"},
    "search": {"search", "find", "look"},
    "add": {"add", "plus", "sum"},
}


def plan_calls(text: str, tools: Sequence[ToolSpec]) -> Plan:
    """The calls that answer a prompt, in its order. One clause makes at most one call, a bare name repeats the last."""
    text = _SEPARATED.sub("", text[:_LONGEST_TEXT])
    for words, sign in _SPOKEN.items():
        text = words.sub(sign, text)
    plan: Plan = []
    last: ToolSpec | None = None
    clauses = [clause.strip()[:_LONGEST_CLAUSE] for clause in _CLAUSE_ENDS.split(text) if clause.strip()]
    for clause, following in pairwise([*clauses, ""]):
        found = _match(clause, tools, last) or _match(f"{clause} and {following}", tools, None)
        if found is not None:
            last, arguments = found
            if (last.name, arguments) not in plan:
                plan.append((last.name, arguments))
    return plan


def _match(clause: str, tools: Sequence[ToolSpec], last: ToolSpec | None) -> tuple[ToolSpec, dict[str, object]] | None:
    """The tool that the clause asks for and its arguments: by arithmetic, by name, or as another round of the last."""
    said = {word.lower() for word in _WORD.findall(clause)}
    computing = [
        tool for tool in tools if _ARITHMETIC.search(clause) and not _ARITHMETIC_NAMES.isdisjoint(_properties(tool))
    ]
    named = sorted((tool for tool in tools if said & _words_for(tool)), key=lambda tool: -len(said & _words_for(tool)))
    for tool in (*computing, *named):
        arguments = _arguments(clause, tool)
        if arguments is not None:
            return tool, arguments
    name = _ONLY_A_NAME.fullmatch(clause)
    again = _arguments(f"in {name[1]}", last) if last is not None and name is not None and _properties(last) else None
    return None if last is None or again is None else (last, again)


def _words_for(tool: ToolSpec) -> set[str]:
    """The words of a prompt that ask for the tool: those of its name, and what else people say for them."""
    own = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", tool.name)} - {"get", "the", "a", "to", "of"}
    return own.union(*(_SYNONYMS.get(word, set()) for word in own))


def _properties(tool: ToolSpec) -> dict[str, Mapping[str, Any]]:
    """The schemas of the tool's parameters, by name."""
    properties = cast("Mapping[str, Any]", tool.input_schema.get("properties", {}))
    return {
        name: schema if isinstance(schema, dict) else {} for name, schema in properties.items()
    }  # `true` is one too


def _arguments(clause: str, tool: ToolSpec) -> dict[str, object] | None:
    """Values for the required parameters, and for others that the clause plainly has; None if a required one lacks."""
    required = cast("Sequence[str]", tool.input_schema.get("required", ()))
    numbers: list[str] = _NUMBER.findall(clause)
    found: dict[str, object] = {}
    for name, known in _properties(tool).items():
        value: object = None
        match known.get("type", "string"):
            case "integer":
                value = int(float(numbers.pop(0))) if numbers else None
            case "number":
                value = float(numbers.pop(0)) if numbers else None
            case "string":
                value = _text(clause, name, known, needed=name in required)
            case _:
                pass
        if value is None and name in required:
            return None
        if value is not None:
            found[name] = value
    return found


def _text(clause: str, name: str, schema: Mapping[str, Any], *, needed: bool) -> object:
    """What the clause says for a parameter that takes text: one of its choices, arithmetic, a quotation, a name."""
    if "enum" in schema:
        said = clause.lower()
        return next(
            (each for each in schema["enum"] if str(each).lower() in said), schema["enum"][0] if needed else None
        )
    if name in _ARITHMETIC_NAMES:
        found = _ARITHMETIC.search(clause) or (_NUMBER.search(clause) if needed else None)
        return found[0].strip() if found else None
    if quoted := _QUOTED.search(clause):
        return quoted[1]
    if not needed:
        return None
    if placed := _AFTER_PREPOSITION.search(clause):
        return placed[1]
    names: list[str] = re.findall(rf"(?<=\s){_PROPER}", clause)
    return names[-1] if names else None
