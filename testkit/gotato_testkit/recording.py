"""A model that writes down what it was asked and what it streamed, for `ReplayModel` to stream again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from gotato_py import InvalidArgument, Model, ModelEvent, ModelProtocolError, ModelRequest, Scope, StoreFailure

from ._error_json import error_to_dict
from ._request_json import JSONObject, fingerprint, request_to_dict
from .model_event_json import model_event_to_dict

VERSION = 1
"""Of the lines in a recording."""


class RecordingModel:
    """Passes everything on to `model`, as it comes, and appends a line of JSON to the file at the end of each stream.

    A line holds the request as JSON, a fingerprint of it, the events, and the error that ended them, if one did. The
    file is appended to, one write a line, so several threads and processes may share it. A request holds no key and no
    header, those belong to the model, and none is ever seen here: what gets into the file is prompts and answers.

    Raises `InvalidArgument` if the file cannot be written, and `StoreFailure` from a stream that could not be kept.

    >>> from tempfile import TemporaryDirectory
    >>> from gotato_py import Agent
    >>> from gotato_testkit import ReplayModel, ScriptedModel, say
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "hello.jsonl")
    ...     live = Agent(RecordingModel(ScriptedModel([say("Hello.")]), path)).run("Hi").text
    ...     live, Agent(ReplayModel(path)).run("Hi").text
    ('Hello.', 'Hello.')
    """

    def __init__(self, model: Model, path: str | os.PathLike[str]) -> None:
        if not callable(getattr(model, "stream", None)):
            raise InvalidArgument(f"RecordingModel.model must be a Model, not {type(model).__name__}")
        self._model = model
        self._path = Path(path)
        self.name: str = getattr(model, "name", "")
        self.capabilities: frozenset[str] = frozenset(getattr(model, "capabilities", ()))
        self.cost_of: object = getattr(model, "cost_of", None)
        try:
            os.close(self._open())
        except OSError as error:
            raise InvalidArgument(f"RecordingModel.path cannot be written: {error.strerror}") from None

    def __repr__(self) -> str:
        return f"RecordingModel({self._model!r}, {self._path.name!r})"

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Streams what the model streams, and raises what it raises."""
        asked = request_to_dict(request)
        recorded = _RecordedStream(
            self._write,
            {
                "gotato_recording": VERSION,
                "model": {"name": self.name, "capabilities": sorted(self.capabilities)},
                "fingerprint": fingerprint(asked),
                "request": asked,
            },
        )
        recorded.open(self._model, request, scope)
        return recorded

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def _write(self, line: JSONObject) -> None:
        try:
            data = f"{json.dumps(line, ensure_ascii=False, allow_nan=False)}\n".encode()
        except UnicodeEncodeError:  # half of a pair in a delta, which only an escape can hold
            data = f"{json.dumps(line, allow_nan=False)}\n".encode("ascii")
        try:
            handle = self._open()
            try:
                written = os.write(handle, data)
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreFailure(f"RecordingModel: the recording could not be written: {error.strerror}") from error
        if written < len(data):
            raise StoreFailure(
                "RecordingModel: the last line of the recording is torn, the disk may be full; remove it"
            )


class _RecordedStream:
    """One stream on its way, and the line that it becomes, which is written once, however the stream ends."""

    def __init__(self, write: Callable[[JSONObject], None], line: JSONObject) -> None:
        self._write = write
        self._line = line
        self._events: list[JSONObject] = []
        self._stream: Iterator[ModelEvent] = iter(())
        self._written = False

    def open(self, model: Model, request: ModelRequest, scope: Scope) -> None:
        """Asks the model."""
        try:
            stream: object = model.stream(request, scope)
            if not hasattr(stream, "__iter__"):
                text = f"{type(model).__name__}.stream returned a {type(stream).__name__}, which is no iterator"
                raise ModelProtocolError(text, retryable=False)
            self._stream = iter(stream)
        except BaseException as error:
            self._finish(error)
            raise

    def __iter__(self) -> Iterator[ModelEvent]:
        return self

    def __next__(self) -> ModelEvent:
        try:
            event = next(self._stream)
        except StopIteration:
            self._finish(None)
            raise
        except BaseException as error:
            self._finish(error)
            raise
        self._events.append(_told(event))
        return event

    def close(self) -> None:
        """Closes the model's stream; what has been read of it so far is the recording."""
        try:
            close = getattr(self._stream, "close", None)
            if close is not None:
                close()
        finally:
            self._end("closed")

    def _finish(self, error: BaseException | None) -> None:
        if error is None:
            self._end("returned")
        elif isinstance(error, Exception):
            self._line["error"] = error_to_dict(error)
            self._end("raised")
        else:  # an interrupt, which is none of the model's
            self._end("closed")

    def _end(self, how: str) -> None:
        if not self._written:
            self._written = True
            self._write({**self._line, "events": self._events, "ended": how})


def _told(event: object) -> JSONObject:
    """The event as JSON; what is none by the name of its type, so that the replay breaks the protocol as well."""
    try:
        return model_event_to_dict(event)  # type: ignore[arg-type]  # a model may stream anything
    except InvalidArgument:
        return {"kind": "no_event", "type": type(event).__name__}
