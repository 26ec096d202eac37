"""Python data as JSON data: what `normalise` does with everything that is not text or parts already.

Types are looked at by their class alone, never by `isinstance`, which asks the object's own `__class__`.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, ValuesView
from enum import Enum
from json import JSONEncoder
from math import isfinite
from typing import Any

from ._text import well_formed
from .arguments import MAX_DEPTH

_LONGEST_INT = 10_000  # bits; Python writes no int of more than 4300 digits as text
_BYTES: Any = (bytes, bytearray, memoryview)  # Any: else pyright narrows what is tested to list[Unknown]
_TUPLE: Any = tuple
_SEQUENCES: Any = (Sequence, ValuesView, deque)
_json_text = JSONEncoder(ensure_ascii=False, sort_keys=True).encode


type_of: Callable[[object], type[Any]] = type  # the class as an object has it, whatever it says in `__class__`


class NotSerialisable(Exception):  # never leaves normalise
    """Data that JSON cannot say; the message is the reason, "" where the type says it all."""


# Standard types that may never have been imported here, by where they are defined, and how each is said in JSON.
_SAID: dict[tuple[str, str], Callable[[Any], object]] = {
    ("datetime", "datetime"): lambda value: value.isoformat(),
    ("datetime", "date"): lambda value: value.isoformat(),
    ("datetime", "time"): lambda value: value.isoformat(),
    ("datetime", "timedelta"): lambda value: value.total_seconds(),
    ("uuid", "UUID"): str,
    ("decimal", "Decimal"): str,
    ("pathlib", "PurePath"): str,
}


def to_json(value: object, *, inside: bool = False) -> Any:
    """The value in plain JSON types, strictly: no NaN, no lone surrogate.

    `inside`: it is part of something larger, so that its type must be told too. Raises `NotSerialisable`, and what the
    object's own code raises.
    """
    return _plain(value, {0} if inside else set())  # 0 is the id of nothing


def text_or_bytes(data: bytes) -> str | bytes:
    """The text that the bytes are in UTF-8, else the bytes."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _plain(value: Any, open_ids: set[int]) -> Any:  # Any: whatever a tool returned
    kind = type_of(value)
    if kind is str:
        return well_formed(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        if value.bit_length() > _LONGEST_INT:
            raise NotSerialisable("an integer of too many digits")
        return value
    if kind is float:
        return value if isfinite(value) else None
    if kind is dict or kind is list or kind is tuple:
        return _container(value, _pairs if kind is dict else _items, open_ids)
    return _other(value, kind, open_ids)


def _container(value: Any, read: Callable[[Any, set[int]], Any], open_ids: set[int]) -> Any:
    """What `read` makes of a value that holds others, unless it holds itself or goes too deep."""
    mark = id(value)
    if mark in open_ids:
        raise NotSerialisable("it holds itself")
    if len(open_ids) >= MAX_DEPTH:
        raise NotSerialisable(f"it is nested more than {MAX_DEPTH} deep")
    open_ids.add(mark)
    made = read(value, open_ids)
    open_ids.discard(mark)
    return made


def _items(value: Iterable[Any], open_ids: set[int]) -> list[Any]:
    return [_plain(item, open_ids) for item in value]


def _pairs(value: Mapping[Any, Any], open_ids: set[int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = well_formed(key) if type(key) is str else _key(key, open_ids)
        if name in made:
            raise NotSerialisable("two of its keys are the same in JSON")
        made[name] = _plain(item, open_ids)
    return made


def _key(key: Any, open_ids: set[int]) -> str:
    said = _plain(key, open_ids)
    if type(said) is str:
        return said
    if type(said) is dict or type(said) is list:
        raise NotSerialisable(f"a key of type {type_of(key).__name__}")
    return _json_text(said)  # 1 → "1", True → "true", None → "null"


def _sorted(value: Iterable[Any], open_ids: set[int]) -> list[Any]:
    """The items in an order that is the same in every process, whatever their types."""
    return sorted(_items(value, open_ids), key=_rank)


def _rank(item: Any) -> tuple[int, Any]:
    if type(item) is str:
        return 2, item
    if type(item) is int or type(item) is float:
        return 1, item
    return (0 if item is None or type(item) is bool else 3), _json_text(item)


def _other(value: Any, kind: type[Any], open_ids: set[int]) -> Any:
    """Everything but the exact classes that JSON has."""
    if issubclass(kind, Enum):
        plain = type(value.value) in (str, int, float, bool)
        return _plain(value.value if plain else value.name, open_ids)
    if issubclass(kind, str):
        return well_formed(value)
    if issubclass(kind, int):
        return _plain(int.__int__(value), open_ids)
    if issubclass(kind, float):
        return _plain(float.__float__(value), open_ids)
    if issubclass(kind, _BYTES):
        said = text_or_bytes(bytes(value))
        return said if type(said) is str else b2a_base64(bytes(value), newline=False).decode()
    for base in kind.__mro__:
        say = _SAID.get((base.__module__.partition(".")[0], base.__qualname__))
        if say is not None:
            return _plain(say(value), open_ids)
    read = _reader_of(kind)
    if read is None:
        raise NotSerialisable(f"it holds a value of type {kind.__name__}" if open_ids else "")
    return _container(value, read, open_ids)


def _reader_of(kind: type[Any]) -> Callable[[Any, set[int]], Any] | None:
    """How to read an object that holds others; None for a type that JSON has no form for."""
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_value_fields"):
        return _fields
    if callable(getattr(kind, "model_dump", None)):  # pydantic's models, and what behaves like them
        return lambda value, open_ids: _plain(value.model_dump(mode="json"), open_ids)
    if issubclass(kind, _TUPLE) and hasattr(kind, "_fields"):
        return lambda value, open_ids: _pairs(dict(zip(value._fields, value, strict=True)), open_ids)
    if issubclass(kind, Mapping):
        return _pairs
    if issubclass(kind, Set):
        return _sorted
    if issubclass(kind, _SEQUENCES):
        return _items
    return None


def _fields(value: Any, open_ids: set[int]) -> dict[str, Any]:
    kind: Any = type_of(value)
    if hasattr(kind, "_value_fields"):
        names: list[str] = list(kind._value_fields)
    else:
        # The mapping also has ClassVar and InitVar pseudo-fields; `dataclasses` marks the real ones by this name.
        names = [name for name, each in kind.__dataclass_fields__.items() if each._field_type.name == "_FIELD"]
    return _pairs({name: getattr(value, name) for name in names}, open_ids)
