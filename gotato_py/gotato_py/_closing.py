"""How a run is closed: from the transcript and its started marks, never from variables of the loop.

Every step looks at what is already there, so that a closing that was itself interrupted can simply be done again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ._ask import discard
from ._event import error_info
from ._ledger import Ledger
from ._mapping import EMPTY
from ._run import Run, store_failure
from ._value import unchecked
from .errors import Cancelled, ErrorCode, GotatoError, LimitExceeded
from .events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
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
    run.unsaved = None
    if run.listening:
        run.announcer.emit(ToolResultCommitted, kept)


def close_calls(run: Run, why: GotatoError | None) -> None:
    """Gives every open call its result: effect unknown if it was started, else not run."""
    transcript = run.setup.transcript
    run.ledger.catch_up(transcript)
    opened = run.ledger.history.open_calls
    if not opened:
        return
    started = transcript.started
    waiting = {call.key for call in transcript.waiting}
    reason = _reason(why)
    no_answer = ToolResultStatus.TIMED_OUT if _is_deadline(why) else ToolResultStatus.CANCELLED
    for key, call in opened:
        status = no_answer if key in started else ToolResultStatus.NOT_RUN
        if run.executing is not None and run.executing[0] == key:
            end_execution(run, status, _exception_name(why))
        if run.unsaved is not None and run.unsaved.key == key:  # the tool did run, and only the commit had failed
            commit_result(run, run.unsaved)
        elif key in waiting:
            if why is None:  # a new message comes; whatever else ends a run leaves them waiting
                commit_result(run, refused(call, key, ToolResultStatus.BLOCKED, "superseded by a new message"))
        else:
            commit_result(run, refused(call, key, status, reason))


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


def end_execution(run: Run, status: ToolResultStatus, exception: str) -> None:
    """Announces that the tool that was running has ended."""
    if run.executing is None:
        return
    key, name, began = run.executing
    elapsed = run.setup.monotonic() - began
    if run.follow_late is not None:
        run.follow_late()
    if "tool" in run.announcer.open:
        started: ToolExecutionStart = run.announcer.open["tool"]
        run.announcer.emit(ToolExecutionEnd, key, name, status, EXECUTED[status], exception, elapsed, started.call_id)
    run.executing = None
    run.tool_s += elapsed


def announce_answer(run: Run, message: AssistantMessage) -> None:
    """Announces an answer that is committed."""
    if "message" not in run.announcer.open:  # a model may give all of it in its Done alone
        run.announcer.emit(MessageStart, message.id)
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
        discard(run, run.error)
        return
    run.message, run.stop_reason = run.commit(partial), stop
    run.answer = None
    if run.listening:
        announce_answer(run, run.message)


def close_turn(run: Run) -> None:
    """Ends the turn, if one is open."""
    if "turn" in run.announcer.open:
        run.announcer.emit(TurnEnd, run.turn_usage, run.stop_reason, run.setup.monotonic() - run.turn_started)


def close_run(run: Run, release: Callable[[Run], None]) -> None:
    """Settles the run: what is open is closed, its record stored, its end announced, and the agent let go.

    A transcript that fails here fails the run; what could not be closed is closed at the next entry.
    """
    run.settling = True
    if run.interrupted:  # a list that was being extended may be half done
        run.ledger = Ledger()
    if run.status is None:
        run.status, run.error = RunStatus.CANCELLED, Cancelled("the run was interrupted", operation="Agent.run")
    run.announcer.go_on()
    if "agent" not in run.announcer.open:  # nobody listens, or agent_start was never told, or agent_end already
        run.listening = False
    try:
        if run.listening and run.interrupted:
            _tell_rest(run)
        _close_answer(run)
        close_calls(run, run.error)
        run.reconcile()
    except run.setup.interrupts:
        raise
    except Exception as error:  # a transcript may raise anything; the run then failed
        _fail(run, error)
    discard(run, run.error)
    if run.executing is not None:
        end_execution(run, ToolResultStatus.CANCELLED, _exception_name(run.error))
    close_turn(run)
    run.ended_at = run.setup.monotonic()
    _store_record(run)
    last: Event | None = None
    try:
        if run.listening:
            last = run.announcer.emit(AgentEnd, run.status, error_info(run.error), run.usage)
    finally:
        if run.announcer.is_told() and "agent" not in run.announcer.open:  # else the next entry tells it
            run.ended = run.begun
            release(run)
    if last is not None:
        run.announcer.tell_stream(last)


def _fail(run: Run, error: Exception) -> None:
    run.status = RunStatus.FAILED
    run.error = store_failure(error, "could not be closed")


def _store_record(run: Run) -> None:
    """Tells the transcript that the run has ended, where it wants to know."""
    end_run = getattr(run.setup.transcript, "end_run", None)
    if end_run is None or run.recorded:
        return
    setup = run.setup
    try:
        end_run(
            RunRecord(
                run.id,
                setup.name or setup.agent_id,
                (run.status or RunStatus.CANCELLED).value,
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
