"""Sessions that change hands: nothing that a run has read before it had the session counts, and no run that was left
behind holds one up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from gotato_py import (
    Agent,
    Approve,
    Ask,
    Busy,
    Deny,
    Hooks,
    InvalidArgument,
    NotFound,
    Pending,
    RunStatus,
    RunStream,
    TextDelta,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    UserMessage,
    check_messages,
)
from gotato_session import Session
from gotato_testkit import Do, FakeTool, ScriptedModel, call, say

from ..kernel.interrupts import LineInterrupt
from ..kernel.test_case_taken_over import Mirrored
from .steps import AtStep


class Between(Session):
    """A session where something happens, once, between what a run reads and what it takes."""

    happens: Callable[[], object] | None = None

    def begin_run(self, run_id: str) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        super().begin_run(run_id)


def pay() -> str:
    """Pays."""
    return "paid"


def agent_on(session: Session, *steps: Any, **options: Any) -> Agent:
    """An agent on the session."""
    return Agent(ScriptedModel(list(steps) or [say("Fine.")]), transcript=session, **options)


def test_a_task_that_is_delivered_twice_at_once() -> None:
    """Of two workers that get the same task one does it, and the other has its answer."""
    session = Between()
    first, late = (agent_on(session, call("pay"), say("Paid."), tools=[pay]) for _ in range(2))
    task = UserMessage("pay", id="task-1")
    session.happens = partial(first.run, task)
    result = late.run(task)
    assert (result.text, len(result.new_messages), len(session.messages)) == ("Paid.", 0, 4)
    assert session.begin_run("free") is None  # type: ignore[func-returns-value]  # it raises nothing


def test_a_late_answer_is_refused() -> None:
    """The second of two answers is refused: only the record of the run is kept of it, and the session is free."""
    session = Between()
    gate = Hooks(before_tool=lambda use: Ask("pay?"))
    (waiting,) = agent_on(session, call("pay"), tools=[pay], extensions=[gate]).run("pay").waiting
    first, late = (agent_on(session, say("Paid."), tools=[pay], extensions=[gate]) for _ in range(2))
    session.happens = partial(first.run, answers={waiting.key: Approve()})
    with pytest.raises(InvalidArgument, match="no call of this agent waits"):
        late.run(answers={waiting.key: Deny("no")})
    assert [run.status for run in session.runs] == ["waiting", "completed", "failed"]
    assert session.messages[-1].text == "Paid."
    assert agent_on(session).run("next").ok


def test_answers_that_come_again() -> None:
    """The same answers, delivered again when the first of the calls has been started and cut off, go on with the
    others: nothing is paid twice."""
    session, paid = Session(), []

    def settle() -> str:
        """Pays."""
        paid.append(1)
        return "paid"

    gate = Hooks(before_tool=lambda use: Ask("pay?"))
    agents = [agent_on(session, *steps, tools=[settle], extensions=[gate]) for steps in (
        [call("settle") + call("settle")], [say("never")], [say("Paid one.")],
    )]  # fmt: skip
    answers = {record.key: Approve() for record in agents[0].run("pay").waiting}
    streams = [agents[1].stream(answers=answers)]
    while next(streams[0]).kind != "tool_execution_start":
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    assert agents[2].run(answers=answers).text == "Paid one."
    assert paid == [1]
    assert check_messages(session.messages) == []


def dropped_in_a_call(session: Session) -> Agent:
    """An agent whose stream was dropped when it had asked for a tool."""
    agent = agent_on(session, call("pay"), say("Paid."), tools=[pay])
    streams = [agent.stream("pay")]
    while next(streams[0]).kind != "message_end":
        pass
    while next(streams[0]).kind != "message_end":
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    return agent


def test_a_dropped_stream_holds_up_no_other_agent() -> None:
    """The next run closes what it left open, whether its agent is there still or not; that agent then writes nothing
    between the other's messages, and runs on."""
    session = Session()
    agent = dropped_in_a_call(session)

    def meanwhile() -> str:
        """Uses the agent that was dropped."""
        assert agent.wait_idle(10)
        with pytest.raises(Busy):
            agent.run("me too")
        return "refused"

    other = agent_on(session, call("meanwhile"), say("Done."), tools=[meanwhile])
    assert other.run("go").text == "Done."
    assert check_messages(session.messages) == []
    assert [message.text for message in session.messages if message.role == "user"] == ["pay", "go"]
    assert agent.run("again").text == "Paid."
    dropped_in_a_call(session)
    assert agent_on(session).run("next").ok
    assert check_messages(session.messages) == []
    assert [run.status for run in session.runs] == ["cancelled", "completed", "completed", "completed"]


def test_a_dropped_stream_is_closed_by_its_own_agent() -> None:
    """Where no other has come, its agent's next entry closes the call and records the run."""
    session = Session()
    agent = dropped_in_a_call(session)
    assert agent.wait_idle(10)
    assert [run.status for run in session.runs] == ["cancelled"]
    assert session.messages[-1].role == "tool"
    assert agent.run("again").text == "Paid."


def test_a_branch_after_a_dropped_stream() -> None:
    """A branch takes the session from a run that was left behind; while one goes on it is busy."""
    session = Session()
    agent = dropped_in_a_call(session)
    session.branch("")
    assert len(session.messages) == 0
    assert agent.wait_idle(10)
    assert len(session.messages) == 0
    with agent.stream("again", check=False), pytest.raises(Busy):
        session.branch("")
    assert agent_on(session).run("next").ok


def test_a_branch_to_nowhere_takes_nothing() -> None:
    """A place that is not there is named before a run that was left behind loses the session."""
    session = Session()
    agent = agent_on(session, [TextDelta("One"), *say(" two.")])
    streams = [agent.stream("count")]
    while next(streams[0]).kind != "message_update":
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    with pytest.raises(NotFound):
        session.branch("nowhere")
    with pytest.raises(InvalidArgument, match=r"^Session\.branch: entry_id must be a str"):
        session.branch(None)  # type: ignore[arg-type]
    assert agent.wait_idle(10)
    assert session.messages[-1].text == "One"


def test_threads_may_branch_at_once() -> None:
    """They take turns: none is `Busy`, since no run is in their way."""
    session = Session()
    agent_on(session, say("Hello.")).run("hi")
    places = [message.id for message in session.messages]
    together, failed = threading.Barrier(4), []

    def branch() -> None:
        together.wait()
        for at in range(50):
            try:
                session.branch(places[at % 2])
            except Busy as error:
                failed.append(error)

    threads = [threading.Thread(target=branch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert agent_on(session).run("next").ok


def test_a_run_that_begins_in_the_middle_of_a_branch() -> None:
    """Whatever the step, a run begins before a branch, which is then refused, or behind it: it loses no result."""
    number, began = 0, 0
    while True:
        number += 1
        session = Session()
        agent_on(session, say("Hello.")).run("hi")
        stream = agent_on(session, call("pay"), say("Paid."), tools=[pay]).stream("pay", check=False)

        def begin(stream: RunStream[None] = stream) -> None:
            with suppress(Busy):
                while next(stream).kind != "tool_execution_start":
                    pass

        step = AtStep(number, begin)
        with suppress(Busy):
            step(partial(session.branch, ""))
        if step.steps < number:
            break
        with suppress(Busy):
            assert stream.result.text == "Paid."
            began += 1
        assert check_messages(session.messages) == []
        assert agent_on(session).run("next").ok
    assert 0 < began < number


def test_one_hold_for_a_session_and_a_copy_of_it() -> None:
    """A transcript that mirrors its runs into a session has both, and leaves both."""

    transcript = Mirrored(Session())
    for _ in range(2):
        assert Agent(ScriptedModel([say("Hi.")]), transcript=transcript).run("hi").ok
    transcript.mirror.branch("")
    assert agent_on(transcript.mirror).run("hi").ok


def test_a_completion_in_the_middle_of_a_branch() -> None:
    """What came of a pending call is told whenever it comes while a branch is made."""
    number = 0
    while True:
        number += 1
        session = Session()
        agent_on(session, call("order"), say("Ordered."), tools=[FakeTool("order", Pending("soon"))]).run("order")
        (key,) = (message.result.key for message in session.messages if isinstance(message, ToolMessage))
        step = AtStep(number, partial(session.complete_call, key, ToolResult("", ToolResultStatus.OK)))
        step(partial(session.branch, session.messages[-1].id))
        if step.steps < number:
            break
        assert session.messages[-1].role == "user"


def test_ctrl_c_after_a_run_was_recorded_ends_no_other() -> None:
    """A run that was cut off between its record and its end closes nothing any more: calls that are open by then are
    another run's, and their results count."""
    number = 0
    while True:
        number += 1
        session = Session()
        first = agent_on(session, say("One."))
        line = LineInterrupt(number, lines_of="_closing.py")
        line(partial(first.run, "hi"))
        if not line.where:
            break
        look_after = FakeTool("work", Do(partial(first.wait_idle, 10)))
        other = agent_on(session, call("work"), say("Done."), tools=[look_after])
        result = other.run("go")
        assert (result.status, result.text) == (RunStatus.COMPLETED, "Done.")
        told = [message.result.status for message in session.messages if message.role == "tool"]
        assert told == [ToolResultStatus.OK]
    assert number > 20
