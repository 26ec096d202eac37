"""The calls of one answer: in the caller's thread one after another, or on worker threads as many at a time as may."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress

from ._bounds import check_abandoned, check_next_turn
from ._calls import Ready, begin, finish_unrun, judge, run_here, start_worker, take
from ._closing import refused
from ._final import commit_final_answers, commit_unready_answers, is_final, takes_final
from ._progress import announce_progress
from ._run import Ending, Run
from ._toolset import BoundTool
from ._waiting import record_waiting, settle_waiting
from .errors import GotatoError, LimitExceeded
from .events import Event
from .messages import AssistantMessage, ToolResult
from .parts import StopReason, ToolCall, ToolResultStatus
from .records import WaitingCall
from .result import RunStatus

_INCOMPLETE = {
    StopReason.MAX_TOKENS: "the answer was cut off by its token limit (max_tokens)",
    StopReason.CONTENT_FILTER: "the answer was cut off by the content filter",
}
Calls = Sequence[tuple[int, ToolCall]]
"""Calls of one message, each with its index there."""


def run_batch(run: Run, message: AssistantMessage) -> Iterable[Event]:
    """Gives every call of the message its result, or ends the run and leaves the open ones to the closing."""
    if message.stop_reason in _INCOMPLETE:
        _refuse_cut_calls(run, message)
        return ()
    run.cut = 0
    bounds = run.setup.bounds
    if (run.turn >= bounds.turns or bounds.counts_tokens) and not takes_final(run, message):
        check_next_turn(run)
    return _give_results(run, message, tuple(enumerate(message.tool_calls)))


def _refuse_cut_calls(run: Run, message: AssistantMessage) -> None:
    """Refuses the calls of an answer that was cut off: any of them may be incomplete."""
    run.cut = run.cut + 1 if message.stop_reason is StopReason.MAX_TOKENS else 0
    why = f"{_INCOMPLETE[message.stop_reason]} and may be incomplete; none of its calls was executed"
    for index, call in enumerate(message.tool_calls):
        finish_unrun(run, call, index, refused(call, f"{message.id}:{index}", ToolResultStatus.NOT_RUN, why))
    if run.failure is not None:
        raise run.failure
    if run.cut == 2:
        text = "two answers in a row were cut off by max_tokens inside their calls"
        raise Ending(RunStatus.LIMITED, LimitExceeded(text, limit="max_tokens"))


def resume_batch(run: Run, message: AssistantMessage) -> Generator[Event, None, None]:
    """Goes on with a batch that waited, from its first open call."""
    indexes = [int(key.rpartition(":")[2]) for key, _ in run.ledger.history.open_calls]
    run.leaves_open = False
    yield from _give_results(run, message, [(index, message.tool_calls[index]) for index in indexes])


def _give_results(run: Run, message: AssistantMessage, calls: Calls) -> Generator[Event, None, None]:
    finals = [each for each in calls if is_final(run, each[1])] if run.output is not None else ()
    ordinary = [each for each in calls if not is_final(run, each[1])] if finals else calls
    bounds = run.setup.bounds
    try:
        for index, call in ordinary:
            if run.scope.cancelled:
                run.scope.check()
            key = f"{message.id}:{index}"
            judged = judge(run, call, key, index)
            if isinstance(judged, tuple):
                if judged[0].timeout is None and not bounds.workers:
                    begin(run, judged)
                    if run.outbox:
                        yield from run.announcer.drain()
                    run_here(run, call, judged)
                else:
                    yield from _run_beside(run, call, judged)
            elif isinstance(judged, ToolResult):
                finish_unrun(run, call, index, judged)
            else:
                yield from _finish_running(run)
                _wait(
                    run,
                    message,
                    judged,
                    [each for each in ordinary if each[0] > index],
                    [each for each in finals if each[0] < index],
                )
            if run.outbox:
                yield from run.announcer.drain()
        if run.crew is not None:
            yield from _finish_running(run)
    except (Ending, GotatoError):  # what runs already has its effect: its real results are kept
        yield from _finish_all(run)
        raise
    if finals:
        commit_final_answers(run, message, finals)
    if run.failure is not None:
        raise run.failure


def _run_beside(run: Run, call: ToolCall, ready: Ready) -> Generator[Event, None, None]:
    """Runs a call where others may run, or where it may have to be given up."""
    bound, use, _, _ = ready
    bounds = run.setup.bounds
    timeout = _time_of(run, bound)
    if timeout == 0:
        why = "the time that it has is 0 s, which had passed before it could start"
        finish_unrun(run, call, use.index, refused(call, use.key, ToolResultStatus.NOT_RUN, why))
        return
    alone = bound.spec.sequential or bounds.parallel <= 1
    on_worker = timeout is not None or not alone
    yield from _finish_running(run, 0 if alone else bounds.parallel - 1)
    if run.scope.cancelled:  # while others finished
        run.scope.check()
    if on_worker:
        check_abandoned(run)
    begin(run, ready)
    if run.outbox:
        yield from run.announcer.drain()
    if not on_worker:
        run_here(run, call, ready)
        return
    start_worker(run, call, ready, timeout)
    if alone:
        yield from _finish_running(run)


def _time_of(run: Run, bound: BoundTool) -> float | None:
    """Seconds that a call may take: the tool's own, or the limit if that is nearer."""
    most = run.setup.limits.tool_timeout
    return most if bound.timeout is None or (most is not None and most < bound.timeout) else bound.timeout


def _finish_running(run: Run, left: float = 0) -> Generator[Event, None, None]:
    """Takes what workers say until no more than so many calls run."""
    crew = run.crew
    while crew is not None and len(crew.running) > left:
        mail = crew.next()
        if isinstance(mail, tuple):
            job, text = mail
            announce_progress(run, job.use.key, job.use.name, text)
            continue
        take(run, crew, mail)
        if run.outbox:
            yield from run.announcer.drain()


def _finish_all(run: Run) -> Generator[Event, None, None]:
    """Takes every result that still comes. How the run ends is known already: what one of them raises does not matter,
    and one that cannot be committed is left to the closing."""
    while run.crew is not None and run.crew.running:
        with suppress(Ending, GotatoError):
            yield from _finish_running(run)


def _wait(run: Run, message: AssistantMessage, first: WaitingCall, behind: Calls, finals: Calls) -> None:
    """Settles the run as waiting. The gates of the calls behind are asked now, so that every question of the batch can
    be answered at once; nothing behind the first question runs."""
    records = {first.key: first}
    for index, call in behind:
        key = f"{message.id}:{index}"
        known = run.waiting.get(key)
        judged = judge(run, call, key, index) if known is None else known
        if isinstance(judged, WaitingCall):
            records[key] = judged
    if run.failure is not None:
        raise run.failure
    run.scope.check()
    commit_unready_answers(run, message, finals)
    record_waiting(run, records)
    raise settle_waiting()
