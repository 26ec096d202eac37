"""Every store of ours keeps what a store promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_session import Store
from gotato_testkit.contracts import StoreContract

from .stores import STORES, MakeStore


class OurStoreContract(StoreContract):
    """The suite, on the store of that name in a folder of each test's own."""

    examples = 8
    name: str
    made: MakeStore

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        """One place for each test."""
        self.made = STORES[self.name](tmp_path)

    def make(self) -> Store:
        """The place, opened once more."""
        return self.made()


class TestMemoryStore(OurStoreContract):
    """Sessions in memory."""

    name = "memory"


class TestFileStore(OurStoreContract):
    """Sessions in files."""

    name = "file"


class TestSQLiteStore(OurStoreContract):
    """Sessions in a database."""

    name = "sqlite"
