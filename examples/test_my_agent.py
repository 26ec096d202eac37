"""How an agent is tested: a scripted model, a fake tool, a clock that moves by hand. Run it with pytest."""

from gotato_py import Agent, Clock, Model, ModelRetry, RateLimited, RunStatus, Tool
from gotato_testkit import (
    EventRecorder,
    FakeTool,
    ManualClock,
    Raise,
    ScriptedModel,
    Wait,
    call,
    outline,
    say,
)

INSTRUCTIONS = "Refund only what the customer paid."


def support_agent(model: Model, refund: Tool, clock: Clock | None = None) -> Agent:
    """The code under test: everything that reaches outside is a parameter."""
    return Agent(model, instructions=INSTRUCTIONS, tools=[refund], clock=clock)


def test_a_refund_is_made_once() -> None:
    """The agent calls the tool with the order's number, and tells the customer."""
    model = ScriptedModel([call("refund", order=7), say("You get 20 € back.")])
    refund = FakeTool("refund", {"amount": 20})
    agent = support_agent(model, refund)
    assert agent.run("Order 7 never came.").text == "You get 20 € back."
    assert [dict(use.arguments) for use in refund.uses] == [{"order": 7}]
    assert outline(agent.transcript.messages) == [
        "user: Order 7 never came.",
        "assistant: [refund(order=7) #call_1]",
        'tool refund: ok {"amount": 20}',
        "assistant: You get 20 € back.",
    ]


def test_the_model_is_told_what_failed() -> None:
    """A tool that raises does not end the run; its error is in the next request."""
    model = ScriptedModel([call("refund", order=8), say("That order is unknown.")])
    support_agent(model, FakeTool("refund", Raise(LookupError("no order 8")))).run("Order 8!")
    assert "no order 8" in model.requests[1].messages[-1].text
    assert model.requests[0].system == INSTRUCTIONS


def test_a_rate_limit_costs_no_real_time() -> None:
    """A retry waits by the clock that the test gave."""
    clock, recorder = ManualClock(), EventRecorder()
    model = ScriptedModel([Raise(RateLimited(retry_after=30)), say("Hello!")])
    agent = Agent(model, clock=clock, extensions=[recorder])
    assert agent.run("Hi").text == "Hello!"
    assert clock.monotonic() >= 30
    assert [event.attempt for event in recorder.of(ModelRetry)] == [1]


def test_a_slow_model_meets_the_deadline() -> None:
    """A run that takes too long ends by its deadline, with what there is."""
    model = ScriptedModel([[*say("One moment")[:-1], Wait(120), *say("please.")]])
    result = support_agent(model, FakeTool("refund"), clock=ManualClock()).run("Hi", timeout=60, check=False)
    assert (result.status, result.text) == (RunStatus.DEADLINE_EXCEEDED, "One moment")
