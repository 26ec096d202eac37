"""`isinstance` for containers of anything, in a form that leaves type checkers with `Any` instead of "unknown"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_mapping(given: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether it is a mapping."""
    return given.__class__ is dict or isinstance(given, Mapping)  # asking the ABC costs five times as much


def is_array(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is what JSON writes as an array: a list or a tuple."""
    return given.__class__ is list or isinstance(given, list | tuple)


def is_sequence(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a sequence of things: not text, not bytes."""
    if given.__class__ is tuple:  # the common case, ten times as quick as asking the ABC
        return True
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview)


def can_take(function: Any, count: int) -> bool:  # Any: whatever can be called
    """Whether a call with `count` positional arguments fits; True where the signature cannot be known cheaply."""
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return True
    bound = 1 if plain is not function else 0
    taken = code.co_argcount - bound
    required = taken - len(plain.__defaults__ or ())
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if any(name not in (plain.__kwdefaults__ or {}) for name in keyword_only):
        return False
    takes_any = bool(code.co_flags & 0x04)
    return required <= count and (count <= taken or takes_any)
