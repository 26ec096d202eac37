"""What is left when the end of a run could not be stored."""

from __future__ import annotations

import pytest

from gotato_py import StoreFailure, ToolMessage, ToolResult

from .failing_store import FailingStore
from .histories import answer, run_record, user


def test_a_completion_that_the_end_of_a_run_could_not_place_is_there_for_the_next_run() -> None:
    """A call was completed during a run whose end could not be stored: the next run begins with what came of it."""
    store = FailingStore()
    with store.create("s") as session:
        session.append(user("u1"))
        session.append(answer("a1", calls=1))
        session.append(ToolMessage(ToolResult("same", "pending", "later", key="a1:0"), id="t1"))
        session.begin_run("r1")
        told = session.complete_call("a1:0", "done")
        session.append(answer("a2"))
        store.fail = OSError(28, "No space left on device")
        with pytest.raises(StoreFailure):
            session.end_run(run_record("r1"))
        assert session.history[-1].id == "a2"
        store.fail = None
        session.begin_run("r2")
        assert [message.id for message in session.history] == ["u1", "a1", "t1", "a2", told.id]
        session.end_run(run_record("r2"))
    with store.open("s") as session:
        assert session.history[-1].id == told.id
