"""Every error of every layer: one root, one closed set of codes, facts as attributes.

Messages say what was wrong, where, and what to do. They never hold prompt text or an API key.
All errors pickle, so that a process pool or a task queue can carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import ClassVar

from ._mapping import EMPTY, FrozenMapping


class ErrorCode(StrEnum):
    """What went wrong, as a stable word; the same in errors, events and JSON."""

    INVALID_ARGUMENT = "invalid_argument"
    INVALID_STATE = "invalid_state"
    BUSY = "busy"
    AGENT_CLOSED = "agent_closed"
    NOT_RUNNING = "not_running"
    NOT_FOUND = "not_found"
    MODEL_FAILURE = "model_failure"
    MODEL_PROTOCOL_FAILURE = "model_protocol_failure"
    EMPTY_RESPONSE = "empty_response"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CONTEXT_OVERFLOW = "context_overflow"
    AUTHENTICATION_FAILED = "authentication_failed"
    INVALID_REQUEST = "invalid_request"
    QUOTA_EXHAUSTED = "quota_exhausted"
    CONTENT_FILTERED = "content_filtered"
    CONNECTION_FAILED = "connection_failed"
    ANSWER_REJECTED = "answer_rejected"
    OUTPUT_INVALID = "output_invalid"
    TOOL_EXECUTION_FAILURE = "tool_execution_failure"
    EXTENSION_FAILURE = "extension_failure"
    LIMIT_EXCEEDED = "limit_exceeded"
    SUBSCRIPTION_OVERFLOW = "subscription_overflow"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    STORE_FAILURE = "store_failure"
    SESSION_BUSY = "session_busy"
    SESSION_CORRUPT = "session_corrupt"
    FORKED_PROCESS = "forked_process"
    NOT_SUPPORTED = "not_supported"
    INTERNAL_INVARIANT_FAILURE = "internal_invariant_failure"


class GotatoError(Exception):
    """The root of every error raised here.

    `message` is for people. `operation` names the call that failed ("Agent.run"), `retryable` says
    whether the same call may work later, `details` holds further facts, and `cause` is the error
    behind this one (also its `__cause__`). A subclass sets `code` and adds facts as keyword arguments
    that become attributes. All attributes survive pickling; a cause that may not survive it goes by its name.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_INVARIANT_FAILURE

    def __init__(
        self,
        message: str = "",
        *,
        operation: str = "",
        retryable: bool = False,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        message = message if isinstance(message, str) else str(message)  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.retryable = retryable
        self.details: Mapping[str, object] = (
            FrozenMapping(details) if isinstance(details, Mapping) and details else EMPTY
        )
        self.cause = cause
        if cause is not None:
            self.__cause__: BaseException | None = cause

    def __str__(self) -> str:
        return self.message or self.code.value.replace("_", " ")

    def __reduce__(self) -> tuple[Callable[..., GotatoError], tuple[object, ...]]:
        cause = portable_cause(self.cause)
        shown = cause if self.__cause__ is self.cause else portable_cause(self.__cause__)
        return _rebuild, (type(self), self.args, {**self.__dict__, "cause": cause}, shown)


def _rebuild(
    kind: type[GotatoError], args: tuple[object, ...], facts: Mapping[str, object], cause: BaseException | None
) -> GotatoError:
    """Restores the attributes instead of calling the constructor, which may take anything in a user's subclass."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    error.__cause__ = cause
    return error


def portable_cause(cause: BaseException | None) -> BaseException | None:
    """The cause in a form that every pickle can carry: ours and plain built-in ones as they are, others by name."""
    if cause is None or isinstance(cause, GotatoError):
        return cause
    kind = type(cause)
    if kind.__module__ == "builtins" and all(isinstance(arg, str | int | float | None) for arg in cause.args):
        return kind(*cause.args) if cause.__dict__ else cause
    return RuntimeError(f"{kind.__module__}.{kind.__qualname__}")


class InvalidArgument(GotatoError, ValueError):
    """A value that the named argument cannot have; nothing was changed."""

    code = ErrorCode.INVALID_ARGUMENT


class InvalidState(GotatoError):
    """The call is legal, but not in the present state."""

    code = ErrorCode.INVALID_STATE


class NotSupported(GotatoError):
    """A feature that this release, or this object, does not have."""

    code = ErrorCode.NOT_SUPPORTED


class Busy(GotatoError):
    """Another run has the agent: `run_id`, and `since` as Unix seconds."""

    code = ErrorCode.BUSY

    def __init__(
        self,
        message: str = "",
        *,
        run_id: str = "",
        since: float = 0.0,
        operation: str = "",
        retryable: bool = True,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, operation=operation, retryable=retryable, details=details, cause=cause)
        self.run_id = run_id
        self.since = since


class AgentClosed(GotatoError):
    """The agent was closed and takes no further run."""

    code = ErrorCode.AGENT_CLOSED


class NotRunning(GotatoError):
    """No run is there to take the message."""

    code = ErrorCode.NOT_RUNNING


class NotFound(GotatoError):
    """Nothing is stored under that name or id."""

    code = ErrorCode.NOT_FOUND


class LimitExceeded(GotatoError):
    """A limit ended the run or refused a call; `limit` is the field's name in `Limits`, or "max_tokens"."""

    code = ErrorCode.LIMIT_EXCEEDED

    def __init__(
        self,
        message: str = "",
        *,
        limit: str = "",
        operation: str = "",
        retryable: bool = False,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, operation=operation, retryable=retryable, details=details, cause=cause)
        self.limit = limit


class SubscriptionOverflow(GotatoError):
    """A subscriber was too slow for the events that cannot be merged."""

    code = ErrorCode.SUBSCRIPTION_OVERFLOW


class Cancelled(GotatoError):
    """The scope was cancelled; the message is the reason."""

    code = ErrorCode.CANCELLED


class DeadlineExceeded(GotatoError, TimeoutError):
    """The scope's time has passed. A TimeoutError, hence an OSError: let it through before any `except OSError`."""

    code = ErrorCode.DEADLINE_EXCEEDED


class AnswerRejected(GotatoError):
    """A guardrail refused the model's answer; the message holds its reason."""

    code = ErrorCode.ANSWER_REJECTED


class OutputInvalid(GotatoError):
    """The model's answers did not fit the `output` that was asked for, after all corrections."""

    code = ErrorCode.OUTPUT_INVALID


class ForkedProcess(GotatoError):
    """The object was in use when the process forked: it belongs to the parent process."""

    code = ErrorCode.FORKED_PROCESS


class EmptyResponse(GotatoError):
    """The model answered nothing at all, twice."""

    code = ErrorCode.EMPTY_RESPONSE


class ToolError(GotatoError):
    """Raised by a tool: the message goes to the model as the tool's own words."""

    code = ErrorCode.TOOL_EXECUTION_FAILURE


class ExtensionFailure(GotatoError):
    """An extension or a context builder raised where that fails the run."""

    code = ErrorCode.EXTENSION_FAILURE


class StoreFailure(GotatoError):
    """A commit to the transcript failed; what is stored and what is in memory are still equal."""

    code = ErrorCode.STORE_FAILURE


class SessionBusy(GotatoError):
    """Another owner writes to the session."""

    code = ErrorCode.SESSION_BUSY

    def __init__(
        self,
        message: str = "",
        *,
        owner: str = "",
        host: str = "",
        pid: int = 0,
        since: float = 0.0,
        operation: str = "",
        retryable: bool = True,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, operation=operation, retryable=retryable, details=details, cause=cause)
        self.owner = owner
        self.host = host
        self.pid = pid
        self.since = since


class LeaseLost(SessionBusy):
    """The session was taken over by another owner; what this one did not commit is not in it."""


class SessionCorrupt(GotatoError):
    """A session's file is damaged; `line` is the first damaged line, counted from 1."""

    code = ErrorCode.SESSION_CORRUPT

    def __init__(
        self,
        message: str = "",
        *,
        line: int = 0,
        operation: str = "",
        retryable: bool = False,
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, operation=operation, retryable=retryable, details=details, cause=cause)
        self.line = line
