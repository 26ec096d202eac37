"""What a model call can fail with. An adapter raises these; the kernel retries the retryable ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ._mapping import EMPTY
from .errors import ErrorCode, GotatoError, InvalidArgument


class ModelError(GotatoError):
    """A model call failed.

    `retryable` left at None takes the class's default (`retried_by_default`). `retry_after` is in seconds, as the
    provider asked; `status` is the HTTP status; `provider` and `request_id` help its support to find the call.
    """

    code = ErrorCode.MODEL_FAILURE
    retried_by_default: ClassVar[bool] = False

    def __init__(
        self,
        message: str = "",
        *,
        retryable: bool | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        provider: str = "",
        request_id: str = "",
        operation: str = "",
        details: Mapping[str, object] = EMPTY,
        cause: BaseException | None = None,
    ) -> None:
        known = self.retried_by_default if retryable is None else retryable
        super().__init__(message, operation=operation, retryable=known, details=details, cause=cause)
        self.retry_after: float | None = _seconds(type(self).__name__, retry_after)
        self.status = status
        self.provider = provider
        self.request_id = request_id


_FOREVER = 1e300  # a longer wait is none, and an int past this has no float


def _seconds(owner: str, given: float | None) -> float | None:
    """A wait as providers send it: never negative; one without end is none that could be kept."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidArgument(f"{owner}.retry_after must be a number of seconds or None, not {type(given).__name__}")
    return max(0.0, float(given)) if -_FOREVER < given < _FOREVER else None


class RateLimited(ModelError):
    """Too many requests or tokens for now; `retry_after` says how long, where the provider said it."""

    code = ErrorCode.RATE_LIMITED
    retried_by_default = True


class Overloaded(ModelError):
    """The provider is overloaded or failed on its side (5xx)."""

    code = ErrorCode.OVERLOADED
    retried_by_default = True


class ConnectionFailed(ModelError):
    """The provider could not be reached, or the connection ended before the answer did."""

    code = ErrorCode.CONNECTION_FAILED
    retried_by_default = True


class ModelProtocolError(ModelError):
    """The answer broke the protocol: no `Done`, something after it, or output that the provider itself refused."""

    code = ErrorCode.MODEL_PROTOCOL_FAILURE
    retried_by_default = True


class ContextOverflow(ModelError):
    """The request is larger than the model's context window."""

    code = ErrorCode.CONTEXT_OVERFLOW


class AuthenticationFailed(ModelError):
    """The key is missing, wrong or not allowed to do this (401, 403)."""

    code = ErrorCode.AUTHENTICATION_FAILED


class InvalidRequest(ModelError):
    """The provider refuses the request as it stands (400, 404, larger than a per-minute limit)."""

    code = ErrorCode.INVALID_REQUEST


class QuotaExhausted(ModelError):
    """The account is out of money, or of a quota that will not come back soon."""

    code = ErrorCode.QUOTA_EXHAUSTED


class ContentFiltered(ModelError):
    """The provider refused the request's content with an HTTP error."""

    code = ErrorCode.CONTENT_FILTERED
