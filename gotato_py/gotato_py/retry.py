"""When a failed model call is made again, and how long to wait before."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._fields import field, wrong
from ._value import of_defaults, value
from .errors import InvalidArgument
from .model_errors import ModelError


def _attempts(where: str, given: Any) -> int:
    if type(given) is not int or given < 1:
        raise InvalidArgument(f"{where} must be an int of at least 1 (1 is no retry)")
    return given


_MOST = sys.float_info.max


def _seconds(where: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= _MOST:
        raise InvalidArgument(f"{where} must be a finite number of at least 0")
    return float(given)


def _callable(where: str, given: Any) -> Callable[[], float]:
    if not callable(given):
        raise wrong(where, "a callable that returns a float in [0, 1)", given)
    return given  # type: ignore[no-any-return]  # its result is used as a float


def _random() -> float:
    """`random.random`, imported at the first backoff: it costs 2 ms, and most programs never wait for one."""
    number: float = import_module("random").random()
    return number


@value
class RetryPolicy:
    """Exponential backoff: `base` seconds, doubled each time, at most `cap`, plus up to `jitter` of it.

    What the provider asks for (`retry_after`) is obeyed exactly. `rng` is called only when `jitter` is above 0;
    it is `random.random`.
    """

    max_attempts: int = field(default=3, check=_attempts)
    base: float = field(default=0.5, check=_seconds)
    cap: float = field(default=30.0, check=_seconds)
    jitter: float = field(default=0.1, check=_seconds)
    rng: Callable[[], float] = field(default=_random, check=_callable, compare=False)

    def delay(self, attempt: int, error: ModelError) -> float | None:
        """Seconds to wait after the failure of `attempt` (counted from 1), or None to give up."""
        if attempt >= self.max_attempts or not error.retryable:
            return None
        if error.retry_after is not None:
            return error.retry_after
        seconds = min(self.cap, self.base * 2.0 ** min(attempt - 1, 64))
        return seconds * (1 + self.jitter * self.rng()) if self.jitter > 0 else seconds


DEFAULT_RETRY = of_defaults(RetryPolicy)
