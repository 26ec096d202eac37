"""Ids: one callable, `ids(kind) -> str`, kind one of "agent", "run", "message"."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count

Ids = Callable[[str], str]


class RandomIds:
    """Ids that no other process makes: a random prefix, drawn once a process, and a number.

    Asking the system's random source each time would cost more than the rest of a commit.
    """

    __slots__ = ("_next", "_prefix")

    def __init__(self) -> None:
        self._next = count(1).__next__
        self._prefix = ""
        self.renew()

    def renew(self) -> None:
        """Draws a new prefix: a forked child counts on from the same number as its parent."""
        self._prefix = os.urandom(10).hex()

    def __call__(self, kind: str) -> str:
        return f"{kind[0]}-{self._prefix}-{self._next():x}"


random_ids = RandomIds()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=random_ids.renew)
