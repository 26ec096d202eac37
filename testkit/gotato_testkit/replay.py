"""A model that streams again what a `RecordingModel` has written down."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from gotato_py import (
    GotatoError,
    InvalidArgument,
    InvalidState,
    ModelEvent,
    ModelProtocolError,
    ModelRequest,
    NotFound,
    NotSupported,
    Scope,
)

from ._error_json import error_from_dict
from ._request_json import fingerprint, first_difference, request_to_dict
from .model_event_json import model_event_from_dict
from .recording import VERSION


class ReplayMismatch(InvalidState):
    """The model was asked something else than what was recorded, or more. Fails the run; it is not retried.

    `number` is that of the request, counted from 1; `difference` says where it first differs, without any content.
    """

    def __init__(self, message: str = "", *, number: int = 0, difference: str = "", operation: str = "") -> None:
        super().__init__(message, operation=operation)
        self.number = number
        self.difference = difference


class ReplayModel:
    """Answers each request with the next line of a recording, if the request is the one that was recorded.

    Ids and metadata of messages may differ, for they are not sent; everything else has to be equal. With `strict=False`
    requests may come in another order, as those of several threads do: each gets the first line with its fingerprint
    that is left. What was raised is raised again, as the same type. `name` and `capabilities` are the recorded model's.

    Several threads may share it. Raises `NotFound` and `InvalidArgument` for a recording that cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], *, strict: bool = True) -> None:
        self._path = Path(path)
        self._strict = strict
        self._lines = _read(self._path)
        self._left = list(range(len(self._lines)))
        self._asked = 0
        self._lock = Lock()
        about: Mapping[str, Any] = self._lines[0].get("model", {}) if self._lines else {}
        self.name: str = about.get("name", "")
        self.capabilities: frozenset[str] = frozenset(about.get("capabilities", ()))

    def __repr__(self) -> str:
        return f"ReplayModel({self._path.name!r}, {self.remaining} of {len(self._lines)} left)"

    @property
    def remaining(self) -> int:
        """How many recorded requests have not been asked; 0 after a run that went as it was recorded."""
        with self._lock:
            return len(self._left)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Streams what was recorded for the request. Raises `ReplayMismatch` where nothing was."""
        scope.check()
        asked = request_to_dict(request)
        with self._lock:
            self._asked += 1
            number, line = self._asked, self._take(asked)
        return _replayed(line, number, scope)

    def _take(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._left:
            text = f"the recording has {len(self._lines)} requests, and the model was asked once more"
            raise self._mismatch(f"{text}; delete the file and record again, or find out why it is asked again", "")
        place = next(iter(self._left))
        difference = first_difference(self._lines[place]["request"], asked)
        if difference and not self._strict:
            mark = fingerprint(dict(asked))
            place = next((each for each in self._left if self._lines[each]["fingerprint"] == mark), place)
            difference = difference if self._lines[place]["fingerprint"] != mark else ""
        if difference:
            what = f"request {self._asked} differs from line {place + 1} of the recording in {difference}"
            others = "" if self._strict else ", and none that is left is equal to it"
            raise self._mismatch(
                f"{what}{others}; delete the file and record again, or find out what has changed", difference
            )
        self._left.remove(place)
        return self._lines[place]

    def _mismatch(self, text: str, difference: str) -> ReplayMismatch:
        return ReplayMismatch(text, number=self._asked, difference=difference, operation="ReplayModel.stream")


def _replayed(line: Mapping[str, Any], number: int, scope: Scope) -> Iterator[ModelEvent]:
    for told in line["events"]:
        scope.check()
        if told.get("kind") == "no_event":
            raise ModelProtocolError(f"the recorded model gave a {told.get('type')}, which is no ModelEvent")
        yield model_event_from_dict(told)
    scope.check()
    if line["ended"] == "raised":
        raise error_from_dict(line["error"])
    if line["ended"] == "closed":
        text = f"the answer to request {number} was recorded up to here: whoever read it then stopped reading"
        raise ReplayMismatch(text, number=number, operation="ReplayModel.stream")


def _read(path: Path) -> list[Mapping[str, Any]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"ReplayModel.path: there is no recording {path.name!r}; make one with RecordingModel") from None
    except OSError as error:
        raise InvalidArgument(f"ReplayModel.path: {path.name!r} cannot be read: {error.strerror}") from None
    lines = data.split(b"\n")  # not splitlines, which splits at more than that
    return [_line(f"line {at} of {path.name!r}", line) for at, line in enumerate(lines, 1) if line.strip()]


def _line(where: str, written: bytes) -> Mapping[str, Any]:
    try:
        line = json.loads(written)
        version = line["gotato_recording"]
    except (ValueError, KeyError, TypeError):
        raise InvalidArgument(
            f"{where} is no line of a recording; it may be torn: remove it, or delete the file and record again"
        ) from None
    if version != VERSION:
        raise NotSupported(f"{where} has version {version!r}; this release reads version {VERSION}")
    try:
        _check(line)
    except (GotatoError, KeyError, TypeError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InvalidArgument(f"{where} is damaged ({said}); record again") from None
    return line  # type: ignore[no-any-return]  # it has the members that are read


def _check(line: Mapping[str, Any]) -> None:
    """Looks at everything that is read later, so that a damaged recording fails before anything has been run."""
    for told in line["events"]:
        if told.get("kind") != "no_event":
            model_event_from_dict(told)
    if line["ended"] not in ("returned", "raised", "closed"):
        raise InvalidArgument("ended must be returned, raised or closed")
    if line["ended"] == "raised":
        error_from_dict(line["error"])
    first_difference(line["request"], line["request"])
    if not isinstance(line["fingerprint"], str):
        raise InvalidArgument("fingerprint must be a str")
