"""The loop: a run is one generator. `Agent.run` drains it, `Agent.stream` hands it out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator

from ._batch import resume_batch
from ._bounds import check_room
from ._closing import close_calls, close_run
from ._control import goes_on
from ._hooks import before_run, should_stop
from ._ledger import size_of
from ._run import Ending, Run
from ._turn import ask_sources, take_turn, wrap_up
from ._value import replace
from ._waiting import record_answers, settle_waiting, undecided
from .errors import AnswerRejected, Cancelled, DeadlineExceeded, ExtensionFailure, GotatoError
from .events import AgentStart, Event
from .result import RunStatus

Release = Callable[[Run, Event | None], None]


def drive(run: Run, begin: Callable[[Run], None], release: Release) -> Generator[Event, None, None]:
    """A whole run: it begins, takes turns, ends with a status, is closed, and lets the agent go.

    `begin` takes the agent for the run or raises, `release` lets it go. Once it is taken, the run is closed here,
    whatever happens; should even that be interrupted, the next entry closes it.
    """
    interrupt: BaseException | None = None
    begin(run)
    try:
        yield from _turns(run)
        run.status = RunStatus.COMPLETED
    except BaseException as raised:  # every end of a run is an outcome
        left = run.announcer.left and isinstance(raised, GeneratorExit)  # an interrupt drops what is at an event, too
        if not left:
            interrupt = raised if _set_outcome(run, raised) else None
        elif run.is_of_parent():  # a forked child drops its copy of a stream: nothing of the run is its business
            return
        elif not run.closing:  # nobody closes the stream: it was dropped, perhaps in the collector's thread
            run.scope.cancel("the stream was dropped")
            warnings.warn(
                f"a RunStream was dropped before its run {run.id} had ended; iterate it to its end or use `with`",
                ResourceWarning,
                stacklevel=2,
            )
            return
        else:
            run.status, run.error = RunStatus.CANCELLED, Cancelled("the stream was closed", operation="RunStream.close")
    close_run(run, release)
    if not run.announcer.left:  # else the stream takes no event any more: what ended it came while it was being closed
        yield from run.announcer.drain()
    if interrupt is not None:
        raise interrupt


def _turns(run: Run) -> Generator[Event, None, None]:
    run.begun = True
    if run.redelivered is not None:  # a task that came twice costs nothing
        if run.listening:
            run.announcer.emit(AgentStart)
        run.message = run.redelivered
        return
    run.inbox.open()
    if run.listening:
        run.announcer.emit(AgentStart)
    finished = yield from _enter(run)
    try:
        while not (finished or run.inbox.waits) or goes_on(run, finished):
            if run.outbox:
                yield from run.announcer.drain()
            finished = yield from take_turn(run)
    except Ending as ending:
        if ending.wrap_up and run.setup.limits.wrap_up and run.turn:
            try:
                yield from wrap_up(run, ending.error)
            except AnswerRejected:
                raise
            except GotatoError:
                run.scope.check()
        raise


def _enter(run: Run) -> Generator[Event, None, bool]:
    """Brings the transcript to where the first turn begins. Returns whether nothing is left to do."""
    opening = run.opening
    close_calls(run, None)
    if opening is None and run.leaves_open:
        return (yield from _enter_waiting(run))
    if run.setup.points.before_run:
        before_run(run, opening)
    if opening is not None:
        check_room(run, size_of(opening))
        if run.superseded:  # not before now: a message that is refused drops nothing
            run.waiting, run.leaves_open = {}, False
            close_calls(run, None)
        run.commit_user(opening if opening.id else replace(opening, id=run.setup.ids("message")))
    if run.outbox:
        yield from run.announcer.drain()
    return False


def _enter_waiting(run: Run) -> Generator[Event, None, bool]:
    """Records the answers, and goes on with the batch once every question has one."""
    record_answers(run)
    if undecided(run.waiting):
        raise settle_waiting()
    if run.setup.points.before_run:
        before_run(run, None)
    run.scope.check()
    if run.setup.sources.changes:
        ask_sources(run)
    run.resumed = message = run.ledger.history.open_message
    if message is not None:
        yield from resume_batch(run, message)
        if should_stop(run):
            raise Ending(RunStatus.COMPLETED)
    return run.output is not None and run.output.read is not None


def _set_outcome(run: Run, raised: BaseException) -> bool:
    """Turns what ended the loop into a status and an error. Returns whether it is to be raised again: an interrupt."""
    if isinstance(raised, run.setup.interrupts) or not isinstance(raised, Exception):
        run.interrupted = True
        run.status = RunStatus.CANCELLED
        run.error = Cancelled(f"interrupted by {type(raised).__name__}", operation="Agent.run", cause=raised)
        return True
    if isinstance(raised, Ending):
        run.status, run.error = raised.status, raised.error
    elif isinstance(raised, Cancelled) and run.scope.cancelled:
        run.status, run.error = RunStatus.CANCELLED, _bare(raised)
    elif isinstance(raised, DeadlineExceeded) and (run.scope.cancelled or raised.cause is not None):
        run.status, run.error = RunStatus.DEADLINE_EXCEEDED, _bare(raised)
    elif isinstance(raised, GotatoError):
        run.status, run.error = RunStatus.FAILED, raised
    else:
        run.interrupted = True  # by whatever a signal handler raises, for one: it may have come anywhere
        run.status = RunStatus.FAILED
        text = f"{type(raised).__name__} raised by the clock, the id source or the kernel itself"
        run.error = ExtensionFailure(text, operation="Agent.run", cause=raised)
    return False


def _bare(error: GotatoError) -> GotatoError:
    """The error without the frames that it came through: an ordinary end, and the result would keep them alive."""
    error.__traceback__ = error.__context__ = None
    return error
