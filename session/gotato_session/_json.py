"""JSON as it is kept: compact text, strict, of which UTF-8 can say every character."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard, cast

from gotato_py import InvalidArgument

from ._arguments import a_text, wrong

_DEEPEST = 200
"""Levels of metadata: Python reads no more than about 1,000, of which the stack below the reader takes its part."""

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def is_object(given: object) -> TypeGuard[dict[str, Any]]:  # Any: JSON values
    """Whether it is a JSON object, as `json.loads` makes it."""
    return isinstance(given, dict)


def is_list(given: object) -> TypeGuard[list[Any]]:  # Any: JSON values
    """Whether it is a JSON array, as `json.loads` makes it."""
    return isinstance(given, list)


def json_text(where: str, given: object) -> str:
    """The text of plain, finite JSON data; a lone surrogate becomes U+FFFD. Raises `InvalidArgument` for other data."""
    try:
        text = _encode(given)
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument(f"{where} must be plain, finite JSON data, not {type(given).__name__}") from None
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shallow_text(where: str, given: object) -> str:
    """The same, of data that can be read wherever somebody opens or lists sessions: not nested too deeply."""
    text = json_text(where, given)
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(given):
        raise InvalidArgument(f"{where} must not be nested more than {_DEEPEST} levels deep")
    return text


def _is_deep(given: object) -> bool:
    level = [given]
    for _ in range(_DEEPEST + 1):
        level = [child for each in level for child in _children(each)]
    return bool(level)


def _children(given: object) -> Iterable[object]:
    if is_object(given):
        return given.values()
    return cast("Iterable[object]", given) if isinstance(given, list | tuple) else ()


def json_value(text: str) -> Any:  # Any: a JSON value
    """The data of the text, a new copy each time."""
    return json.loads(text)


def json_object(
    where: str, given: Mapping[str, object] | None, text: Callable[[str, object], str] = json_text
) -> dict[str, str]:
    """The texts of the values of a mapping, by key, as `text` makes them; none where it is left out."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise wrong(where, "a mapping", given)
    return {a_text(f"{where}: a key", key): text(f"{where}[{key!r}]", each) for key, each in given.items()}
