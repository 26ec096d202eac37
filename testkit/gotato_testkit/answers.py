"""Whole answers in one line: `say`, `call` and `think`, joined with `+`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import cast, overload

from gotato_py import (
    Done,
    InvalidArgument,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Usage,
)

_MOST_PIECES = 8
_WORDS = re.compile(r"\S+\s*|\s+")


class Answer(Sequence[ModelEvent]):
    """A complete answer: the events that a model streams, a `Done` last. Made by `say`, `call` and `think`.

    `+` joins two: the calls are numbered again, usage is added, and what the right one says about its end wins. As a
    sequence it takes part in the writing of broken ones: `say("Hel")[:-1]` has no `Done`.

    >>> answer = say("I'll look. ") + call("weather", city="Oslo") + call("time")
    >>> [event.call.id for event in answer if isinstance(event, ToolCallReady)]
    ['call_1', 'call_2']
    >>> answer[-1].stop_reason.value
    'tool_calls'
    """

    __slots__ = ("_body", "_events", "_model", "_response_id", "_stop", "_usage")

    def __init__(
        self,
        body: Iterable[ModelEvent],
        *,
        stop_reason: StopReason | str | None = None,
        usage: Usage | None = None,
        response_id: str = "",
        model: str = "",
    ) -> None:
        self._body = tuple(body)
        # Done checks the word and takes it as text too
        self._stop = None if stop_reason is None else Done(cast("StopReason", stop_reason)).stop_reason
        self._usage = usage
        self._response_id = response_id
        self._model = model
        numbered = _numbered(self._body)
        has_calls = any(isinstance(event, ToolCallReady) for event in numbered)
        natural = StopReason.TOOL_CALLS if has_calls else StopReason.END_TURN
        self._events: tuple[ModelEvent, ...] = (*numbered, Done(self._stop or natural, usage, response_id, model))

    def __add__(self, other: Answer) -> Answer:
        if not isinstance(other, Answer):
            return NotImplemented
        usage = self._usage + other._usage if self._usage and other._usage else other._usage or self._usage
        return Answer(
            (*self._body, *other._body),
            stop_reason=other._stop or self._stop,
            usage=usage,
            response_id=other._response_id or self._response_id,
            model=other._model or self._model,
        )

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> ModelEvent: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ModelEvent, ...]: ...
    def __getitem__(self, index: int | slice) -> ModelEvent | tuple[ModelEvent, ...]:
        return self._events[index]

    def __eq__(self, other: object) -> bool:
        return self._events == other._events if isinstance(other, Answer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._events)

    def __repr__(self) -> str:
        return f"Answer({list(self._events)!r})"


def _numbered(body: tuple[ModelEvent, ...]) -> list[ModelEvent]:
    """The events, each call without an id named by its place among the answer's calls."""
    numbered: list[ModelEvent] = []
    place = 0
    for event in body:
        if isinstance(event, ToolCallReady):
            place += 1
            call = event.call
            if not call.id:
                event = ToolCallReady(ToolCall(f"call_{place}", call.name, call.arguments, call.signature, call.origin))
        numbered.append(event)
    return numbered


def split_words(text: str) -> list[str]:
    """The text in words, each with the white space behind it; white space in front is a piece of its own."""
    return _WORDS.findall(text)


def _pieces(text: str) -> list[str]:
    """The text in words, or in eight pieces if it has more words than that: always the same pieces."""
    words = split_words(text)
    count = min(len(words), _MOST_PIECES)
    edges = [len(words) * place // count for place in range(count + 1)] if count else [0]
    return ["".join(words[start:end]) for start, end in pairwise(edges)]


def say(
    text: str = "",
    *,
    stop_reason: StopReason | str | None = None,
    usage: Usage | None = None,
    response_id: str = "",
    model: str = "",
) -> Answer:
    """An answer of text, streamed in a few pieces that end where words end.

    >>> say("It is sunny.")[:-1]
    (TextDelta(text='It '), TextDelta(text='is '), TextDelta(text='sunny.'))
    >>> say("1. first 2. sec", stop_reason="max_tokens", usage=Usage(9, 6))[-1].stop_reason.value
    'max_tokens'
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"say: text must be a str, not {type(text).__name__}")
    body = [TextDelta(piece) for piece in _pieces(text)]
    return Answer(body, stop_reason=stop_reason, usage=usage, response_id=response_id, model=model)


def call(tool: str, /, *, call_id: str | None = None, **arguments: object) -> Answer:
    """An answer that calls one tool. Without `call_id` its id is its place in the answer: `call_1`, `call_2`, …

    For an id of "" or arguments that are no JSON, write `ToolCallReady(ToolCall(…))` into a step.

    >>> call("weather", city="Oslo")[0].call
    ToolCall(id='call_1', name='weather', arguments='{"city":"Oslo"}')
    """
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"call: the arguments of {tool!r} must be plain JSON data ({error})") from None
    if call_id == "":
        raise InvalidArgument("call: call_id must not be empty; write ToolCallReady(ToolCall('', …)) into the step")
    return Answer([ToolCallReady(ToolCall(call_id or "", tool, text))])


def think(
    text: str = "", *, signature: str = "", origin: str = "", redacted: bool = False, done: bool = True
) -> Answer:
    """An answer that is only thought, to be followed by others; without `done`, nothing closes the thought.

    >>> (think("Hm.", signature="s1") + say("Yes."))[:-1]
    (ReasoningDelta(text='Hm.'), ReasoningDone(signature='s1'), TextDelta(text='Yes.'))
    """
    body: list[ModelEvent] = [ReasoningDelta(piece) for piece in _pieces(text)]
    return Answer([*body, ReasoningDone(signature, origin, redacted)] if done else body)
