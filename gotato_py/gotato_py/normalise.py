"""What a tool returned or raised, as the parts and the text of its result: made before anything else sees it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterator
from json import JSONEncoder
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from ._cut import bound_parts
from ._returned import NotSerialisable, text_or_bytes, to_json, type_of
from ._text import well_formed
from ._value import unchecked_later, value
from .decisions import DECISIONS
from .errors import ToolError
from .messages import MESSAGE_TYPES, ToolResult
from .parts import PART_TYPES, FilePart, Part, TextPart, ToolResultStatus
from .tools import Pending

__all__ = ["Interrupts", "Outcome", "bound_parts", "describe_exception", "normalise"]

Interrupts = tuple[type[BaseException], ...]

_OK, _FAILED, _PENDING = ToolResultStatus.OK, ToolResultStatus.FAILED, ToolResultStatus.PENDING
_json_text = JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_ADDRESS = r" at 0x[0-9a-fA-F]{4,}"
_LONGEST_ERROR = 8192
_PLAIN_SEQUENCES: Any = (list, tuple)  # Any: else pyright narrows what is tested to list[Unknown], and so below
_BYTES: Any = (bytes, bytearray, memoryview)
_GENERATOR: Any = (GeneratorType, Iterator)
_COROUTINE: Any = CoroutineType
_AWAITED: Any = (Awaitable, AsyncGeneratorType)
_UNKNOWN = "is not serialisable"


@value
class Outcome:
    """What a call came to: the first fields of its `ToolResult`, and the `handle` of one that is pending."""

    status: ToolResultStatus
    parts: tuple[Part, ...] = ()
    error: str = ""
    handle: str = ""


_make_outcome = unchecked_later(Outcome)


def normalise(returned: object, interrupts: Interrupts = (KeyboardInterrupt,)) -> Outcome:
    """Turns whatever a tool returned into an `Outcome`; raises nothing but `interrupts`.

    None and "" have no parts, text is one part, parts (one, a sequence, those of a message) are kept. A sequence with
    at least one part in it is a sequence of parts: its other items become parts by these same rules. Bytes are text if
    they are UTF-8, else a file. Other data becomes JSON text; NaN and infinity become null, a date, UUID, Decimal,
    path or enum its text, a timedelta its seconds, a set a sorted list, nested bytes that are no text base64.

    `Pending` is `pending`, its note in `error`. A `ToolResult` may say `ok` or `failed` for itself. An exception is
    `failed`, and so is what cannot be said in JSON: a generator or iterator (never run), a coroutine (closed), a
    cycle, keys that would collide, any object of another type. The text then says that the tool did run.
    """
    kind = type(returned)
    if kind is str:
        return _make_outcome(_OK, (TextPart(returned),)) if returned else _make_outcome(_OK)  # type: ignore[arg-type]  # it is a str
    if returned is None:
        return _make_outcome(_OK)
    try:
        return _normalise(returned, kind)
    except interrupts:
        raise
    except NotSerialisable as error:
        return _refused(kind, f"{_UNKNOWN} ({error})" if str(error) else _UNKNOWN)
    except BaseException as error:  # the object's own code may raise anything
        return _refused(kind, f"{_UNKNOWN} ({type(error).__name__} while it was read)")


def _refused(kind: type, problem: str) -> Outcome:
    return _make_outcome(_FAILED, error=f"a result of type {_name_of(kind)} {problem}; the tool did run")


def _name_of(kind: type[Any]) -> str:
    return well_formed(type.__dict__["__name__"].__get__(kind))  # a metaclass may answer `kind.__name__` as it likes


def _normalise(returned: Any, kind: type[Any]) -> Outcome:  # Any: whatever a tool returned
    if issubclass(kind, PART_TYPES):
        return _make_outcome(_OK, (returned,))
    if issubclass(kind, BaseException):
        return _make_outcome(_FAILED, error=describe_exception(returned))
    if issubclass(kind, Pending):
        return _make_outcome(_PENDING, error=returned.note or "its result will follow", handle=returned.handle)
    if issubclass(kind, MESSAGE_TYPES):
        return _make_outcome(_OK, returned.parts)
    if issubclass(kind, ToolResult):
        if returned.status not in (_OK, _FAILED):
            return _refused(kind, f"may say ok or failed, not {returned.status}")
        return _make_outcome(returned.status, returned.parts, returned.error)
    if issubclass(kind, DECISIONS):
        return _refused(kind, "is for gates and people, and no result of a tool")
    problem = _not_data(returned, kind)
    if problem:
        return _refused(kind, problem)
    if issubclass(kind, _PLAIN_SEQUENCES) and not hasattr(kind, "_fields"):
        mixed: list[Any] | tuple[Any, ...] = returned
        if any(issubclass(type(item), PART_TYPES) for item in mixed):
            return _several(mixed)
    return _make_outcome(_OK, _parts_of(returned, kind))


def _not_data(returned: Any, kind: type[Any]) -> str:
    """Why the object is none that has a value yet; "" if it may be data."""
    if issubclass(kind, _COROUTINE):
        returned.close()  # or Python warns that it was never awaited
        return f"{_UNKNOWN} (an async tool in a synchronous runtime: nothing awaits it)"
    if issubclass(kind, _GENERATOR):
        return f"{_UNKNOWN} (it was not iterated; return a list)"
    if issubclass(kind, _AWAITED) or hasattr(kind, "__aiter__"):
        return f"{_UNKNOWN} (it is for an async tool, and this is a synchronous runtime)"
    return ""


def _several(returned: list[Any] | tuple[Any, ...]) -> Outcome:
    """A sequence of parts, with other data between them."""
    parts: list[Part] = []
    for item in returned:
        kind = type_of(item)
        if issubclass(kind, PART_TYPES):
            parts.append(item)
        elif item is not None and not (issubclass(kind, BaseException) or _not_data(item, kind)):
            parts += _parts_of(item, kind, inside=True)
        elif item is not None:
            raise NotSerialisable(f"it holds a value of type {_name_of(kind)}")
    return _make_outcome(_OK, tuple(parts))


def _parts_of(returned: Any, kind: type[Any], *, inside: bool = False) -> tuple[Part, ...]:
    """Data as one part; none for empty text."""
    if issubclass(kind, _BYTES):
        value: Any = text_or_bytes(bytes(returned))
        if type(value) is bytes:
            return (FilePart(value, media_type="application/octet-stream"),)
    else:
        value = to_json(returned, inside=inside)
    if type(value) is not str:
        value = _json_text(value)
    return (TextPart(value),) if value else ()


def describe_exception(error: BaseException, interrupts: Interrupts = (KeyboardInterrupt,)) -> str:
    """The exception in a line for the model: "ValueError: no such row"; a `ToolError` speaks for itself.

    Where its `__str__` raises there is the class name alone. A memory address in it is left out, an end beyond
    8 KiB too. Raises nothing but `interrupts`.
    """
    name = _name_of(type(error))
    try:
        text = well_formed(str(error))
    except interrupts:
        raise
    except BaseException:  # the exception's own code may raise anything
        return name
    if issubclass(type(error), ToolError):
        return text or name
    if len(text) > _LONGEST_ERROR:
        text = text[:_LONGEST_ERROR] + "..."
    if " at 0x" in text:
        text = re.sub(_ADDRESS, "", text)
    return f"{name}: {text}" if text else name
