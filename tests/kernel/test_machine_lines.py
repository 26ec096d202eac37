"""Something happens at one line of the kernel, as by a signal handler or a power cut, whichever line that is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gotato_py
import gotato_testkit as kit
from gotato_py import (
    AgentClosed,
    Approve,
    ContextOverflow,
    Deny,
    Done,
    Limits,
    RateLimited,
    ReasoningDelta,
    ReasoningDone,
    RunStatus,
    StopReason,
    TextDelta,
    Usage,
)

from . import machine_laws as laws
from .machine_caller import Outcome, carry_out, judge
from .machine_nexts import assert_next_run_works, assert_same_agent_goes_on
from .machine_plans import POINTS, ask
from .machine_words import Fault, Make, Mood, Plan
from .machine_world import World

DEEP = settings().max_examples > 200
pytestmark = pytest.mark.timeout(14_400 if DEEP else 240)
KERNEL = str(Path(gotato_py.__file__).parent)
CALLS = Done(StopReason.TOOL_CALLS)


class AtLine:
    """A trace function that does something at the n-th line that the kernel executes, as a signal handler would."""

    def __init__(self, world: World, nth: int, deed: Callable[[], object]) -> None:
        self.count, self._world, self._nth, self._deed = 0, world, nth, deed
        self.where = ""

    def __call__(self, frame: FrameType, event: str, argument: object) -> AtLine | None:
        if not frame.f_code.co_filename.startswith(KERNEL):
            return None
        if event == "line" and not self._world.noting:
            self.count += 1
            if self.count == self._nth:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                self._deed()
        return self


@contextmanager
def traced(tracer: AtLine) -> Generator[None]:
    """Traces this thread. The collector rests: what is raised in its finalisers is lost by Python itself."""
    before = sys.gettrace()
    gc.disable()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)
        gc.enable()


class Scenario:
    """Runs that are played in turn, by an agent that is made so; answers approve the first question."""

    def __init__(self, make: Make, *plans: Plan) -> None:
        self.make, self.plans = make, plans

    def play(self, world: World, tracer: AtLine) -> Outcome | None:
        """Plays all of it, or until an interrupt comes out. Returns the last outcome, None where nothing was left."""
        outcome = None
        for plan in self.plans:
            waiting = world.waiting()
            answers = {each.key: Deny("no") if at else Approve() for at, each in enumerate(waiting)} or None
            if world.agent.status == "closed":
                break
            outcome = carry_out(world, plan, None if answers else "do it", answers, around=traced(tracer))
            if outcome.error is not None or outcome.killed:
                break
        return outcome


HOOKED = Make(points=(*POINTS, "observe"), sourced=True)
EVERYTHING = (Mood(0, "before_turn", ("same", "compact half")), Mood(2, "before_settle", ("veto",)))
SCENARIOS = {
    "core": Scenario(
        Make(),
        Plan(
            [
                [TextDelta("I look"), ReasoningDelta("hm"), ReasoningDone("s", "d:f"), kit.Raise(RateLimited("wait"))],
                [
                    TextDelta("I will"),
                    ask("act", {"do": "charge"}),
                    ask("serch", {}),
                    ask("add", {"a": 1, "b": 2}),
                    Done(),
                ],
                [ask("act", {"do": "raise ValueError"}), Done(usage=Usage(5, 5))],
                [],
                [TextDelta("over"), Done(usage=Usage(1, 1))],
            ]
        ),
    ),
    "hooks and hosts": Scenario(
        HOOKED,
        Plan(
            [
                [ask("act", {"do": "steer"}), ask("extra", {"do": "follow up"}), CALLS],
                [ask("act", {"do": "subscribe"}), ask("extra", {"do": "thing"}), CALLS],
                kit.Raise(ContextOverflow("too long")),
                [TextDelta("over"), Done()],
            ],
            faults=[Fault("observer", 1, "subscribe")],
            moods=[
                *EVERYTHING,
                Mood(0, "on_overflow", ("compact",)),
                Mood(1, "after_tool", ("raise ValueError", "rewrite")),
            ],
            offers=["none", "two"],
        ),
    ),
    "people": Scenario(
        Make(points=("before_tool", "after_tool")),
        Plan(
            [[ask("act", {"do": "thing"}), *[ask("act", {"do": "charge"})] * 3, CALLS]],
            moods=[Mood(0, "before_tool", ("same", "ask", "same", "ask"))],
        ),
        Plan([[TextDelta("over"), Done()]]),
        Plan([[TextDelta("over"), Done()]]),
    ),
    "workers": Scenario(
        Make(Limits(max_parallel_tools=2, tool_timeout=5.0)),
        Plan(
            [
                [
                    *[ask("act", {"do": each}) for each in ("progress", "behind", "charge")],
                    ask("solo", {"do": "thing"}),
                    CALLS,
                ],
                [ask("slow", {"do": "heed"}), ask("act", {"do": "steer"}), CALLS],
                [TextDelta("over"), Done()],
            ]
        ),
    ),
    "output": Scenario(
        Make(points=("check_answer", "should_stop")),
        Plan(
            [
                [TextDelta("seven"), Done()],
                [ask("final_answer", {"value": "seven"}), ask("act", {"do": "thing"}), CALLS],
                [ask("final_answer", {"value": 7}), ask("act", {"do": "thing"}), CALLS],
            ],
            output=int,
        ),
    ),
}


@cache
def lines_of(name: str) -> int:
    """How many lines of the kernel the scenario executes."""
    tracer = None
    for _ in range(2):  # the first time also fills caches
        scenario = SCENARIOS[name]
        world = World(scenario.make)
        tracer = AtLine(world, 0, lambda: None)
        scenario.play(world, tracer)
        world.tools.let_go()
    assert tracer is not None
    return tracer.count


DEEDS = ("interrupt", "cancel", "steer", "follow up", "subscribe", "close", "kill")


def play(name: str, deed: str, nth: int) -> tuple[World, Outcome | None, str]:
    """Plays the scenario, with the deed at that line."""
    scenario = SCENARIOS[name]
    world = World(scenario.make)
    tracer = AtLine(world, nth, lambda: world.happen(deed, "line"))
    outcome = scenario.play(world, tracer)
    return world, outcome, tracer.where


@given(st.sampled_from(list(SCENARIOS)), st.sampled_from(DEEDS), st.integers(1, 20_000))
def test_whatever_happens_at_any_line_breaks_nothing(name: str, deed: str, number: int) -> None:
    """Ctrl-C, a cancel, a steer, a subscription, a close or a power cut at any line: the invariants hold after it."""
    world, outcome, where = play(name, deed, number % lines_of(name) + 1)
    try:
        assert outcome is not None
        if deed == "interrupt":
            assert outcome.error in world.raised or not where, f"swallowed at {where}"
        elif not outcome.killed:
            refused = deed == "close" and isinstance(outcome.error, AgentClosed)
            assert outcome.error is None or refused, where
            judge(world, outcome)
        laws.check(world, closed=deed not in ("interrupt", "kill"))
        assert_next_run_works(world)
        assert_same_agent_goes_on(world)
        laws.check(world)
    finally:
        world.tools.let_go()
        world.agent.close()


LINES = 0 if DEEP else settings().max_examples
"""How many lines are tried, spread evenly; 0 is all of them."""


def lines() -> range:
    """The numbers of the lines to try."""
    count = lines_of("core")
    return range(1, count, max(1, count // LINES) if LINES else 1)


def test_ctrl_c_at_any_line_of_the_core_leaves_nothing_open() -> None:
    """Ctrl-C at any line is raised again, and by the next run at the latest everything is closed and announced."""
    for nth in lines():
        world, outcome, where = play("core", "interrupt", nth)
        assert outcome is not None
        assert isinstance(outcome.error, KeyboardInterrupt), f"swallowed at {where}"
        assert_same_agent_goes_on(world)
        laws.check(world)


def test_a_signal_handler_may_cancel_at_any_line_of_the_core() -> None:
    """A cancel from a signal handler, at any line, ends the run in order, and never twice."""
    for nth in lines():
        world, outcome, where = play("core", "cancel", nth)
        assert outcome is not None
        assert outcome.result is not None
        whole = outcome.result.status is RunStatus.COMPLETED and outcome.result.text == "over"
        assert whole or (world.cancelled and outcome.result.status is RunStatus.CANCELLED), where
        judge(world, outcome)
        laws.check(world)
        assert_same_agent_goes_on(world)
        laws.check(world)
