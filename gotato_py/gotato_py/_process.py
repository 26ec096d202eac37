"""Which process this is, without asking the system for it at each event."""

from __future__ import annotations

import os


class Process:
    """The id of this process, also in a forked child of the one that imported the package."""

    __slots__ = ("id",)

    def __init__(self) -> None:
        self.id = 0
        self.renew()

    def renew(self) -> None:
        """Asks the system."""
        self.id = os.getpid()


process = Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.renew)
