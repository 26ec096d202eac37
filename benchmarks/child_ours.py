"""gotato-py's side of what is measured in a process of its own."""

from __future__ import annotations

from benchmarks.child import measure
from benchmarks.ours import LOOKUP, OurModel, our_agent
from benchmarks.work import FINAL, Script

from gotato_py import Agent


def _finished(rounds: int) -> object:
    agent = our_agent(rounds)
    result = agent.run("go")
    if result.text != FINAL:
        raise AssertionError(result.text)
    return agent


def ours(task: str) -> float:
    """Does one task with agents of gotato-py."""
    model = OurModel(Script(1))
    return measure(task, lambda: Agent(model, tools=[LOOKUP]), _finished)
