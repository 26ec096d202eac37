"""The worker threads of one run: daemons that can be given up, and one mailbox for what they say.

All state changes in the thread of the run. A worker only fills in its own job and posts it.
"""

from __future__ import annotations

from _queue import Empty, SimpleQueue
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from math import inf
from threading import Thread, get_ident, main_thread
from time import monotonic

from .messages import ToolResult
from .parts import ToolCall
from .scope import Scope, SystemClock
from .tools import ToolContext

GRACE_S = 0.25
"""Seconds that a tool has to stop by itself once its time has passed or its run has ended."""

_LONGEST_WAIT_S = 1e6  # a lock's timeout overflows somewhere past this
_LOOK_AGAIN_S = 0.05
"""Seconds between two looks where what happens may not end a wait: a signal that comes right before the wait is noticed
after it (measured: one or two in a hundred among busy threads), and a clock of another kind is moved by anybody."""


class Job:
    """One call on a worker thread: `outcome` is its result and the name of what it raised, `raised` what ends a run.

    Time is the machine's own here, whatever clock the agent has: a thread that hangs does so in real time.
    """

    __slots__ = (
        "arguments", "call", "deadline", "ended", "given_up", "outcome", "raised", "started_at", "stops_at", "thread",
        "timed_out", "timeout", "unstarted", "use", "work",
    )  # fmt: skip

    def __init__(
        self,
        call: ToolCall,
        arguments: str,
        use: ToolContext[object],
        timeout: float | None,
        work: Callable[[], Outcome],
        unstarted: Callable[[BaseException], Outcome],
        started_at: float,
    ) -> None:
        self.call: ToolCall = call
        self.arguments: str = arguments
        self.use: ToolContext[object] = use
        self.timeout: float | None = timeout
        self.work: Callable[[], Outcome] = work
        self.unstarted: Callable[[BaseException], Outcome] = unstarted  # what it comes to where no thread can be had
        self.deadline: float = inf if timeout is None else monotonic() + timeout
        self.ended: bool = False  # the tool will do nothing more
        self.outcome: Outcome | None = None
        self.raised: BaseException | None = None
        self.stops_at: float | None = None  # when it is given up
        self.timed_out: bool = False
        self.given_up: bool = False
        self.started_at: float = started_at  # Unix seconds
        self.thread: Thread | None = None

    @property
    def lives(self) -> bool:
        """Whether its thread has begun and still runs. `is_alive` alone may be wrong, once an interrupt came while it
        was asked."""
        thread = self.thread
        return thread is not None and thread.ident is not None and (not self.ended or thread.is_alive())

    def stop(self, now: float, *, run_ended: bool) -> None:
        """Ends the scope of the tool, which has the grace from now on to end by itself."""
        scope = self.use.scope
        scope.cancel("its time has passed")  # tells nothing new to a scope that has ended with the run
        self.timed_out = scope.timed_out or not run_ended
        self.stops_at = now + GRACE_S

    def join(self) -> None:
        """Waits for the thread of a tool that has ended: it has only to return, unless something of the tool's own
        hangs in its last steps."""
        if self.thread is not None:
            self.thread.join(GRACE_S)


Outcome = tuple[ToolResult, str]
"""The result of a call, and the name of what its tool raised or ""."""
Mail = SimpleQueue[Job | tuple[Job, str] | None]
"""What workers post: a job that has ended, progress of one; None when the scope of the run has ended."""


def _start(thread: Thread, job: Job, mail: Mail) -> None:
    """Starts the worker, in a thread of its own that ends with it: where a signal can raise an interrupt, in the main
    thread, `Thread.start` would lose it, or leave a lock behind that its thread then waits for (tried on 3.11)."""
    try:
        thread.start()
    except BaseException as error:  # RuntimeError or MemoryError: there is no room for a thread
        _refuse(job, mail, error)


def _refuse(job: Job, mail: Mail, error: BaseException) -> None:
    job.thread = None
    job.outcome = job.unstarted(error)
    job.ended = True
    mail.put(job)


def _do(job: Job, mail: Mail) -> None:
    try:
        if not job.given_up:  # before its thread had begun
            job.outcome = job.work()
    except BaseException as raised:  # an interrupt; it ends the run when the job is taken
        job.raised = raised
    finally:
        job.ended = True
        mail.put(job)


class Crew:
    """The calls that run now."""

    __slots__ = ("_interrupts", "_look_at", "_scope", "_unregister", "mail", "running")

    def __init__(self, scope: Scope, interrupts: tuple[type[BaseException], ...]) -> None:
        self._interrupts = interrupts
        self.mail: Mail = SimpleQueue()
        self.running: list[Job] = []
        self._scope = scope
        self._look_at = 0.0  # by the machine's clock: when the time of one of them may have passed
        self._unregister = scope.on_end(lambda: self.mail.put(None))

    def start(self, job: Job) -> None:
        """Starts the job. Where no thread can be had it ends at once, as its `unstarted` tells."""
        context = copy_context()
        name = f"gotato tool {job.use.name[:40]}"
        thread = job.thread = Thread(target=context.run, args=(_do, job, self.mail), name=name, daemon=True)
        self._look_at = 0.0
        self.running.append(job)
        try:
            start_new_thread(_start, (thread, job, self.mail))
        except self._interrupts:  # before the rest: such a type may be a RuntimeError
            raise
        except (RuntimeError, MemoryError) as error:
            _refuse(job, self.mail, error)

    def has_thread(self, ident: int) -> bool:
        """Whether the thread is one of these workers."""
        return any(job.thread is not None and job.thread.ident == ident for job in list(self.running))

    def next(self) -> Job | tuple[Job, str]:
        """Waits for the next job that has ended or is given up, or for progress of one."""
        while True:
            now = monotonic()
            if now >= self._look_at:
                late = self._look(now)
                if late is not None:
                    return late
            try:
                item = self.mail.get(timeout=max(0.0, self._look_at - now))
            except Empty:
                continue
            if item is None:
                self._look_at = 0.0
            elif not (item if isinstance(item, Job) else item[0]).given_up:
                return item

    def _look(self, now: float) -> Job | None:
        """Ends the time of those whose time has passed. Returns one whose grace has passed too: it is given up."""
        scope = self._scope
        ended, ahead = scope.cancelled, _LONGEST_WAIT_S
        if not ended:
            remaining = scope.remaining()
            ahead = ahead if remaining is None else min(ahead, remaining)
        if get_ident() == main_thread().ident or not isinstance(scope.clock, SystemClock):
            ahead = min(ahead, _LOOK_AGAIN_S)
        look_at = now + ahead
        for job in self.running:
            if job.ended:
                continue
            if job.stops_at is None and (ended or job.deadline <= now):
                job.stop(now, run_ended=ended)
            due = job.deadline if job.stops_at is None else job.stops_at
            if due <= now:
                job.given_up = True
                return job
            look_at = min(look_at, due)
        self._look_at = look_at
        return None

    def wind_down(self, grace: float) -> None:
        """Ends the scopes of all that run, and waits so many seconds for those that stop by themselves."""
        until = monotonic() + grace
        for job in self.running:
            job.use.scope.cancel("the run has ended")
        while not all(job.ended for job in self.running) and (left := until - monotonic()) > 0:
            with suppress(Empty):
                self.mail.get(timeout=left)
        for job in self.running:
            job.given_up = not job.ended
            if not job.given_up:
                job.join()

    def close(self) -> None:
        """Listens no longer to the scope of the run."""
        self._unregister()
