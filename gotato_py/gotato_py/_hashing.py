"""Hashes of data that holds lists and dicts, for values that never change it."""

from __future__ import annotations

from typing import cast

from ._guards import is_array, is_mapping


def hash_of(data: object) -> int:
    """A hash that is equal for equal data; `TypeError` for what is neither hashable nor a list, dict, tuple or set."""
    return hash(_hashable(data))


def _hashable(data: object) -> object:
    if is_mapping(data):
        return frozenset([(key, _hashable(each)) for key, each in data.items()])
    if is_array(data):
        return tuple([_hashable(each) for each in data])
    return frozenset(cast("set[object]", data)) if isinstance(data, set) else data
