"""Who writes to a session."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a session, and who has it.

    `owner` is a name for people, `since` Unix seconds. `token` is the store's own: it grows with every owner, so that
    one who was replaced while he slept is told from the one who replaced him.
    """

    owner: str
    host: str
    pid: int
    since: float
    token: int = 0


def default_owner() -> str:
    """The name of an owner that was given none: "host:pid"."""
    return f"{socket.gethostname()}:{os.getpid()}"
