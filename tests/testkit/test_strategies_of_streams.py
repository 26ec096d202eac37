"""The public strategies for what a model streams, and for what fails."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from gotato_py import (
    Agent,
    Done,
    MemoryTranscript,
    ModelError,
    ModelEvent,
    ModelRequest,
    RetryPolicy,
    ToolCallDelta,
    ToolCallReady,
    UserMessage,
    check_messages,
    collect,
)
from gotato_testkit import (
    FakeTool,
    FaultPlan,
    FaultyTool,
    FaultyTranscript,
    ManualClock,
    Raise,
    ScriptedModel,
    Stall,
    Step,
    call,
)
from gotato_testkit import strategies as gst

from .drawing import QUICK, REACH, SIMPLEST

CALLS = st.sampled_from([call("find", id=1), call("find"), call("lose")]).map(lambda answer: answer[0].call)  # type: ignore[union-attr]


@QUICK
@given(gst.answers(calls=CALLS))
def test_answers_are_whole(answer: list[ModelEvent]) -> None:
    """They collect to a message that says something, with the calls that were asked for."""
    message = collect(ScriptedModel([answer]), request(), retry=RetryPolicy(max_attempts=1))
    assert message.text.strip() or message.tool_calls
    assert {each.name for each in message.tool_calls} <= {"find", "lose"}
    assert isinstance(answer[-1], Done)
    for index, event in enumerate(answer):
        if isinstance(event, ToolCallDelta):
            assert any(isinstance(later, ToolCallReady) for later in answer[index:])


def request() -> ModelRequest:
    """A request that any script answers."""
    return ModelRequest("", [UserMessage("Hi")])


@QUICK
@given(gst.cut_answers(), gst.broken_answers(), gst.silent_answers())
def test_other_answers_are_none(cut: list[object], broken: list[object], silent: list[ModelEvent]) -> None:
    """What is cut off or broken ends in a typed error, and what is silent is an empty response."""
    once = RetryPolicy(max_attempts=1)
    for step in (cut, broken):
        with pytest.raises(ModelError):
            collect(ScriptedModel([step]), request(), retry=once)
    result = Agent(ScriptedModel([silent] * 3)).run("Hi", check=False)
    assert result.error is not None
    assert result.error.code == "empty_response"


@QUICK
@given(gst.scripts(calls=CALLS, stalls=True))
def test_scripts_play_to_an_agent(steps: list[Step]) -> None:
    """Whatever a script holds, an agent with a deadline settles, and its history keeps the rules."""
    agent = Agent(ScriptedModel(steps), tools=[FakeTool("find", "found")], clock=ManualClock())
    agent.run("Hi", timeout=60, check=False)
    assert agent.status == "idle"
    assert check_messages(agent.transcript.messages) == []


@pytest.mark.parametrize("kind", ["error", "stall", "cut off by an error", "nothing"])
def test_steps_hold_every_fault(kind: str) -> None:
    """An error, a stall, an answer that is cut off and one that is nothing are among the steps."""

    def wanted(step: Step) -> bool:
        if not isinstance(step, list):
            return kind == "error" and isinstance(step, Raise)
        last = step[-1] if step else None
        return {"stall": Stall, "cut off by an error": Raise, "nothing": type(None)}.get(kind) is type(last)

    assert find(gst.steps(stalls=True), wanted, settings=REACH) is not None


@QUICK
@given(gst.steps(faults=False))
def test_steps_without_faults_are_answers(step: Step) -> None:
    """Nothing fails and nothing stalls unless it is asked for."""
    assert isinstance(step, list)
    assert isinstance(step[-1], Done)


@QUICK
@given(gst.model_events(), gst.model_errors())
def test_single_events_and_errors(event: ModelEvent, error: ModelError) -> None:
    """An event is one, and an error is of a type that the kernel knows."""
    assert isinstance(event, ModelEvent)
    assert type(error) in gst.MODEL_ERRORS


@pytest.mark.parametrize("kind", gst.MODEL_ERRORS)
def test_every_typed_error_is_drawn(kind: type[ModelError]) -> None:
    """No type of error is left out."""
    error = find(gst.model_errors(), lambda error: type(error) is kind, settings=REACH)
    assert str(error)


def test_scripts_shrink_to_the_simplest() -> None:
    """A counterexample is one short answer where any script will do."""
    answer = find(gst.answers(), lambda each: True, settings=SIMPLEST)
    assert find(gst.scripts(), lambda each: True, settings=SIMPLEST) == [answer]
    assert [type(each).__name__ for each in answer] == ["TextDelta", "Done"]


# faults


OPERATIONS = ("append", "mark_started", "end_run", *gst.TOOL_OPERATIONS)


@QUICK
@given(gst.fault_plans(OPERATIONS), gst.scripts(calls=CALLS))
def test_faults_fail_runs_and_nothing_else(plan: FaultPlan, steps: list[Step]) -> None:
    """A run whose transcript and tool fail by plan comes to an end, and says what failed."""
    transcript = FaultyTranscript(MemoryTranscript(), plan)
    tool = FaultyTool(FakeTool("find", "found"), plan)
    agent = Agent(ScriptedModel(steps), tools=[tool], transcript=transcript, clock=ManualClock())
    result = agent.run("Hi", check=False)
    assert result.ok or result.error is not None


def test_plans_shrink_to_no_fault() -> None:
    """The simplest plan has no fault; one that is needed comes early."""
    assert find(gst.fault_plans(), lambda each: True, settings=SIMPLEST).faults == ()
    (fault,) = find(gst.fault_plans(), lambda each: len(each.faults) > 0, settings=SIMPLEST).faults
    assert (fault.operation, fault.number) == ("append", 1)
    (fault,) = find(
        gst.fault_plans(gst.TOOL_OPERATIONS, errors=st.just(KeyError("k"))),
        lambda each: len(each.faults) == 1,
        settings=SIMPLEST,
    ).faults
    assert (fault.operation, repr(fault.error)) == ("execute", "KeyError('k')")
