"""Transcripts that are broken in what is optional: compactions, and being told of runs."""

from __future__ import annotations

from typing import Any

from gotato_py import (
    AssistantMessage,
    Busy,
    Compaction,
    MemoryTranscript,
    RunRecord,
    UserMessage,
)


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
