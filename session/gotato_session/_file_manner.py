"""How the journals of a store are written."""

from __future__ import annotations

from dataclasses import dataclass

from ._file_disk import Disk
from ._file_format import Format


@dataclass(frozen=True, slots=True)
class Manner:
    """`sync` is "commit", "run" or "never"; `disk` and `form` are others only in tests."""

    sync: str
    disk: Disk
    form: Format
