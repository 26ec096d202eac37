"""A session as the transcript of agents: runs, waiting, compaction, Ctrl-C, and two agents on one session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    Busy,
    Compaction,
    Deny,
    Hooks,
    InvalidState,
    RunStatus,
    ToolContext,
    ToolMessage,
    TurnView,
    UserMessage,
    check_messages,
)
from gotato_session import Session, record
from gotato_testkit import Do, FakeTool, ManualClock, Raise, ScriptedModel, Step, call, say

from .steps import AtStep, interrupt


def test_a_session_records_runs_and_their_usage() -> None:
    """Messages, marks, the record of each run and the sum of their tokens are there after it."""
    session, look = Session(), FakeTool("look", "seen")
    agent = Agent(
        ScriptedModel([call("look"), say("Done."), say("Again.")]), tools=[look], transcript=session, name="bob"
    )
    first = agent.run("Look.")
    second = agent.run("Once more.")
    roles = [message.role for message in session.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert set(session.started) == {look.uses[0].key}
    assert [(each.run_id, each.agent, each.status, each.turns) for each in session.runs] == [
        (first.run_id, "bob", "completed", 2),
        (second.run_id, "bob", "completed", 1),
    ]
    assert session.usage == first.usage + second.usage
    assert session.check() == []


def test_a_new_agent_goes_on_where_another_stopped() -> None:
    """The session carries the conversation; a message that came before is answered without a model call."""
    session = Session()
    Agent(ScriptedModel([say("One.")]), transcript=session).run(UserMessage("First.", id="u1"))
    model = ScriptedModel([say("Two.")])
    agent = Agent(model, transcript=session)
    assert agent.run(UserMessage("First.", id="u1")).text == "One."
    assert agent.run("Second.").text == "Two."
    assert len(model.requests) == 1
    assert len(model.requests[0].messages) == 3
    assert [each.status for each in session.runs] == ["completed"] * 3


def test_a_failed_run_is_recorded_with_its_error() -> None:
    """The record says how the run ended, and the next run works."""
    session = Session()
    agent = Agent(ScriptedModel([Raise(ValueError("broken")), say("Fine.")]), transcript=session)
    result = agent.run("Go.", check=False)
    assert result.error is not None
    assert [(each.status, each.error) for each in session.runs] == [("failed", result.error.code.value)]
    assert agent.run("Again.").text == "Fine."


# ---- two agents


def test_a_second_agent_gets_busy() -> None:
    """While a run has the session, a run of another agent is refused, names the first, and commits nothing."""
    clock = ManualClock(unix=50.0)
    session = Session(clock=clock)
    other = Agent(ScriptedModel([say("no")]), transcript=session)
    caught: list[Busy] = []

    def nested() -> str:
        """Runs the other agent on the same session."""
        with pytest.raises(Busy) as error:
            other.run("Me too.")
        caught.append(error.value)
        return "refused"

    result = Agent(ScriptedModel([call("nested"), say("Done.")]), tools=[nested], transcript=session, clock=clock).run(
        "Go."
    )
    assert [(error.run_id, error.since) for error in caught] == [(result.run_id, 50.0)]
    assert [each.run_id for each in session.runs] == [result.run_id]
    assert [message.text for message in session.messages if message.role == "user"] == ["Go."]
    assert other.run("Now.").text == "no"


def test_agents_in_threads_take_turns() -> None:
    """Of runs that begin at once one has the session; each of the others gets Busy or its turn."""
    session = Session()
    done: list[str] = []
    refused: list[str] = []
    begin = threading.Barrier(4)

    def work(name: str) -> None:
        agent = Agent(ScriptedModel([call("look"), say(name)]), tools=[FakeTool("look", name)], transcript=session)
        begin.wait()
        try:
            done.append(agent.run(name).text)
        except Busy:
            refused.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done + refused) == ["a", "b", "c", "d"]
    assert done
    assert len(session.runs) == len(done)
    assert check_messages(session.history) == []


def test_a_session_closed_under_a_run_fails_it() -> None:
    """What was committed before stays; the run fails at its next commit and says why."""
    session = Session()
    model = ScriptedModel([[Do(session.close), *say("Too late.")]])
    result = Agent(model, transcript=session).run("Go.", check=False)
    assert result.status == RunStatus.FAILED
    assert isinstance(result.error, InvalidState)
    assert [message.text for message in session.messages] == ["Go."]


# ---- waiting


def ask_before_paying(use: ToolContext[Any]) -> Allow | Ask:
    """A gate: a person decides about payments."""
    return Ask(f"Pay {use.arguments['sum']}?") if use.name == "pay" else Allow()


class Desk:
    """A session whose agents ask before they pay; each agent is a new one, as after a restart."""

    def __init__(self, *steps: Step) -> None:
        self.session = Session()
        self.read, self.pay = FakeTool("read", "read"), FakeTool("pay", "paid")
        self.model = ScriptedModel(steps)

    def agent(self) -> Agent:
        """A new agent on the session."""
        gate = Hooks(before_tool=ask_before_paying)
        return Agent(self.model, tools=[self.read, self.pay], transcript=self.session, extensions=[gate, self.session])


def test_a_run_waits_in_the_session() -> None:
    """The question is kept, another agent answers it, and the call runs once with the arguments that were shown."""
    desk = Desk(call("read") + call("pay", sum=5), say("Paid."))
    result = desk.agent().run("Pay.")
    assert (result.status, len(desk.pay.uses)) == (RunStatus.WAITING, 0)
    (waiting,) = desk.session.waiting
    assert (waiting.name, waiting.arguments, waiting.question, waiting.decision) == ("pay", {"sum": 5}, "Pay 5?", None)
    assert desk.session.check() == []
    assert [each.status for each in desk.session.runs] == ["waiting"]
    later = desk.agent()
    assert later.status == "waiting"
    assert later.run(answers={waiting.key: Approve()}).text == "Paid."
    assert [dict(use.arguments) for use in desk.pay.uses] == [{"sum": 5}]
    assert len(desk.read.uses) == 1
    assert desk.session.check() == []
    assert (later.status, [each.status for each in desk.session.runs]) == ("idle", ["waiting", "completed"])


def test_a_call_that_is_denied_is_not_run() -> None:
    """The model is told why, and the session has the result."""
    desk = Desk(call("pay", sum=5), say("I see."))
    (waiting,) = desk.agent().run("Pay.").waiting
    assert desk.agent().run(answers={waiting.key: Deny("too much")}).text == "I see."
    assert desk.pay.uses == []
    (message,) = [message for message in desk.session.messages if isinstance(message, ToolMessage)]
    assert (message.result.status, "too much" in message.text) == ("blocked", True)


def test_a_new_message_supersedes_what_waits() -> None:
    """What waited is closed before the message is committed, and nothing waits any more."""
    desk = Desk(call("pay", sum=5), say("Forgotten."))
    desk.agent().run("Pay.")
    assert desk.agent().run("Forget it.").text == "Forgotten."
    assert (desk.pay.uses, desk.session.waiting, desk.session.check()) == ([], (), [])
    assert [message.role for message in desk.session.messages] == ["user", "assistant", "tool", "user", "assistant"]


# ---- compaction


def test_a_run_compacts_the_session() -> None:
    """The next request begins with the summary; `history` and the runs know everything."""
    session = Session()
    for number in range(3):
        Agent(ScriptedModel([say(f"{number}.")]), transcript=session).run(UserMessage("Count.", id=f"u{number}"))

    def shorten(view: TurnView) -> None:
        if not session.compactions:
            through = view.messages[3].id
            assert session.replace(Compaction(UserMessage("0, 1."), through, reason="test"))

    model = ScriptedModel([call("look"), say("3.")])
    agent = Agent(model, tools=[FakeTool("look")], transcript=session, extensions=[Hooks(before_turn=shorten), session])
    agent.run("Go on.")
    assert [request.messages[0].text for request in model.requests] == ["0, 1."] * 2
    assert len(session.history) == 10
    assert len(session.messages) == 7
    assert session.check() == check_messages(session.history) == []
    assert "session_compacted" in [event["kind"] for event in session.events]
    assert agent.run(UserMessage("Count.", id="u2")).text == "2."


# ---- Ctrl-C


def test_an_interrupt_at_any_line_of_the_session_leaves_it_usable() -> None:
    """Wherever in the session's own code it comes, the run is closed, no call is repeated, and the next run works."""

    def play(happen_at: int) -> AtStep:
        session = Session()
        events = record(session, kinds=["tool_execution_start", "agent_end"])
        pay = FakeTool("pay", "paid")
        model = ScriptedModel([call("pay", sum=1) + call("pay", sum=2), say("Paid."), say("Spare."), say("Spare.")])
        agent = Agent(model, tools=[pay], transcript=session, extensions=[events])
        at = AtStep(happen_at, interrupt)
        try:
            at(lambda: agent.run("Pay."))
        except KeyboardInterrupt:
            assert at.steps >= happen_at
        assert agent.run("And now?").text in {"Paid.", "Spare."}, f"step {happen_at}"
        assert session.check() == [], f"step {happen_at}"
        assert len({use.key for use in pay.uses}) == len(pay.uses), f"step {happen_at}"
        assert len(session.runs) in {1, 2}, f"step {happen_at}"
        assert Agent(ScriptedModel([say("Free.")]), transcript=session).run("Next.").text == "Free."
        return at

    steps = play(0).steps
    assert steps > 100
    for step in range(1, steps + 1):
        play(step)


def test_an_interrupt_in_a_tool_is_in_the_record() -> None:
    """The call has its result, effect unknown, and the run is recorded as cancelled."""
    session = Session()
    agent = Agent(ScriptedModel([call("pay")]), tools=[FakeTool("pay", Do(interrupt))], transcript=session)
    with pytest.raises(KeyboardInterrupt):
        agent.run("Pay.")
    last = session.messages[-1]
    assert isinstance(last, ToolMessage)
    assert (last.result.status, last.result.executed) == ("cancelled", None)
    assert [(each.status, each.error) for each in session.runs] == [("cancelled", "cancelled")]
    assert session.check() == []
