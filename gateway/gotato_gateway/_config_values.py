"""The parts of a configured model's table, checked one by one. No error shows a value: it may be a key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gotato_py import InvalidArgument, ModelOptions

from ._json import is_array, is_object, items, obj
from ._keys import SECRET_NAME, checked_headers
from .quirks import Quirks

Table = dict[str, Any]
"""A table of a TOML file, whose members nobody has checked."""

_KEY_WORD = re.compile(r"api[_-]?key|^key$|^token$|secret|password|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
"""Small letters are refused, since many a key would be a name with them."""


def variable_name(where: str, given: object) -> str:
    """The name of an environment variable."""
    if not isinstance(given, str) or not _VARIABLE.fullmatch(given):
        raise InvalidArgument(f"{where} must be the name of an environment variable: capitals, digits and _")
    return given


def read_headers(where: str, given: object) -> tuple[dict[str, str], dict[str, str]]:
    """The headers with their values, and those whose value is in a variable, with its name."""
    if not is_object(given):
        raise InvalidArgument(f"{where}: headers must be a table")
    values: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, value in obj(given).items():
        if is_object(value):
            if value.keys() != {"env"}:
                raise InvalidArgument(f'{where}: headers: {name} must be a string or {{ env = "NAME" }}')
            variables[name] = variable_name(f"{where}: headers: {name}: env", value["env"])
        elif SECRET_NAME.search(name):
            raise InvalidArgument(
                f'{where}: headers: {name} holds a secret; put it into an environment variable: {{ env = "NAME" }}'
            )
        else:
            values[name] = value
    checked_headers(where, dict.fromkeys(variables, ""))
    return checked_headers(where, values), variables


def read_options(where: str, given: object) -> ModelOptions:
    """What a table says about a model's options."""
    table = _table(where, given, ModelOptions.__match_args__)
    try:
        return ModelOptions(**table)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from None


def check_quirks(where: str, given: object) -> None:
    """Refuses what is no quirk, or no value for one."""
    types = get_type_hints(Quirks)
    for name, value in _table(where, given, tuple(types)).items():
        if not _fits(value, types[name]):
            raise InvalidArgument(f"{where}: {name} must be {_said(types[name])}")
    extra = checked_headers(f"{where}: extra_headers", obj(given).get("extra_headers"))
    for name in [*filter(SECRET_NAME.search, extra), *filter(_KEY_WORD.search, obj(obj(given).get("extra_body")))]:
        raise InvalidArgument(
            f"{where}: {name} holds a secret, which does not belong into a file; put it into an environment variable, "
            f'and write headers = {{ {name} = {{ env = "NAME" }} }}'
        )


def _table(where: str, given: object, known: tuple[str, ...]) -> Table:
    if not is_object(given):
        raise InvalidArgument(f"{where} must be a table")
    check_keys(where, obj(given), known)
    return obj(given)


def check_keys(where: str, table: Table, known: tuple[str, ...]) -> None:
    """Refuses a key that nobody knows; one that says it is a secret with the remedy."""
    for key in table:
        if key in known:
            continue
        if _KEY_WORD.search(key):
            raise InvalidArgument(
                f"{where}: {key} does not belong into a file; put the key into an environment variable, and write "
                'api_key_env = "THE_NAME_OF_THE_VARIABLE"'
            )
        raise InvalidArgument(f"{where}: unknown key {key!r}; known keys: {', '.join(known)}")


def _fits(value: object, kind: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in inner)
    if origin is tuple:
        return is_array(value) and all(_fits(each, inner[0]) for each in items(value))
    return type(value) is kind if kind in (bool, int, str) else is_object(value)


def _said(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(f'"{each}"' for each in inner)
    if origin is tuple:
        return "a list of strings"
    words = {bool: "true or false", int: "a whole number", str: "a string"}
    return words.get(kind, "a table")


def quirks_value(given: Mapping[str, Any]) -> dict[str, Any]:
    """The quirks of a table as `Quirks` keeps them: tuples, not lists."""
    return {name: tuple(items(value)) if is_array(value) else value for name, value in given.items()}
