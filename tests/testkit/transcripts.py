"""A transcript in a file that keeps every promise of a transcript, and some that lose something on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gotato_py import (
    Compaction,
    MemoryTranscript,
    UserMessage,
    WaitingCall,
    message_from_dict,
    message_to_dict,
    record_from_dict,
    record_to_dict,
)


class FileTranscript(MemoryTranscript):
    """A transcript in a file, a line for each change: opened again it makes them all again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.closed = False
        super().__init__()
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            if line:
                self.again(json.loads(line))
        copied = MemoryTranscript.from_dict(self.opened(self.to_dict()))
        self._list = list(copied.messages)
        for name in ("_started", "_waiting", "_compactions"):
            setattr(self, name, getattr(copied, name))

    def again(self, line: dict[str, Any]) -> None:
        """Makes one change again."""
        if "message" in line:
            super().append(message_from_dict(line["message"]))
        elif "started" in line:
            super().mark_started(line["started"])
        elif "waiting" in line:
            super().mark_waiting([record_from_dict(each) for each in line["waiting"]])  # type: ignore[misc]
        else:
            super().replace(record_from_dict(line["compaction"]))  # type: ignore[arg-type]

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        """What is made of what was read; broken ones lose some of it."""
        return kept

    def write(self, **line: object) -> None:
        """Writes one change."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def append(self, message: Any) -> Any:
        kept = super().append(message)
        self.write(message=message_to_dict(kept))
        return kept

    def mark_started(self, key: str) -> None:
        super().mark_started(key)
        self.write(started=key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        super().mark_waiting(calls)
        self.write(waiting=[record_to_dict(each) for each in calls])

    def replace(self, compaction: Compaction) -> bool:
        done = super().replace(compaction)
        self.write(compaction=record_to_dict(self.compactions[-1]))
        return done

    def close(self) -> None:
        """As a process does at its end."""
        self.closed = True


# broken on disk


class LosesTheTail(FileTranscript):
    """Drops the last message on disk."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        told = kept["messages"]
        return {**kept, "messages": told[:-1]} if told and told[-1].get("metadata") else kept


class CountsFromOne(FileTranscript):
    """Counts from 1 in each process."""

    def append(self, message: Any) -> Any:
        if isinstance(message, UserMessage) and message.text in ("one", "two") and len(self._list) < 2:
            message = UserMessage(message.parts, id="m-1")
        return super().append(message)


class ForgetsStartsOnDisk(FileTranscript):
    """Does not write starts."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        return {**kept, "started": []}


class StartsAll(FileTranscript):
    """Takes every call of a batch for started."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        if "started" not in kept:
            return kept
        return {**kept, "started": [f"{kept['messages'][-1]['id']}:{index}" for index in range(2)]}


class ForgetsDecisions(FileTranscript):
    """Does not write decisions."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        waiting = [{name: each[name] for name in each if name != "decision"} for each in kept.get("waiting", ())]
        return {**kept, "waiting": waiting}


class ForgetsCompactions(FileTranscript):
    """Does not write compactions."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        return {**kept, "compactions": []}


class ForgetsTheUser(FileTranscript):
    """Writes no ids."""

    def opened(self, kept: dict[str, Any]) -> dict[str, Any]:
        told = kept["messages"]
        if told and told[-1].get("parts") == [{"kind": "text", "text": "Done."}]:
            return {**kept, "messages": [{**each, "id": f"other-{at}"} for at, each in enumerate(told)]}
        return kept
