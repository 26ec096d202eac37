"""Every way in which a scripted model can misbehave, each played to an agent."""

import pytest

from gotato_py import Agent, Done, RetryPolicy, TextDelta, ToolCallDelta
from gotato_testkit import Answer, Raise, RaiseOnClose, Return, ScriptedModel, call, say, think

ONCE = RetryPolicy(max_attempts=1)
MISBEHAVIOURS = {
    "no Done": list(say("Done, I dele")[:-1]),
    "nothing at all": [],
    "two Dones": [*say("a"), Done()],
    "an event after Done": [*say("a"), TextDelta("b")],
    "garbage": [TextDelta("a"), {"type": "text"}, Done()],
    "None among the events": [None, Done()],
    "call deltas without the call": [ToolCallDelta(0, "t", '{"a"'), Done()],
    "white space": say("  \n"),
    "an unfinished thought": think("hm", done=False),
    "an unfinished thought and no Done": think("hm", done=False)[:-1],
    "cut by max_tokens": call("t", a=1) + say("", stop_reason="max_tokens"),
    "an error of its own": [TextDelta("a"), Raise(KeyError("x"))],
    "an error in the call": Raise(KeyError("x")),
    "an error after Done": [*say("a"), Raise(ValueError("late"))],
    "a failing close": [*say("a"), RaiseOnClose(OSError("reset"))],
    "no stream": Return(None),
    "a list for a stream": Return(list(say("a"))),
    "a generator": Return(event for event in say("a")),
}


@pytest.mark.parametrize("step", MISBEHAVIOURS.values(), ids=MISBEHAVIOURS)
def test_a_misbehaving_model_never_breaks_the_agent(step: Answer | list[object] | Raise | Return) -> None:
    """Whatever a step does, the run ends as a value, the stream is closed, and the agent takes the next run."""
    model = ScriptedModel([step, step, say("fine")])
    agent = Agent(model, retry=ONCE)
    result = agent.run("Hi", check=False)
    assert model.unclosed == 0
    while len(model.requests) < 3:
        result = agent.run("Again", check=False)
    assert result.text == "fine"
