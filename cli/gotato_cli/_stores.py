"""The store that a command is to look into."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from gotato_py import NotFound
from gotato_session import FileStore, SQLiteStore, StoreBase

from ._problems import UsageError

VARIABLE = "GOTATO_STORE"
_SUFFIXES = {".db", ".sqlite", ".sqlite3"}
_MAGIC = b"SQLite format 3\0"


@contextmanager
def store_at(given: str | None, *, create: bool = False) -> Generator[StoreBase, None, None]:
    """The store at that path, or at the one that the environment names; `create` makes it where there is none.

    Raises `UsageError` where neither says where it is, or there is something else, and `NotFound`.
    """
    named = given or os.environ.get(VARIABLE)
    if not named:
        suffixes = ", ".join(sorted(_SUFFIXES))
        text = f"say where the sessions are: --store PATH, or {VARIABLE}; a folder, or a file that ends in {suffixes}"
        raise UsageError(text)
    path = Path(named)
    if not create and not path.exists():
        raise NotFound(f"there is no store at {named}")
    if not _is_database(path):
        yield FileStore(path)
        return
    with SQLiteStore(path) as store:
        yield store


def _is_database(path: Path) -> bool:
    """Whether it is a database, or is to be one, rather than a folder."""
    if path.is_dir():
        return False
    if path.suffix in _SUFFIXES:
        return True
    if path.exists() and not _has_magic(path):
        raise UsageError(f"{path} is no store: neither a folder nor a database of SQLite")
    return path.exists()


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
