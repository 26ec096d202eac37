"""What is checked before a run begins, and what is made of it when it has ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ._bounds import check_user_message
from ._closing import store_record
from ._fields import wrong
from ._final import is_taken, reread
from ._hold import RunHold
from ._hooks import REJECTED
from ._inbox import CONTROL
from ._ledger import Ledger
from ._output import read_output
from ._run import Run, store_failure
from ._setup import Setup
from ._structured import Output
from ._view import count_compactions
from ._waiting import answered, check_answers, expire, open_records, to_show, undecided
from .checks import RequestHistory
from .compaction import LAST_USER
from .decisions import Decision
from .errors import InvalidArgument, InvalidState
from .messages import AssistantMessage, Message, ToolMessage, UserMessage
from .parts import StopReason
from .records import WaitingCall
from .result import RunMetrics, RunResult, RunStatus
from .scope import Scope, checked_timeout


def check_entry(setup: Setup, message: Any, answers: object) -> UserMessage | None:
    """The user message of a run, or None for one that goes on. Raises `InvalidArgument` for what cannot be one."""
    if message is None:
        return None
    if answers is not None:
        raise InvalidArgument(
            "answers come without a message: they go on with what waits, a new message drops it", operation="Agent.run"
        )
    return user_message(setup, message, "Agent.run")


def user_message(setup: Setup, message: Any, operation: str) -> UserMessage:  # Any: checked here
    """The argument as a user message. Raises `InvalidArgument` for what cannot be one."""
    if isinstance(message, UserMessage):
        opening = message
    else:
        try:
            opening = UserMessage(message)
        except InvalidArgument as error:
            raise InvalidArgument(str(error).replace("UserMessage.parts", "message"), operation=operation) from None
    check_user_message(setup.limits.max_message_bytes, opening, "message", operation)
    return opening


def asked_output(setup: Setup, output: object) -> Output | None:
    """What a run is to come to. Raises `InvalidArgument` for what cannot be described."""
    if output is None:
        return None
    capabilities: object = getattr(setup.model, "capabilities", ())
    native = isinstance(capabilities, Collection) and "response_schema" in capabilities
    return Output(read_output(output, setup.compiler), native=native)


def new_run(
    setup: Setup,
    operation: str,
    scope: Scope,
    opening: UserMessage | None,
    answers: Mapping[str, Decision] | None,
    output: object,
    deps: object,
) -> Run:
    """A run that has not begun. Raises `InvalidArgument` for answers, an output or an id that cannot be."""
    run = Run(
        setup,
        scope,
        deps,
        opening,
        streaming=operation == "Agent.stream",
        answers=None if answers is None else check_answers(answers),
        output=asked_output(setup, output),
    )
    if not isinstance(run.id, str):
        raise InvalidArgument(f"Agent.ids: ids('run') must return a str, not {type(run.id).__name__}")
    return run


def run_scope(setup: Setup, operation: str, timeout: float | None, scope: Scope | None) -> Scope:
    """The scope of a run: ends with the caller's scope, the timeout or the limit, whichever is nearest."""
    seconds = checked_timeout(f"{operation}: timeout", timeout)
    most = setup.limits.run_timeout
    if most is not None:
        seconds = most if seconds is None else min(seconds, most)
    if scope is None:
        return Scope(seconds, clock=setup.clock)
    if not isinstance(scope, Scope):
        raise wrong(f"{operation}: scope", "a Scope", scope)
    return scope.child(seconds)


def open_transcript(run: Run, known: Ledger | None) -> None:
    """Reads what the transcript holds that is not known yet, refuses a run that cannot go on from it, and begins it.

    Raises before anything is changed: `InvalidState` for a history that no provider would take, `InvalidArgument`
    where there is nothing to go on from, what `begin_run` raises (`Busy`). Only where another run has come in between
    is the transcript told of a run: one that has failed.
    """
    opening, begin_run = run.opening, getattr(run.setup.transcript, "begin_run", None)
    try:
        seen = _read(run, known, opening)
        run.hold = RunHold(run.id, run.started_time, run.generator)
        if begin_run is not None:
            begin_run(run.hold)
            _read_again(run, run.hold, opening, seen)
    except run.setup.interrupts:
        raise
    except Exception as error:
        raise store_failure(error, "could not be read")  # noqa: B904  # it carries its cause


_Standing = tuple[int, str, str, Sequence[WaitingCall]]
"""How many messages there are, the ids of the first and the last, and what waits: what is read changes with these."""


def _standing(messages: Sequence[Message], waiting: Sequence[WaitingCall]) -> _Standing:
    first, last = (messages[0].id, messages[-1].id) if messages else ("", "")
    return len(messages), first, last, waiting


def _read(run: Run, known: Ledger | None, opening: UserMessage | None) -> _Standing:
    """Reads what is not known, and decides how the run begins. Returns what it went by."""
    transcript = run.setup.transcript
    messages, waiting = transcript.messages, tuple(transcript.waiting)  # once: others may write until it has them
    run.ledger = known if known is not None and known.continues(messages) else Ledger()
    run.ledger.take(messages)
    run.last_before = run.announcer.last_told = messages[-1].id if messages else ""
    run.compactions = count_compactions(run)
    _check_history(run.ledger.history)
    _decide_opening(run, messages, waiting, opening)
    return _standing(messages, waiting)


def _read_again(run: Run, hold: RunHold, opening: UserMessage | None, seen: _Standing) -> None:
    """Decides anew, now that nobody else writes, if another run has come and gone meanwhile. Where that refuses the
    run, it has failed, for a transcript that has begun it."""
    transcript = run.setup.transcript
    try:
        if _standing(transcript.messages, tuple(transcript.waiting)) == seen:
            return
        if run.output is not None:
            run.output.forget()
        _read(run, run.ledger, opening)
    except run.setup.interrupts:
        raise
    except Exception as error:
        run.status, run.error = RunStatus.FAILED, store_failure(error, "could not be read")
        store_record(run)
        hold.let_go()
        raise


def _check_history(history: RequestHistory) -> None:
    if history.problems:
        first = history.problems[0]
        text = f"the transcript cannot be sent: message {first.index}: {first.text}; see check_messages"
        raise InvalidState(text, operation="Agent.run")


def _decide_opening(
    run: Run, messages: Sequence[Message], waiting: Sequence[WaitingCall], opening: UserMessage | None
) -> None:
    """Decides how the run begins: with answers, with a new message, from what is there, or with the answer that is
    there already."""
    records = open_records(waiting, run.ledger.history.open_calls)
    run.opening, run.redelivered, run.superseded = opening, None, frozenset()
    run.waiting, run.leaves_open = {}, False
    at = position_of(messages, opening.id) if opening is not None and opening.id else None
    if opening is not None and at is None:
        run.superseded, run.waiting, run.leaves_open = frozenset(records), records, bool(records)
        return
    if at is not None and not isinstance(messages[at], UserMessage):
        raise InvalidArgument("message has the id of a message that is no user's", operation="Agent.run")
    run.opening = None  # it is there: it is not committed again
    if at is not None:
        _redeliver(run, messages, at, waits=bool(records))
    if run.redelivered is not None:
        run.leaves_open = bool(records)  # another message's calls
    elif records or run.answers is not None:
        run.waiting = answered(expire(records, run.setup.time()), run.answers or {}, waiting)
        run.leaves_open = True
        if run.answers is None and at is None and undecided(run.waiting):
            text = "calls wait for an answer; pass answers={key: Approve() or Deny()}, or a new message to drop them"
            raise InvalidState(text, operation="Agent.run")
    elif at is None:
        _check_going_on(messages)


def _redeliver(run: Run, messages: Sequence[Message], at: int, *, waits: bool) -> None:
    """Takes the answer that is there, if it is what is asked for. Raises `InvalidState` where the run cannot go on to
    one, because the conversation has gone on."""
    found = _answer_behind(messages, at)
    if found is not None and (run.output is None or reread(run, run.output, found)):
        run.redelivered = found
        return
    passed_over = any(_opens_a_run(later) for later in messages[at + 1 :])
    if (passed_over and not waits) or (found is not None and waits):
        left = (
            "no answer to it is left in messages" if found is None else "was answered with something else than output"
        )
        text = f"message was delivered before, {left}, and the conversation has gone on since"
        raise InvalidState(text, operation="Agent.run")


def position_of(messages: Sequence[Message], message_id: str) -> int | None:
    """Where the message with that id is, or the summary that stands for it."""
    return next((at for at in range(len(messages) - 1, -1, -1) if _stands_for(messages[at], message_id)), None)


def _stands_for(message: Message, message_id: str) -> bool:
    if message.id == message_id:
        return True
    return isinstance(message, UserMessage) and message.metadata.get(LAST_USER) == message_id


def _answer_behind(messages: Sequence[Message], at: int) -> AssistantMessage | None:
    """The answer to which the run of the user message at that position came in the end, if it came to one."""
    last = found = None
    for message in messages[at + 1 :]:
        if isinstance(message, UserMessage):
            if _opens_a_run(message):
                break
            found = None
        elif isinstance(message, ToolMessage):
            found = last if is_taken(message) else found
        else:
            last = message
            found = message if _is_finished(message) else None
    return found


def _opens_a_run(message: Message) -> bool:
    return isinstance(message, UserMessage) and CONTROL not in message.metadata


def _is_finished(answer: AssistantMessage) -> bool:
    return not answer.tool_calls and answer.stop_reason not in _NO_ANSWER and REJECTED not in answer.metadata


def _check_going_on(messages: Sequence[Message]) -> None:
    if not messages:
        raise InvalidArgument(
            "run() without a message goes on from the transcript, which is empty", operation="Agent.run"
        )
    for result in reversed(messages):
        if not isinstance(result, ToolMessage):
            break
        if is_taken(result):
            text = "run() without a message: the last answer, given as output, is finished; pass a message"
            raise InvalidArgument(text, operation="Agent.run")
    tail = messages[-1]
    if isinstance(tail, AssistantMessage) and not tail.tool_calls and not _is_unfinished(tail):
        raise InvalidArgument(
            "run() without a message: the last answer is finished; pass a message", operation="Agent.run"
        )


def _is_unfinished(answer: AssistantMessage) -> bool:
    return answer.stop_reason in _UNFINISHED or REJECTED in answer.metadata


_NO_ANSWER = (StopReason.CANCELLED, StopReason.ERROR, StopReason.PAUSE)
_UNFINISHED = (StopReason.CANCELLED, StopReason.ERROR, StopReason.MAX_TOKENS, StopReason.PAUSE)


def result_of(run: Run) -> RunResult[Any]:
    """What a run that has ended came to."""
    status = run.status if run.status is not None else RunStatus.FAILED
    elapsed = max(0.0, run.ended_at - run.started_at)
    read = None if run.output is None else run.output.read
    return RunResult(
        run.id,
        status,
        run.message,
        run.usage,
        RunMetrics(run.turn, run.tool_calls, elapsed, run.model_s, run.tool_s),
        run.error,
        run.stopped_by,
        tuple(run.committed),
        to_show(run),
        run.undelivered,
        structured=None if read is None else read.value,
        lacks_output=run.output is not None and read is None,
        priced_by=run.setup.cost_of,
    )
