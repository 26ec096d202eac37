"""Fixtures that several test files of sessions use."""

from __future__ import annotations

from pathlib import Path

import pytest

from .stores import STORES, MakeStore


@pytest.fixture
def make(kind: str, tmp_path: Path) -> MakeStore:
    """Opens the same place each time, of the kind that the test is done for."""
    return STORES[kind](tmp_path)
