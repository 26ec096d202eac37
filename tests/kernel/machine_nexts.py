"""The next run works, whatever happened: in another process, and by the same agent."""

from __future__ import annotations

import json

import pytest

import gotato_testkit as kit
from gotato_py import Agent, AgentClosed, Limits, MemoryTranscript, UserMessage, check_messages

from .machine_caller import carry_out, judge
from .machine_words import Plan
from .machine_world import World


def assert_next_run_works(world: World) -> None:
    """Whatever happened, a run in another process completes, and so does one of the same agent, if it may."""
    copied = MemoryTranscript.from_dict(json.loads(world.stored()))
    model = kit.ScriptedModel([kit.say("fine")])
    assert Agent(model, transcript=copied).run("next").text == "fine"
    assert check_messages(copied.messages) == []
    (request,) = model.requests
    assert check_messages(request.messages) == []
    assert isinstance(request.messages[-1], UserMessage)
    assert request.messages[-1].text == "next"


def assert_same_agent_goes_on(world: World) -> None:
    """The agent itself takes the next run; with small limits that may not complete."""
    if world.agent.status == "closed":
        with pytest.raises(AgentClosed):
            world.agent.run("next")
        world.rebuild(world.make)
    default = world.make.limits == Limits() and not world.make.sourced
    outcome = carry_out(world, Plan(), "next")
    judge(world, outcome)
    if default:
        assert world.agent.status == "idle"
        assert outcome.result is not None
        assert outcome.result.text == "fine"
        world.closed = True
