"""One attempt at a model call, and the wait before the next; used by the loop and by `collect`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import inf
from typing import Any, TypeVar

from ._answer import Answer
from .errors import Cancelled, DeadlineExceeded, EmptyResponse, GotatoError
from .messages import ToolMessage
from .model import Model, ModelEvent, ModelRequest
from .model_errors import ConnectionFailed, ModelError, ModelProtocolError
from .parts import StopReason
from .retry import RetryPolicy
from .scope import Scope

E = TypeVar("E", bound=ModelError)


def attempt(
    model: Model,
    request: ModelRequest,
    scope: Scope,
    timeout: float | None,
    answer: Answer,
    *,
    interrupts: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    most: float = inf,
    follow: bool = False,
) -> Generator[ModelEvent, None, None]:
    """Streams one attempt into `answer`; with `follow`, gives each event on when it has been taken. Stops early where
    the answer grows over `most` characters. Closes the model's stream; what that raises, but for `interrupts`, changes
    nothing.

    Raises `Cancelled` or `DeadlineExceeded` when the scope ends, `ConnectionFailed` when `timeout` passes before it,
    `ModelProtocolError` for a stream that is none, and what the model raises.
    """
    if scope.cancelled:
        scope.check()
    own = scope if timeout is None else scope.child(timeout)
    try:
        answer.stream = stream = model.stream(request, own)
        for event in _iterator(model, stream):
            if own.cancelled:
                break
            answer.take(event)
            if answer.size > most:
                return
            if follow:
                yield event
    except interrupts:
        raise
    except (Cancelled, DeadlineExceeded):
        _check(scope, own, timeout)
        raise
    except GotatoError:
        scope.check()
        raise
    except Exception as error:  # a bug of the model's, which trying again would not mend
        scope.check()
        text = f"{type(error).__name__} raised by {type(model).__name__}.stream"
        raise ModelError(text, retryable=False, cause=error) from error
    finally:
        answer.close_stream(interrupts)
    if answer.done is None:
        _check(scope, own, timeout)
        raise ModelProtocolError("the model's stream ended without Done: the answer was cut off")


def _iterator(model: Model, stream: Any) -> Iterator[ModelEvent]:  # Any: a model may return anything
    try:
        return iter(stream)
    except TypeError:
        raise ModelProtocolError(
            f"{type(model).__name__}.stream returned a {type(stream).__name__}, which is no iterator of ModelEvents",
            retryable=False,
        ) from None


def _check(scope: Scope, own: Scope, timeout: float | None) -> None:
    """Raises what the end of the attempt's scope means: the end of the outer one, or an attempt that took too long."""
    scope.check()
    if own.cancelled:
        raise ConnectionFailed(f"no complete answer within {timeout} s (limits.model_timeout)")


def delay_before_next(policy: RetryPolicy, number: int, error: ModelError, scope: Scope) -> float:
    """The seconds to wait before the next attempt. Raises the error where there is none, and the deadline where it
    comes before: waiting for it would only lose time."""
    scope.check()
    delay = policy.delay(number, error)
    if delay is None:
        raise error if number == 1 else counted(error, number)
    left = scope.remaining()
    if left is not None and delay >= left:
        scope.check()  # a cancel that came just now has left no time either
        raise DeadlineExceeded(
            f"{error}; the next attempt would have to wait {delay:.3g} s, longer than the {left:.3g} s that are left",
            operation="Model.stream",
            cause=error,
        )
    return delay


def counted(error: E, number: int, more: str = "") -> E:
    """The error with the number of attempts in its text, and `more`. A copy: a model may raise one object again and
    again."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    made.message = f"{error} (after {number} attempts){more}"
    made.args = (made.message,)
    made.cause, made.__cause__ = error.cause, error.__cause__
    return made.with_traceback(error.__traceback__)


def silence_is_answer(request: ModelRequest) -> bool:
    """Whether an empty answer is one: after a tool result there may be nothing more to say."""
    return len(request.messages) > 0 and isinstance(request.messages[-1], ToolMessage)


def check_silence(answer: Answer, silences: int) -> None:
    """Raises `EmptyResponse` at the second empty answer, and at the first that a content filter left empty."""
    if answer.done is not None and answer.done.stop_reason is StopReason.CONTENT_FILTER:
        raise EmptyResponse("the provider's content filter left nothing of the answer", operation="Model.stream")
    if silences > 1:
        raise EmptyResponse("the model answered nothing at all, twice", operation="Model.stream")
