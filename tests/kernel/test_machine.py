"""One agent under everything at once: scripts, faults, cancels and interrupts, and the six invariants after each."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import gotato_py
import gotato_testkit as kit
from gotato_py import (
    AssistantMessage,
    Done,
    GotatoError,
    InvalidArgument,
    LimitExceeded,
    Limits,
    Message,
    RateLimited,
    ReasoningDelta,
    ReasoningDone,
    RetryPolicy,
    RunError,
    RunResult,
    RunStatus,
    RunStream,
    StopReason,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
    message_to_dict,
)

from . import machine_foretold as foretold
from . import machine_laws as laws
from .machine_plans import Plan, ask, plans, small_limits
from .machine_world import INTERRUPTS, Fault, Untyped, World

DEEP = settings().max_examples > 200
pytestmark = pytest.mark.timeout(7200 if DEEP else 120)
LIMITS = frozenset(Limits.__match_args__) | {"max_tokens"}
UNRULY = (SystemExit, GeneratorExit, MemoryError, Untyped)
LEAVING = ("break", "close", "drop", "left open")


@contextmanager
def cancelling(world: World) -> Generator[None]:
    """SIGUSR1 cancels the agent's run."""

    def handler(number: int, frame: FrameType | None) -> None:
        world.agent.cancel("by a signal")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


class Outcome:
    """How the caller of a run got out of it."""

    def __init__(self) -> None:
        self.result: RunResult[Any] | None = None
        self.error: BaseException | None = None
        self.left = False


def carry_out(world: World, plan: Plan, message: str | None) -> Outcome:
    """Runs the plan the way it says, and keeps what came out."""
    outcome = Outcome()
    world.steps.extend(plan.steps)
    world.grumbles = plan.grumbles
    world.arm(plan.faults)
    with cancelling(world):
        try:
            with warnings.catch_warnings(record=plan.way == "drop") as told:
                warnings.simplefilter("always" if plan.way == "drop" else "error")
                take(world, plan, message, outcome)
            assert [each.category for each in told or ()] in ([], [ResourceWarning])
        except RunError as error:
            outcome.error, outcome.result = error, error.result
        except BaseException as error:
            outcome.error = error
        finally:
            world.disarm()
            world.steps.clear()
    return outcome


def take(world: World, plan: Plan, message: str | None, outcome: Outcome) -> None:
    """The ways to run."""
    agent, timeout = world.agent, plan.timeout
    match plan.way:
        case "run":
            outcome.result = agent.run(message, timeout=timeout, check=False)
        case "checked":
            outcome.result = agent.run(message, timeout=timeout)
        case "stream":
            seen = len(world.log)
            with agent.stream(message, timeout=timeout, check=False) as stream:
                yielded = list(stream)
                outcome.result = stream.result
            observed = [entry.value for entry in world.log[seen:] if entry.kind == "event"]
            mine = [event for event in observed if event.run_id == outcome.result.run_id]
            if [event.to_dict() for event in yielded] != [event.to_dict() for event in mine]:
                world.note("wrong", "the stream and the observer saw different events")
        case "text":
            with agent.stream(message, timeout=timeout, check=False) as stream:
                for _ in stream.text:
                    pass
                outcome.result = stream.result
        case "result":
            outcome.result = agent.stream(message, timeout=timeout).result
        case "break":
            with agent.stream(message, timeout=timeout) as stream:
                leave(stream, plan, outcome)
        case "close":
            with closing(agent.stream(message, timeout=timeout)) as stream:
                leave(stream, plan, outcome)
        case "left open":
            stream = agent.stream(message, timeout=timeout)
            try:
                leave(stream, plan, outcome)
                if outcome.left and agent.status == "running":
                    world.expect_busy()
            finally:
                stream.close()
        case "drop":
            stream = agent.stream(message, timeout=timeout)
            leave(stream, plan, outcome)
            world.faults = []  # what a finaliser raises, nobody can catch
            del stream
        case _:
            raise AssertionError(plan.way)


def leave(stream: RunStream[Any], plan: Plan, outcome: Outcome) -> None:
    """Iterates some events and no more."""
    for index, event in enumerate(stream):
        if index == plan.leave_after and event.kind != "agent_end":
            outcome.left = True
            return


def judge(world: World, plan: Plan, outcome: Outcome, before: tuple[Message, ...]) -> None:
    """What the caller is told agrees with the transcript and the log."""
    messages = tuple(world.kept.messages)
    assert messages[: len(before)] == before, "the transcript is append-only"
    error, result = outcome.error, outcome.result
    if world.raised and (error in world.raised or not outcome.left):
        assert error in world.raised, f"{world.raised} was swallowed: {error!r}, {result}"
        return
    if error is None or isinstance(error, RunError):
        assert outcome.left or result is not None or plan.way in LEAVING
    elif isinstance(error, InvalidArgument):
        assert messages == before, "misuse commits nothing"
    else:
        assert isinstance(error, UNRULY), f"{error!r} came out of a run"
    if result is not None:
        assert_result(world, result, before)
        if isinstance(error, RunError):
            assert not result.ok
            assert (error.code, error.result) == (result.error.code if result.error else None, result)
            assert error.__cause__ is result.error


def assert_result(world: World, result: RunResult[Any], before: tuple[Message, ...]) -> None:
    """A result says what the log says."""
    messages = tuple(world.kept.messages)
    new = messages[len(messages) - len(result.new_messages) :]
    assert new == result.new_messages
    answers = [each for each in new if isinstance(each, AssistantMessage)]
    if result.ok and isinstance(messages[-1], ToolMessage):
        assert result.text == "", "silence after a result is an empty answer, and nothing is committed"
    else:
        assert result.message == (answers[-1] if answers else None)
        assert result.text == (answers[-1].text if answers else "")
    assert (result.waiting, result.undelivered, result.stopped_by) == ((), (), "")
    mine = [entry.value for entry in world.log if entry.kind == "event" and entry.value.run_id == result.run_id]
    assert mine[-1].status == result.status
    assert mine[-1].usage == result.usage
    turns = [event.turn for event in mine if event.kind == "turn_start"]
    assert result.metrics.turns == len(turns)
    ran = [entry for entry in world.log if entry.kind == "tool" and entry.value.run_id == result.run_id]
    assert result.metrics.tool_calls >= len(ran)
    match result.status:
        case RunStatus.COMPLETED:
            assert result.error is None
        case RunStatus.LIMITED:
            assert isinstance(result.error, LimitExceeded)
            assert result.error.limit in LIMITS
        case status:
            assert isinstance(result.error, GotatoError), status
    (record,) = [entry.value for entry in world.log if entry.kind == "end_run" and entry.value.run_id == result.run_id]
    assert (record.status, record.turns, record.usage) == (result.status, result.metrics.turns, result.usage)


def assert_next_run_works(world: World) -> None:
    """Whatever happened, the next run completes, on a request that ends with what was just said."""
    result = None
    try:
        result = world.agent.run("next", check=not world.limited)
    except InvalidArgument:
        assert world.limited, "the message is too long only for small limits"
    assert world.agent.status == "idle"
    if result is None or not result.ok:
        result = world.build().run("next")
    assert result.text == "fine"
    requests = [entry.value for entry in world.log if entry.kind == "request"]
    assert isinstance(requests[-1][-1], UserMessage)
    assert requests[-1][-1].text == "next"


def may_go_on(messages: tuple[Message, ...]) -> bool:
    """Whether `run()` has something to go on from."""
    if not messages:
        return False
    last = messages[-1]
    return not isinstance(last, AssistantMessage) or last.stop_reason in ("cancelled", "error")


class Machine(RuleBasedStateMachine):
    """Agents on one transcript, driven by plans."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(plan=plans, go_on=st.booleans())
    def run(self, plan: Plan, go_on: bool) -> None:
        """A run, and then another one that works."""
        world = self.world
        before = tuple(world.kept.messages)
        message = None if go_on and may_go_on(before) else "do it"
        outcome = carry_out(world, plan, message)
        judge(world, plan, outcome, before)
        failing = world.fired and not set(world.fired) <= {"busy"}
        laws.check(world, closed=not failing and not (outcome.left and plan.way == "drop"))
        assert_next_run_works(world)
        laws.check(world)

    @rule(plan=plans, limits=small_limits, attempts=st.integers(1, 3))
    def limited(self, plan: Plan, limits: Limits, attempts: int) -> None:
        """The same by another agent, with small limits, on the same transcript."""
        self.world.agent.close()
        self.world.agent = self.world.build(limits, RetryPolicy(max_attempts=attempts, jitter=0))
        self.world.limited = True
        self.run(plan, go_on=False)
        self.world.limited = False
        self.world.agent.close()
        self.world.agent = self.world.build()


def test_the_invariants_hold_whatever_happens() -> None:
    """After any run, whatever its script, its faults and its caller did, the invariants hold and the next run works."""
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=8))


# What can be foretold


@given(st.lists(foretold.answers, max_size=6), st.sampled_from(["run", "stream", "text"]))
def test_a_faultless_script_has_its_foretold_outcome(script: list[foretold.Answer], way: str) -> None:
    """Texts, results, status, usage and attempts of a run without faults are what its script says."""
    world = World()
    world.agent = world.build(Limits(max_repeated_calls=None))
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


calm_faults = st.builds(
    Fault,
    st.sampled_from(["request", "model event", "tool", "append", "appended", "mark", "marked"]),
    st.integers(1, 8),
    st.sampled_from([*INTERRUPTS, "cancel", "thread"]),
)
"""Faults at places that are the same whether or not somebody watches."""


@given(plans, st.lists(calm_faults, max_size=2))
def test_the_same_script_gives_byte_identical_events(plan: Plan, faults: list[Fault]) -> None:
    """With a manual clock and sequential ids, a script tells the same events twice, to the byte."""
    plan = replace(plan, way="run", faults=faults)
    told = []
    for _ in range(2):
        world = World()
        carry_out(world, plan, "do it")
        events = [entry.value.to_dict() for entry in world.log if entry.kind == "event"]
        told.append(json.dumps(events, ensure_ascii=False, allow_nan=False).encode())
    assert told[0] == told[1]


@given(plans, st.lists(calm_faults, max_size=2))
def test_nobody_watching_changes_nothing(plan: Plan, faults: list[Fault]) -> None:
    """The transcript and the outcome are the same with and without observers, failing ones included."""
    plan = replace(plan, way="run", faults=faults)
    seen = []
    for watched in (True, False):
        world = World()
        world.agent = world.build(watched=watched)
        outcome = carry_out(world, plan, "do it")
        said = [message_to_dict(message) for message in world.kept.messages]
        seen.append((said, type(outcome.error), None if outcome.result is None else outcome.result.status))
    assert seen[0] == seen[1]


# Interrupts at every line of the kernel

KERNEL = str(Path(gotato_py.__file__).parent)
LONG: tuple[kit.Step, ...] = (
    [TextDelta("I look"), ReasoningDelta("hm"), ReasoningDone("s", "d:f"), kit.Raise(RateLimited("wait"))],
    [TextDelta("I will"), ask("act", {"do": "charge"}), ask("nothing", {}), ask("add", {"a": 1, "b": 2}), Done()],
    [ask("act", {"do": "raise ValueError"}), Done(usage=Usage(5, 5))],
    [],
    [TextDelta("over"), Done(usage=Usage(1, 1))],
)


class AtLine:
    """A trace function that does something at the n-th line that the kernel executes, as a signal handler would."""

    def __init__(self, world: World, nth: int, deed: Callable[[], object]) -> None:
        self.count, self._world, self._nth, self._deed = 0, world, nth, deed

    def __call__(self, frame: FrameType, event: str, argument: object) -> AtLine | None:
        if not frame.f_code.co_filename.startswith(KERNEL):
            return None
        if event == "line" and not self._world.noting:
            self.count += 1
            if self.count == self._nth:
                self._deed()
        return self


def under_trace(tracer: AtLine, world: World) -> Outcome:
    """The long script, traced."""
    before = sys.gettrace()
    plan = Plan(LONG)
    world.steps.extend(plan.steps)
    outcome = Outcome()
    sys.settrace(tracer)
    try:
        outcome.result = world.agent.run("do it", check=False)
    except KeyboardInterrupt as error:
        outcome.error = error
    finally:
        sys.settrace(before)
        world.steps.clear()
    return outcome


LINES = 0 if DEEP else 300
"""How many lines are tried, spread evenly; 0 is all of them."""


def lines() -> range:
    """The numbers of the lines to interrupt at."""
    count = 0
    for _ in range(2):  # the first run also fills caches
        world = World()
        tracer = AtLine(world, 0, lambda: None)
        under_trace(tracer, world)
        count = tracer.count
    return range(1, count, max(1, count // LINES) if LINES else 1)


def test_ctrl_c_at_any_line_of_the_kernel_leaves_nothing_open() -> None:
    """Ctrl-C at any line is raised again, and by the next run at the latest everything is closed and announced."""
    for nth in lines():
        world = World()

        def interrupt(world: World = world) -> None:
            world.note("interrupt", "clock")
            raise KeyboardInterrupt

        outcome = under_trace(AtLine(world, nth, interrupt), world)
        assert isinstance(outcome.error, KeyboardInterrupt), f"swallowed at line {nth}"
        assert_next_run_works(world)
        laws.check(world)


def test_a_signal_handler_may_cancel_at_any_line_of_the_kernel() -> None:
    """A cancel from a signal handler, at any line, ends the run in order, and never twice."""
    for nth in lines():
        world = World()
        answered: list[bool] = []
        tracer = AtLine(world, nth, lambda: answered.append(world.agent.cancel("by a signal")))  # noqa: B023
        outcome = under_trace(tracer, world)
        assert outcome.result is not None
        whole = outcome.result.status is RunStatus.COMPLETED and outcome.result.text == "over"
        assert whole or (answered[0] and outcome.result.status is RunStatus.CANCELLED), nth
        judge(world, Plan(), outcome, ())
        laws.check(world)
        assert_next_run_works(world)
        laws.check(world)


def test_calls_of_an_answer_that_its_provider_broke_off_never_run() -> None:
    """Calls in an answer whose own end says cancelled, error or content_filter are not run, and the run goes on."""
    for reason in (StopReason.CANCELLED, StopReason.ERROR, StopReason.CONTENT_FILTER):
        world = World()
        world.steps.append([ask("add", {"a": 1, "b": 2}), Done(reason)])
        result = world.agent.run("do it")
        assert (result.text, result.metrics.tool_calls) == ("fine", 0)
        assert [entry for entry in world.log if entry.kind == "tool"] == []
