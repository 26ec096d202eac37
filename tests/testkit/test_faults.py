"""Fault plans, and the tool and the transcript that follow them."""

from __future__ import annotations

import threading

import pytest

from gotato_py import (
    Agent,
    Compaction,
    InvalidArgument,
    MemoryTranscript,
    RunRecord,
    StoreFailure,
    ToolContext,
    Usage,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import FakeTool, Fault, FaultPlan, FaultyTool, FaultyTranscript, ScriptedModel, call, say

FULL = OSError(28, "No space left on device")


def test_a_plan_says_what_fails_when() -> None:
    """A plan is a function of operation and number; the first fault for a call counts."""
    first, second = KeyError("a"), KeyError("b")
    plan = FaultPlan([Fault("append", 2, first), Fault("append", 2, second), Fault("mark_started", 1, second)])
    assert [plan("append", number) for number in (1, 2, 3)] == [None, first, None]
    assert (plan("mark_started", 1), plan("end_run", 1)) == (second, None)
    assert repr(FaultPlan([Fault("append", 2, first)])) == "FaultPlan([Fault('append', 2, KeyError('a'))])"
    assert FaultPlan().faults == ()


def test_a_fault_that_cannot_be_is_refused() -> None:
    """Numbers count from 1, and what is raised is an exception."""
    with pytest.raises(InvalidArgument, match="counts from 1"):
        Fault("append", 0, FULL)
    with pytest.raises(InvalidArgument, match="must be an exception, not str"):
        Fault("append", 1, "full")  # type: ignore[arg-type]  # that is what is tested


def test_a_tool_fails_before_or_after_its_effect() -> None:
    """At "execute" nothing was done, at "executed" everything; what is raised is told to the model."""
    inner = FakeTool("pay", "paid")
    faults = [Fault("execute", 1, KeyError("k")), Fault("executed", 1, TimeoutError("late"))]
    tool = FaultyTool(inner, FaultPlan(faults))
    agent = Agent(ScriptedModel([call("pay") + call("pay") + call("pay"), say("Done.")]), tools=[tool])
    agent.run("Pay.")
    told = [message.text for message in agent.transcript.messages if message.role == "tool"]
    assert told == ["The tool ran and failed: KeyError: 'k'", "The tool ran and failed: TimeoutError: late", "paid"]
    assert len(inner.uses) == 2
    assert tool.spec is inner.spec
    assert repr(tool) == "FaultyTool(FakeTool('pay', used 2×))"


def test_a_transcript_fails_before_anything_has_changed() -> None:
    """Each operation fails at its number, keeps nothing then, and works the next time."""
    kept = MemoryTranscript()
    operations = ("append", "mark_started", "mark_waiting", "replace", "begin_run")
    transcript = FaultyTranscript(kept, FaultPlan(Fault(operation, 1, FULL) for operation in operations))
    message, waiting = UserMessage("one", id="u"), [WaitingCall("a:0")]
    for operation in (
        lambda: transcript.append(message),
        lambda: transcript.mark_started("a:0"),
        lambda: transcript.mark_waiting(waiting),
        lambda: transcript.replace(Compaction(UserMessage("so far"), "u")),
        lambda: transcript.begin_run("r"),
    ):
        before = (list(transcript.messages), set(transcript.started), list(transcript.waiting))
        with pytest.raises(OSError, match="No space"):
            operation()
        assert (list(transcript.messages), set(transcript.started), list(transcript.waiting)) == before
        operation()
    transcript.end_run(RunRecord("r", "a", "completed", "", 0.0, 0.0, 0, 0, Usage()))
    assert transcript.messages == kept.messages
    assert [each.text for each in transcript.messages] == ["so far"]
    assert transcript.compactions == kept.compactions
    assert repr(transcript) == "FaultyTranscript(MemoryTranscript(1 messages))"


def test_optional_members_are_those_of_the_transcript() -> None:
    """What the transcript does not have is not there either."""

    class Plain:
        """A transcript without optional members."""

        def __init__(self) -> None:
            kept = MemoryTranscript()
            self.messages, self.started, self.waiting = kept.messages, kept.started, kept.waiting
            self.append, self.mark_started, self.mark_waiting = kept.append, kept.mark_started, kept.mark_waiting

    assert not hasattr(FaultyTranscript(Plain(), FaultPlan()), "replace")


def test_any_function_is_a_plan() -> None:
    """`fail` is asked before each operation; here the disk is full from the second append on, and the run says so."""

    def fail(operation: str, number: int) -> OSError | None:
        return FULL if operation == "append" and number > 1 else None

    transcript = FaultyTranscript(MemoryTranscript(), fail)
    result = Agent(ScriptedModel([say("a")]), transcript=transcript).run("Hi", check=False)
    assert isinstance(result.error, StoreFailure)
    assert len(transcript.messages) == 1


def test_threads_count_together() -> None:
    """One number is one call, whichever thread makes it."""
    seen: list[int] = []

    def count(operation: str, number: int) -> None:
        if operation == "execute":
            seen.append(number)

    tool = FaultyTool(FakeTool("t"), count)
    threads = [threading.Thread(target=lambda: [tool.execute(ToolContext("t")) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 801))
