"""What a run came to: a value, also when it failed; and the error that `check=True` raises with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Generic

from ._fields import field
from ._mapping import EMPTY
from ._typing import Decimal, T_co
from ._value import of_defaults, reduce, value
from .errors import ErrorCode, GotatoError, InvalidState, portable_cause
from .messages import AssistantMessage, Message, UserMessage
from .parts import NO_USAGE, Usage
from .transcript import WaitingCall


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    WAITING = "waiting"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    LIMITED = "limited"
    FAILED = "failed"


@value
class RunMetrics:
    """What a run took: model turns, tools that ran, seconds in all, in the model and in tools."""

    turns: int = 0
    tool_calls: int = 0
    elapsed_s: float = 0.0
    model_s: float = 0.0
    tool_s: float = 0.0


NO_METRICS = of_defaults(RunMetrics)
_SHOWN = 80  # characters of the text in a repr


@value
class RunResult(Generic[T_co]):
    """The outcome of a run, with everything that was done.

    `status` is completed, waiting, cancelled, deadline_exceeded, limited or failed; `ok` says whether it is completed.
    `message` is the last answer of this run, `new_messages` all that it committed, `error` why it did not complete,
    `stopped_by` the reason an extension gave, `waiting` the calls that wait for a person, `undelivered` the messages
    that came too late.

    Where `status` is waiting, `waiting` holds those that nobody has answered. A run that ended otherwise, before it
    could go on with what waits, left all of it open: then `waiting` holds the calls that were answered, too, each with
    the `decision` that is kept. `run()` goes on with those; a call without one still needs its answer.
    """

    run_id: str
    status: RunStatus
    message: AssistantMessage | None = None
    usage: Usage = NO_USAGE
    metrics: RunMetrics = NO_METRICS
    error: GotatoError | None = None
    stopped_by: str = ""
    new_messages: tuple[Message, ...] = ()
    waiting: tuple[WaitingCall, ...] = ()
    undelivered: tuple[UserMessage, ...] = ()
    structured: Any = field(default=None, kw_only=True)  # the value behind `output`
    lacks_output: bool = field(default=False, kw_only=True)  # output was asked for, and the run gave none
    priced_by: CostOf | None = field(default=None, kw_only=True, compare=False)

    def __repr__(self) -> str:
        said = self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "…"
        parts = [f"run_id={self.run_id!r}, status={str(self.status)!r}, text={said!r}, turns={self.metrics.turns}"]
        parts.append(f"new_messages={len(self.new_messages)}, usage={self.usage!r}")
        if self.error is not None:
            parts.append(f"error={self.error!r}")
        return f"RunResult({', '.join(parts)})"

    @property
    def ok(self) -> bool:
        """Whether the run completed."""
        return self.status is RunStatus.COMPLETED

    @property
    def text(self) -> str:
        """The text of the last answer; "" where there is none."""
        return "" if self.message is None else self.message.text

    @property
    def output(self) -> T_co:
        """The structured output. Raises the run's error if the run did not complete, `InvalidState` if it waits or was
        stopped before it gave one."""
        if not self.ok or self.lacks_output:
            self.raise_for_status()
            how = f"was stopped by {self.stopped_by!r}" if self.ok else f"is {self.status.value}"
            raise InvalidState(f"the run {how}: it has no output", operation="RunResult.output")
        return self.structured  # type: ignore[no-any-return]  # checked against the type when it was made

    @property
    def cost(self) -> Decimal | None:
        """What the run cost, in US dollars: what the model's optional member `cost_of` says of this result. None where
        it has none, or does not know a price. Raises what that raises."""
        return None if self.priced_by is None else self.priced_by(self)

    def __reduce__(self) -> tuple[Any, ...]:
        make, (kind, kept) = reduce(self)
        if not _is_found_by_name(self.priced_by):  # a bound method would take the model along, and its key
            kept.pop("priced_by", None)
        return make, (kind, kept)

    def raise_for_status(self) -> None:
        """Raises the `RunError` of this outcome, unless the run completed or waits."""
        kind = _ERRORS.get(self.status)
        if kind is not None:
            raise kind(result=self) from self.error


def _is_found_by_name(function: object) -> bool:
    """Whether pickle would write the name of a function's module and its own, and nothing else."""
    found: object = sys.modules.get(getattr(function, "__module__", None) or "")
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is function


class RunError(GotatoError):
    """A run that did not complete; `result` holds everything it did. Repeats the code and retryable of its error."""

    def __init__(
        self,
        message: str = "",
        *,
        result: RunResult[Any] | None = None,
        operation: str = "",
        retryable: bool | None = None,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        error = None if result is None else result.error
        repeated = (error.retryable if error is not None else False) if retryable is None else retryable
        if not message and result is not None:
            message = f"the run {result.run_id} ended {result.status.value}" + (
                f": {error}" if error is not None else ""
            )
        super().__init__(
            message, operation=operation, retryable=repeated, details=details, cause=cause or portable_cause(error)
        )
        self.result: RunResult[Any] = result if result is not None else RunResult("", RunStatus.FAILED)
        if error is not None:
            self.code: ErrorCode = error.code  # type: ignore[misc]  # of the instance: it repeats the error's


class RunFailed(RunError):
    """The run failed: the model, the transcript or an extension did."""


class RunCancelled(RunError):
    """The run was cancelled."""

    code = ErrorCode.CANCELLED


class RunDeadlineExceeded(RunError):
    """The run's time passed."""

    code = ErrorCode.DEADLINE_EXCEEDED


class RunLimited(RunError):
    """The run reached one of its limits; `result.error.limit` names it."""

    code = ErrorCode.LIMIT_EXCEEDED


CostOf = Callable[[RunResult[Any]], "Decimal | None"]
"""A model's `cost_of`: from a result to US dollars."""

_ERRORS: Mapping[RunStatus, type[RunError]] = {
    RunStatus.CANCELLED: RunCancelled,
    RunStatus.DEADLINE_EXCEEDED: RunDeadlineExceeded,
    RunStatus.LIMITED: RunLimited,
    RunStatus.FAILED: RunFailed,
}
