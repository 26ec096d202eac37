"""Commits that fail while an agent runs, on every store: memory and store stay equal, no effect is repeated (C52)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gotato_py import (
    Agent,
    RunResult,
    RunStatus,
    StoreFailure,
    ToolMessage,
    check_messages,
)
from gotato_session import Session
from gotato_testkit import Do, FakeTool, Fault, FaultPlan, FaultyStore, ScriptedModel, call, say
from gotato_testkit.contracts._histories import batch, settle
from gotato_testkit.contracts._store_suite import differing, picture

from .histories import run_record, user
from .stores import STORES, MakeStore

COMMITS = 8
"""Of the run: the question, the answer with its calls, a start and a result for each of two, the answer, the record."""
USER, ANSWER, PAY_STARTED, PAID = 1, 2, 5, 6


DESKS: list[Desk] = []


class Desk:
    """A session in a store whose disk is full at some commits, and an agent that looks and pays."""

    def __init__(self, make: MakeStore, *, once: int = 0, since: int = 0) -> None:
        self.make = make
        self.once, self.since = once, since
        self.store = FaultyStore(make(), self.fail)
        self.session = self.store.create("s-1")
        self.opened = [self.session]
        DESKS.append(self)
        self.look, self.pay = FakeTool("look", "seen"), FakeTool("pay", "paid", effect="write_external")
        self.mail = FakeTool("mail", "sent")
        self.model = ScriptedModel([call("look") + call("pay"), say("Paid.")])

    def fail(self, operation: str, number: int) -> OSError | None:
        """The disk is full at that commit, or since then until there is room again."""
        is_full = operation == "append" and (number == self.once or 0 < self.since <= number)
        return OSError(28, "No space left on device") if is_full else None

    def free(self) -> None:
        """There is room again."""
        self.once = self.since = 0

    def run(self, session: Session | None = None, message: str | None = "Pay.") -> RunResult[None]:
        """A run of a new agent."""
        tools = [self.look, self.pay, self.mail]
        return Agent(self.model, tools=tools, transcript=session or self.session).run(message, check=False)

    def assert_equal(self) -> None:
        """Memory says what another process sees."""
        with self.make().open("s-1", read_only=True) as stored:
            assert differing(picture(self.session), picture(stored)) == ""

    def killed(self) -> Session:
        """The session as the next process opens it, after this one was killed."""
        self.opened.append(self.make().open("s-1", steal=True))
        return self.opened[-1]

    def close(self) -> None:
        """Lets go of everything."""
        for session in self.opened:
            with suppress(StoreFailure):
                session.close()


@pytest.fixture(params=sorted(STORES))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Each store; the desks on it are closed at the end."""
    yield STORES[request.param](tmp_path)
    while DESKS:
        DESKS.pop().close()


def statuses(session: Session) -> list[str]:
    """Of the results."""
    return [str(each.result.status) for each in session.history if isinstance(each, ToolMessage)]


def assert_failed(result: RunResult[None]) -> None:
    """The run failed because of the store."""
    assert result.error is not None
    assert (result.status, result.error.code.value) == (RunStatus.FAILED, "store_failure")
    assert "No space left" in str(result.error)


def test_a_question_that_cannot_be_stored_is_not_asked(make: MakeStore) -> None:
    """(a) The run fails, no request is sent, and nothing is kept."""
    desk = Desk(make, once=USER)
    assert_failed(desk.run())
    assert (len(desk.model.requests), len(desk.session.messages)) == (0, 0)
    desk.assert_equal()
    assert desk.run().text == "Paid."


def test_calls_that_cannot_be_stored_are_not_made(make: MakeStore) -> None:
    """(b) The run fails, and no tool has started."""
    desk = Desk(make, once=ANSWER)
    assert_failed(desk.run())
    assert (len(desk.model.requests), len(desk.look.uses), len(desk.session.messages)) == (1, 0, 1)
    desk.assert_equal()


def test_a_call_whose_start_cannot_be_stored_is_not_made(make: MakeStore) -> None:
    """The mark comes before the tool, so the tool does not run, and its result says so."""
    desk = Desk(make, once=PAY_STARTED)
    assert_failed(desk.run())
    assert (len(desk.pay.uses), statuses(desk.session)) == (0, ["ok", "not_run"])
    desk.assert_equal()


def test_a_result_that_cannot_be_stored_is_kept(make: MakeStore) -> None:
    """(c) The run fails, no further call starts, and `flush` stores the result once there is room."""
    desk = Desk(make, since=PAID)
    desk.model = ScriptedModel([call("look") + call("pay") + call("mail"), say("Paid.")])
    assert_failed(desk.run())
    assert (len(desk.pay.uses), len(desk.mail.uses), len(desk.session.messages)) == (1, 0, 3)
    desk.assert_equal()
    with pytest.raises(StoreFailure, match="No space left"):
        desk.session.flush()
    desk.free()
    desk.session.flush()
    assert statuses(desk.session) == ["ok", "ok"]
    desk.assert_equal()
    assert desk.run(message=None).text == "Paid."
    assert statuses(desk.session) == ["ok", "ok", "not_run"]
    desk.assert_equal()


def test_a_result_that_could_not_be_stored_comes_before_the_next_commit(make: MakeStore) -> None:
    """(c) What the run itself commits behind it is enough, if there is room by then."""
    desk = Desk(make, once=PAID)
    assert_failed(desk.run())
    assert statuses(desk.session) == ["ok", "ok"]
    desk.assert_equal()


def test_closing_stores_what_could_not_be_stored(make: MakeStore) -> None:
    """(c) `close` is the last chance."""
    desk = Desk(make, since=PAID)
    desk.run()
    desk.free()
    desk.session.close()
    with make().open("s-1") as session:
        assert statuses(session) == ["ok", "ok"]


def test_without_room_until_the_end_the_effect_is_unknown(make: MakeStore) -> None:
    """(c) `close` says so; the next process closes the call, effect unknown, and does not repeat it."""
    desk = Desk(make, since=PAID)
    desk.run()
    with pytest.raises(StoreFailure):
        desk.session.close()
    with make().open("s-1") as session:
        assert statuses(session) == ["ok", "cancelled"]
        assert desk.run(session, None).text == "Paid."
    assert len(desk.pay.uses) == 1


def test_a_closing_result_that_cannot_be_stored_is_made_at_the_next_opening(make: MakeStore) -> None:
    """(d) The call stays open, the run still ends, and whoever goes on closes the call."""
    desk = Desk(make)

    def cancel() -> str:
        desk.since = PAID
        agent.cancel("enough")
        return "cancelled in the middle"

    desk.pay = FakeTool("pay", Do(cancel))
    desk.model = ScriptedModel([call("look") + call("pay") + call("mail"), say("I see.")])
    agent = Agent(desk.model, tools=[desk.look, desk.pay, desk.mail], transcript=desk.session)
    result = agent.run("Pay.", check=False)
    assert_failed(result)
    assert len(desk.session.messages) == 3
    desk.assert_equal()
    with desk.killed() as session:
        assert statuses(session) == ["ok", "cancelled", "not_run"]
        assert desk.run(session, None).text == "I see."
    assert (len(desk.pay.uses), len(desk.mail.uses)) == (1, 0)


@pytest.mark.parametrize("number", range(1, COMMITS + 2))
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from there on"])
def test_any_commit_may_fail(make: MakeStore, number: int, lasting: bool) -> None:
    """Whichever it is: the run says so, memory and store are equal, and the work goes on without a second payment."""
    desk = Desk(make, since=number) if lasting else Desk(make, once=number)
    result = desk.run()
    if number > COMMITS:
        assert (result.status, desk.session.runs[0].status) == (RunStatus.COMPLETED, "completed")
        return
    assert_failed(result)
    desk.assert_equal()
    desk.free()
    desk.session.flush()
    desk.assert_equal()
    for carry_on in (lambda: desk.session, desk.killed):
        assert_goes_on(desk, carry_on)


def assert_goes_on(desk: Desk, carry_on: Callable[[], Session]) -> None:
    """The next run works, in the same process or in the next one."""
    session = carry_on()
    desk.model = ScriptedModel([say("And on it goes.")])
    assert desk.run(session, "Go on.").text == "And on it goes."
    assert check_messages(session.messages) == session.check() == []
    assert len(desk.pay.uses) <= 1


@pytest.mark.parametrize("operation", ["create", "open", "entries", "append", "close"])
def test_what_fails_at_opening_leaves_no_lease(make: MakeStore, operation: str) -> None:
    """Whichever operation fails, the commit that closes calls too, the session can be opened then."""
    with make().create("s-1") as session:
        batch(session, 1)
    for id in ("s-1", "s-2"):
        plan = FaultPlan([Fault(operation, 1, OSError(5, "Input/output error"))])
        store = FaultyStore(make(), plan)
        made: Session | None = None
        try:
            made = store.open(id, create=True)
            made.close()
        except (OSError, StoreFailure):
            if made is not None:
                made.close()  # it can be closed again
        with make().open(id, create=True) as session:
            assert session.check() == []


def test_after_a_sync_that_failed_nothing_is_accepted_until_it_is_opened_again(make: MakeStore) -> None:
    """The system may have dropped what it could not write, so a second try would lie. What was told before is read."""
    broken: list[str] = []
    store = FaultyStore(make(), lambda name, number: OSError(5, "Input/output error") if name in broken else None)
    session = store.create("s-1")
    session.append(user("u1"))
    session.begin_run("r1")
    broken.append("sync")
    with pytest.raises(StoreFailure, match="takes nothing more until it is opened again") as caught:
        session.end_run(run_record("r1"))
    assert isinstance(caught.value.cause, OSError)
    broken.clear()
    writes: list[Callable[[], object]] = [
        lambda: session.append(user("u2")),
        lambda: session.set("k", 1),
        lambda: session.begin_run("r2"),
        lambda: session.mark_started("a1:0"),
        lambda: session.end_run(run_record("r3")),
        session.flush,
        session.fork,
    ]
    for write in writes:
        with pytest.raises(StoreFailure, match="open it again"):
            write()
    assert ([message.id for message in session.history], len(session.runs)) == (["u1"], 1)
    with suppress(StoreFailure):
        session.close()
    with make().open("s-1") as again:
        assert ([message.id for message in again.history], len(again.runs)) == (["u1"], 1)
        again.append(user("u2"))


@pytest.mark.parametrize("operation", ["sync", "create", "open", "append"])
def test_what_fails_in_a_fork_leaves_no_lease(make: MakeStore, operation: str) -> None:
    """The session goes on, but after a sync that failed; the fork is not there, or can be opened."""
    broken: list[str] = []
    store = FaultyStore(make(), lambda name, number: OSError(5, "Input/output error") if name in broken else None)
    with store.create("s-1") as session:
        keys = batch(session, 1)
        session.mark_started(keys[0])
        broken.append(operation)
        with pytest.raises((OSError, StoreFailure)):
            session.fork(id="s-2")
        broken.clear()
        if operation == "sync":
            with pytest.raises(StoreFailure):
                session.set("k", 1)
        else:
            settle(session, keys)
        with make().open("s-2", create=True) as fork:
            assert fork.check() == []
    make().open("s-1").close()
    assert make().open("s-1", read_only=True).check() == []
