"""How a run is closed: from the transcript and its started marks, never from variables of the loop.

Every step looks at what is already there, so that a closing that was itself interrupted can simply be done again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ._abandoned import AbandonedCall
from ._ask import discard
from ._crew import GRACE_S, Job
from ._event import error_info
from ._ledger import Ledger
from ._mapping import EMPTY
from ._run import Run, store_failure
from ._value import unchecked
from ._waiting import left_waiting
from .errors import Cancelled, ErrorCode, GotatoError, LimitExceeded
from .events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolResultCommitted,
    TurnEnd,
)
from .messages import EXECUTED, OUTCOME_WORDS, AssistantMessage, ToolMessage, ToolResult
from .parts import StopReason, TextPart, ToolCall, ToolResultStatus
from .result import RunStatus
from .transcript import RunRecord

_make_message = unchecked(ToolMessage)


def refused(call: ToolCall, key: str, status: ToolResultStatus, why: str) -> ToolResult:
    """The result of a call whose tool gave no answer: `error` says why, the text also what that means."""
    return ToolResult(call.id, status, (TextPart(OUTCOME_WORDS[status] + why),), why, key, EMPTY)


def commit_result(run: Run, result: ToolResult) -> None:
    """Commits the result of a call and announces it."""
    kept = run.commit(_make_message(result, run.setup.ids("message")))
    run.unsaved.pop(result.key, None)
    if run.listening:
        run.announcer.emit(ToolResultCommitted, kept)


def close_calls(run: Run, why: GotatoError | None) -> None:
    """Gives every open call its result: effect unknown if it was started, else not run.

    What waits for a person, and what stands behind it, stays open where the run leaves it so. A call that waited, and
    was started when its process ended, waits no more.
    """
    transcript = run.setup.transcript
    run.ledger.catch_up(transcript)
    opened = run.ledger.history.open_calls
    if not opened:
        return
    started = transcript.started
    asked = [record.key for record in transcript.waiting] if run.leaves_open else ()
    waits = any(key in asked and key not in started for key, _ in opened)
    reason = _reason(why)
    no_answer = ToolResultStatus.TIMED_OUT if _is_deadline(why) else ToolResultStatus.CANCELLED
    for key, call in opened:
        unsaved = run.unsaved.get(key)
        status = no_answer if key in started else ToolResultStatus.NOT_RUN
        if key in run.executing:
            end_execution(run, key, status if unsaved is None else unsaved.status, _exception_name(why))
        if unsaved is not None:  # the tool did run, and only the commit is missing
            commit_result(run, unsaved)
        elif key in started:
            commit_result(run, refused(call, key, status, reason))
        elif not waits:
            dropped = key in run.superseded
            no_run = (ToolResultStatus.BLOCKED, "superseded by a new message") if dropped else (status, reason)
            commit_result(run, refused(call, key, *no_run))


def _release_crew(run: Run) -> None:
    """Ends what still runs on worker threads: its real result, if it comes in time, is kept, the rest given up."""
    crew = run.crew
    if crew is None:
        return
    crew.wind_down(GRACE_S)
    for job in crew.running:
        key = job.use.key
        if job.outcome is not None:
            run.unsaved[key], exception = job.outcome
            if key in run.executing:
                end_execution(run, key, run.unsaved[key].status, exception)
        elif job.given_up:
            abandon(run, job)
    crew.close()
    run.crew = None


def _exception_name(why: GotatoError | None) -> str:
    return "" if why is None or why.cause is None else type(why.cause).__name__


def _is_deadline(why: GotatoError | None) -> bool:
    return why is not None and why.code is ErrorCode.DEADLINE_EXCEEDED


def _reason(why: GotatoError | None) -> str:
    if why is None:
        return "the run that asked for it ended first"
    if isinstance(why, LimitExceeded):
        return f"the run reached a limit: {why}"
    if isinstance(why, Cancelled):
        return f"the run was cancelled ({why})" if why.message else "the run was cancelled"
    return "the time of the run has passed" if _is_deadline(why) else f"the run failed ({why.code.value})"


def end_execution(run: Run, key: str, status: ToolResultStatus, exception: str) -> None:
    """Announces that a tool that was running has ended."""
    name, began = run.executing[key]
    elapsed = run.setup.monotonic() - began
    if run.follow_late is not None:
        run.follow_late()
    started = run.announcer.open.get(key)
    if started is not None:
        run.announcer.emit(ToolExecutionEnd, key, name, status, EXECUTED[status], exception, elapsed, started.call_id)
    run.executing.pop(key, None)
    run.tool_s += elapsed


def abandon(run: Run, job: Job) -> None:
    """Lists a call that was given up while its thread runs on."""
    if run.abandoned is not None:
        call = AbandonedCall(job.use.name, job.use.key, job.call.id, run.id, job.started_at)
        run.abandoned.add(call, job)


def announce_answer(run: Run, message: AssistantMessage) -> None:
    """Announces an answer that is committed."""
    if "message" not in run.announcer.open:  # a model may give all of it in its Done alone
        run.announcer.emit(MessageStart, message.id, "assistant")
    run.announcer.emit(MessageEnd, message)


def _tell_rest(run: Run) -> None:
    """Announces what was committed before an interrupt and not announced any more."""
    for message in run.messages_after(run.announcer.last_told):
        if isinstance(message, ToolMessage):
            run.announcer.emit(ToolResultCommitted, message)
        elif isinstance(message, AssistantMessage):
            announce_answer(run, message)
        else:
            run.announcer.emit(MessageEnd, message)


def _close_answer(run: Run) -> None:
    """Keeps the text of an answer that was cut off; takes back what is not kept."""
    answer = run.answer
    if answer is None:
        return
    answer.close_stream(run.setup.interrupts)
    committed = run.setup.transcript.messages
    if committed and committed[-1].id == answer.id:  # it was whole: the interrupt came right after the commit
        run.message, run.answer = cast("AssistantMessage", committed[-1]), None
        return
    stop = StopReason.ERROR if run.status is RunStatus.FAILED else StopReason.CANCELLED
    partial = None if run.status is RunStatus.LIMITED else answer.interrupted(run.setup.model_name, stop)
    if partial is None:
        return
    run.message, run.stop_reason = run.commit(partial), stop
    if run.listening:
        announce_answer(run, run.message)


def close_turn(run: Run) -> None:
    """Ends the turn, if one is open."""
    if "turn" in run.announcer.open:
        run.announcer.emit(TurnEnd, run.turn_usage, run.stop_reason, run.setup.monotonic() - run.turn_started)


def close_run(run: Run, release: Callable[[Run, Event | None], None]) -> None:
    """Settles the run: what is open is closed, its record stored, its end announced, and the agent let go.

    `release` lets the agent go and tells the last event to subscribers, in one step. A transcript that fails here fails
    the run; what could not be closed is closed at the next entry.
    """
    run.settling = True
    queued = run.inbox.close()
    if run.interrupted or not run.ledger.is_whole():  # a list that was being extended may be half done
        run.ledger = Ledger()
    if run.status is None:
        run.status, run.error = RunStatus.CANCELLED, Cancelled("the run was interrupted", operation="Agent.run")
    run.announcer.go_on()
    if not run.announcer.is_open:  # nobody listens, or agent_start was never told, or agent_end already
        run.listening = False
    _close_open(run)
    for key in list(run.executing):
        end_execution(run, key, ToolResultStatus.CANCELLED, _exception_name(run.error))
    while run.charged:
        run.count(run.charged.popleft())
    close_turn(run)
    if queued:
        known = {message.id for message in run.committed}
        run.undelivered = tuple(message for message in queued if message.id not in known)
    run.ended_at = run.setup.monotonic()
    if not run.displaced:
        store_record(run)
        if run.hold is not None:
            run.hold.let_go()
    elif run.begun:  # another has the transcript; what this run cost is told all the same
        store_record(run)
    last: Event | None = None
    listening = run.listening  # once: a subscriber may come at any moment; `release` tells him
    try:
        if listening:
            last = run.announcer.emit(AgentEnd, run.status, error_info(run.error), run.usage)
    finally:
        if run.announcer.is_told() and (run.announcer.is_over or not listening):  # else the next entry tells it
            run.ended = run.begun
            release(run, run.announcer.last)
    if last is not None:
        run.announcer.tell_stream(last)


def _close_open(run: Run) -> None:
    """Closes what the run has left open in the transcript, and among its workers. One that has not begun has committed
    nothing, and what is open is another's."""
    writes = run.begun and not run.displaced
    try:
        if writes:
            run.reconcile()  # before more is committed behind a message that an interrupt has kept from the list
        _release_crew(run)
        if writes:
            if run.listening and run.interrupted:
                _tell_rest(run)
            _close_answer(run)
            close_calls(run, run.error)
            if run.leaves_open:
                run.waiting = left_waiting(run)
        elif run.answer is not None:
            run.answer.close_stream(run.setup.interrupts)
    except run.setup.interrupts:
        raise
    except Exception as error:  # a transcript may raise anything; the run then failed
        _fail(run, error)
    discard(run, run.error)


def _fail(run: Run, error: Exception) -> None:
    run.status = RunStatus.FAILED
    run.error = store_failure(error, "could not be closed")


def store_record(run: Run) -> None:
    """Tells the transcript that the run has ended, where it wants to know."""
    end_run = getattr(run.setup.transcript, "end_run", None)
    if end_run is None or run.recorded:
        return
    setup, status = run.setup, run.status
    assert status is not None  # `close_run` has seen to that
    try:
        end_run(
            RunRecord(
                run.id,
                setup.name or setup.agent_id,
                status.value,
                "" if run.error is None else run.error.code.value,
                run.started_time,
                max(0.0, run.ended_at - run.started_at),
                run.turn,
                run.tool_calls,
                run.usage,
            )
        )
        run.recorded = True
    except setup.interrupts:
        raise
    except Exception as error:  # as above
        _fail(run, error)
