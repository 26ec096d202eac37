"""One answer, put together from a model's events."""

from __future__ import annotations

from typing import Any

from ._log import debug
from ._mapping import EMPTY, FrozenMapping
from ._value import unchecked
from .messages import AssistantMessage
from .model import (
    Done,
    ModelEvent,
    RateLimits,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    UsageUpdate,
)
from .model_errors import ModelProtocolError
from .parts import NO_USAGE, Part, ReasoningPart, StopReason, TextPart, ToolCall, Usage

_make_message = unchecked(AssistantMessage)

UNFINISHED_CALLS = "unfinished_calls"
"""Metadata key: the calls of an interrupted answer, as `{"name": …, "arguments": raw text}`; they never run."""


_NO_END = (StopReason.CANCELLED, StopReason.ERROR)  # what the kernel itself says of an interrupted answer


class Answer:
    """An answer in the making. `id` is the message's from the first moment, so that a commit can be recognised."""

    __slots__ = (
        "calls",
        "closing",
        "delivered",
        "done",
        "fragments",
        "id",
        "parts",
        "reasoning",
        "size",
        "stream",
        "text",
        "usage",
    )

    def __init__(self, message_id: str) -> None:
        self.id: str = message_id
        self.parts: list[Part] = []
        self.text: list[str] = []
        self.reasoning: list[str] | None = None
        self.calls: list[ToolCall] = []
        self.fragments: dict[int, tuple[str, list[str]]] | None = None
        self.usage: Usage = NO_USAGE
        self.done: Done | None = None
        self.delivered: bool = False
        self.size: int = 0
        self.stream: object = None  # the model's, while it is open
        self.closing: bool = False

    def take(self, event: ModelEvent) -> None:
        """Adds one event. Raises `ModelProtocolError` for what is none, and for anything after `Done`."""
        if self.done is not None:
            raise ModelProtocolError("the model's stream went on after Done")
        if type(event) is TextDelta:
            self._take_text(event.text)
        elif type(event) is ToolCallReady:
            self.delivered = True
            self.size += len(event.call.arguments)
            if self.fragments is not None:
                self._drop_fragments(self.fragments, len(self.calls))
            self.calls.append(event.call)
        elif type(event) is Done:
            if event.stop_reason in _NO_END:
                raise ModelProtocolError(
                    f"the model's stream ended with Done({event.stop_reason}); a failure is raised"
                )
            self.done = event
            if event.usage is not None:
                self.usage = event.usage
        else:
            self._take_other(event)

    def _take_text(self, piece: str) -> None:
        if self.reasoning is not None:
            self._close_reasoning(ReasoningDone())
        self.delivered = True
        self.size += len(piece)
        self.text.append(piece)

    def _take_other(self, event: ModelEvent) -> None:
        match event:
            case ReasoningDelta():
                self.delivered = True
                self._close_text()
                self.size += len(event.text)
                self.reasoning = self.reasoning or []
                self.reasoning.append(event.text)
            case ReasoningDone():
                self.delivered = True
                self._close_text()
                self._close_reasoning(event)
            case ToolCallDelta():
                self.delivered = True
                self.size += len(event.fragment)
                self.fragments = self.fragments if self.fragments is not None else {}
                name, pieces = self.fragments.get(event.index, ("", []))
                pieces.append(event.fragment)
                self.fragments[event.index] = (name or event.name, pieces)
            case UsageUpdate():
                self.usage = event.usage
            case RateLimits():
                pass
            case _:
                raise ModelProtocolError(f"the model's stream gave a {type(event).__name__}, which is no ModelEvent")

    def _drop_fragments(self, fragments: dict[int, tuple[str, list[str]]], index: int) -> None:
        """Forgets the pieces of a call that has come as a whole: it says the same, and is counted once."""
        _, pieces = fragments.pop(index, ("", []))
        self.size -= sum(map(len, pieces))

    def _close_text(self) -> None:
        if self.text:
            self.parts.append(TextPart("".join(self.text)))
            self.text = []

    def _close_reasoning(self, done: ReasoningDone) -> None:
        text = "".join(self.reasoning or ())
        self.reasoning = None
        self.parts.append(ReasoningPart(text, done.signature, done.origin, done.redacted))

    def close_stream(self, interrupts: tuple[type[BaseException], ...]) -> None:
        """Closes the model's stream, if it is open and can be closed; what that raises must not hide how it ended."""
        close = getattr(self.stream, "close", None)
        if close is not None:
            try:
                close()
            except interrupts:
                if self.closing:  # one that interrupts each time must not keep the run open for ever
                    self.stream = None
                self.closing = True
                raise
            except Exception as error:
                debug("closing the model's stream raised %s", type(error).__name__)
        self.stream = None

    def is_empty(self) -> bool:
        """Whether there is nothing that an assistant message could hold: no call and no visible text."""
        return not self.calls and not self._has_text()

    def _has_text(self) -> bool:
        if any(not piece.isspace() for piece in self.text if piece):
            return True
        return any(
            not isinstance(part, ReasoningPart) and (type(part) is not TextPart or part.text.strip())
            for part in self.parts
        )

    def message(self, model: str) -> AssistantMessage:
        """The message of a complete answer."""
        done = self.done or Done()
        if not self.parts and self.reasoning is None:  # the usual case: text or calls alone
            parts: tuple[Part, ...] = (TextPart("".join(self.text)),) if self.text else ()
        else:
            self._close_text()
            if self.reasoning is not None:
                self._close_reasoning(ReasoningDone())
            parts = tuple(self.parts)
        stop = done.stop_reason
        if stop is StopReason.END_TURN and self.calls:
            stop = StopReason.TOOL_CALLS
        elif stop is StopReason.TOOL_CALLS and not self.calls:
            stop = StopReason.END_TURN
        metadata = FrozenMapping({"response_id": done.response_id}) if done.response_id else EMPTY
        return _make_message(parts, tuple(self.calls), self.usage, stop, done.model or model, self.id, metadata)

    def interrupted(self, model: str, stop: StopReason) -> AssistantMessage | None:
        """What is kept of an answer that was cut off: its text and the reasoning closed before it; None without text.

        Every call is dropped, complete ones too: nothing ran, so nothing is lost. Their raw text is kept as metadata.
        """
        self.reasoning = None
        if not self._has_text():
            return None
        self._close_text()
        return AssistantMessage(
            tuple(part for part in self.parts if type(part) is not ReasoningPart or part.signature or part.redacted),
            usage=self.usage,
            stop_reason=stop,
            model=model,
            id=self.id,
            metadata=self._unfinished(),
        )

    def _unfinished(self) -> FrozenMapping:
        unfinished: list[Any] = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
        complete = len(self.calls)
        for index, (name, pieces) in sorted((self.fragments or {}).items()):
            if index >= complete:
                unfinished.append({"name": name, "arguments": "".join(pieces)})
        return FrozenMapping({UNFINISHED_CALLS: unfinished}) if unfinished else EMPTY
