"""What the methods of a session take: each argument checked, and refused by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from gotato_py import AssistantMessage, Clock, InvalidArgument, ToolMessage, UserMessage

T = TypeVar("T")

MESSAGE_TYPES = (UserMessage, AssistantMessage, ToolMessage)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LATEST = 1e12
"""Unix seconds that no clock shows: the year 33658."""


def random_ids(kind: str) -> str:
    """An id that no other process makes."""
    return f"{kind[0]}-{os.urandom(12).hex()}"


def wrong(where: str, expected: str, got: object) -> InvalidArgument:
    """The error for a value of the wrong type; it names the type, never the value."""
    return InvalidArgument(f"{where} must be {expected}, not {type(got).__name__}")


def a_text(where: str, given: Any) -> str:  # Any: checked here
    """The argument, if it is a str that is not empty and that UTF-8 can say."""
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    if not given:
        raise InvalidArgument(f"{where} must not be empty")
    if not given.isascii() and any("\ud800" <= character <= "\udfff" for character in given):
        raise InvalidArgument(f"{where} must not hold a lone surrogate: no encoding can say it")
    return str(given)


def a_session_id(where: str, given: Any) -> str:  # Any: checked here
    """The argument, if it can be the id of a session: every store can use it as a name."""
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    if not _ID.fullmatch(given):
        said = "1 to 128 letters, digits, dots, underscores and hyphens (ASCII), the first a letter or digit"
        raise InvalidArgument(f"{where} must be {said}")
    return given


def new_session_id(where: str, given: str | None, ids: Callable[[str], str]) -> str:
    """The id that is given for a new session, or one that is made."""
    if given is None:
        return a_session_id(f"{where}.ids: ids('session')", ids("session"))
    return a_session_id(f"{where}.id", given)


def is_time(given: Any) -> bool:  # Any: checked here
    """Whether it can be a time in Unix seconds."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _LATEST


def time_of(clock: Clock) -> float:
    """What the clock says. Raises `InvalidArgument` for what are no Unix seconds: what it dates could not be read."""
    found = clock.time()
    if not is_time(found):
        raise InvalidArgument("clock.time() must give Unix seconds, from 0 to below 1e12; are these milliseconds?")
    return float(found)


def with_fields(value: T, **changes: object) -> T:
    """The value with some fields changed."""
    changeable: Any = value  # Any: `__replace__`, which every value has, is declared from Python 3.13 on
    made: T = changeable.__replace__(**changes)
    return made
