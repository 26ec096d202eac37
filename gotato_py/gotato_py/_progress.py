"""How far a tool has come, told while it runs and within bounds."""

from __future__ import annotations

from collections.abc import Callable

from ._run import Run
from ._text import well_formed
from .events import ToolExecutionUpdate


class Progress:
    """The progress of one call. What is over the limits, or told after the call has ended, is dropped.

    What the run's own thread tells is announced at once. Another thread must not write into the run's events: a worker
    posts what it tells to the run, which announces it at once; what is told by a thread that a tool in the run's own
    thread has started is announced when that tool returns.
    """

    __slots__ = ("_bytes", "_key", "_late", "_name", "_post", "_run", "_updates")

    def __init__(self, run: Run, key: str, name: str, post: Callable[[str], None] | None = None) -> None:
        self._run = run
        self._key = key
        self._name = name
        self._post = post
        self._updates = 0
        self._bytes = 0
        self._late: list[str] = []

    def __call__(self, text: str) -> None:
        run = self._run
        if self._key not in run.announcer.open:
            return
        limits = run.setup.limits
        if limits.max_tool_progress_updates is not None and self._updates >= limits.max_tool_progress_updates:
            return
        self._bytes += len(text.encode("utf-8", "replace"))
        if limits.max_tool_progress_bytes is not None and self._bytes > limits.max_tool_progress_bytes:
            return
        self._updates += 1
        if self._post is not None:
            self._post(text)
        elif run.is_mine():
            announce_progress(run, self._key, self._name, text)
        else:
            self._late.append(text)

    def catch_up(self) -> None:
        """Announces what other threads have told so far."""
        while self._late:
            announce_progress(self._run, self._key, self._name, self._late.pop(0))


def announce_progress(run: Run, key: str, name: str, text: str) -> None:
    """Announces what a call tells, while it runs."""
    if key in run.announcer.open:
        run.announcer.emit(ToolExecutionUpdate, key, name, well_formed(text))
