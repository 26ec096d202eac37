"""What a model raised as plain JSON data and back: its type by name, and the facts that decide what is done then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import (
    AuthenticationFailed,
    Cancelled,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    EmptyResponse,
    GotatoError,
    InvalidArgument,
    InvalidRequest,
    InvalidState,
    ModelError,
    ModelProtocolError,
    NotSupported,
    Overloaded,
    QuotaExhausted,
    RateLimited,
)

MODEL_ERRORS: tuple[type[ModelError], ...] = (
    RateLimited,
    Overloaded,
    ConnectionFailed,
    ModelProtocolError,
    ContextOverflow,
    AuthenticationFailed,
    InvalidRequest,
    QuotaExhausted,
    ContentFiltered,
    ModelError,
)
"""Every type of error that a model call may end with, those that are tried again by themselves first."""

_TYPES: Mapping[str, type[GotatoError]] = {
    kind.__name__: kind
    for kind in (
        *MODEL_ERRORS,
        Cancelled,
        DeadlineExceeded,
        EmptyResponse,
        InvalidArgument,
        InvalidState,
        NotSupported,
    )
}
_FACTS = ("operation", "retry_after", "status", "provider", "request_id")


def error_to_dict(error: BaseException) -> dict[str, Any]:
    """The error by the nearest type that is known here.

    Of an exception that is no error of the kernel only the name is kept: its message may hold anything.
    """
    for kind in type(error).__mro__:
        if isinstance(error, GotatoError) and _TYPES.get(kind.__name__) is kind:
            facts = {name: getattr(error, name, None) for name in _FACTS}
            told = {name: fact for name, fact in facts.items() if fact or fact == 0}
            return {"type": kind.__name__, "message": error.message, "retryable": error.retryable, **told}
    return {"type": type(error).__name__}


def error_from_dict(data: Mapping[str, Any]) -> GotatoError:
    """The error that was recorded; a ModelError, never retried, in the place of one that only has a name."""
    kind = _TYPES.get(data["type"])
    if kind is None:
        return ModelError(f"{data['type']} raised by the recorded model", retryable=False)
    facts = {name: data[name] for name in _FACTS if name in data}
    return kind(data.get("message", ""), retryable=data.get("retryable", False), **facts)
