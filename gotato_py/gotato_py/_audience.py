"""Who listens to an agent from other threads of one process."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable

from ._event import error_info
from ._run import Run
from ._subscribers import Subscribers
from .events import AgentEnd, Event
from .subscription import EventStream


class Audience:
    """The subscribers. What is done under `lock` is one step for them: that a run ends and they are told of it; that
    somebody comes and joins the run that goes on.

    The lock is re-entrant, since a signal handler may come here from within. A forked child has an audience of its own:
    in its copy of this one the lock may be taken by a thread that it does not have.
    """

    __slots__ = ("_made", "lock")

    def __init__(self) -> None:
        self.lock = RLock()
        self._made: dict[str, Subscribers] = {}  # by the first subscription; `setdefault` is one step

    @property
    def has_come(self) -> bool:
        """Whether anybody ever subscribed."""
        return bool(self._made)

    def add(self, maxsize: int) -> EventStream:
        """A new subscriber, who gets the events from here on."""
        if not self._made:
            self._made.setdefault("all", Subscribers())
        return self._made["all"].add(maxsize)

    def join(self, run: Run) -> None:
        """Has the run tell its events to those who have subscribed; they get its `agent_end`, whenever they came."""
        pushes = self._pushes()
        if pushes:
            run.announcer.listen(pushes, late=False)
            run.listening = True  # before the look at `begun`: one of the two threads sees what the other did
            if run.begun:
                run.announcer.listen(pushes, late=True)
            if self._pushes() != pushes:  # a signal handler has subscribed meanwhile
                self.join(run)

    def tell_end(self, run: Run, last: Event | None) -> None:
        """Tells the last event of a run, also when an interrupt comes: twice in a row is once."""
        if run.announcer.is_open:  # somebody came while the run was being closed
            last = run.announcer.emit(AgentEnd, run.status, error_info(run.error), run.usage)
        if last is not None:
            try:
                self._push(last)
            except BaseException:
                self._push(last)
                raise

    def finish(self) -> None:
        """Ends the queues of all subscribers: no event follows."""
        with self.lock:
            for subscribers in self._made.values():
                subscribers.finish()

    def _push(self, event: Event) -> None:
        for push in self._pushes():
            push(event)

    def _pushes(self) -> tuple[Callable[[Event], object], ...]:
        return self._made["all"].pushes() if self._made else ()
