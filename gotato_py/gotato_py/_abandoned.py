"""The tool calls that were given up while their threads still run."""

from __future__ import annotations

from ._crew import Job
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
    """The abandoned calls of one agent, as long as their threads live. Any thread may look."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[str, tuple[AbandonedCall, Job]] = {}  # by key: a closing that is done again adds nothing

    def add(self, call: AbandonedCall, job: Job) -> None:
        """Remembers a call that was given up."""
        self.alive()  # nobody may ever ask: the dead are not kept for ever
        self._calls[call.key] = call, job

    def alive(self) -> tuple[AbandonedCall, ...]:
        """Those whose threads still run."""
        for key, (_, job) in list(self._calls.items()):
            if not job.lives:
                self._calls.pop(key, None)
        return tuple([call for call, _ in list(self._calls.values())])
