"""Sections that are made anew for each request: text, JSON, the time, the content of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Literal

from gotato_py import Clock, InvalidArgument, NotFound, SystemClock

from ._arguments import check_type, wrong
from ._reading import read_bounded, real_path, shown_text
from .sections import Section, check_tag

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DIGITS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:00", "minute": "%Y-%m-%d %H:%M"}


@dataclass(frozen=True, slots=True)
class Text:
    """A section whose text is asked for each time: `Text("todo", todo.as_text)`. A str may stand in the callable's
    place. None or blank text leaves the section out."""

    tag: str
    source: str | Callable[[], str | None]
    attrs: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        check_tag("Text.tag", self.tag)
        if not isinstance(self.source, str) and not callable(self.source):
            raise InvalidArgument("Text.source must be a str or a callable without arguments that gives one")

    def __call__(self) -> Section | None:
        text = self.source if isinstance(self.source, str) else self.source()
        return None if text is None else Section(self.tag, text, self.attrs)


@dataclass(frozen=True, slots=True)
class Json:
    """A section that holds data as JSON: keys sorted, so that equal data is equal text, and "<" written as `\\u003c`,
    so that it is exact JSON whatever it holds. A callable is asked each time; None leaves the section out.

    Raises `InvalidArgument`, when it is asked, for what JSON has no form for.
    """

    tag: str
    source: Any  # any JSON value, or a callable without arguments that gives one
    attrs: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        check_tag("Json.tag", self.tag)

    def __call__(self) -> Section | None:
        value = self.source() if callable(self.source) else self.source
        if value is None:
            return None
        try:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"Json({self.tag!r}): the value has no JSON form: {type(error).__name__}") from None
        return Section(self.tag, text.replace("<", "\\u003c"), self.attrs)


@dataclass(frozen=True, slots=True)
class Time:
    """A section that tells the time, by the clock: `2023-11-14 22:13 UTC, Tuesday`.

    It belongs into a panel: in the system text it would change the start of each request, and a provider could reuse
    nothing of the one before. `with_static` therefore takes it with `precision="day"` only. There are no seconds, so
    that a request that is built again within the minute is the same.
    """

    tag: str = "time"
    clock: Clock = field(default_factory=SystemClock)
    zone: tzinfo = UTC
    precision: Literal["minute", "hour", "day"] = "minute"

    def __post_init__(self) -> None:
        check_tag("Time.tag", self.tag)
        if not callable(getattr(self.clock, "time", None)) or isinstance(self.clock, type):
            raise wrong("Time.clock", "a Clock", self.clock)
        check_type("Time.zone", self.zone, tzinfo)
        if not isinstance(self.precision, str) or self.precision not in _DIGITS:
            raise InvalidArgument(f"Time.precision must be one of {', '.join(sorted(_DIGITS))}")

    @property
    def changes(self) -> bool:
        """Whether the text changes within a conversation."""
        return self.precision != "day"

    def __call__(self) -> Section:
        now = datetime.fromtimestamp(self.clock.time(), self.zone)
        return Section(self.tag, f"{now.strftime(_DIGITS[self.precision])} {now.tzname()}, {_DAYS[now.weekday()]}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A section that holds a file, or what a callable gives, read anew for each request.

    At most `max_bytes` of it are shown, cut on a character's border, with a last line that says how much was left out;
    no more than that is read of a file. Only regular files are read; a link at the path is followed. What is no UTF-8
    becomes U+FFFD. A file that is not there is a `NotFound` that fails the run, or with `missing="empty"` no section;
    one that cannot be read is a `NotFound` in either case. A callable may give None: then it is missing too. One that
    gives anything but a str, bytes or None is an `InvalidArgument`, when it is asked.
    """

    tag: str
    source: str | Path | Callable[[], str | bytes | None]
    max_bytes: int = field(default=16_384, kw_only=True)
    missing: Literal["error", "empty"] = field(default="error", kw_only=True)
    attrs: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)

    def __post_init__(self) -> None:
        check_tag("Resource.tag", self.tag)
        is_path = isinstance(self.source, str | Path) and "\0" not in str(self.source)
        if not is_path and not callable(self.source):
            raise InvalidArgument("Resource.source must be a path, or a callable without arguments")
        check_bytes("Resource.max_bytes", self.max_bytes)
        if self.missing not in ("error", "empty"):
            raise InvalidArgument('Resource.missing must be "error" or "empty"')

    def __call__(self) -> Section | None:
        read = self._read()
        if read is None:
            return None
        return Section(self.tag, shown_text(*read), self.attrs)

    def _read(self) -> tuple[bytes, int, int] | None:
        if not isinstance(self.source, str | Path):
            given = self.source()
            if given is None:
                self._refuse_missing("the callable gave nothing")
                return None
            data = self._bytes(given)
            return data, self.max_bytes, len(data)
        path = Path(self.source)
        try:
            data, size = read_bounded(real_path(path), self.max_bytes)
        except FileNotFoundError:
            self._refuse_missing(f"there is no file {path.name}")
            return None
        except OSError as error:
            text = f"Resource({self.tag!r}): {path.name} cannot be read: {type(error).__name__}"
            raise NotFound(text, operation="Resource", cause=error) from error
        return data, self.max_bytes, size

    def _bytes(self, given: object) -> bytes:
        """What the callable gave, if it is text or bytes: `bytes` of a number would be so many NULs."""
        if isinstance(given, str):
            return given.encode("utf-8", "replace")
        if isinstance(given, memoryview):
            return given.tobytes()
        if isinstance(given, bytes | bytearray):
            return bytes(given)
        said = f"the callable gave a {type(given).__name__}; it has to give a str, bytes or None"
        raise InvalidArgument(f"Resource({self.tag!r}): {said}")

    def _refuse_missing(self, said: str) -> None:
        if self.missing == "error":
            raise NotFound(f'Resource({self.tag!r}): {said}; with missing="empty" the section is left out')


def check_bytes(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no number of bytes above 0."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise InvalidArgument(f"{where} must be an int of at least 1")
