"""Ids: one callable, `ids(kind) -> str`, kind one of "agent", "run", "message"."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

Ids = Callable[[str], str]

_random = Random()  # uniqueness, not secrecy; seeded by the system, apart from the program's own generator
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def random_ids(kind: str) -> str:
    """An id such as "m-9f86d081884c7d659a2feaa0": unique without asking the system's random source each time."""
    return f"{kind[0]}-{_random.getrandbits(96):024x}"
