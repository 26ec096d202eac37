"""The calls of one answer, run one after another in the caller's thread."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from ._bounds import canonical, check_call, check_next_turn, count_repeats, limited
from ._closing import commit_result, end_execution, refused
from ._log import debug
from ._mapping import EMPTY, FrozenMapping
from ._progress import Progress
from ._run import Ending, Run, store_failure
from ._toolset import LONGEST_NAME, BoundTool
from ._value import replace, unchecked
from .errors import ErrorCode, GotatoError, LimitExceeded, ToolError
from .events import Event, ToolExecutionStart
from .messages import OUTCOME_WORDS, AssistantMessage, ToolResult, text_of
from .normalise import bound_parts, describe_exception, normalise
from .parts import Part, StopReason, TextPart, ToolCall, ToolResultStatus
from .result import RunStatus
from .tools import ToolContext, drop_progress

_INCOMPLETE = {
    StopReason.MAX_TOKENS: "the answer was cut off by its token limit (max_tokens)",
    StopReason.CONTENT_FILTER: "the answer was cut off by the content filter",
}
_STOPPED = {
    ErrorCode.CANCELLED: ToolResultStatus.CANCELLED,
    ErrorCode.DEADLINE_EXCEEDED: ToolResultStatus.TIMED_OUT,
}
_make_result = unchecked(ToolResult)


def run_batch(run: Run, message: AssistantMessage) -> Generator[Event, None, None]:
    """Gives every call of the message its result, or ends the run and leaves the open ones to the closing."""
    cut = _INCOMPLETE.get(message.stop_reason)
    run.cut = run.cut + 1 if message.stop_reason is StopReason.MAX_TOKENS else 0
    if cut is not None:
        why = f"{cut} and may be incomplete; none of its calls was executed"
        for index, call in enumerate(message.tool_calls):
            commit_result(run, refused(call, f"{message.id}:{index}", ToolResultStatus.NOT_RUN, why))
        if run.cut == 2:
            text = "two answers in a row were cut off by max_tokens inside their calls"
            raise Ending(RunStatus.LIMITED, LimitExceeded(text, limit="max_tokens"))
        return
    bounds = run.setup.bounds
    if run.turn >= bounds.turns or bounds.counts_tokens:
        check_next_turn(run)
    for index, call in enumerate(message.tool_calls):
        if run.scope.cancelled:
            run.scope.check()
        key = f"{message.id}:{index}"
        prepared = run.setup.toolset.prepare(call, run.setup.interrupts)
        if isinstance(prepared, str):
            _finish(run, call.name, call.arguments, refused(call, key, ToolResultStatus.NOT_RUN, prepared))
        else:
            if run.tool_calls >= bounds.calls:
                check_call(run)
            bound, arguments, converted = prepared
            use = _begin(run, bound, call, key, index, arguments)
            if run.outbox:
                yield from run.announcer.drain()
            result = _execute(run, bound, use, converted)
            _finish(run, call.name, canonical(arguments), result)
        if run.outbox:
            yield from run.announcer.drain()


def _begin(
    run: Run, bound: BoundTool, call: ToolCall, key: str, index: int, arguments: dict[str, object]
) -> ToolContext[object]:
    """Records that the tool is about to run, then announces it."""
    progress = Progress(run, key, call.name) if run.listening and bound.sees_use else None
    run.follow_late = None if progress is None else progress.catch_up
    use = ToolContext.for_call(
        call.name,
        arguments,
        run.id,
        run.turn,
        call.id,
        key,
        index,
        bound.spec.effect,
        run.scope,
        run.deps,
        drop_progress if progress is None else progress,
        run.charged.append,
    )
    try:
        run.setup.transcript.mark_started(key)
    except run.setup.interrupts:
        raise
    except Exception as error:
        raise store_failure(error, "could not record that a tool starts")  # noqa: B904  # it carries its cause
    run.tool_calls += 1
    run.executing = (key, call.name, run.setup.monotonic())
    if run.listening:
        run.announcer.emit(ToolExecutionStart, key, call.name, call.id, FrozenMapping(arguments))
    return use


def _execute(run: Run, bound: BoundTool, use: ToolContext[object], converted: Mapping[str, object]) -> ToolResult:
    """Runs the tool; whatever it returns or raises is a result, but for the interrupts."""
    parts: tuple[Part, ...] = ()
    status, error, exception, metadata = ToolResultStatus.FAILED, "", "", EMPTY
    try:
        returned = bound.execute(use, converted)
        if type(returned) is str and returned:  # by far the most frequent one
            status, parts = ToolResultStatus.OK, (TextPart(returned),)
        else:
            done = normalise(returned, run.setup.interrupts)
            status, parts, error = done.status, done.parts, done.error
            if done.handle:
                metadata = FrozenMapping({"handle": done.handle})
    except run.setup.interrupts:
        raise
    except BaseException as raised:  # a tool may raise anything; it is told to the model
        exception = type(raised).__name__
        if isinstance(raised, GotatoError) and run.scope.cancelled:
            status = _STOPPED.get(raised.code, status)
        error = describe_exception(raised, run.setup.interrupts)
        debug("tool %s raised %s", use.name, exception, exc_info=not isinstance(raised, ToolError))
    if error:
        error = text_of(bound_parts((TextPart(error),), run.setup.bounds.result_bytes))
        parts = (TextPart(OUTCOME_WORDS[status] + error), *parts)
    parts = bound_parts(parts, run.setup.bounds.result_bytes)
    run.unsaved = result = _make_result(use.call_id, status, parts, error, use.key, metadata)
    end_execution(run, status, exception)
    return result


def _finish(run: Run, name: str, arguments: str, result: ToolResult) -> None:
    """Commits the result, with a warning where the calls go in circles; ends the run where they still do."""
    while run.charged:
        run.count(run.charged.popleft())
    most = run.setup.limits.max_repeated_calls
    count = 0
    if most is not None:
        count = count_repeats(run, name, arguments, (result.status, result.parts))
        if count == most and count > 1:
            result = _with_warning(result, count)
    commit_result(run, result)
    if most is not None and count > most:
        text = f"{name[:LONGEST_NAME]} was called {count} times with the same arguments and result"
        raise limited("max_repeated_calls", text, wrap_up=True)


def _with_warning(result: ToolResult, count: int) -> ToolResult:
    text = (
        f"\n[This call has now given the same result {count} times. Do something else: the run ends if it is repeated.]"
    )
    return replace(result, parts=(*result.parts, TextPart(text)))
