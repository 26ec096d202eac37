"""Who has the agent: one slot that a run claims and lets go of, without a lock that an interrupt could leave behind."""

from __future__ import annotations

from _thread import RLock
from os import getpid
from threading import get_ident

from ._abandoned import Abandoned
from ._closing import close_run
from ._entry import open_transcript
from ._ledger import Ledger
from ._run import Run
from ._subscribers import Subscribers
from .errors import AgentClosed, Busy, ForkedProcess, InvalidState
from .events import Event
from .scope import SYSTEM_CLOCK, Scope, checked_timeout
from .subscription import EventStream

_CLOSE_WAIT_S = 10.0  # a tool in another thread cannot be ended from here; `close` does not wait for it for ever
_LOOK_AGAIN_S = 0.25  # a run that an interrupt cut off in its last steps tells nobody
_MOMENT_S = 0.001


class Slot:
    """Claiming and recording are one atomic step, `dict.setdefault`, so that no interrupt can come between them.

    A run that was interrupted where it could not let go is found by the next entry, which closes it.
    """

    __slots__ = ("_held", "_last", "_ledger", "_repairs", "_subscribed", "abandoned", "closed")

    def __init__(self) -> None:
        self.closed = False
        self.abandoned: Abandoned | None = None
        self._held: dict[str, Run] = {}
        self._repairs: dict[str, int] = {}
        self._ledger: Ledger | None = None
        self._subscribed: dict[str, tuple[Subscribers, RLock]] = {}  # made by the first subscription
        self._last: Event | None = None  # an agent_end that an interrupt may have kept from subscribers

    def holder(self) -> Run | None:
        """The run that has the agent, or was left behind with it."""
        return self._held.get("run")

    def holder_here(self, operation: str) -> Run | None:
        """The same. Raises `ForkedProcess` if it went on in the parent process when this one was forked."""
        run = self._held.get("run")
        if run is not None and run.is_of_parent():
            raise _forked(run, operation)
        return run

    def refuse_closed(self, agent_id: str, operation: str) -> None:
        """Raises `AgentClosed` once the agent is closed."""
        if self.closed:
            raise AgentClosed(f"the agent {agent_id} is closed; make a new one", operation=operation)

    def begin(self, run: Run) -> None:
        """Takes the agent for the run, or raises and changes nothing. Closes a run that was left behind first."""
        self.refuse_closed(run.setup.agent_id, "Agent.run")
        run.thread, run.pid = get_ident(), getpid()
        while (holder := self._held.setdefault("run", run)) is not run:
            if holder.is_of_parent():
                raise _forked(holder, "Agent.run")
            if not holder.is_abandoned():
                raise _busy(holder, "one run at a time")
            self.repair(holder)
        try:
            self.refuse_closed(run.setup.agent_id, "Agent.run")  # again: `close` may have come in between
            if self._subscribed:
                self._tell_last()
                self._attach(run, late=False)
            self.abandoned = run.abandoned = self.abandoned or Abandoned()
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

    def release(self, run: Run, last: Event | None) -> None:
        """Lets the agent go and, in one step for whoever listens, tells the run's last event to the subscribers.

        What an interrupted run knew of the transcript may be half done and is dropped.
        """
        self._ledger = None if run.interrupted else run.ledger
        if last is None or not self._subscribed:
            self._held.pop("run", None)
        else:
            with self._subscribed["all"][1]:
                self._last = last
                self._held.pop("run", None)
                try:
                    self._tell_last()
                except BaseException:  # an interrupt: nobody may wait for this event until the next run
                    self._tell_last()
                    raise
        if self.closed:
            self.finish_subscribers()
        run.over.cancel()

    def subscribe(self, maxsize: int) -> EventStream:
        """A queue of the events from now on."""
        stream = self._subscribed.setdefault("all", (Subscribers(), RLock()))[0].add(maxsize)
        if self.closed:
            self.finish_subscribers()
        run = self.holder()
        if run is not None:
            self._attach(run, late=run.begun)
        return stream

    def finish_subscribers(self) -> None:
        """Ends every queue of events: none follows."""
        if self._subscribed:
            self._subscribed["all"][0].finish()

    def wait_idle(self, timeout: float | None) -> bool:
        """Waits until no run has the agent; closes one that was left behind."""
        own = Scope(checked_timeout("Agent.wait_idle: timeout", timeout))
        while (run := self.holder_here("Agent.wait_idle")) is not None:
            if run.is_abandoned():
                self.repair(run)
            elif run.is_inside():
                raise InvalidState("wait_idle inside the run would wait for itself", operation="Agent.wait_idle")
            elif own.cancelled:
                return False
            elif run.over.cancelled:  # its thread is about to let go
                own.wait(_MOMENT_S)
            else:
                left = own.remaining()
                SYSTEM_CLOCK.wait(run.over, _LOOK_AGAIN_S if left is None else min(left, _LOOK_AGAIN_S))
        self._tell_last()
        return True

    def close(self) -> None:
        """Takes no further run, and ends the one that goes on."""
        self.closed = True
        run = self.holder()
        if run is not None and not run.is_of_parent():
            if run.is_abandoned():
                self.repair(run)
            else:
                run.scope.cancel("closed")
                if run.is_executing() and not run.is_inside():
                    SYSTEM_CLOCK.wait(run.over, _CLOSE_WAIT_S)
        if self.holder() is None:  # else `release` does that, behind the run's last event
            self._tell_last()
            self.finish_subscribers()

    def _attach(self, run: Run, *, late: bool) -> None:
        """Has the run tell its events to those that have subscribed."""
        if self._subscribed and run.announcer.listen(self._subscribed["all"][0].pushes(), late=late):
            run.listening = True

    def _tell_last(self) -> None:
        """Tells an `agent_end` that waits to be told; the next run's events come after it."""
        if self._subscribed:
            subscribers, lock = self._subscribed["all"]
            with lock:
                if self._last is not None:
                    for push in subscribers.pushes():
                        push(self._last)
                    self._last = None


def _busy(holder: Run, why: str) -> Busy:
    return Busy(
        f"the agent is busy with run {holder.id}: {why}",
        run_id=holder.id,
        since=holder.started_time,
        operation="Agent.run",
    )


def _forked(holder: Run, operation: str) -> ForkedProcess:
    text = f"run {holder.id} went on when this process was forked: the agent is the parent's; make a new one here"
    return ForkedProcess(text, operation=operation)
