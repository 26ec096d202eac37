"""The fake tool and the event recorder."""

import json
import threading
import time

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    AgentStart,
    Cancelled,
    ConnectionFailed,
    InvalidArgument,
    MessageUpdate,
    Scope,
    TextDelta,
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
    assert fake.arguments == [{"a": 1}, {"a": 3}]
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


def test_the_text_is_what_was_streamed() -> None:
    """`text` joins the pieces, without those of an answer that was taken back."""
    recorder = EventRecorder()
    script = [
        [TextDelta("Hel"), Raise(ConnectionFailed("cut off"))],
        call("t") + say("One "),
        say("two."),
        say("Three."),
    ]
    agent = Agent(ScriptedModel(script), tools=[FakeTool("t")], extensions=[recorder], clock=ManualClock())
    agent.run("Hi")
    assert recorder.text == "One two."
    agent.run("Hi again")
    assert recorder.text == "One two.Three."
    recorder.clear()
    assert (recorder.text, recorder.events) == ("", [])


def test_text_that_is_on_its_way_counts() -> None:
    """In the middle of an answer `text` is what has come so far."""
    recorder = EventRecorder()
    seen: list[str] = []
    script = [[TextDelta("a"), Do(lambda: seen.append(recorder.text)), *say("b")]]
    Agent(ScriptedModel(script), extensions=[recorder]).run("Hi")
    assert seen == ["a"]


def test_another_thread_can_wait_for_an_event() -> None:
    """`wait_for` returns the event when it is there, be it sooner or later, and counts."""
    recorder = EventRecorder()
    scope = Scope()
    agent = Agent(ScriptedModel([call("t") + call("t"), [Stall()]]), tools=[FakeTool("t")], extensions=[recorder])
    run = threading.Thread(target=lambda: agent.run("Hi", scope=scope, check=False))
    run.start()
    second = recorder.wait_for(ToolExecutionEnd, count=2)
    assert second is recorder.of(ToolExecutionEnd)[1]
    assert recorder.wait_for(AgentStart) is recorder.events[0]
    scope.cancel()
    run.join()
    assert recorder.wait_for(AgentEnd).status == "cancelled"


def test_waiting_for_an_event_is_bounded() -> None:
    """An event that does not come is said to be missing after `timeout`, with those that did."""
    recorder = EventRecorder()
    with pytest.raises(TimeoutError, match=r"0 of 1 AgentEnd after 0\.01 s; the events: none"):
        recorder.wait_for(AgentEnd, timeout=0.01)
    Agent(ScriptedModel([say("a")]), extensions=[recorder]).run("Hi")
    with pytest.raises(TimeoutError, match="1 of 2 AgentEnd after 0 s; the events: agent_start, "):
        recorder.wait_for(AgentEnd, count=2, timeout=0)


def test_an_event_wakes_whoever_waits_for_it() -> None:
    """A thread that waits already is woken by the event."""
    recorder = EventRecorder()
    found: list[AgentEnd] = []
    waiter = threading.Thread(target=lambda: found.append(recorder.wait_for(AgentEnd, timeout=60)))

    def it_waits() -> None:
        while not recorder._wakeups:
            time.sleep(0.001)

    agent = Agent(ScriptedModel([[Do(waiter.start), Do(it_waits), *say("a")]]), extensions=[recorder])
    agent.run("Hi")
    began = time.monotonic()
    waiter.join()
    assert time.monotonic() - began < 30  # by the event, and not by its own last look after a minute
    assert found == recorder.of(AgentEnd)
