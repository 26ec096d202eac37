"""Transcripts in memory that are broken, each in its own way."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

from gotato_py import (
    AssistantMessage,
    MemoryTranscript,
    Message,
    ToolMessage,
    UserMessage,
    WaitingCall,
    replace,
)


class LosesMetadata(MemoryTranscript):
    """Drops the metadata of answers."""

    def append(self, message: Any) -> Any:
        if isinstance(message, AssistantMessage) and message.metadata:
            message = AssistantMessage(
                message.parts, message.tool_calls, usage=message.usage, stop_reason=message.stop_reason,
                model=message.model, id=message.id,
            )  # fmt: skip
        return super().append(message)


class GivesItsOwnIds(MemoryTranscript):
    """Replaces an id that a message has."""

    def append(self, message: Any) -> Any:
        if isinstance(message, UserMessage) and message.text == "hello":
            message = UserMessage(message.parts)
        return super().append(message)


class CountsIds(MemoryTranscript):
    """Gives one id to several messages."""

    def append(self, message: Any) -> Any:
        if isinstance(message, UserMessage) and not message.id and message.text == "the same words":
            message = UserMessage(message.parts, id="m-1")
        return super().append(message)


class TakesAnything(MemoryTranscript):
    """Takes a dict and drops it."""

    def append(self, message: Any) -> Any:
        if isinstance(message, dict):
            return message
        return super().append(message)


class KeepsWhatItRefuses(MemoryTranscript):
    """Keeps something before it raises."""

    def append(self, message: Any) -> Any:
        if message is None:
            super().append(UserMessage("None"))
            raise TypeError("no message")
        return super().append(message)


class Shown(Sequence[Message]):
    """A view of another kind, over the messages of a transcript."""

    def __init__(self, transcript: MemoryTranscript) -> None:
        self.transcript = transcript
        self.taken = MemoryTranscript.messages.fget(transcript)  # type: ignore[attr-defined]

    def all(self) -> Any:
        """The messages that it shows."""
        return self.taken

    def __len__(self) -> int:
        return len(self.all())

    def __getitem__(self, index: Any) -> Any:
        return self.all()[index]


class Live(Shown):
    """A view that grows."""

    def all(self) -> Any:
        return MemoryTranscript.messages.fget(self.transcript)  # type: ignore[attr-defined]


class FromTheFront(Shown):
    """A view that is read backwards from the front."""

    def __reversed__(self) -> Any:
        return iter(list(self.all()))


class Changeable(Shown):
    """A view that can be appended to."""

    def append(self, message: Message) -> None:
        """Changes the transcript."""
        self.transcript.append(message)


class LiveView(MemoryTranscript):
    """Hands out a view that grows."""

    @property
    def messages(self) -> Any:
        return Live(self)


class OddView(MemoryTranscript):
    """Hands out a view that is no proper sequence."""

    @property
    def messages(self) -> Any:
        return FromTheFront(self)


class OpenView(MemoryTranscript):
    """Hands out a view that can be appended to."""

    @property
    def messages(self) -> Any:
        return Changeable(self)


class ShowsAMethod(MemoryTranscript):
    """Has a method where a property is due."""

    @property
    def messages(self) -> Any:
        return self.append


class ReturnsNothing(MemoryTranscript):
    """Keeps a message and returns nothing."""

    def append(self, message: Any) -> Any:
        super().append(message)


class OwnList:
    """A first try: a list, handed out as it is."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.started: set[str] = set()
        self.waiting: list[WaitingCall] = []

    def append(self, message: Any) -> Any:
        self.messages.append(message)
        return message

    def mark_started(self, key: str) -> None:
        self.started.add(key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        self.waiting = list(calls)


class Copies(MemoryTranscript):
    """Copies all messages at each look."""

    @property
    def messages(self) -> Any:
        return tuple(super().messages)


class TornForReaders(MemoryTranscript):
    """A number that is appended is something else until another thread has looked."""

    def __init__(self) -> None:
        super().__init__()
        self._writer = threading.get_ident()
        self._looked = threading.Event()

    @property
    def messages(self) -> Any:
        seen = super().messages
        if threading.get_ident() == self._writer:
            return seen
        copy = tuple(seen)
        if copy and copy[-1].text == "torn":
            self._looked.set()
        return copy

    def append(self, message: Any) -> Any:
        if isinstance(message, UserMessage) and message.text.isdecimal():
            kept = message if message.id else replace(message, id=f"n{message.text}")
            self._list.append(UserMessage("torn", id="n"))
            self._looked.wait(60)
            self._list[-1] = kept
            return kept
        return super().append(message)


class ForgetsStarts(MemoryTranscript):
    """Remembers no start."""

    @property
    def started(self) -> Collection[str]:
        return ()


class ForgetsStartsWithAResult(MemoryTranscript):
    """Forgets all starts with the first result."""

    def append(self, message: Any) -> Any:
        if isinstance(message, ToolMessage):
            self._started = set()
        return super().append(message)


class AddsWaitingCalls(MemoryTranscript):
    """Adds to the calls that wait instead of replacing them."""

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        super().mark_waiting([*self.waiting, *calls])


class WaitsForEver(MemoryTranscript):
    """Never forgets calls that wait."""

    def append(self, message: Any) -> Any:
        waiting = self._waiting
        kept = super().append(message)
        self._waiting = waiting
        return kept


class SwapsAnAgentsWords(MemoryTranscript):
    """Drops one answer of an agent."""

    def append(self, message: Any) -> Any:
        if isinstance(message, AssistantMessage) and message.text == "Again.":
            return message
        return super().append(message)
