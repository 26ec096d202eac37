"""What all events have in common: the header, how they become JSON, how they tell an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ._mapping import FrozenMapping
from ._value import value
from .errors import ErrorCode, GotatoError
from .message_json import message_to_dict, usage_to_dict
from .messages import MESSAGE_TYPES, Message
from .model import RateLimits
from .parts import Usage


@value
class ErrorInfo:
    """An error as an event tells it: its code and its message."""

    code: ErrorCode
    message: str = ""


def error_info(error: BaseException | None) -> ErrorInfo | None:
    """The error as an event tells it; what is not ours goes by its type's name."""
    if error is None:
        return None
    if isinstance(error, GotatoError):
        return ErrorInfo(error.code, str(error))
    return ErrorInfo(ErrorCode.INTERNAL_INVARIANT_FAILURE, type(error).__name__)


@value
class EventHeader:
    """What every event says: whose it is, its number in the run, the turn (0 before the first), Unix seconds."""

    agent_id: str
    run_id: str
    sequence: int
    turn: int
    timestamp: float
    kind: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The event as plain JSON types, `kind` first."""
        told: dict[str, Any] = {"kind": self.kind}
        names: Mapping[str, object] = getattr(self, "_value_fields")  # noqa: B009  # set by @value
        for name in names:
            told[name] = _plain(getattr(self, name))
        return told


def _plain(kept: Any) -> Any:
    if isinstance(kept, MESSAGE_TYPES):
        return message_to_dict(kept)
    if isinstance(kept, Usage):
        return usage_to_dict(kept)
    if isinstance(kept, ErrorInfo):
        return {"code": kept.code.value, "message": kept.message}
    if isinstance(kept, RateLimits):
        return {name: getattr(kept, name) for name in kept.__match_args__}
    if isinstance(kept, FrozenMapping):
        return dict(kept)
    return str(kept) if isinstance(kept, str) else kept


class LazyHash:
    """A prefix hash that is computed when somebody looks, at most once."""

    __slots__ = ("_compute", "_known", "_messages")

    def __init__(self, compute: Callable[[Sequence[Message], int], str], messages: Sequence[Message]) -> None:
        self._compute = compute
        self._messages = messages
        self._known = ""

    def get(self) -> str:
        """The hash, as hexadecimal text."""
        if not self._known:
            self._known = self._compute(self._messages, max(0, len(self._messages) - 1))
        return self._known
