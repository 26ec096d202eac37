"""Who has the agent: one slot that a run claims and lets go of, without a lock that an interrupt could leave behind."""

from __future__ import annotations

from threading import get_ident

from ._closing import close_run
from ._entry import open_transcript
from ._ledger import Ledger
from ._run import Run
from .errors import AgentClosed, Busy


class Slot:
    """Claiming and recording are one atomic step, `dict.setdefault`, so that no interrupt can come between them.

    A run that was interrupted where it could not let go is found by the next entry, which closes it.
    """

    __slots__ = ("_held", "_ledger", "_repairs", "closed")

    def __init__(self) -> None:
        self.closed = False
        self._held: dict[str, Run] = {}
        self._repairs: dict[str, int] = {}
        self._ledger: Ledger | None = None

    def holder(self) -> Run | None:
        """The run that has the agent, or was left behind with it."""
        return self._held.get("run")

    def refuse_closed(self, agent_id: str, operation: str) -> None:
        """Raises `AgentClosed` once the agent is closed."""
        if self.closed:
            raise AgentClosed(f"the agent {agent_id} is closed; make a new one", operation=operation)

    def begin(self, run: Run) -> None:
        """Takes the agent for the run, or raises and changes nothing. Closes a run that was left behind first."""
        self.refuse_closed(run.setup.agent_id, "Agent.run")
        run.thread = get_ident()
        while (holder := self._held.setdefault("run", run)) is not run:
            if not holder.is_abandoned():
                raise _busy(holder, "one run at a time")
            self.repair(holder)
        try:
            self.refuse_closed(run.setup.agent_id, "Agent.run")  # again: `close` may have come in between
            open_transcript(run, self._ledger)
        except BaseException:
            self._held.pop("run", None)
            raise

    def repair(self, run: Run) -> None:
        """Closes a run that was interrupted where it could not close itself. One thread at a time does."""
        me = get_ident()
        if self._repairs.setdefault("thread", me) != me:
            raise _busy(run, "another thread is closing it")
        try:
            if self._held.get("run") is run:
                run.interrupted = True
                close_run(run, self.release)
        finally:
            self._repairs.pop("thread", None)

    def release(self, run: Run) -> None:
        """Lets the agent go. What an interrupted run knew of the transcript may be half done and is dropped."""
        self._ledger = None if run.interrupted else run.ledger
        self._held.pop("run", None)
        run.over.cancel()


def _busy(holder: Run, why: str) -> Busy:
    return Busy(
        f"the agent is busy with run {holder.id}: {why}",
        run_id=holder.id,
        since=holder.started_time,
        operation="Agent.run",
    )
