"""Calls that wait for a person: which are open, what the answers decide, and how a run settles until they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from ._guards import is_mapping
from ._mapping import FrozenMapping, copied
from ._run import Ending, Run, store_failure
from ._value import replace
from .checks import RequestHistory
from .decisions import Approve, Ask, Decision, Deny
from .errors import InvalidArgument
from .messages import Message, ToolMessage
from .parts import ToolCall
from .records import WaitingCall
from .result import RunStatus

_EXPIRED = "approval expired"


def open_records(waiting: Sequence[WaitingCall], open_calls: Sequence[tuple[str, ToolCall]]) -> dict[str, WaitingCall]:
    """The records of calls that are still open, by key, in call order. One of another tool is no record of the call:
    nobody was asked about what stands there now."""
    records = {(record.key, record.name): record for record in waiting}
    return {key: records[key, call.name] for key, call in open_calls if (key, call.name) in records}


def is_waiting(messages: Sequence[Message], waiting: Sequence[WaitingCall]) -> bool:
    """Whether a call at the tail of a transcript waits. Looks at the last batch alone."""
    if not waiting:
        return False
    backwards = reversed(range(len(messages)))
    start = next((at for at in backwards if not isinstance(messages[at], ToolMessage)), None)
    tail = RequestHistory(messages[start:])
    return bool(open_records(waiting, tail.open_calls))


def undecided(records: Mapping[str, WaitingCall]) -> tuple[WaitingCall, ...]:
    """Those that nobody has answered."""
    return tuple(record for record in records.values() if record.decision is None)


def expire(records: Mapping[str, WaitingCall], now: float) -> dict[str, WaitingCall]:
    """The records as they stand at that time, in Unix seconds: a question whose time has passed is denied."""
    return {
        key: replace(record, decision=Deny(_EXPIRED)) if _is_overdue(record, now) else record
        for key, record in records.items()
    }


def _is_overdue(record: WaitingCall, now: float) -> bool:
    return record.decision is None and record.expires_at is not None and record.expires_at <= now


def answered(
    records: Mapping[str, WaitingCall], answers: Mapping[str, Decision], recorded: Sequence[WaitingCall]
) -> dict[str, WaitingCall]:
    """The records with the answers. The first answer to a call counts; the same again is none, another is refused.
    `recorded` are the calls that have a result by now as well.

    Raises `InvalidArgument` for a key that does not wait.
    """
    if not records:
        raise InvalidArgument("answers: no call of this agent waits for an answer", operation="Agent.run")
    decided, given = dict(records), {record.key: record.decision for record in recorded}
    for key, answer in answers.items():
        known = decided[key].decision if key in decided else given.get(key)
        if key not in decided and known is None:
            waits = ", ".join(decided)
            raise InvalidArgument(f"answers: no call {key!r} waits; those that do: {waits}", operation="Agent.run")
        if known is None:
            decided[key] = replace(decided[key], decision=answer)
        elif known not in (answer, Deny(_EXPIRED)):  # an answer that comes too late is none
            text = f"answers: {key!r} was answered before, with {type(known).__name__}; the first answer counts"
            raise InvalidArgument(text, operation="Agent.run")
    return decided


def check_answers(answers: object) -> Mapping[str, Decision]:
    """The argument `answers`, if it maps keys to decisions."""
    if not is_mapping(answers):
        raise InvalidArgument(
            f"answers must be a mapping of keys to Approve() or Deny(), not {type(answers).__name__}",
            operation="Agent.run",
        )
    for key, answer in answers.items():
        if not isinstance(key, str):
            raise InvalidArgument(f"answers: a key must be a str, not {type(key).__name__}", operation="Agent.run")
        if not isinstance(answer, Approve | Deny):
            raise InvalidArgument(
                f"answers[{key!r}] must be Approve() or Deny(reason), not {type(answer).__name__}",
                operation="Agent.run",
            )
    return dict(answers)


def question(run: Run, call: ToolCall, key: str, arguments: Mapping[str, object], asked: Ask) -> WaitingCall:
    """The record of a call that a gate wants a person to decide."""
    seconds = asked.expires_in
    expires_at = None if seconds is None or seconds == inf else run.setup.time() + seconds
    return WaitingCall(key, call.id, call.name, FrozenMapping(copied(arguments)), asked.question, expires_at)


def to_show(run: Run) -> tuple[WaitingCall, ...]:
    """What waits when a run has ended, with arguments of their own: what is done to them for showing is not run.

    A run that waits shows those that nobody has answered. Any other that left calls open ended before it could go on
    with them, and shows those too whose answer is kept: nothing else says that they are open.
    """
    if not run.leaves_open:
        return ()
    shown = undecided(run.waiting) if run.status is RunStatus.WAITING else run.waiting.values()
    return tuple([replace(each, arguments=FrozenMapping(copied(each.arguments))) for each in shown])


def left_waiting(run: Run) -> dict[str, WaitingCall]:
    """The records of the calls that an ended run leaves open, as the transcript has them: answered if that is kept."""
    transcript = run.setup.transcript
    records = open_records(transcript.waiting, run.ledger.history.open_calls)
    started = transcript.started if records else ()
    return {key: record for key, record in records.items() if key not in started}


def record_answers(run: Run) -> None:
    """Commits the answers that were given, if any, for the calls that are still open."""
    opened = run.ledger.history.open_calls
    run.waiting = open_records(tuple(run.waiting.values()), opened)
    if run.waiting != open_records(run.setup.transcript.waiting, opened):
        record_waiting(run, run.waiting)


def record_waiting(run: Run, records: Mapping[str, WaitingCall]) -> None:
    """Commits which calls wait, and what was answered."""
    try:
        run.setup.transcript.mark_waiting(tuple(records.values()))
    except run.setup.interrupts:
        raise
    except Exception as error:
        raise store_failure(error, "could not record which calls wait")  # noqa: B904  # it carries its cause
    run.waiting = dict(records)
    run.leaves_open = True


def settle_waiting() -> Ending:
    """The end of a run that waits for answers."""
    return Ending(RunStatus.WAITING)
