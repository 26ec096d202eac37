"""JSON data in plain types, whatever kinds of mappings and sequences it came in."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from gotato_py import InvalidArgument

_LONGEST_INT = 10_000  # bits; Python writes no int of more than 4300 digits as text


def plain_json(what: str, given: object) -> Any:  # Any: JSON data
    """A copy of JSON data in dicts, lists and the plain types of their items.

    Raises `InvalidArgument`, which begins with `what` and has the place as a JSON pointer, for what JSON cannot say.
    """
    try:
        return _plain(what, "#", given)
    except RecursionError:
        raise InvalidArgument(f"{what} is nested too deeply, or holds itself") from None


def _plain(what: str, place: str, given: object) -> Any:
    if given is None or given is True or given is False:
        return given
    if isinstance(given, str):
        return str.__str__(given)
    if isinstance(given, int) and given.bit_length() <= _LONGEST_INT:
        return int.__int__(given)
    if isinstance(given, float) and isfinite(given):
        return float.__float__(given)
    if isinstance(given, list | tuple):
        items = cast("list[object]", given)
        return [_plain(what, f"{place}/{index}", each) for index, each in enumerate(items)]
    if isinstance(given, Mapping):
        mapping = cast("Mapping[object, object]", given)
        return {_key(what, place, key): _plain(what, f"{place}/{key}", each) for key, each in mapping.items()}
    said = "a number that JSON cannot say" if isinstance(given, int | float) else type(given).__name__
    raise InvalidArgument(f"{what} at {place}: must be JSON data, not {said}")


def _key(what: str, place: str, key: object) -> str:
    if not isinstance(key, str):
        raise InvalidArgument(f"{what} at {place}: keys must be str, not {type(key).__name__}")
    return str.__str__(key)
