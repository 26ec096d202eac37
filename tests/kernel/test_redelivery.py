"""A message that comes twice, as a task queue delivers it."""

from __future__ import annotations

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    ConnectionFailed,
    InvalidArgument,
    InvalidState,
    MemoryTranscript,
    Message,
    RetryPolicy,
    RunStatus,
    UserMessage,
)
from gotato_testkit import EventRecorder, Raise, ScriptedModel, call, outline, say

TASK = UserMessage("hi", id="task-1")


def lookup() -> str:
    """Looks something up."""
    return "found"


def test_an_answered_message_gets_its_answer() -> None:
    """The answer that is there is returned, completed, without a model call, a commit or a turn."""
    model, events = ScriptedModel([call("lookup"), say("It is there.")]), EventRecorder()
    agent = Agent(model, tools=[lookup], extensions=[events])
    first = agent.run(TASK)
    before = len(events.events)
    again = agent.run(TASK)
    assert (again.status, again.text, again.message) == (RunStatus.COMPLETED, "It is there.", first.message)
    assert (again.new_messages, again.metrics.turns, len(model.requests)) == ((), 0, 2)
    assert [event.kind for event in events.events[before:]] == ["agent_start", "agent_end"]


def test_an_earlier_message_gets_its_own_answer() -> None:
    """Messages that came since do not matter: each id has its own answer."""
    agent = Agent(ScriptedModel([say("first"), say("second")]))
    agent.run(TASK)
    agent.run(UserMessage("and?", id="task-2"))
    assert agent.run(TASK).text == "first"
    assert agent.run(UserMessage("and?", id="task-2")).text == "second"


def test_an_unanswered_message_goes_on() -> None:
    """A run that failed is taken up where it stopped; the message is not committed again."""
    model = ScriptedModel([call("lookup"), Raise(ConnectionFailed("gone")), say("It is there.")])
    agent = Agent(model, tools=[lookup], retry=RetryPolicy(max_attempts=1))
    assert agent.run(TASK, check=False).status == "failed"
    again = agent.run(TASK)
    assert again.text == "It is there."
    assert [line.split(":")[0] for line in outline(agent.transcript.messages)] == [
        "user",
        "assistant",
        "tool lookup",
        "assistant",
    ]


def test_an_interrupted_answer_is_no_answer() -> None:
    """An answer that ended cancelled is gone on from, not returned."""
    history: list[Message] = [TASK, AssistantMessage("It is", stop_reason="cancelled", id="m-1")]
    agent = Agent(ScriptedModel([say(" there.")]), transcript=MemoryTranscript(history))
    assert agent.run(TASK).text == " there."


def test_a_message_that_was_passed_over() -> None:
    """A message that was left without an answer before others came cannot be gone on from: that is said."""
    history: list[Message] = [TASK, UserMessage("never mind", id="task-2"), AssistantMessage("Fine.", id="m-1")]
    agent = Agent(ScriptedModel([]), transcript=MemoryTranscript(history))
    with pytest.raises(InvalidState, match="gone on since"):
        agent.run(TASK)
    assert agent.status == "idle"


def test_an_id_of_another_kind() -> None:
    """A user message cannot have the id of an answer."""
    history: list[Message] = [TASK, AssistantMessage("Fine.", id="m-1")]
    agent = Agent(ScriptedModel([]), transcript=MemoryTranscript(history))
    with pytest.raises(InvalidArgument, match="id"):
        agent.run(UserMessage("hi", id="m-1"))
