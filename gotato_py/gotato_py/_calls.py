"""One call of a batch: whether it may run, its start, its run in the caller's thread or on a worker, its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ._bounds import canonical, count_repeats, limited, no_call_left
from ._closing import abandon, commit_result, end_execution, refused
from ._crew import Crew, Job
from ._cut import bound_text
from ._gates import gate
from ._hooks import after_tool
from ._mapping import EMPTY, FrozenMapping, apart
from ._perform import perform
from ._progress import Progress
from ._run import Run, store_failure
from ._toolset import LONGEST_NAME, BoundTool
from ._value import replace
from ._waiting import question
from .decisions import Ask, Block, Deny
from .events import ToolExecutionStart
from .messages import ToolResult
from .parts import TextPart, ToolCall, ToolResultStatus
from .records import WaitingCall
from .tool_spec import ToolEffect
from .tools import ToolContext, drop_progress

Ready = tuple[BoundTool, ToolContext[object], Mapping[str, object], Mapping[str, object]]
"""A call that may run: its tool, what the tool is told, its arguments as sent and as the tool takes them."""


def judge(run: Run, call: ToolCall, key: str, index: int) -> Ready | ToolResult | WaitingCall:
    """Whether the call may run: ready, refused with a result, or waiting for a person.

    A call that was answered is looked at again with the arguments that were shown: an approval stands for the
    question, not for a gate that blocks.
    """
    record = run.waiting.get(key) if run.waiting else None
    if record is not None and isinstance(record.decision, Deny):
        reason = bound_text(record.decision.reason, run.setup.bounds.result_bytes)
        return refused(call, key, ToolResultStatus.BLOCKED, reason or "a person refused it")
    shown = None if record is None else record.arguments
    prepared = run.toolset.prepare(call, run.setup.interrupts, shown)
    if isinstance(prepared, str):
        return refused(call, key, ToolResultStatus.NOT_RUN, prepared)
    bound, arguments, converted = prepared
    tell: Callable[[str], None] = drop_progress
    run.follow_late = None
    if run.listening and bound.sees_use:
        tell = progress = Progress(run, key, call.name)
        run.follow_late = progress.catch_up
    use = ToolContext.for_call(
        call.name, arguments, run.id, run.turn, call.id, key, index, bound.spec.effect, run.scope, run.deps, tell,
        run.charged.append,
    )  # fmt: skip
    if run.setup.points.before_tool:
        verdict = gate(run, use)
        if isinstance(verdict, Block):
            return _blocked(run, call, key, verdict)
        if isinstance(verdict, Ask) and record is None:
            return question(run, call, key, arguments, verdict)
    return bound, use, arguments, converted


def _blocked(run: Run, call: ToolCall, key: str, verdict: Block) -> ToolResult:
    reason = bound_text(verdict.reason, run.setup.bounds.result_bytes)
    result = refused(call, key, ToolResultStatus.BLOCKED, reason)
    if verdict.result is None:
        return result
    shown = verdict.result
    return replace(result, parts=shown.parts if isinstance(shown, ToolResult) else shown)


def finish_unrun(run: Run, call: ToolCall, index: int, result: ToolResult) -> None:
    """Commits the result of a call that does not run."""
    use = None
    if run.setup.points.after_tool:
        record = run.waiting.get(result.key)
        shown = None if record is None else record.arguments
        known = run.toolset.prepare(call, run.setup.interrupts, shown)  # so that it is seen with its arguments
        arguments, effect = (
            (EMPTY, ToolEffect.UNSPECIFIED) if isinstance(known, str) else (known[1], known[0].spec.effect)
        )
        use = ToolContext[object](
            call.name, arguments, run_id=run.id, turn=run.turn, call_id=call.id, key=result.key, index=index,
            effect=effect, scope=run.scope, deps=run.deps,
        )  # fmt: skip
    finish(run, use, call.name, call.arguments, result)


def begin(run: Run, ready: Ready) -> None:
    """Records that the tool is about to run, then announces it."""
    _, use, arguments, _ = ready
    if run.tool_calls >= run.setup.bounds.calls:
        raise no_call_left(run)
    try:
        run.setup.transcript.mark_started(use.key)
    except run.setup.interrupts:
        raise
    except Exception as error:
        raise store_failure(error, "could not record that a tool starts")  # noqa: B904  # it carries its cause
    run.tool_calls += 1
    run.executing[use.key] = (use.name, run.setup.monotonic())
    if run.listening:
        run.announcer.emit(ToolExecutionStart, use.key, use.name, use.call_id, FrozenMapping(apart(arguments)))


def run_here(run: Run, call: ToolCall, ready: Ready) -> None:
    """Runs the tool in the caller's thread, after `begin`, and commits its result."""
    bound, use, arguments, converted = ready
    setup = run.setup
    told = canonical(arguments)  # before the tool has them, which may take a list in them apart
    result, exception = perform(bound, use, converted, setup.interrupts, setup.bounds.result_bytes)
    run.unsaved[use.key] = result
    end_execution(run, use.key, result.status, exception)
    finish(run, use, call.name, told, result)


def start_worker(run: Run, call: ToolCall, ready: Ready, timeout: float | None) -> None:
    """Starts the tool on a worker thread, after `begin`."""
    bound, seen, arguments, converted = ready
    setup = run.setup
    crew = run.crew = run.crew or Crew(run.scope, setup.interrupts)
    tell: Callable[[str], None] = drop_progress
    if run.listening and bound.sees_use:
        tell = Progress(run, seen.key, seen.name, lambda text: None if job.given_up else crew.mail.put((job, text)))
    scope = run.scope.child(timeout)  # its time begins now, not when a gate was asked
    use = ToolContext.for_call(
        call.name, arguments, run.id, run.turn, call.id, seen.key, seen.index, bound.spec.effect, scope, run.deps, tell,
        lambda usage: None if job.given_up else run.charged.append(usage),
    )  # fmt: skip
    work = partial(perform, bound, use, converted, setup.interrupts, setup.bounds.result_bytes)
    job = Job(call, canonical(arguments), use, timeout, work, partial(_unstarted, call, seen.key), setup.time())
    crew.start(job)


def _unstarted(call: ToolCall, key: str, error: BaseException) -> tuple[ToolResult, str]:
    return refused(call, key, ToolResultStatus.NOT_RUN, f"no thread could be started for it ({error})"), ""


def take(run: Run, crew: Crew, job: Job) -> None:
    """Commits the result of a worker's call, or what is told of one that is given up. Raises an interrupt that the
    tool raised."""
    if job.raised is not None:
        raise job.raised
    key = job.use.key
    if job.given_up:
        result, exception = _given_up(run, job), ""
        abandon(run, job)
    else:
        assert job.outcome is not None  # what is posted has ended
        result, exception = job.outcome
        if job.timed_out and result.status is ToolResultStatus.CANCELLED:  # a manual clock's scope knew only of the end
            result = refused(job.call, key, ToolResultStatus.TIMED_OUT, result.error)
        job.join()
    run.unsaved[key] = result
    crew.running.remove(job)
    end_execution(run, key, result.status, exception)
    finish(run, job.use, job.call.name, job.arguments, result)


def _given_up(run: Run, job: Job) -> ToolResult:
    key, call = job.use.key, job.call
    if not job.timed_out:
        return refused(call, key, ToolResultStatus.CANCELLED, "the run was cancelled; it may still be running")
    if run.scope.timed_out:
        return refused(call, key, ToolResultStatus.TIMED_OUT, "the time of the run has passed; it may still be running")
    assert job.timeout is not None  # else only the end of the run ends its time
    why = f"no answer in {job.timeout:g} s; it may still be running"
    return refused(call, key, ToolResultStatus.TIMED_OUT, why)


def finish(run: Run, use: ToolContext[object] | None, name: str, arguments: str, result: ToolResult) -> None:
    """Commits the result, with a warning where the calls go in circles; ends the run where they still do."""
    while run.charged:
        run.count(run.charged.popleft())
    if use is not None and run.setup.points.after_tool:
        result = after_tool(run, use, result)
    most = run.setup.limits.max_repeated_calls
    if most is None:
        commit_result(run, result)
        return
    count = count_repeats(run, name, arguments, (result.status, result.parts))
    if count == most and count > 1:
        result = _with_warning(result, count)
    commit_result(run, result)
    if count > most:
        text = f"{name[:LONGEST_NAME]} was called {count} times with the same arguments and result"
        raise limited("max_repeated_calls", text, wrap_up=True)


def _with_warning(result: ToolResult, count: int) -> ToolResult:
    text = (
        f"\n[This call has now given the same result {count} times. Do something else: the run ends if it is repeated.]"
    )
    return replace(result, parts=(*result.parts, TextPart(text)))
