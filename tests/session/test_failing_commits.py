"""Commits that fail: memory and store stay equal, and the result of a tool that did run is not lost."""

from __future__ import annotations

from functools import partial

import pytest

from gotato_py import Agent, RunFailed, StoreFailure, ToolMessage, tool
from gotato_session import Session
from gotato_testkit import ScriptedModel, call, say

from .failing_store import FailingStore
from .histories import answer, result, run_record, summary, user
from .steps import AtStep, interrupt

FULL = OSError(28, "No space left on device")


def started() -> tuple[FailingStore, Session]:
    """A session whose call is running."""
    store = FailingStore()
    session = store.create("s")
    session.append(user("u1"))
    session.append(answer("a1", calls=1))
    session.mark_started("a1:0")
    return store, session


def reopened(store: FailingStore) -> list[str]:
    """The ids of the messages that another process would read."""
    with store.open("s", read_only=True) as session:
        return [message.id for message in session.history]


def test_a_failed_commit_changes_nothing_and_says_what_failed() -> None:
    """Every kind of commit is a StoreFailure that names the session and the cause, and can be made again."""
    store, session = started()
    session.append(result("t1", "a1:0"))
    before = (session.path, session.labels, session.metadata, session.runs, session.started)
    store.fail = FULL
    for write in (
        lambda: session.append(user("u2")),
        lambda: session.mark_started("a2:0"),
        lambda: session.replace(summary("t1", "s1")),
        lambda: session.set("k", 1),
        lambda: session.label("l"),
        lambda: session.branch("u1"),
        lambda: session.end_run(run_record("r1")),
        session.flush,
    ):
        with pytest.raises(StoreFailure, match=r"^the session s could not be .*No space left") as caught:
            write()
        assert caught.value.__cause__ is FULL or caught.value.cause is FULL
    assert (session.path, session.labels, session.metadata, session.runs, session.started) == before
    assert reopened(store) == ["u1", "a1", "t1"]
    store.fail = None
    session.append(user("u2"))
    assert reopened(store) == ["u1", "a1", "t1", "u2"]


def test_the_result_of_a_tool_that_ran_is_stored_by_flush() -> None:
    """It is in neither memory nor store until then, and in both after."""
    store, session = started()
    store.fail = FULL
    with pytest.raises(StoreFailure):
        session.append(result("t1", "a1:0"))
    assert session.history[-1].id == "a1"
    with pytest.raises(StoreFailure):
        session.flush()
    store.fail = None
    session.flush()
    assert session.history[-1].id == "t1"
    assert reopened(store)[-1] == "t1"
    session.flush()
    assert reopened(store).count("t1") == 1


def test_it_is_stored_before_the_next_commit() -> None:
    """Whatever is committed next comes after the result, and not without it."""
    store, session = started()
    store.fail = FULL
    with pytest.raises(StoreFailure):
        session.append(result("t1", "a1:0"))
    with pytest.raises(StoreFailure):
        session.set("k", 1)
    store.fail = None
    session.set("k", 1)
    assert reopened(store) == ["u1", "a1", "t1"]
    session.append(user("u2"))  # nothing is open any more


def test_the_same_result_given_again_takes_its_place() -> None:
    """Whoever appends the result once more is not refused, and it is stored once."""
    store, session = started()
    store.fail = FULL
    with pytest.raises(StoreFailure):
        session.append(result("t1", "a1:0"))
    store.fail = None
    session.append(result("t2", "a1:0"))
    session.flush()
    assert reopened(store) == ["u1", "a1", "t2"]


def test_close_stores_it_and_lets_go_even_where_it_cannot() -> None:
    """The session is closed in any case; that the result is lost is told, and the next owner sees effect unknown."""
    store, session = started()
    store.fail = FULL
    with pytest.raises(StoreFailure):
        session.append(result("t1", "a1:0"))
    with pytest.raises(StoreFailure):
        session.close()
    session.close()
    store.fail = None
    with store.open("s") as again:
        last = again.history[-1]
        assert isinstance(last, ToolMessage)
        assert last.result.status == "cancelled"


def test_the_result_of_a_call_that_never_ran_is_not_kept() -> None:
    """A closing that could not be stored is made again by whoever looks next."""
    store, session = started()
    store.fail = FULL
    with pytest.raises(StoreFailure):
        session.append(ToolMessage(result("t1", "a1:0").result.__class__("same", "cancelled", key="a1:0"), id="t1"))
    store.fail = None
    session.flush()
    assert session.history[-1].id == "a1"


def test_a_run_fails_and_the_next_one_goes_on_with_the_real_result() -> None:
    """The store is full while a tool's result is to be kept: the run has failed, and after there is room again the
    model gets the real result; the tool ran once."""
    store = FailingStore()
    paid: list[int] = []

    @tool
    def pay() -> str:
        """Pays."""
        paid.append(1)
        store.fail = FULL
        return "paid"

    session = store.create("s")
    model = ScriptedModel([call("pay"), say("done")])
    agent = Agent(model, tools=[pay], transcript=session)
    with pytest.raises(RunFailed) as caught:
        agent.run("pay")
    assert caught.value.code == "store_failure"
    store.fail = None
    assert agent.run().text == "done"
    assert paid == [1]
    told = model.requests[-1].messages[-1]
    assert isinstance(told, ToolMessage)
    assert told.text == "paid"


def test_an_interrupt_while_the_result_is_given_again_does_not_lose_it() -> None:
    """Ctrl-C before any line of the second attempt: the result is stored, or still kept for the next commit."""
    step = 0
    while True:
        step += 1
        store, session = started()
        store.fail = FULL
        with pytest.raises(StoreFailure):
            session.append(result("t1", "a1:0"))
        store.fail = None
        again = AtStep(step, interrupt)
        try:
            again(partial(session.append, result("t2", "a1:0")))
        except KeyboardInterrupt:
            pass
        session.flush()
        assert reopened(store)[-1] in ("t1", "t2"), f"step {step}"
        if again.steps < step:
            break
    assert step > 20
