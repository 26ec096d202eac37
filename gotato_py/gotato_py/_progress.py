"""How far a tool has come, told while it runs and within bounds."""

from __future__ import annotations

from ._run import Run
from ._text import well_formed
from .events import ToolExecutionUpdate


class Progress:
    """The progress of one call. What is over the limits, or told after the call has ended, is dropped.

    What the run's own thread tells is announced at once. Another thread that the tool has started must not write into
    the run's events, so what it tells is announced when the tool returns.
    """

    __slots__ = ("_bytes", "_key", "_late", "_name", "_run", "_updates")

    def __init__(self, run: Run, key: str, name: str) -> None:
        self._run = run
        self._key = key
        self._name = name
        self._updates = 0
        self._bytes = 0
        self._late: list[str] = []

    def __call__(self, text: str) -> None:
        if not self._run.is_mine():
            self._late.append(text)
            return
        limits = self._run.setup.limits
        started = self._run.announcer.open.get("tool")
        if started is None or started.key != self._key:
            return
        if limits.max_tool_progress_updates is not None and self._updates >= limits.max_tool_progress_updates:
            return
        self._bytes += len(text.encode("utf-8", "replace"))
        if limits.max_tool_progress_bytes is not None and self._bytes > limits.max_tool_progress_bytes:
            return
        self._updates += 1
        self._run.announcer.emit(ToolExecutionUpdate, self._key, self._name, well_formed(text))

    def catch_up(self) -> None:
        """Announces what other threads have told so far."""
        while self._late:
            self(self._late.pop(0))
