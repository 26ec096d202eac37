"""How far a tool has come, told while it runs and within bounds."""

from __future__ import annotations

from threading import Lock

from ._run import Run
from ._text import well_formed
from .events import ToolExecutionUpdate


class Progress:
    """The progress of one call, from whatever thread the tool tells it. What is over the limits is dropped."""

    __slots__ = ("_bytes", "_key", "_lock", "_name", "_run", "_updates")

    def __init__(self, run: Run, key: str, name: str) -> None:
        self._run = run
        self._key = key
        self._name = name
        self._updates = 0
        self._bytes = 0
        self._lock = Lock()

    def __call__(self, text: str) -> None:
        limits = self._run.setup.limits
        size = len(text.encode("utf-8", "replace"))
        with self._lock:
            started = self._run.announcer.open.get("tool")
            if started is None or started.key != self._key:
                return  # told after the call had ended
            if limits.max_tool_progress_updates is not None and self._updates >= limits.max_tool_progress_updates:
                return
            if limits.max_tool_progress_bytes is not None and self._bytes + size > limits.max_tool_progress_bytes:
                return
            self._updates += 1
            self._bytes += size
            self._run.announcer.emit(ToolExecutionUpdate, self._key, self._name, well_formed(text))
