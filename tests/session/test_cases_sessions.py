"""Cases of the wild, in every store: forks and branches during a run, agents that share work or hand it on."""

from __future__ import annotations

import pytest

from gotato_py import (
    Agent,
    Busy,
    RunFailed,
    ToolContext,
    ToolMessage,
    UserMessage,
    check_messages,
    tool,
)
from gotato_session import Session
from gotato_testkit import Raise, ScriptedModel, call, say

from .stores import MakeStore, each_store


@each_store
def test_c54_fork_and_branch_while_running(make: MakeStore) -> None:
    """A fork in the middle of a batch has the committed prefix, closed; moving the branch during a run is Busy; the
    place where the session stands is the same when it is opened again."""
    store = make()
    session = store.create("s")
    seen: list[object] = []

    @tool
    def a() -> str:
        """Is done first."""
        return "a"

    @tool
    def b() -> str:
        """Looks around in the middle of the batch."""
        with store.open("s", read_only=True) as reader, reader.fork(id="f") as fork:
            seen.append([message.result.status for message in fork.messages if isinstance(message, ToolMessage)])
            seen.append(check_messages(fork.messages))
        with pytest.raises(Busy):
            session.branch("")
        return "b"

    done = Agent(ScriptedModel([call("a") + call("b"), say("done")]), tools=[a, b], transcript=session).run("go")
    assert (done.text, seen) == ("done", [["ok", "cancelled"], []])
    first = session.path[0]
    session.branch(first)
    session.close()
    with make().open("s") as again:
        assert again.path == (first,)
        assert len(again.tree) == 5
    with make().open("f") as fork:
        assert Agent(ScriptedModel([say("apart")]), transcript=fork).run().text == "apart"


@each_store
def test_c59_sub_agents_have_sessions_of_their_own(make: MakeStore) -> None:
    """Two calls in parallel run the same child, each in its own session; one that fails is a failed result, the parent
    goes on, and its usage has both."""
    store = make()

    @tool
    def delegate(task: str, use: ToolContext) -> str:
        """Gives a task to another agent."""
        steps = [say(f"{task} done")] if task == "one" else [Raise(ValueError("broken"))]
        with store.create(f"child-{task}", metadata={"parent": "s"}) as session:
            result = Agent(ScriptedModel(steps), transcript=session).run(task, scope=use.scope)
            use.charge(result.usage)
            return result.text

    with store.create("s") as session:
        model = ScriptedModel([call("delegate", task="one") + call("delegate", task="two"), say("both tried")])
        assert Agent(model, tools=[delegate], transcript=session).run("go").text == "both tried"
        statuses = [message.result.status for message in session.messages if isinstance(message, ToolMessage)]
        assert statuses == ["ok", "failed"]
    children = make().list(where={"parent": "s"})
    assert sorted(each.id for each in children) == ["child-one", "child-two"]
    with make().open("child-two", read_only=True) as child:
        assert [record.status for record in child.runs] == ["failed"]


@each_store
def test_c60_a_hand_off_has_its_result_and_the_next_prompt_goes_to_the_other(make: MakeStore) -> None:
    """One transcript, two agents: who is active is a value of the session, so it survives a restart; the hand-off and
    the call beside it have their results."""

    def agents(session: Session, *steps: object) -> dict[str, Agent]:
        @tool
        def hand_off() -> str:
            """Hands the customer over to billing."""
            session.set("active_agent", "billing")
            return "handed over"

        @tool
        def note() -> str:
            """Takes a note."""
            return "noted"

        model = ScriptedModel(list(steps))  # type: ignore[arg-type]
        return {
            "desk": Agent(model, name="desk", tools=[hand_off, note], transcript=session),
            "billing": Agent(model, name="billing", tools=[note], transcript=session),
        }

    with make().create("s", metadata={"active_agent": "desk"}) as session:
        desk = agents(session, call("hand_off") + call("note"), say("Billing will help you."))
        desk[session.get("active_agent")].run("My bill is wrong.")
        assert check_messages(session.messages) == []
    with make().open("s") as session:
        billing = agents(session, say("Let me see."))
        assert billing[session.get("active_agent")].run("Hello?").text == "Let me see."
        assert [record.agent for record in session.runs] == ["desk", "billing"]


@each_store
def test_c60_work_in_steps_goes_on_at_the_step_that_was_not_done(make: MakeStore) -> None:
    """Three steps, each a message with an id of its own: after a crash behind the second, the first two cost nothing,
    and a step whose record cannot be kept is a run that failed."""
    steps = [UserMessage(f"Do step {number}.", id=f"step-{number}") for number in (1, 2, 3)]

    def work(session: Session, *script: object) -> list[str]:
        agent = Agent(ScriptedModel(list(script)), transcript=session)  # type: ignore[arg-type]
        return [agent.run(step).text for step in steps]

    session = make().create("s")
    with pytest.raises(RunFailed):
        work(session, say("one"), say("two"), Raise(ValueError("the lights go out")))
    with make().open("s", steal=True) as again:  # the process is gone
        assert work(again, say("three")) == ["one", "two", "three"]
        assert [message.id for message in again.messages if isinstance(message, UserMessage)] == [
            "step-1", "step-2", "step-3",
        ]  # fmt: skip
    session.close()
