"""Who has the agent: one slot that a run claims and lets go of, without a lock that an interrupt could leave behind."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Generator
from threading import get_ident
from types import GeneratorType
from typing import cast
from weakref import ref

from ._abandoned import Abandoned
from ._audience import Audience
from ._closing import close_run
from ._entry import open_transcript
from ._ledger import Ledger
from ._process import process
from ._run import Run
from .errors import AgentClosed, Busy, ForkedProcess, InvalidState
from .events import Event
from .scope import SYSTEM_CLOCK, Scope, checked_timeout
from .subscription import EventStream

_CLOSE_WAIT_S = 10.0  # a tool in another thread cannot be ended from here; `close` does not wait for it for ever
_LOOK_AGAIN_S = 0.25  # a run that an interrupt cut off in its last steps tells nobody


class Slot:
    """Claiming and recording are one atomic step, `dict.setdefault`, so that no interrupt can come between them.

    A run that was interrupted where it could not let go is found by the next entry, which closes it. One that is
    telling the subscribers its end looks as if it had gone: whoever sees that end finds the agent idle, and can run it
    as soon as all of them are told.
    """

    __slots__ = ("_audiences", "_held", "_leaving", "_ledger", "_repairer", "_repairing", "abandoned", "closed")

    def __init__(self) -> None:
        self.closed = False
        self.abandoned: Abandoned | None = None
        self._held: dict[str, Run] = {}
        self._leaving: Run | None = None
        self._repairing = allocate_lock()
        self._repairer = 0  # the thread that holds that lock
        self._ledger: Ledger | None = None
        self._audiences: dict[int, Audience] = {}  # by process, each made when it is first needed

    def holder(self) -> Run | None:
        """The run that has the agent, or was left behind with it."""
        run = self._held.get("run")
        return None if run is self._leaving else run

    def holder_here(self, operation: str) -> Run | None:
        """The run that goes on, if one does. Raises `ForkedProcess` if it is one of the parent process."""
        run = self.holder()
        if run is None:
            return None
        if run.is_of_parent():
            raise _forked(run, operation)
        return None if run.is_abandoned() else run

    def refuse_closed(self, agent_id: str, operation: str) -> None:
        """Raises `AgentClosed` once the agent is closed."""
        if self.closed:
            raise AgentClosed(f"the agent {agent_id} is closed; make a new one", operation=operation)

    def begin(self, run: Run) -> None:
        """Takes the agent for the run, or raises and changes nothing. Closes a run that was left behind first."""
        self.refuse_closed(run.setup.agent_id, "Agent.run")
        run.pid = process.id  # not that of the process that made the stream, if it was forked since
        while (holder := self._held.setdefault("run", run)) is not run:
            if holder.is_of_parent():
                raise _forked(holder, "Agent.run")
            if not self._has_gone(holder) and not (holder.is_abandoned() and self._repair(holder)):
                raise _busy(holder)
        try:
            self.refuse_closed(run.setup.agent_id, "Agent.run")  # again: `close` may have come in between
            audience = self._audience(run.pid)
            if audience.has_come:
                with audience.lock:
                    audience.join(run)
            self.abandoned = run.abandoned = self.abandoned or Abandoned()
            open_transcript(run, self._ledger)
        except run.setup.interrupts:
            raise  # the transcript may have begun the run: the next entry ends it there
        except Exception:
            if self._ledger is not None and not self._ledger.is_whole():  # it came in the middle of the reading
                self._ledger = None
            self._held.pop("run", None)
            run.over.cancel()
            if self.closed:  # `close` may have seen the agent taken, and left that to the run
                self._audience(run.pid).finish()
            raise

    def release(self, run: Run, last: Event | None) -> None:
        """Lets the agent go and, in one step for whoever listens, tells the run's last event to the subscribers.

        What an interrupted run knew of the transcript may be half done and is dropped.
        """
        self._ledger = None if run.interrupted else run.ledger
        audience = self._audience(run.pid)
        with audience.lock:
            self._leaving = run
            audience.tell_end(run, last)
            self._held.pop("run", None)
            self._leaving = None
        if self.closed:
            audience.finish()
        run.over.cancel()

    def subscribe(self, maxsize: int) -> EventStream:
        """A queue of the events from now on."""
        self.holder_here("Agent.subscribe")
        audience = self._audience(process.id)
        with audience.lock:
            stream = audience.add(maxsize)
            run = self.holder()
            if run is not None:
                audience.join(run)
            elif self.closed:
                audience.finish()
        return stream

    def wait_idle(self, timeout: float | None) -> bool:
        """Waits until no run has the agent; closes one that was left behind."""
        own = Scope(checked_timeout("Agent.wait_idle: timeout", timeout))
        while (run := self._held.get("run")) is not None:
            if run.is_of_parent():
                raise _forked(run, "Agent.wait_idle")
            if self._has_gone(run) or (run.is_abandoned() and self._repair(run)):
                continue
            if self._is_inside(run):
                raise InvalidState("wait_idle inside the run would wait for itself", operation="Agent.wait_idle")
            if own.cancelled:
                return False
            _wait_for(run, own)
        return True

    def close(self) -> None:
        """Takes no further run, and ends the one that goes on."""
        self.closed = True
        run = self._held.get("run")
        if run is not None and not run.is_of_parent():
            self._end(run)
        if self._audiences and not self._held:  # else `release` does that, behind the run's last event
            self._audience(process.id).finish()

    def _end(self, run: Run) -> None:
        """Ends the run, and waits for that where some other thread is about it."""
        own = Scope(_CLOSE_WAIT_S)
        while not self._has_gone(run) and not own.cancelled:
            if run.is_abandoned():
                self._repair(run)
            else:
                run.scope.cancel("closed")
                if not run.is_executing():
                    return
            if self._is_inside(run):
                return
            _wait_for(run, own)

    def _has_gone(self, run: Run) -> bool:
        """Whether the run has let the agent go; waits for that where another thread is telling its end."""
        if run is self._leaving:
            with self._audience(run.pid).lock:
                pass
        return self._held.get("run") is not run

    def _repair(self, run: Run) -> bool:
        """Closes a run that was interrupted where it could not close itself. False while a thread is at that already,
        be it this one, further up its stack."""
        if self._repairing.locked():
            return False
        with self._repairing:
            self._repairer = get_ident()
            if self._held.get("run") is run:
                run.interrupted = True
                self._close(run)
            self._repairer = 0
        return True

    def _close(self, run: Run) -> None:
        """Closes a run that was left behind; in its transcript only if no other run has taken that over."""
        closing = cast("GeneratorType[None, None, None]", self._closing(run))  # its claim tells whether it goes on
        try:
            run.displaced = run.recorded or run.hold is None or not run.hold.reclaim(ref(closing))
            next(closing, None)
        finally:
            closing.close()

    def _closing(self, run: Run) -> Generator[None, None, None]:
        close_run(run, self.release)
        yield

    def _is_inside(self, run: Run) -> bool:
        """Whether the run would have to go on in the calling thread, or below it."""
        return self._repairer == get_ident() if run.is_abandoned() else run.is_inside()

    def _audience(self, pid: int) -> Audience:
        """Those who have subscribed in that process."""
        return self._audiences.get(pid) or self._audiences.setdefault(pid, Audience())


def _wait_for(run: Run, own: Scope) -> None:
    """Waits for the end of the run, not past that of the scope, and never for long: it may end without a word."""
    left = own.remaining()
    SYSTEM_CLOCK.wait(run.over, _LOOK_AGAIN_S if left is None else min(left, _LOOK_AGAIN_S))


def _busy(holder: Run) -> Busy:
    return Busy(
        f"the agent is busy with run {holder.id}: one run at a time",
        run_id=holder.id,
        since=holder.started_time,
        operation="Agent.run",
    )


def _forked(holder: Run, operation: str) -> ForkedProcess:
    text = f"run {holder.id} went on when this process was forked: the agent is the parent's; make a new one here"
    return ForkedProcess(text, operation=operation)
