"""Transcripts in memory that are broken, each in its own way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from gotato_py import (
    AssistantMessage,
    Busy,
    Compaction,
    MemoryTranscript,
    Message,
    RunRecord,
    ToolMessage,
    UserMessage,
    WaitingCall,
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


class Copies(MemoryTranscript):
    """Copies all messages at each look."""

    @property
    def messages(self) -> Any:
        return tuple(super().messages)


class TornForReaders(MemoryTranscript):
    """It writes numbers in pairs, the second one first."""

    def append(self, message: Any) -> Any:
        if isinstance(message, UserMessage) and message.text.isdecimal():
            kept = UserMessage(message.text, id=f"n{message.text}")
            self._list.append(UserMessage("torn", id="n"))
            self._list[-1] = kept
            for _ in range(200):
                self._list[-1] = UserMessage("torn", id="n")
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


# broken in what is optional


class ForgetsTheRest(MemoryTranscript):
    """Drops what follows a summary."""

    def replace(self, compaction: Compaction) -> bool:
        done = super().replace(compaction)
        if self._list[1:] and self._list[1].text == "two":
            del self._list[1:]
        return done


class TellsNoCompactions(MemoryTranscript):
    """Compacts and does not tell."""

    @property
    def compactions(self) -> Any:
        return ()


class ChangesItsList(MemoryTranscript):
    """Changes the list that its views share."""

    def replace(self, compaction: Compaction) -> bool:
        shared = self._list
        done = super().replace(compaction)
        shared[:] = self._list
        return done


class ForgetsTheLastUser(MemoryTranscript):
    """Does not say which user message a summary covers."""

    def replace(self, compaction: Compaction) -> bool:
        done = super().replace(compaction)
        first = self._list[0]
        assert isinstance(first, UserMessage)
        self._list[0] = UserMessage(first.parts, id=first.id)
        return done


class ForgetsAnEarlierLastUser(MemoryTranscript):
    """Forgets what an earlier summary covered."""

    def replace(self, compaction: Compaction) -> bool:
        if compaction.summary.text == "so far, again":
            self._list[0] = UserMessage("so far", id=self._list[0].id)
        return super().replace(compaction)


class Obeys(MemoryTranscript):
    """It does what it is told to where `when` says so."""

    def when(self, compaction: Compaction) -> bool:
        return False

    def replace(self, compaction: Compaction) -> bool:
        if self.when(compaction):
            self._list = [compaction.summary]
            return True
        return super().replace(compaction)


class TakesAnUnknownEnd(Obeys):
    """Takes an empty `through`."""

    def when(self, compaction: Compaction) -> bool:
        return not compaction.through


class ChangesWhatItRefuses(MemoryTranscript):
    """Drops everything before it raises."""

    def replace(self, compaction: Compaction) -> bool:
        if not compaction.through:
            self._list = []
        return super().replace(compaction)


class TakesAnEmptySummary(Obeys):
    """Takes a summary that says nothing."""

    def when(self, compaction: Compaction) -> bool:
        return not compaction.summary.text.strip()


class CutsABatch(Obeys):
    """Cuts between a call and its results."""

    def when(self, compaction: Compaction) -> bool:
        return self._list[-1].text == "Found."


class CutsBehindAnOpenCall(Obeys):
    """Covers a call that is open."""

    def when(self, compaction: Compaction) -> bool:
        last = self._list[-1]
        return isinstance(last, AssistantMessage) and bool(last.tool_calls)


class OneRunOnly(MemoryTranscript):
    """Takes one run only."""

    ran = False

    def begin_run(self, run_id: str) -> None:
        if self.ran and self._list == []:
            raise Busy("another run has it")
        self.ran = True


class NoRecords(MemoryTranscript):
    """Takes no record."""

    def end_run(self, record: RunRecord) -> None:
        if record.agent == "agent":
            raise TypeError("no record")
