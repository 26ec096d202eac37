"""How a run asks its extensions, point by point; the gates before a tool are in `_gates`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, TypeVar

from ._bounds import check_user_message, limited
from ._cut import bound_text
from ._guards import is_sequence
from ._run import Run
from ._value import of_defaults, replace
from ._view import catch_compactions, turn_result, turn_view
from .checks import RequestHistory
from .decisions import Accept, Reject
from .errors import Cancelled, DeadlineExceeded, ExtensionFailure, GotatoError, InvalidArgument
from .extensions import Hook, WrongReturn
from .messages import MESSAGE_TYPES, AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from .model_errors import ContextOverflow
from .normalise import bound_parts
from .tools import ToolContext

T = TypeVar("T")
REJECTED = "rejected"
"""Metadata key of an answer that was rejected and kept: the reason. It answers nothing, and a run may go on from it."""
_ACCEPT: Accept | Reject = of_defaults(Accept)


def consult(run: Run, hook: Hook, given: tuple[object, ...], read: Callable[[object], T], otherwise: T) -> T:
    """What the hook returns, as `read` takes it; `otherwise` where an advisory extension failed.

    Raises `ExtensionFailure` when another one raised, or `read` refused with a TypeError what it returned, and what
    ends the run from anywhere: an interrupt, the end of the scope. What the hook has compacted is taken over.
    """
    try:
        return read(hook.call(*given))
    except run.setup.interrupts:
        raise
    except BaseException as raised:  # an extension may raise anything
        if isinstance(raised, Cancelled | DeadlineExceeded) and run.scope.cancelled:
            raise
        run.announcer.tell_failure(hook.extension, hook.point, raised)
        if hook.extension.advisory:
            return otherwise
        said = f": {raised}" if isinstance(raised, GotatoError | WrongReturn) else ""
        text = f"extension {hook.extension.name} failed at {hook.point} ({type(raised).__name__}){said}"
        raise ExtensionFailure(text, operation="Agent.run", cause=raised) from raised
    finally:
        catch_compactions(run)


def wrong_return(expected: str, got: object) -> TypeError:
    """What `read` raises for a value that the point cannot take."""
    return WrongReturn(f"it must return {expected}, not {type(got).__name__}")


def _nothing(returned: object) -> None:
    """What the points that only look return."""


def before_run(run: Run, opening: UserMessage | None) -> None:
    """Asks `before_run`, before the message is committed."""
    for hook in run.setup.points.before_run:
        consult(run, hook, (turn_view(run, message=opening),), _nothing, None)


def before_turn(run: Run) -> None:
    """Asks `before_turn`, before the request is built."""
    for hook in run.setup.points.before_turn:
        consult(run, hook, (turn_view(run),), _nothing, None)


def transform(run: Run, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages as the extensions want them on the wire, checked."""
    view = turn_view(run)
    for hook in run.setup.points.transform:
        before = messages

        def read(returned: Any, before: Sequence[Message] = before) -> Sequence[Message]:  # Any: checked here
            return returned if returned is before else _checked(before, returned)

        messages = consult(run, hook, (view, messages), read, before)
    return messages


def _checked(before: Sequence[Message], returned: Any) -> Sequence[Message]:  # Any: an extension returns anything
    """What a transform returned, if it can be sent. Looks at what is new: `before` is known to be right."""
    if not is_sequence(returned):
        raise wrong_return("a sequence of messages", returned)
    after: tuple[Message, ...] = tuple(returned)
    if not after:
        raise WrongReturn("it returned no message at all")
    untouched = list(map(is_, before, after))
    start = max(0, (untouched.index(False) if False in untouched else len(untouched)) - 1)
    while start and isinstance(after[start], ToolMessage):
        start -= 1  # back to the message whose batch the first change stands in or behind: what is before it is paired
    try:
        checked = RequestHistory(after[start:])
    except InvalidArgument:
        at = next(at for at, each in enumerate(after) if not isinstance(each, MESSAGE_TYPES))
        raise WrongReturn(f"messages[{at}] must be a message, not {type(after[at]).__name__}") from None
    problems = checked.problems or checked.tail_problems()
    if problems:
        raise WrongReturn(f"message {problems[0].index + start} cannot be sent: {problems[0].text}; see check_messages")
    return (*after[:start], *checked.ordered)


def check_answer(run: Run, message: AssistantMessage) -> tuple[str, Reject] | None:
    """Asks `check_answer`. Returns who rejects the answer, and how; None if all accept it."""

    def read(returned: object) -> Accept | Reject:
        if not isinstance(returned, Accept | Reject):
            raise wrong_return("Accept() or Reject(reason)", returned)
        return returned

    hooks = run.setup.points.check_answer
    view = turn_view(run) if hooks else None
    for hook in hooks:
        decided = consult(run, hook, (view, message), read, _ACCEPT)
        if isinstance(decided, Reject):
            return hook.extension.name, decided
    return None


def after_tool(run: Run, use: ToolContext[object], result: ToolResult) -> ToolResult:
    """Asks `after_tool`; whose result it is, and whether the tool ran, nobody can change.

    A failure is kept for the end of the batch: the tool's real result is committed, and the rest of the batch runs.
    """

    def read(returned: object) -> ToolResult:
        if not isinstance(returned, ToolResult):
            raise wrong_return("a ToolResult", returned)
        return returned

    for hook in run.setup.points.after_tool:
        try:
            changed = consult(run, hook, (use, result), read, result)
        except ExtensionFailure as failure:
            run.failure = run.failure or failure
            continue
        if changed is not result:
            result = _of_same_call(result, changed, run.setup.bounds.result_bytes)
    return result


def _of_same_call(result: ToolResult, changed: ToolResult, most: int | None) -> ToolResult:
    """What an extension made of a result: still that of the same call, and no larger than a tool's."""
    status = changed.status if changed.executed is result.executed else result.status
    parts, error = bound_parts(changed.parts, most), bound_text(changed.error, most)
    return replace(changed, call_id=result.call_id, key=result.key, status=status, parts=parts, error=error)


def should_stop(run: Run) -> bool:
    """Asks `should_stop`, after the turn has ended; the first reason counts."""

    def read(returned: object) -> str | None:
        if returned is not None and not (isinstance(returned, str) and returned):
            raise wrong_return("None or a reason, a str that is not empty", returned)
        return returned

    hooks = run.setup.points.should_stop
    view = turn_view(run, turn_result(run)) if hooks else None
    for hook in hooks:
        reason = consult(run, hook, (view,), read, None)
        if reason is not None:
            run.stopped_by = reason
            return True
    return False


def before_settle(run: Run) -> UserMessage | None:
    """Asks `before_settle`: the message with which the run is to go on, if one wants that and may still."""

    def read(returned: object) -> UserMessage | None:
        if returned is not None:
            if not isinstance(returned, UserMessage):
                raise wrong_return("None or a UserMessage", returned)
            _check_question(run, returned)
        return returned

    hooks = run.setup.points.before_settle
    view = turn_view(run, turn_result(run)) if hooks else None
    for hook in hooks:
        message = consult(run, hook, (view,), read, None)
        if message is not None:
            most = run.setup.limits.max_settle_vetoes
            if most is not None and run.vetoes >= most:
                raise limited("max_settle_vetoes", f"{hook.extension.name} asked to go on once more after {most} times")
            run.vetoes += 1
            return message
    return None


def _check_question(run: Run, message: UserMessage) -> None:
    """Refuses what cannot be committed as the message with which a run goes on."""
    check_user_message(run.setup.limits.max_message_bytes, message, "its message")
    if message.id and any(known.id == message.id for known in run.setup.transcript.messages):
        raise WrongReturn("it returned a message with the id of one that is there; leave the id out")


def on_overflow(run: Run, error: ContextOverflow) -> bool:
    """Asks `on_overflow`, to the first that says the request can be built again."""

    def read(returned: object) -> bool:
        if not isinstance(returned, bool):
            raise wrong_return("a bool", returned)
        return returned

    return any(consult(run, hook, (turn_view(run), error), read, False) for hook in run.setup.points.on_overflow)
