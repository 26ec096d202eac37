"""What a run may use."""

from __future__ import annotations

from typing import Any

from ._fields import field
from ._value import of_defaults, value
from .errors import InvalidArgument
from .scope import checked_timeout

_MIB = 1024 * 1024


def _count(where: str, given: Any) -> int | None:
    if given is not None and (type(given) is not int or given < 0):
        raise InvalidArgument(f"{where} must be None (unlimited) or an int of at least 0 (0 admits none)")
    return given


def _limit(default: int | None) -> Any:
    return field(default=default, check=_count)


@value
class Limits:
    """Bounds of a run and of what it holds. None is unlimited, 0 admits none; sizes in bytes, times in seconds.

    Reaching one ends the run as `limited`, with everything done so far in the result. `max_repeated_calls` counts the
    same tool with the same arguments and the same result; `model_timeout` bounds each attempt at a model call.
    `wrap_up` allows one last request without tools when a limit has been reached.
    """

    max_turns: int | None = _limit(100)
    max_tool_calls: int | None = _limit(1000)
    max_messages: int | None = _limit(10_000)
    max_message_bytes: int | None = _limit(4 * _MIB)
    max_transcript_bytes: int | None = _limit(64 * _MIB)
    max_tool_result_bytes: int | None = _limit(_MIB)
    max_tool_progress_bytes: int | None = _limit(_MIB)
    max_tool_progress_updates: int | None = _limit(1000)
    max_steer: int | None = _limit(8)
    max_follow_up: int | None = _limit(4)
    max_parallel_tools: int | None = _limit(1)
    max_total_tokens: int | None = _limit(None)
    max_repeated_calls: int | None = _limit(8)
    max_settle_vetoes: int | None = _limit(3)
    max_abandoned: int | None = _limit(8)
    run_timeout: float | None = field(default=None, check=checked_timeout)
    model_timeout: float | None = field(default=600.0, check=checked_timeout)
    tool_timeout: float | None = field(default=None, check=checked_timeout)
    wrap_up: bool = False


DEFAULT_LIMITS = of_defaults(Limits)
