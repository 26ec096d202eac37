"""Calls that wait for a person: which are open, what the answers decide, and how a run settles until they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._mapping import FrozenMapping
from ._run import Ending, Run, store_failure
from ._value import replace
from .checks import RequestHistory
from .decisions import Approve, Ask, Decision, Deny
from .errors import InvalidArgument
from .messages import Message, ToolMessage
from .parts import ToolCall
from .records import WaitingCall
from .result import RunStatus

_EXPIRED = Deny("approval expired")


def open_records(waiting: Sequence[WaitingCall], open_calls: Sequence[tuple[str, ToolCall]]) -> dict[str, WaitingCall]:
    """The records of calls that are still open, by key, in call order."""
    records = {record.key: record for record in waiting}
    return {key: records[key] for key, _ in open_calls if key in records}


def is_waiting(messages: Sequence[Message], waiting: Sequence[WaitingCall]) -> bool:
    """Whether a call at the tail of a transcript waits. Looks at the last batch alone."""
    if not waiting:
        return False
    start = len(messages) - 1
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    tail = RequestHistory(messages[start:])
    return bool(open_records(waiting, tail.open_calls))


def undecided(records: Mapping[str, WaitingCall]) -> tuple[WaitingCall, ...]:
    """Those that nobody has answered."""
    return tuple(record for record in records.values() if record.decision is None)


def expire(records: Mapping[str, WaitingCall], now: float) -> dict[str, WaitingCall]:
    """The records as they stand at that time, in Unix seconds: a question whose time has passed is denied."""
    return {
        key: replace(record, decision=_EXPIRED) if _is_overdue(record, now) else record
        for key, record in records.items()
    }


def _is_overdue(record: WaitingCall, now: float) -> bool:
    return record.decision is None and record.expires_at is not None and record.expires_at <= now


def answered(records: Mapping[str, WaitingCall], answers: Mapping[str, Decision]) -> dict[str, WaitingCall]:
    """The records with the answers. The first answer to a call counts; the same again is none, another is refused.

    Raises `InvalidArgument` for a key that does not wait.
    """
    if not records:
        raise InvalidArgument("answers: no call of this agent waits for an answer", operation="Agent.run")
    decided = dict(records)
    for key, answer in answers.items():
        if key not in decided:
            waits = ", ".join(decided)
            raise InvalidArgument(f"answers: no call {key!r} waits; those that do: {waits}", operation="Agent.run")
        known = decided[key].decision
        if known is None:
            decided[key] = replace(decided[key], decision=answer)
        elif known != answer and known != _EXPIRED:
            raise InvalidArgument(f"answers: {key!r} was answered before, with {type(known).__name__}")
    return decided


def check_answers(answers: object) -> Mapping[str, Decision]:
    """The argument `answers`, if it maps keys to decisions."""
    if not isinstance(answers, Mapping):
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
    expires_at = None if asked.expires_in is None else run.setup.time() + asked.expires_in
    return WaitingCall(key, call.id, call.name, FrozenMapping(arguments), asked.question, expires_at)


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
