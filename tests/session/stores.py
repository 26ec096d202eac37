"""The stores of this package, by name, each made in a folder: made again there, it is the same place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gotato_session import FileStore, MemoryStore, SQLiteStore, StoreBase

MakeStore = Callable[[], StoreBase]
"""Opens the place once more, as another process would."""


def memory_store(folder: Path) -> MakeStore:
    """Nothing is in the folder; the store is the same object each time."""
    store = MemoryStore()
    return lambda: store


def file_store(folder: Path) -> MakeStore:
    """Files in the folder."""
    return lambda: FileStore(folder / "sessions", sync="never")


def sqlite_store(folder: Path) -> MakeStore:
    """A database in the folder."""
    return lambda: SQLiteStore(folder / "sessions.sqlite", sync="never")


STORES: dict[str, Callable[[Path], MakeStore]] = {
    "memory": memory_store,
    "file": file_store,
    "sqlite": sqlite_store,
}

each_store = pytest.mark.parametrize("kind", STORES)
"""For a test that is done in each store: its fixture `make` opens the place."""
