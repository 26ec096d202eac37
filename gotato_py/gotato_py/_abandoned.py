"""The tool calls that were given up while their threads still run."""

from __future__ import annotations

from threading import Thread

from ._value import value


@value
class AbandonedCall:
    """A call whose tool did not stop when its time had passed or its run had ended; its effect is unknown.

    `started_at` is in Unix seconds. What the tool still says or returns is dropped.
    """

    tool: str
    key: str
    call_id: str
    run_id: str
    started_at: float


class Abandoned:
    """The abandoned calls of one agent, as long as their threads live."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[tuple[AbandonedCall, Thread]] = []

    def add(self, call: AbandonedCall, thread: Thread) -> None:
        """Remembers a call that was given up."""
        self._calls.append((call, thread))

    def alive(self) -> tuple[AbandonedCall, ...]:
        """Those whose threads still run."""
        for each in list(self._calls):
            if not each[1].is_alive() and each in self._calls:
                self._calls.remove(each)
        return tuple(call for call, _ in list(self._calls))
