"""What the classes and functions of this package take: checked, and refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from gotato_py import AssistantMessage, InvalidArgument, ToolMessage, UserMessage, WaitingCall


def wrong(where: str, expected: str, given: object) -> InvalidArgument:
    """The error for a value of the wrong type; it names the type, never the value."""
    return InvalidArgument(f"{where} must be {expected}, not {type(given).__name__}")


def is_sequence(given: object) -> TypeGuard[Sequence[Any]]:  # Any: what it holds is looked at one by one
    """Whether this is a sequence, and no text."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def check_type(where: str, given: object, kind: type) -> None:
    """Raises `InvalidArgument` for what is no instance of the type."""
    if not isinstance(given, kind):
        raise wrong(where, f"a {kind.__name__}", given)


def check_count(where: str, given: object, least: int = 0) -> None:
    """Raises `InvalidArgument` for what is no int of at least `least`."""
    if type(given) is not int or given < least:
        raise InvalidArgument(f"{where} must be an int of at least {least}")


def check_path(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what names no place in a file system."""
    if not isinstance(given, str | Path):
        raise wrong(where, "a str or a Path without a NUL", given)
    if "\0" in str(given):
        raise InvalidArgument(f"{where} must be a str or a Path without a NUL")


def check_counter(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no `TokenCounter`, and not None."""
    if given is not None and not callable(given):
        raise wrong(where, "None or a callable from text to tokens", given)


def check_measure(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no `Measure`."""
    if not callable(given):
        raise wrong(where, "a callable from a message to tokens", given)


def check_messages(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no sequence of messages."""
    if not is_sequence(given):
        raise wrong(f"{where}: messages", "a sequence of messages", given)
    for index, each in enumerate(given):
        if not isinstance(each, UserMessage | AssistantMessage | ToolMessage):
            raise wrong(f"{where}: messages[{index}]", "a message", each)


def check_waiting(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no sequence of calls that wait."""
    if not is_sequence(given):
        raise wrong(f"{where}: waiting", "a sequence of WaitingCall", given)
    for index, each in enumerate(given):
        check_type(f"{where}: waiting[{index}]", each, WaitingCall)
