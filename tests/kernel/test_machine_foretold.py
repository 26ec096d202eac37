"""Runs whose outcome can be foretold, and runs that must come to the same whatever differs between them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gotato_testkit as kit
from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    Block,
    Deny,
    Done,
    Hooks,
    Limits,
    MemoryTranscript,
    StopReason,
    ToolContext,
    ToolMessage,
    message_to_dict,
)

from . import machine_foretold as foretold
from . import machine_laws as laws
from .machine_caller import Outcome, carry_out
from .machine_deeds import INTERRUPTS
from .machine_extensions import ADVISORY, COMMON, MOODS
from .machine_plans import POINTS, any_of, ask, plans, questions
from .machine_words import Fault, Make, Mood, Plan
from .machine_world import World

pytestmark = pytest.mark.timeout(7200 if settings().max_examples > 200 else 240)

# What can be foretold


@given(st.lists(foretold.answers, max_size=6), st.sampled_from(["run", "stream", "text"]))
def test_a_faultless_script_has_its_foretold_outcome(script: list[foretold.Answer], way: str) -> None:
    """Texts, results, status, usage and attempts of a run without faults are what its script says."""
    world = World(Make(Limits(max_repeated_calls=None)))
    plan = Plan([answer.step() for answer in script], way=way)
    outcome = carry_out(world, plan, "do it")
    expected = foretold.foretell(script)
    assert outcome.error is None
    assert outcome.result is not None
    laws.check(world)
    assert foretold.told(world.kept.messages, expected.messages) == expected.messages
    assert (outcome.result.status, outcome.result.text) == (expected.status, expected.text)
    assert outcome.result.usage == expected.usage
    assert sum(entry.kind == "request" for entry in world.log) == expected.requests
    assert sum(entry.kind == "tool" for entry in world.log) == expected.ran == outcome.result.metrics.tool_calls
    assert ("" if outcome.result.error is None else outcome.result.error.code) == expected.error


@given(st.lists(foretold.gated, min_size=1, max_size=4))
def test_a_batch_with_gates_and_people_has_its_foretold_outcome(calls: list[foretold.Gated]) -> None:
    """Who waits after each run, what comes of each call, and what runs, is what the gates and the answers say."""
    asked: Counter[int] = Counter()
    ran: Counter[int] = Counter()

    def act(number: int) -> str:
        """Counts."""
        ran[number] += 1
        return "done"

    def gate(use: ToolContext[Any]) -> Allow | Block | Ask:
        said = calls[use.index].gate
        says = said[min(asked[use.index], len(said) - 1)]
        asked[use.index] += 1
        verdicts: dict[str, Allow | Block | Ask] = {"allow": Allow(), "block": Block("no"), "ask": Ask("may it?")}
        return verdicts[says]

    batch = [ask("act", {"number": index}) for index in range(len(calls))]
    model = kit.ScriptedModel([[*batch, Done(StopReason.TOOL_CALLS)], kit.say("over")])
    transcript = MemoryTranscript()
    rounds, statuses = foretold.foretell_batch(calls)
    answers: dict[str, Approve | Deny] | None = None
    for waits in rounds:
        agent = Agent(model, tools=[act], extensions=[Hooks(before_tool=gate)], transcript=transcript)
        result = agent.run("do it") if answers is None else agent.run(answers=answers)
        keys = [int(call.key.rpartition(":")[2]) for call in result.waiting]
        assert keys == waits
        assert agent.status == ("waiting" if waits else "idle")
        answers = {
            call.key: Approve() if calls[at].approved else Deny("no")
            for at, call in zip(keys, result.waiting, strict=True)
        }
        transcript = MemoryTranscript.from_dict(json.loads(json.dumps(transcript.to_dict())))
    results = [message.result for message in transcript.messages if isinstance(message, ToolMessage)]
    assert [str(result.status) for result in results] == statuses
    assert ran == Counter(index for index, status in enumerate(statuses) if status == "ok")


# What changes nothing

calm_faults = any_of(
    Fault(at, nth + 1, action)
    for at in ("request", "model event", "tool", "hook", "append", "appended", "mark", "marked", "marked waiting")
    for nth in range(8)
    for action in [*INTERRUPTS, "cancel", "thread cancel", "steer", "follow up"]
)
"""Faults at places that are the same whether or not somebody watches."""
calm_makes = st.sampled_from([Make(steady=True), Make(points=POINTS, sourced=True, steady=True)])


def said(world: World, outcome: Outcome) -> tuple[object, ...]:
    """What is in the transcript, and what the caller was told."""
    result = outcome.result
    told = None if result is None else (result.status, result.text, result.stopped_by, len(result.undelivered))
    return [message_to_dict(message) for message in world.kept.messages], type(outcome.error), told


@given(plans, st.lists(calm_faults, max_size=2), calm_makes)
def test_the_same_script_gives_byte_identical_events(plan: Plan, faults: list[Fault], make: Make) -> None:
    """With a manual clock and sequential ids, a script tells the same events twice, to the byte."""
    plan = replace(plan, way="run", faults=faults)
    told = []
    for _ in range(2):
        world = World(make)
        carry_out(world, plan, "do it")
        events = [entry.value.to_dict() for entry in world.log if entry.kind == "event"]
        told.append(json.dumps(events, ensure_ascii=False, allow_nan=False).encode())
    assert told[0] == told[1]


@given(plans, st.lists(calm_faults, max_size=2), calm_makes)
def test_nobody_watching_changes_nothing(plan: Plan, faults: list[Fault], make: Make) -> None:
    """The transcript and the outcome are the same with and without observers, failing ones included."""
    plan = replace(plan, way="run", faults=faults)
    seen = []
    for watched in (True, False):
        world = World(replace(make, watched=watched))
        seen.append(said(world, carry_out(world, plan, "do it")))
    assert seen[0] == seen[1]


OF_THE_RUN = ("raise Cancelled", "raise DeadlineExceeded")
"""Once the scope of a run has ended, whoever raises these has only looked at it: that is no failure."""
failing = any_of(
    Mood(ADVISORY, point, does)
    for point in MOODS
    for does in product([each for each in COMMON if each not in OF_THE_RUN], repeat=2)
)


@given(plans, st.lists(calm_faults, max_size=2), st.lists(failing, min_size=1, max_size=4))
def test_an_advisory_extension_that_fails_changes_nothing(plan: Plan, faults: list[Fault], moods: list[Mood]) -> None:
    """Whatever an advisory extension raises or wrongly returns, at whatever point: the run comes to the same."""
    others = [mood for mood in plan.moods if mood.who != ADVISORY]
    seen = []
    for more in (moods, []):
        world = World(Make(points=(*POINTS, "observe"), sourced=True, steady=True))
        plan = replace(plan, way="run", faults=faults, moods=[*others, *more])
        seen.append(said(world, carry_out(world, plan, "do it")))
    assert seen[0] == seen[1]


@given(questions, plans, st.lists(st.booleans(), min_size=4, max_size=4), st.booleans())
def test_answers_come_to_the_same_in_another_process(asks: Plan, plan: Plan, approved: list[bool], late: bool) -> None:
    """A run that waits goes on in another process, from its transcript as JSON, as it would have in its own."""
    seen = []
    for moves in (False, True):
        make = Make(points=POINTS, sourced=True, steady=True)
        world = World(make)
        carry_out(world, asks, "do it")
        world.clock.advance(6.0 if late else 1.0)
        if moves:
            world.reopen(make)
        answers = {
            call.key: Approve() if yes else Deny("no") for call, yes in zip(world.waiting(), approved, strict=False)
        }
        outcome = carry_out(world, replace(plan, way="run", faults=[]), None, answers)
        laws.check(world)
        seen.append(said(world, outcome))
    assert seen[0] == seen[1]


def test_calls_of_an_answer_that_its_provider_broke_off_never_run() -> None:
    """Calls in an answer whose own end says cancelled, error or content_filter are not run, and the run goes on."""
    for reason in (StopReason.CANCELLED, StopReason.ERROR, StopReason.CONTENT_FILTER):
        world = World()
        world.steps.append([ask("add", {"a": 1, "b": 2}), Done(reason)])
        result = world.agent.run("do it")
        assert (result.text, result.metrics.tool_calls) == ("fine", 0)
        assert [entry for entry in world.log if entry.kind == "tool"] == []
