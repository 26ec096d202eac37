"""One turn: a request, its answer, the tools that the answer calls."""

from __future__ import annotations

from collections.abc import Generator

from ._answer import Answer
from ._ask import ask, discard
from ._batch import run_batch
from ._bounds import check_turn, limited
from ._closing import announce_answer, close_calls, close_turn, commit_result, refused
from ._final import read_text
from ._hooks import REJECTED, before_turn, check_answer, should_stop
from ._ledger import size_of
from ._run import Ending, Run
from ._value import replace
from ._view import turn_view
from .errors import AnswerRejected, GotatoError
from .events import Event, TurnStart
from .messages import AssistantMessage
from .parts import NO_USAGE, StopReason, ToolResultStatus
from .result import RunStatus


def take_turn(run: Run) -> Generator[Event, None, bool]:
    """Takes one turn. Returns whether the run would be complete with it."""
    if run.scope.cancelled:
        run.scope.check()
    check_turn(run)
    _open_turn(run)
    answer = yield from ask(run)
    run.message = None
    if run.output is not None:
        run.output.correction = None
    finished = True
    if answer is not None:
        message = commit_answer(run, answer)
        if message.tool_calls:
            yield from run_batch(run, message)
        finished = not message.tool_calls and message.stop_reason is not StopReason.PAUSE
    if run.output is not None:
        finished = run.output.read is not None or (finished and read_text(run, run.output, run.message))
    close_turn(run)
    if run.outbox:
        yield from run.announcer.drain()
    if run.setup.points.should_stop and should_stop(run):
        raise Ending(RunStatus.COMPLETED)
    return finished


def wrap_up(run: Run, why: GotatoError | None) -> Generator[Event, None, None]:
    """After a limit: one more request without tools, for an answer from what there is. Its failure changes nothing."""
    close_calls(run, why)
    close_turn(run)
    _open_turn(run)
    answer = yield from ask(run, wrap_up=True)
    if answer is not None:
        answer.calls.clear()
        if answer.is_empty():
            discard(run, None)
        else:
            commit_answer(run, answer)


def _open_turn(run: Run) -> None:
    run.turn += 1
    run.announcer.turn = run.turn
    run.turn_usage = NO_USAGE
    run.stop_reason = StopReason.NONE
    run.turn_started = run.setup.monotonic()
    run.turn_mark = len(run.committed)
    if run.output is not None:
        run.output.read = None
    if run.listening:
        run.announcer.emit(TurnStart)
    if run.setup.points.before_turn:
        before_turn(run)
    if run.setup.sources.changes:
        ask_sources(run)


def ask_sources(run: Run) -> None:
    """Asks the tool sources for the tools of this turn."""
    asked = run.setup.sources.ask(turn_view(run), run.asked, run.setup.interrupts)
    if asked is not run.asked:
        run.asked = asked
        run.toolset = asked.toolset if run.output is None else run.output.offer(asked.toolset)


def commit_answer(run: Run, answer: Answer) -> AssistantMessage:
    """Commits a complete answer, before any of its tools starts, and announces it. A guardrail may refuse it first."""
    message = answer.message(run.setup.model_name)
    most = run.setup.bounds.answer_bytes
    if answer.size * 4 > most and size_of(message) > most:
        raise limited("max_message_bytes", "the answer is too large to be kept")
    if run.setup.points.check_answer:
        _check(run, message)
    return _keep(run, message)


def _check(run: Run, message: AssistantMessage) -> None:
    """Raises `AnswerRejected` for an answer that a guardrail refuses: withheld, or kept with its calls not run."""
    try:
        rejected = check_answer(run, message)
    except BaseException:  # what was to judge the answer could not: it is withheld
        discard(run, None)
        raise
    if rejected is None:
        return
    who, how = rejected
    error = AnswerRejected(f"{who} rejected the answer: {how.reason}", operation="Agent.run")
    if how.redact:
        discard(run, error)
    else:
        _keep(run, replace(message, metadata={**message.metadata, REJECTED: how.reason}))
        for index, call in enumerate(message.tool_calls):
            commit_result(run, refused(call, f"{message.id}:{index}", ToolResultStatus.NOT_RUN, str(error)))
    raise error


def _keep(run: Run, message: AssistantMessage) -> AssistantMessage:
    kept = run.commit(message)
    run.answer = None
    run.message = kept
    run.stop_reason = kept.stop_reason
    if run.listening:
        announce_answer(run, kept)
    return kept
