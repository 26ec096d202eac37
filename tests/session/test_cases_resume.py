"""Cases of the wild, in every store: what a crash, an approval and pending work leave, and how it goes on.

A process that died is one that nobody closed: the next one takes the session over.
"""

from __future__ import annotations

import threading

import pytest

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    AssistantMessage,
    Compaction,
    Deny,
    GotatoError,
    Hooks,
    InvalidArgument,
    InvalidState,
    Pending,
    ToolCall,
    ToolContext,
    ToolMessage,
    UserMessage,
    check_messages,
    tool,
)
from gotato_session import Session
from gotato_testkit import ManualClock, ScriptedModel, call, say

from .histories import result, user
from .stores import MakeStore, each_store


def results(session: Session) -> dict[str, str]:
    """The status of each result, by the tool's name."""
    calls = {
        f"{message.id}:{index}": each.name
        for message in session.history
        if isinstance(message, AssistantMessage)
        for index, each in enumerate(message.tool_calls)
    }
    return {
        calls[message.result.key]: message.result.status
        for message in session.history
        if isinstance(message, ToolMessage)
    }


def calls_of(message_id: str, *names: str) -> AssistantMessage:
    """An answer that calls those tools."""
    return AssistantMessage((), [ToolCall("same", name) for name in names], id=message_id)


@each_store
def test_c24_killed_in_the_middle_of_parallel_calls(make: MakeStore) -> None:
    """One call has its result, one was started, one never began: kept, effect unknown, not run; the next run works."""
    session = make().create("s")
    session.append(user("u1"))
    session.append(calls_of("a1", "fast", "stalled", "queued"))
    session.mark_started("a1:0")
    session.mark_started("a1:1")
    session.append(result("t1", "a1:0"))
    with make().open("s", steal=True) as again:
        assert results(again) == {"fast": "ok", "stalled": "cancelled", "queued": "not_run"}
        assert check_messages(again.messages) == []
        assert Agent(ScriptedModel([say("on")]), transcript=again).run().text == "on"
    session.close()


@each_store
@pytest.mark.parametrize(
    ("started", "told"), [(False, "not_run"), (True, "cancelled")], ids=["before it starts", "while it runs or after"]
)
def test_c55_a_card_is_charged_at_most_once(make: MakeStore, started: bool, told: str) -> None:
    """A crash before the tool starts: the model may ask again. Later: it is told effect unknown, and nothing charges on
    its own."""
    charges: list[str] = []

    @tool
    def charge_card() -> str:
        """Charges the card."""
        charges.append("charged")
        return "charged"

    session = make().create("s")
    session.append(user("u1"))
    session.append(calls_of("a1", "charge_card"))
    if started:
        session.mark_started("a1:0")
        charges.append("charged")  # and the process dies before the result is stored
    with make().open("s", steal=True) as again:
        assert results(again) == {"charge_card": told}
        last = again.messages[-1]
        assert isinstance(last, ToolMessage)
        assert last.result.executed is (None if started else False)
        script = [say("I will ask the bank.")] if started else [call("charge_card"), say("charged")]
        Agent(ScriptedModel(script), tools=[charge_card], transcript=again).run()
        assert again.check() == []
    session.close()
    assert charges == ["charged"]


def asking(use: ToolContext) -> Allow | Ask:
    """A gate: reading is free, the rest is for a person to decide."""
    return Allow() if use.name == "read" else Ask(f"May it {use.name}?", expires_in=60)


@tool
def read() -> str:
    """Reads."""
    return "read"


@each_store
def test_c56_approvals_in_a_batch_over_restarts(make: MakeStore) -> None:
    """`mail` is approved in one process and `pay` denied in the next; each question is asked once, `mail` runs once."""
    mails: list[str] = []

    @tool
    def mail() -> str:
        """Sends a mail."""
        mails.append("sent")
        return "sent"

    @tool
    def pay() -> str:
        """Pays."""
        raise AssertionError("was denied")

    def agent(session: Session, *script: object) -> Agent:
        return Agent(
            ScriptedModel(list(script)),  # type: ignore[arg-type]
            tools=[read, pay, mail],
            transcript=session,
            extensions=[Hooks(before_tool=asking)],
        )

    with make().create("s") as session:
        first = agent(session, call("read") + call("pay") + call("mail")).run("go")
        assert first.status == "waiting"
        keys = {waiting.name: waiting.key for waiting in first.waiting}
        assert set(keys) == {"pay", "mail"}
        assert results(session) == {"read": "ok"}
    with make().open("s") as session:
        second = agent(session).run(answers={keys["mail"]: Approve()})
        assert [waiting.name for waiting in second.waiting] == ["pay"]
        assert mails == []
    with make().open("s") as session:
        last = agent(session, say("done"))
        assert last.status == "waiting"
        assert last.run(answers={keys["pay"]: Deny("too much")}).text == "done"
        assert results(session) == {"read": "ok", "pay": "blocked", "mail": "ok"}
    assert mails == ["sent"]


@each_store
def test_c56_a_new_message_drops_what_waits(make: MakeStore) -> None:
    """In another process: the questions are closed as superseded, then comes the message."""
    with make().create("s") as session:
        model = ScriptedModel([call("pay"), say("fine")])
        Agent(model, tools=[tool(pay)], transcript=session, extensions=[Hooks(before_tool=asking)]).run("go")
    with make().open("s") as session:
        agent = Agent(ScriptedModel([say("fine")]), tools=[tool(pay)], transcript=session)
        assert agent.run("forget it").text == "fine"
        assert results(session) == {"pay": "blocked"}
        assert session.waiting == ()


def pay() -> str:
    """Pays."""
    raise AssertionError("nobody approved")


@each_store
def test_c57_an_answer_after_the_expiry_comes_too_late(make: MakeStore) -> None:
    """Expiry is evaluated when somebody looks, in whatever process: the call is blocked, whoever approves it then."""
    clock = ManualClock()
    with make().create("s") as session:
        model = ScriptedModel([call("pay")])
        hooks = Hooks(before_tool=asking)
        first = Agent(model, tools=[tool(pay)], transcript=session, extensions=[hooks], clock=clock).run("go")
        [waiting] = first.waiting
    clock.advance(61)
    with make().open("s") as session:
        agent = Agent(
            ScriptedModel([say("too late")]), tools=[tool(pay)], transcript=session, extensions=[hooks], clock=clock
        )
        assert agent.run(answers={waiting.key: Approve()}).text == "too late"
        assert results(session) == {"pay": "blocked"}


@each_store
def test_c57_of_two_answers_the_first_wins(make: MakeStore) -> None:
    """Two threads answer at once, differently: one is taken, the other refused; what runs is what was taken."""
    with make().create("s") as session:
        model = ScriptedModel([call("pay"), say("done")])
        agent = Agent(model, tools=[tool(lambda: "paid", name="pay")], transcript=session, extensions=[
            Hooks(before_tool=asking)
        ])  # fmt: skip
        [waiting] = agent.run("go").waiting
        refused: list[GotatoError] = []

        def answer(decision: Approve | Deny) -> None:
            try:
                agent.run(answers={waiting.key: decision})
            except GotatoError as error:
                refused.append(error)

        threads = [threading.Thread(target=answer, args=(each,)) for each in (Approve(), Deny("no"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1
        assert results(session)["pay"] in ("ok", "blocked")
        assert session.messages[-1].text == "done"
        with pytest.raises(InvalidArgument):
            agent.run(answers={waiting.key: Approve()})


@each_store
def test_c57_pending_work_settles_days_later_after_a_compaction(make: MakeStore) -> None:
    """The call keeps its pending result; what it came to is a message of its own, once, behind a summary too."""

    @tool
    def build() -> Pending:
        """Builds, elsewhere."""
        return Pending("job 7")

    with make().create("s") as session:
        Agent(ScriptedModel([call("build"), say("later")]), tools=[build], transcript=session).run("build it")
        [key] = [message.result.key for message in session.messages if isinstance(message, ToolMessage)]
        session.replace(Compaction(UserMessage("It is being built."), session.messages[-1].id))
    with make().open("s") as session:
        told = session.complete_call(key, "built")
        assert [message.id for message in session.messages][1:] == [told.id]
    with make().open("s") as session, pytest.raises(InvalidState):
        session.complete_call(key, "built twice")
