"""Text and data in the plain form that every encoding, store and provider takes."""

from __future__ import annotations

from math import isfinite
from typing import Any

from ._fields import wrong
from ._guards import is_array, is_mapping
from ._text import well_formed
from .errors import InvalidArgument

_LONG_INT = 10_000  # bits; Python writes no int of more than 4300 digits as text


def plain_json(path: str, given: object) -> Any:
    """A private copy of JSON data in plain types, or `InvalidArgument` naming the path of what JSON cannot say.

    Mappings become dicts, tuples lists, members of enums their values, lone surrogates U+FFFD.
    """
    try:
        return _plain(path, given)
    except RecursionError:
        raise InvalidArgument(f"{path} is nested too deeply, or holds itself") from None


def _plain(path: str, given: object) -> Any:
    if given is None or given is True or given is False:
        return given
    if isinstance(given, str):
        return well_formed(given)
    if isinstance(given, int):
        if given.bit_length() > _LONG_INT:
            raise InvalidArgument(f"{path} must be JSON data, and this int is too long to be written")
        return int.__int__(given)
    if isinstance(given, float):
        if isfinite(given):
            return float.__float__(given)
        raise InvalidArgument(f"{path} must be JSON data, which knows no NaN and no infinity")
    if is_array(given):
        return [_plain(f"{path}[{index}]", each) for index, each in enumerate(given)]
    if is_mapping(given):
        copied: dict[str, Any] = {}
        for key, each in given.items():
            if not isinstance(key, str):
                raise InvalidArgument(f"{path} must be JSON data, whose keys are str, not {type(key).__name__}")
            name = well_formed(key)
            copied[name] = _plain(f"{path}.{name}", each)
        return copied
    raise wrong(path, "JSON data (str, numbers, bool, None, lists, dicts)", given)
