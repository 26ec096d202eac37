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

    __slots__ = ("_next", "_prefixes")

    def __init__(self) -> None:
        self._next = count(1).__next__
        self._prefixes: dict[str, str] = {}
        self.renew()

    def renew(self) -> None:
        """Draws a new prefix: a forked child counts on from the same number as its parent."""
        process = os.urandom(10).hex()
        self._prefixes = {kind: f"{kind[0]}-{process}-" for kind in ("agent", "run", "message")}

    def __call__(self, kind: str) -> str:
        return f"{self._prefixes[kind]}{self._next():x}"


random_ids: RandomIds = RandomIds()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=random_ids.renew)
