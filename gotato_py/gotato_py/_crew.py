"""The worker threads of one batch: daemons that can be given up, and one mailbox for what they say.

All state changes in the thread of the run. A worker only fills in its own job and posts it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from .messages import ToolResult
from .parts import ToolCall
from .scope import Scope
from .tools import ToolContext

GRACE_S = 0.25
"""Seconds that a tool has to stop by itself once its time has passed or its run has ended."""

_LONGEST_WAIT_S = 1e6  # a lock's timeout overflows somewhere past this


class Job:
    """One call on a worker thread: `outcome` is its result and the name of what it raised, `raised` what ends a run.

    Time is the machine's own here, whatever clock the agent has: a thread that hangs does so in real time.
    """

    __slots__ = (
        "arguments", "call", "deadline", "given_up", "outcome", "raised", "started_at", "stops_at", "thread", "timeout",
        "timed_out", "use", "work",
    )  # fmt: skip

    def __init__(
        self,
        call: ToolCall,
        arguments: str,
        use: ToolContext[object],
        timeout: float | None,
        work: Callable[[], tuple[ToolResult, str]],
        started_at: float,
    ) -> None:
        self.call = call
        self.arguments = arguments
        self.use = use
        self.timeout = timeout
        self.work = work
        self.deadline = None if timeout is None else monotonic() + timeout
        self.outcome: tuple[ToolResult, str] | None = None
        self.raised: BaseException | None = None
        self.stops_at: float | None = None  # when it is given up
        self.timed_out = False
        self.given_up = False
        self.started_at = started_at  # Unix seconds
        self.thread: Thread | None = None

    @property
    def is_done(self) -> bool:
        """Whether the tool has ended."""
        return self.outcome is not None or self.raised is not None

    def time_left(self, now: float) -> float:
        """Seconds until this call has to be looked at again; 0 once it is to be given up."""
        if self.stops_at is None:
            scope = self.use.scope
            overdue = self.deadline is not None and now >= self.deadline
            if not overdue and not scope.cancelled:
                remaining = scope.remaining()
                ahead = _LONGEST_WAIT_S if self.deadline is None else self.deadline - now
                return ahead if remaining is None else min(ahead, remaining)
            self.timed_out = scope.timed_out or not scope.cancelled
            scope.cancel("its time has passed")
            self.stops_at = now + GRACE_S
        return max(0.0, self.stops_at - now)


Mail = SimpleQueue[Job | tuple[Job, str] | None]
"""What workers post: a job that has ended, progress of one; None when the scope of the run has ended."""


def _do(job: Job, mail: Mail) -> None:
    try:
        job.outcome = job.work()
    except BaseException as raised:  # an interrupt; it ends the run when the job is taken
        job.raised = raised
    finally:
        mail.put(job)


class Crew:
    """The calls that run now."""

    __slots__ = ("_unregister", "mail", "running")

    def __init__(self, scope: Scope) -> None:
        self.mail: Mail = SimpleQueue()
        self.running: list[Job] = []
        self._unregister = scope.on_end(lambda: self.mail.put(None))

    def start(self, job: Job) -> None:
        """Starts the job. Raises RuntimeError where no thread can be had; then it has not started."""
        context = copy_context()
        name = f"gotato tool {job.use.name[:40]}"
        job.thread = Thread(target=context.run, args=(_do, job, self.mail), name=name, daemon=True)
        self.running.append(job)
        try:
            job.thread.start()
        except RuntimeError:
            self.running.remove(job)
            raise

    def has_thread(self, ident: int) -> bool:
        """Whether the thread is one of these workers."""
        return any(job.thread is not None and job.thread.ident == ident for job in list(self.running))

    def next(self) -> Job | tuple[Job, str]:
        """Waits for the next job that has ended or is given up, or for progress of one."""
        while True:
            now, wait = monotonic(), _LONGEST_WAIT_S
            for job in self.running:
                left = job.time_left(now)
                if left <= 0 and job.stops_at is not None and not job.is_done:
                    job.given_up = True
                    return job
                wait = min(wait, left)
            try:
                item = self.mail.get(timeout=wait)
            except Empty:
                continue
            if item is None:
                continue
            job = item if isinstance(item, Job) else item[0]
            if not job.given_up:
                return item

    def wind_down(self, grace: float) -> None:
        """Ends the scopes of all that run, and waits so many seconds for those that stop by themselves."""
        until = monotonic() + grace
        for job in self.running:
            job.use.scope.cancel("the run has ended")
        while not all(job.is_done for job in self.running) and (left := until - monotonic()) > 0:
            try:
                self.mail.get(timeout=left)
            except Empty:
                break
        for job in self.running:
            job.given_up = not job.is_done

    def close(self) -> None:
        """Listens no longer to the scope of the run."""
        self._unregister()
