"""The stores that are killed, in a folder each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from gotato_session import FileStore, SQLiteStore, StoreBase

SYNCS = ("never", "never", "never", "run", "commit")  # a kill is the same for all; waiting for the disk takes its time


def open_file(folder: Path, rng: Random) -> StoreBase:
    """Sessions in files."""
    return FileStore(folder / "sessions", sync=rng.choice(SYNCS))


def open_sqlite(folder: Path, rng: Random) -> StoreBase:
    """Sessions in a database."""
    return SQLiteStore(folder / "sessions.sqlite", sync=rng.choice(SYNCS))


PLACES: dict[str, Callable[[Path, Random], StoreBase]] = {"file": open_file, "sqlite": open_sqlite}
