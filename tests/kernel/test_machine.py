"""One agent under everything at once: random scripts, faults, cancels and interrupts, and the six invariants after each."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from gotato_py import (
    AssistantMessage,
    GotatoError,
    InvalidArgument,
    LimitExceeded,
    Limits,
    Message,
    RetryPolicy,
    RunError,
    RunResult,
    RunStatus,
    RunStream,
    ToolMessage,
    UserMessage,
)

from . import machine_laws as laws
from .machine_plans import Plan, plans, small_limits
from .machine_world import Fault, Untyped, World

LIMITS = frozenset(Limits.__match_args__) | {"max_tokens"}
UNRULY = (SystemExit, GeneratorExit, MemoryError, Untyped)
LEAVING = ("break", "close", "drop", "left open")


@contextmanager
def cancelling(world: World) -> Iterator[None]:
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
            leave(stream, plan, outcome)
            if outcome.left and agent.status == "running":
                world.expect_busy()
            stream.close()
        case "drop":
            leave(agent.stream(message, timeout=timeout), plan, outcome)
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
        assert error is world.raised[0], f"{world.raised} was swallowed: {error!r}, {result}"
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
    try:
        result = world.agent.run("next", check=not world.limited)
    except InvalidArgument as error:
        assert "max_message_bytes" in str(error)
        result = None
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
    """After any run, whatever its script, its faults and its caller did, all six invariants hold and the next run works."""
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=8))
