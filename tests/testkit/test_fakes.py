"""The fake tool and the event recorder."""

import json
import threading

import pytest

from gotato_py import (
    Agent,
    AgentStart,
    Cancelled,
    InvalidArgument,
    MessageUpdate,
    Scope,
    ToolContext,
    ToolEffect,
    ToolExecutionEnd,
)
from gotato_testkit import (
    Do,
    EventRecorder,
    FakeTool,
    ManualClock,
    Raise,
    ScriptedModel,
    SequentialIds,
    Stall,
    Wait,
    call,
    say,
)


def test_values_come_in_order_and_the_last_one_stays() -> None:
    """Each call gets the next value; after the last, that one again; nothing given is an empty text."""
    fake = FakeTool("t", 1, {"a": 2})
    assert [fake.execute(ToolContext("t")) for _ in range(4)] == [1, {"a": 2}, {"a": 2}, {"a": 2}]
    assert FakeTool("t").execute(ToolContext("t")) == ""


def test_raise_is_raised_and_an_exception_is_returned() -> None:
    """`Raise(error)` raises; an exception given as a value is returned like any other."""
    error = ValueError("x")
    fake = FakeTool("t", Raise(error), error)
    with pytest.raises(ValueError, match="x"):
        fake.execute(ToolContext("t"))
    assert fake.execute(ToolContext("t")) is error


def test_do_returns_what_its_function_returns() -> None:
    """`Do(fn)` runs `fn` in the call."""
    assert FakeTool("t", Do(lambda: 41 + 1)).execute(ToolContext("t")) == 42


def test_stall_ends_with_the_scope_of_the_call() -> None:
    """`Stall()` blocks until the call's scope ends, then raises."""
    scope = Scope()
    canceller = threading.Timer(0.03, scope.cancel)
    canceller.start()
    with pytest.raises(Cancelled):
        FakeTool("t", Stall()).execute(ToolContext("t", scope=scope))
    canceller.join()


def test_wait_is_refused() -> None:
    """A `Wait`, which returns nothing, is refused when the tool is made."""
    with pytest.raises(InvalidArgument, match="no Wait"):
        FakeTool("t", Wait(1))


def test_its_spec_is_what_was_asked_for() -> None:
    """Name, schema and effect go into the spec; without a schema any arguments fit."""
    fake = FakeTool("t", schema={"type": "object", "required": ["a"]}, effect="read", description="d", sequential=True)
    assert (fake.spec.name, fake.spec.effect, fake.spec.description) == ("t", ToolEffect.READ, "d")
    assert fake.spec.input_schema["required"] == ["a"]
    assert fake.spec.sequential
    assert FakeTool("t").spec.input_schema == {"type": "object"}


def test_uses_are_recorded_by_a_run() -> None:
    """`.uses` holds the context of every call that reached the tool, in order; an invalid call does not."""
    fake = FakeTool("t", "x", schema={"type": "object", "required": ["a"]})
    script = [call("t", a=1) + call("t", b=2) + call("t", a=3), say("ok")]
    Agent(ScriptedModel(script), tools=[fake]).run("Hi", deps="d")
    assert [(dict(use.arguments), use.index, use.deps) for use in fake.uses] == [({"a": 1}, 0, "d"), ({"a": 3}, 2, "d")]
    assert repr(fake) == "FakeTool('t', used 2×)"


def test_a_recorder_keeps_every_event() -> None:
    """Events, their kinds and those of one class are at hand, in order."""
    recorder = EventRecorder()
    script = [call("t"), say("a b")]
    Agent(ScriptedModel(script), tools=[FakeTool("t")], extensions=[recorder]).run("Hi")
    assert recorder.kinds[0] == "agent_start"
    assert recorder.kinds[-1] == "agent_end"
    assert [event.sequence for event in recorder.events] == list(range(1, len(recorder.events) + 1))
    assert [event.text for event in recorder.of(MessageUpdate)] == ["a ", "b"]
    assert len(recorder.of(AgentStart)) == len(recorder.of(ToolExecutionEnd)) == 1
    assert repr(recorder) == f"EventRecorder({len(recorder.events)} events)"


def test_the_same_script_gives_the_same_lines() -> None:
    """With a manual clock and sequential ids, `to_jsonl` is byte-identical from run to run, one object a line."""

    def lines() -> str:
        recorder = EventRecorder()
        script = [call("t", n=1), say("Hello there.")]
        tools = [FakeTool("t", {"b": 1, "a": {3, 1, 2}})]
        agent = Agent(
            ScriptedModel(script), tools=tools, extensions=[recorder], clock=ManualClock(), ids=SequentialIds()
        )
        agent.run("Hi")
        return recorder.to_jsonl()

    assert lines() == lines()
    assert json.loads(lines().splitlines()[0])["kind"] == "agent_start"
