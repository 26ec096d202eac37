"""`isinstance` for containers of anything, in a form that leaves type checkers with `Any` instead of "unknown"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_mapping(given: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether it is a mapping."""
    return isinstance(given, Mapping)


def is_array(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is what JSON writes as an array: a list or a tuple."""
    return isinstance(given, list | tuple)


def is_sequence(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a sequence of things: not text, not bytes."""
    if given.__class__ is tuple:  # the common case, ten times as quick as asking the ABC
        return True
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview)
