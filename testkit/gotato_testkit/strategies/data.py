"""Texts and JSON data, the raw material of everything else. A strategy is slow to make, so those that can are kept."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

JSON = Any
"""Any: a JSON value, of any depth."""


def texts(*, max_size: int = 12, surrogates: bool = False) -> st.SearchStrategy[str]:
    """Text of every script; with `surrogates` also lone ones, which no encoding takes."""
    return st.text(_ANY if surrogates else _CLEAN, max_size=max_size)


def visible_texts(*, max_size: int = 12) -> st.SearchStrategy[str]:
    """Text that is more than white space; the simplest is "0"."""
    return st.text(_CLEAN, min_size=1, max_size=max_size).filter(_is_visible)


def json_values(*, max_leaves: int = 6) -> st.SearchStrategy[JSON]:
    """JSON data as `json.loads` makes it: finite numbers, no lone surrogates."""
    return _values(max_leaves)


def json_objects(*, max_size: int = 3) -> st.SearchStrategy[dict[str, JSON]]:
    """JSON objects: what a call's arguments are, and what `metadata` takes."""
    return _objects(max_size)


@cache
def extras() -> st.SearchStrategy[dict[str, JSON]]:
    """What `extra` keeps: members that this release does not know; often there are none."""
    return st.builds(dict[str, JSON]) | st.dictionaries(texts(max_size=4).map(_as_unknown), _values(3), max_size=2)


_CLEAN = st.characters(exclude_categories=["Cs"])
_ANY = st.one_of(_CLEAN, _CLEAN, _CLEAN, st.characters(categories=["Cs"]))  # `st.text` alone has no surrogates


def _is_visible(text: str) -> bool:
    return not text.isspace()


_as_unknown = "x-{}".format


@cache
def _values(max_leaves: int) -> st.SearchStrategy[JSON]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=max_leaves,
    )


@cache
def _objects(max_size: int) -> st.SearchStrategy[dict[str, JSON]]:
    return st.builds(dict[str, JSON]) | st.dictionaries(texts(), _values(6), max_size=max_size)
