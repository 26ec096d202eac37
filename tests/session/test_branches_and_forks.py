"""Branches, forks and places: what a session's tree says, and what becomes of calls that are open there."""

from __future__ import annotations

import pytest

from gotato_py import (
    Agent,
    Busy,
    InvalidArgument,
    InvalidState,
    NotFound,
    ToolMessage,
    Usage,
    WaitingCall,
    check_messages,
    tool,
)
from gotato_session import MemoryStore, Session, SessionStats
from gotato_testkit import ScriptedModel, call, say

from .histories import answer, result, run_record, summary, user


def ids(session: Session) -> list[str]:
    """The ids of the current branch; "" for messages that the session made itself."""
    return [message.id if len(message.id) == 2 else "" for message in session.history]


def a_session(store: MemoryStore | None = None) -> Session:
    """u1 a1 with two calls, t1 t2, a2, u2 a3."""
    session = Session("s") if store is None else store.create("s")
    for message in (user("u1"), answer("a1", calls=2), result("t1", "a1:0"), result("t2", "a1:1"), answer("a2")):
        session.append(message)
    session.append(user("u2"))
    session.append(answer("a3"))
    return session


def statuses(session: Session) -> list[str]:
    """The statuses of the results of the current branch."""
    return [message.result.status for message in session.history if isinstance(message, ToolMessage)]


def test_a_branch_goes_on_from_an_earlier_entry_and_leads_back() -> None:
    """What came after the place stays in the tree; `branch` to its end brings it back."""
    session = a_session()
    session.branch("a2")
    assert ids(session) == ["u1", "a1", "t1", "t2", "a2"]
    session.append(user("u3"))
    assert session.path == ("u1", "a1", "t1", "t2", "a2", "u3")
    assert session.leaves == ("a3", "u3")
    assert session.tree["u3"] == session.tree["u2"] == "a2"
    session.branch("a3")
    assert ids(session)[-2:] == ["u2", "a3"]
    session.branch("")
    assert ids(session) == []
    session.append(user("u4"))
    assert session.tree["u4"] == ""


def test_a_branch_into_a_batch_gets_the_answers_that_it_has() -> None:
    """Open calls at the place get the results that they have elsewhere in the session, the tool runs no second time."""
    session = a_session()
    session.branch("a1")
    assert ids(session) == ["u1", "a1", "", ""]
    assert [message.result for message in session.history if isinstance(message, ToolMessage)] == [
        result("t1", "a1:0").result,
        result("t2", "a1:1").result,
    ]
    session.branch("t1")
    assert ids(session) == ["u1", "a1", "t1", ""]
    assert session.check() == []


def test_what_has_no_answer_anywhere_is_closed_by_its_marks() -> None:
    """A call that was started is effect unknown, one that never began not_run."""
    session = Session()
    session.append(user("u1"))
    session.append(answer("a1", calls=2))
    session.mark_started("a1:1")
    session.branch("u1")
    session.branch("a1")
    assert statuses(session) == ["not_run", "cancelled"]
    assert check_messages(session.messages) == []


def test_a_batch_that_waits_goes_on_waiting_after_a_branch_away_and_back() -> None:
    """What waits belongs to its message: elsewhere nothing waits, back there it does, and nothing was closed."""
    session = Session()
    session.append(user("u1"))
    session.append(answer("a1", calls=2))
    waiting = (WaitingCall("a1:0", name="look"),)
    session.mark_waiting(waiting)
    session.branch("u1")
    assert not session.waiting
    session.append(user("u2"))
    session.branch("a1")
    assert session.waiting == waiting
    assert ids(session) == ["u1", "a1"]
    assert session.check() == []


def test_a_compaction_belongs_to_its_branch() -> None:
    """Before the entry of the summary the messages are all there; after it the summary is."""
    session = a_session()
    session.replace(summary("a2", "s1"))
    assert [message.id for message in session.messages] == ["s1", "u2", "a3"]
    assert session.path[-1] == "s1"
    session.branch("a3")
    assert len(session.messages) == 7
    assert session.compactions == ()
    session.branch("s1")
    assert [message.id for message in session.messages] == ["s1", "u2", "a3"]
    assert len(session.history) == 7


def test_no_branch_during_a_run_and_to_no_unknown_place() -> None:
    """`Busy` while a run has the session, `NotFound` for an id that no entry has; nothing is changed."""
    session = a_session()
    session.begin_run("r1")
    with pytest.raises(Busy, match=r"^the session s is busy with run r1"):
        session.branch("a2")
    session.end_run(run_record("r1"))
    with pytest.raises(NotFound, match="'nowhere'"):
        session.branch("nowhere")
    with pytest.raises(InvalidArgument):
        session.branch(None)  # type: ignore[arg-type]
    assert session.path[-1] == "a3"


@pytest.mark.parametrize("stored", [False, True])
def test_a_fork_begins_with_what_is_committed_and_goes_on_apart(stored: bool) -> None:
    """Neither sees what the other appends; runs, usage and events of the fork are its own, values and labels it has."""
    store = MemoryStore()
    session = a_session(store if stored else None)
    session.set("title", "one")
    session.label("here", "a2")
    session.end_run(run_record("r1", 5))
    fork = session.fork(id="f")
    assert fork.parent_id == "s"
    assert (fork.runs, fork.usage.input_tokens, fork.events) == ((), 0, ())
    assert fork.metadata == {"title": "one"}
    assert fork.labels == {"here": "a2"}
    fork.append(user("u3"))
    session.append(user("u4"))
    fork.set("title", "two")
    assert ids(fork)[-1] == "u3"
    assert ids(session)[-1] == "u4"
    assert session.get("title") == "one"
    with pytest.raises(InvalidArgument, match="'u1'"):
        fork.append(user("u1"))
    if stored:
        fork.close()
        with store.open("f") as again:
            assert ids(again) == ids(fork)
            assert again.labels == fork.labels
            assert again.metadata == {"title": "two"}


@pytest.mark.parametrize("stored", [False, True])
def test_a_fork_at_a_place_and_a_fork_of_a_fork(stored: bool) -> None:
    """A fork goes on from the entry that is named; its forks share what both have."""
    store = MemoryStore()
    session = a_session(store if stored else None)
    fork = session.fork("a2", id="f")
    assert ids(fork) == ["u1", "a1", "t1", "t2", "a2"]
    fork.append(user("u3"))
    second = fork.fork("u3", id="g")
    second.append(answer("a4"))
    beginning = second.fork("", id="h")
    assert ids(beginning) == []
    beginning.branch("a3")
    assert ids(beginning)[-1] == "a3"
    with pytest.raises(NotFound):
        session.fork("u3")
    if stored:
        for each in (fork, second, beginning):
            each.close()
            with store.open(each.id) as again:
                assert ids(again) == ids(each)
                assert again.tree == each.tree


def test_open_calls_are_closed_in_the_fork_only() -> None:
    """During a run a fork takes the committed prefix: what is open is closed there, and the run goes on here."""
    store = MemoryStore()
    session = store.create("s")
    forks: list[Session] = []

    @tool
    def first() -> str:
        """Comes first."""
        return "one"

    @tool
    def second() -> str:
        """Forks in the middle."""
        forks.append(session.fork(id="f"))
        return "two"

    model = ScriptedModel([call("first") + call("second"), say("done")])
    done = Agent(model, tools=[first, second], transcript=session).run("go")
    assert done.text == "done"
    assert statuses(session) == ["ok", "ok"]
    [fork] = forks
    assert statuses(fork) == ["ok", "cancelled"]
    last = fork.history[-1]
    assert isinstance(last, ToolMessage)
    assert "goes on in the session that this one was forked from" in last.text
    assert Agent(ScriptedModel([say("apart")]), transcript=fork).run().text == "apart"


def test_nothing_waits_in_a_fork() -> None:
    """What waits for a person is not_run in the fork and goes on waiting in the original."""
    session = Session()
    session.append(user("u1"))
    session.append(answer("a1", calls=2))
    session.mark_waiting([WaitingCall("a1:0", name="look")])
    fork = session.fork()
    assert fork.waiting == ()
    assert statuses(fork) == ["not_run", "not_run"]
    assert session.waiting
    assert statuses(session) == []


def test_a_fork_can_be_made_of_a_read_only_session_and_has_to_have_a_new_id() -> None:
    """Reading is enough to fork; an id that is taken is refused and nothing is made."""
    store = MemoryStore()
    a_session(store).close()
    with store.open("s", read_only=True) as session:
        with session.fork(id="f") as fork:
            fork.append(user("u3"))
        with pytest.raises(InvalidState, match="f already"):
            session.fork(id="f")
        with pytest.raises(InvalidArgument, match=r"^Session.fork: at must be"):
            session.fork(3)  # type: ignore[arg-type]
    assert sorted(each.id for each in store.list()) == ["f", "s"]


def test_a_session_with_forks_is_not_deleted() -> None:
    """The forks need what they share; without them it goes."""
    store = MemoryStore()
    with a_session(store) as session:
        session.fork(id="f").close()
    with pytest.raises(InvalidState, match="has forks, which need it: f"):
        store.delete("s")
    store.delete("f")
    store.delete("s")
    assert list(store.list()) == []


def test_stats_count_all_branches_and_what_is_shared() -> None:
    """Messages, branches, calls by tool, and what the model is shown; a fork counts what it has from its parent."""
    session = Session("s")
    assert session.stats == SessionStats(0, 0, 0, 0, 0, 0, 0, 0, {}, Usage())
    session.append(user("u1"))
    session.append(answer("a1", calls=2))
    session.append(result("t1", "a1:0"))
    session.append(result("t2", "a1:1"))
    session.append(answer("a2"))
    session.branch("u1")
    session.append(answer("b1"))
    session.replace(summary("u1", "s1"))
    session.end_run(run_record("r1", 7))
    assert session.stats == SessionStats(
        entries=9, messages=6, in_branch=2, in_context=2, branches=2, compactions=1, runs=1, events=0,
        calls={"look": 2}, usage=session.usage,
    )  # fmt: skip
    assert (session.fork().stats.messages, session.fork().stats.runs) == (6, 0)
