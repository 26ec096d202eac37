"""Fixtures for pytest: `pytest_plugins = ["gotato_testkit.fixtures"]` in the conftest.py at the root of the tests.

def test_it_finds_a_row(scripted, event_recorder):
    agent = scripted([call("find", id=7), say("Found.")], tools=[find])
    assert agent.run("Find row 7.").text == "Found."
    assert event_recorder.kinds[-1] == "agent_end"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pytest

from gotato_py import Agent

from .clocks import ManualClock, SequentialIds
from .fakes import EventRecorder
from .scripted import ScriptedModel
from .steps import Step


class Scripted(Protocol):
    """What the fixture `scripted` is: a maker of agents."""

    def __call__(self, script: Iterable[Step] | ScriptedModel, **options: Any) -> Agent:  # Any: those of Agent
        """An agent on a script, or on a ScriptedModel whose `requests` matter later; `options` are those of Agent."""
        ...


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that moves by hand, and where something waits; the one of the agents that `scripted` makes."""
    return ManualClock()


@pytest.fixture
def sequential_ids() -> SequentialIds:
    """Ids in order: `run-1`, `message-1`, …; those of the agents that `scripted` makes."""
    return SequentialIds()


@pytest.fixture
def event_recorder() -> EventRecorder:
    """Keeps the events of the agents that `scripted` makes, and of those that have it among their extensions."""
    return EventRecorder()


@pytest.fixture
def scripted(
    manual_clock: ManualClock, sequential_ids: SequentialIds, event_recorder: EventRecorder
) -> Iterator[Scripted]:
    """Makes agents whose runs are the same each time: on a script, with the clock, ids and recorder of the test.

    They are closed at the end of the test.
    """
    made: list[Agent] = []

    def make(script: Iterable[Step] | ScriptedModel, **options: Any) -> Agent:
        model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
        extensions = [event_recorder, *options.pop("extensions", ())]
        given: dict[str, Any] = {"clock": manual_clock, "ids": sequential_ids, **options}
        made.append(Agent(model, extensions=extensions, **given))
        return made[-1]

    yield make
    for agent in made:
        agent.close()
