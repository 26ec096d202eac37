"""Who listens to an agent from other threads of one process, and how they learn that a run has ended."""

from __future__ import annotations

from _thread import RLock

from ._event import error_info
from ._run import Run
from ._subscribers import Subscribers
from .events import AgentEnd, Event
from .subscription import EventStream


class Audience:
    """The subscribers. What is done under `lock` is one step for them: that a run lets the agent go and that they are
    told of it; that somebody comes and that he joins the run that goes on.

    The lock is re-entrant, since a signal handler may come here from within. A forked child has an audience of its own:
    in its copy of this one the lock may be taken by a thread that it does not have.
    """

    __slots__ = ("_last", "_subscribers", "lock")

    def __init__(self) -> None:
        self.lock = RLock()
        self._subscribers: Subscribers | None = None  # made by the first subscription
        self._last: Event | None = None  # an agent_end that not all of them have yet

    @property
    def has_come(self) -> bool:
        """Whether anybody ever subscribed."""
        return self._subscribers is not None

    def add(self, maxsize: int) -> EventStream:
        """A new subscriber, who gets the events from here on."""
        self.tell()
        if self._subscribers is None:
            self._subscribers = Subscribers()
        return self._subscribers.add(maxsize)

    def join(self, run: Run) -> None:
        """Has the run tell its events to those who have subscribed; they get its `agent_end`, whenever they came."""
        pushes = () if self._subscribers is None else self._subscribers.pushes()
        if pushes:
            run.announcer.listen(pushes, late=False)
            run.listening = True  # before the look at `begun`: one of the two threads sees what the other did
            if run.begun:
                run.announcer.listen(pushes, late=True)

    def keep(self, run: Run, last: Event | None) -> None:
        """Keeps the last event of a run that is about to let the agent go, until it is told."""
        if self._subscribers is None:
            return
        if last is None and run.announcer.is_open and self._subscribers:  # somebody came while it was being closed
            last = run.announcer.emit(AgentEnd, run.status, error_info(run.error), run.usage)
        self._last = last

    def tell(self) -> None:
        """Tells everybody what is to be told, if anything is; also when an interrupt comes."""
        with self.lock:
            try:
                self._push_last()
            except BaseException:  # to some it is told twice now, which is once
                self._push_last()
                raise

    def finish(self) -> None:
        """Ends the queues of all subscribers: no event follows."""
        with self.lock:
            self.tell()
            if self._subscribers is not None:
                self._subscribers.finish()

    def _push_last(self) -> None:
        if self._last is not None and self._subscribers is not None:
            for push in self._subscribers.pushes():
                push(self._last)
            self._last = None
