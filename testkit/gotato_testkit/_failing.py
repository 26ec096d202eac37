"""Counts operations, and raises what a plan has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

Fail = Callable[[str, int], BaseException | None]
"""Asked before each operation with its name and its number, counted from 1: the error to raise, or None. Called in the
thread of the operation."""


class Failing:
    """Counts operations and raises what the plan has for them."""

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self._counts: dict[str, Iterator[int]] = {}

    def before(self, operation: str) -> None:
        """Raises if this call of the operation is to fail."""
        error = self._fail(operation, next(self._counts.setdefault(operation, count(1))))
        if error is not None:
            raise error
