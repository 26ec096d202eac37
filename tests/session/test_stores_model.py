"""Any sequence of operations on sessions in a store, closed and opened again, equals a simple model of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings

from gotato_py import ToolMessage, ToolResult

from .histories import answer
from .store_machine import Stores
from .stores import STORES


class InFiles(Stores):
    """Sessions in files."""

    store_name = "file"


class InADatabase(Stores):
    """Sessions in a database."""

    store_name = "sqlite"


TestInMemory = Stores.TestCase
TestInFiles = InFiles.TestCase
TestInADatabase = InADatabase.TestCase


@pytest.mark.parametrize("name", sorted(STORES))
def test_a_completion_reaches_a_fork(name: str, tmp_path: Path) -> None:
    """What was completed during a run is told in a fork that is made during the run."""
    with STORES[name](tmp_path)().create("s-1") as session:
        session.append(answer("a", calls=1))
        session.append(ToolMessage(ToolResult("same", "pending", "handle", key="a:0"), id="r"))
        session.begin_run("run-1")
        told = session.complete_call("a:0", "done")
        with session.fork() as fork:
            assert told.id in fork.path


SETTINGS = settings(
    max_examples=max(10, settings().max_examples // 10),
    stateful_step_count=30,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # it takes many times as long
)
TestInMemory.settings = TestInFiles.settings = TestInADatabase.settings = SETTINGS
