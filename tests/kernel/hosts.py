"""Other threads of the host: what they do to an agent, and what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE_S = 10.0
"""Real seconds after which a test that waits for another thread gives up."""
SOON_S = 5.0
"""Seconds: far more than it takes where a machine stalls, far less than what would hang takes."""


class Host(Generic[T]):
    """A thread of the host that does one thing; `join` gives what came of it."""

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._returned: list[T] = []
        self._raised: list[BaseException] = []
        self.thread = threading.Thread(target=self._do, daemon=True)
        self.thread.start()

    def _do(self) -> None:
        try:
            self._returned.append(self._act())
        except BaseException as raised:  # it belongs to the test that joins
            self._raised.append(raised)

    def join(self) -> T:
        """What the thread returned; raises what it raised."""
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive(), "another thread of the test hangs"
        for raised in self._raised:
            raise raised
        return self._returned[0]


def in_thread(act: Callable[[], T]) -> T:
    """What `act` returns or raises in a thread of its own."""
    return Host(act).join()


def took(act: Callable[[], object]) -> float:
    """The seconds that it takes."""
    began = time.monotonic()
    act()
    return time.monotonic() - began
