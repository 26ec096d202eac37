"""`complete_call`: what came of a call whose tool answered `pending`."""

from __future__ import annotations

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    InvalidArgument,
    InvalidState,
    NotFound,
    Pending,
    TextPart,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
    tool,
)
from gotato_session import MemoryStore, Session
from gotato_testkit import ScriptedModel, call, say

from .histories import answer, run_record, user


def pending(message_id: str, key: str) -> ToolMessage:
    """A result that says: later."""
    return ToolMessage(ToolResult("same", "pending", "on its way", key=key), id=message_id)


def a_session(session: Session | None = None) -> Session:
    """A session with a call that is pending."""
    session = session or Session("s")
    for message in (user("u1"), answer("a1", calls=1), pending("t1", "a1:0"), answer("a2")):
        session.append(message)
    return session


def test_a_pending_call_is_completed_by_a_user_message_once() -> None:
    """The pending result stays, the message names the tool and the outcome; a second completion is refused."""
    session = a_session()
    told = session.complete_call("a1:0", "42 files")
    assert session.messages[-1] is told
    assert told.text == "The pending call of the tool look has come to its end (ok). Its result:\n42 files"
    assert told.metadata == {"tool_update": "a1:0"}
    with pytest.raises(InvalidState, match="was completed before"):
        session.complete_call("a1:0", "43 files")
    assert len(session.history) == 5


def test_a_result_that_failed_says_so() -> None:
    """The status of the result is told, and without parts its error."""
    told = a_session().complete_call("a1:0", ToolResult("x", "failed", error="no disk"))
    assert "(failed)" in told.text
    assert "no disk" in told.text


def test_a_result_without_a_word_says_so() -> None:
    """An empty text is told as no output, or as what the status and the error say, never as an empty part."""
    failed = ToolResult("x", "failed", "", error="no disk")
    results: list[ToolResult | str] = ["", ToolResult("x", "ok", [TextPart("")]), failed]
    said = [a_session().complete_call("a1:0", each).parts[1:] for each in results]
    none = (TextPart("(no output)"),)
    assert said == [none, none, (TextPart("The tool ran and failed: no disk"),)]


def test_what_is_no_pending_call_is_refused() -> None:
    """An unknown key, a call that has its result, and a result that is pending still."""
    session = a_session()
    session.append(user("u2"))
    session.append(answer("a3", calls=1))
    session.append(ToolMessage(ToolResult("same", "ok", "done", key="a3:0"), id="t3"))
    with pytest.raises(NotFound, match="no call 'a9:0'"):
        session.complete_call("a9:0", "x")
    with pytest.raises(InvalidState, match="its result is ok"):
        session.complete_call("a3:0", "x")
    with pytest.raises(InvalidArgument, match="pending still"):
        session.complete_call("a1:0", ToolResult("x", "pending"))
    with pytest.raises(InvalidArgument, match="not int"):
        session.complete_call("a1:0", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("stored", [False, True])
def test_during_a_run_it_is_stored_at_once_and_seen_at_its_end(stored: bool) -> None:
    """The message is no part of `messages` before the run has ended, and survives a crash before that."""
    store = MemoryStore()
    session = a_session(store.create("s") if stored else None)
    session.append(user("u2"))
    session.begin_run("r1")
    told = session.complete_call("a1:0", "done")
    assert session.messages[-1].id == "u2"
    with pytest.raises(InvalidState):
        session.complete_call("a1:0", "twice")
    if stored:
        with store.open("s", read_only=True) as other:
            assert other.messages[-1].id == "u2"
        session.close()  # the process ends before the run does
        with store.open("s") as again:
            assert again.messages[-1] == told
            assert again.messages[-1].id == told.id
        return
    session.append(answer("a4"))
    session.end_run(run_record("r1"))
    assert [message.id for message in session.messages][-2:] == ["a4", told.id]


def test_while_a_call_waits_it_is_held_back() -> None:
    """No user message comes between a call and its result: the message follows the run that closes the batch."""
    session = a_session()
    session.append(user("u2"))
    session.append(answer("a3", calls=1))
    session.mark_waiting([WaitingCall("a3:0", name="look")])
    session.end_run(run_record("r1"))
    told = session.complete_call("a1:0", "done")
    assert session.messages[-1].id == "a3"
    session.begin_run("r2")
    session.append(ToolMessage(ToolResult("same", "ok", "seen", key="a3:0"), id="t3"))
    session.append(answer("a4"))
    session.end_run(run_record("r2"))
    assert session.messages[-1].id == told.id


def completions(session: Session) -> list[str]:
    """The keys of the calls whose completion the model sees, in their order."""
    return [str(message.metadata["tool_update"]) for message in session.messages if "tool_update" in message.metadata]


def test_a_branch_from_before_its_message_tells_it_again() -> None:
    """The model would wait for ever otherwise, as nobody can complete the call twice. Each branch has it once."""
    session = a_session()
    told = session.complete_call("a1:0", "42 files")
    session.branch("t1")
    again = session.messages[-1]
    assert (again.text, again.metadata, again.id != told.id) == (told.text, told.metadata, True)
    assert session.tree[again.id] == "t1"
    for place in (told.id, again.id, "t1", "u1", ""):
        session.branch(place)
        assert completions(session) == (["a1:0"] if place not in ("u1", "") else []), place
    with pytest.raises(InvalidState, match="was completed before"):
        session.complete_call("a1:0", "43 files")


def test_what_is_completed_while_another_branch_goes_on_is_told_in_its_own() -> None:
    """The message goes where the session is; the branch with the pending call gets it when the session returns."""
    session = a_session()
    session.branch("u1")
    session.append(answer("b1"))
    session.complete_call("a1:0", "done")
    assert completions(session) == ["a1:0"]
    session.branch("a2")
    assert [message.id for message in session.messages[:-1]] == ["u1", "a1", "t1", "a2"]
    assert completions(session) == ["a1:0"]


@pytest.mark.parametrize("at", ["t1", "a2", None])
def test_a_fork_from_before_its_message_tells_it_again(at: str | None) -> None:
    """A fork has the message once, wherever it begins, and the parent is as it was."""
    store = MemoryStore()
    with a_session(store.create("s")) as session:
        told = session.complete_call("a1:0", "done")
        with session.fork(at, id="f") as fork:
            assert completions(fork) == ["a1:0"]
            assert (fork.messages[-1].id == told.id) is (at is None)
        with store.open("f") as fork:
            assert completions(fork) == ["a1:0"]
        assert session.messages[-1] is told


def test_a_pending_answer_from_elsewhere_is_followed_by_what_came_of_it() -> None:
    """A branch into the batch gets the answer that the call has, and then the completion of that."""
    session = a_session()
    session.complete_call("a1:0", "done")
    session.branch("a1")
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "user"]
    assert completions(session) == ["a1:0"]


def test_where_a_call_waits_it_is_told_again_behind_it() -> None:
    """No user message comes between a call and its result, in a branch neither."""
    session = a_session()
    session.append(answer("a3", calls=1))
    session.mark_waiting([WaitingCall("a3:0", name="look")])
    session.branch("u1")
    session.complete_call("a1:0", "done")
    session.branch("a3")
    assert session.messages[-1].id == "a3"
    session.begin_run("r1")
    session.append(ToolMessage(ToolResult("same", "ok", "seen", key="a3:0"), id="t3"))
    session.append(answer("a4"))
    session.end_run(run_record("r1"))
    assert completions(session) == ["a1:0"]


def test_an_agent_goes_on_from_the_completion() -> None:
    """A tool answers pending; days later its work is completed, and `run()` tells the model."""
    store = MemoryStore()

    @tool
    def build() -> Pending:
        """Builds something, elsewhere."""
        return Pending("job 7")

    with store.create("s") as session:
        Agent(ScriptedModel([call("build"), say("it is being built")]), tools=[build], transcript=session).run("build")
        [key] = [message.result.key for message in session.messages if isinstance(message, ToolMessage)]
    with store.open("s") as session:
        session.complete_call(key, "built in 3 days")
        model = ScriptedModel([say("it is there")])
        assert Agent(model, tools=[build], transcript=session).run().text == "it is there"
        last = model.requests[0].messages[-1]
        assert isinstance(last, UserMessage)
        assert isinstance(last.parts[-1], TextPart)
        assert last.parts[-1].text == "built in 3 days"
        assert isinstance(session.messages[-1], AssistantMessage)
