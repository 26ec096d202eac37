"""Which process has a session, and whether it still lives."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_DEAD_STATES = ("Z", "X")
"""Of a process that was killed and that its parent has not asked for yet: it writes nothing more."""


def process_mark(pid: int) -> str | None:
    """When a process began, as a text that no other process with that pid ever has.

    None is a process that has ended; "" is what cannot be told, because this system does not show it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        if fields[0] in _DEAD_STATES:
            return None
        return f"{_boot_mark()} {fields[19]}"  # clock ticks from the boot to its start, number 22 of proc(5)
    except (OSError, IndexError):
        return ""


def _boot_mark() -> str:
    try:
        return _BOOT.read_text("utf-8").strip()
    except OSError:
        return ""


def is_alive(pid: int, mark: str) -> bool:
    """Whether the process of this machine that had this pid and mark is still there; in doubt it is."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        pass
    now = process_mark(pid)
    return now is not None and (now == mark or not now or not mark)
