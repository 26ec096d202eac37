"""The caller of a run: carries out a plan, in one of the ways to run, and judges what it is told."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from types import FrameType
from typing import Any

import pytest

from gotato_py import (
    AgentClosed,
    AssistantMessage,
    Decision,
    GotatoError,
    InvalidArgument,
    InvalidState,
    LimitExceeded,
    Limits,
    RunError,
    RunResult,
    RunStatus,
    RunStream,
    Scope,
    ToolMessage,
    UserMessage,
)

from .machine_deeds import Untyped
from .machine_fakes import open_calls
from .machine_promises import controls, delivered
from .machine_words import Entry, Plan
from .machine_world import World

LIMITS = frozenset(Limits.__match_args__) | {"max_tokens"}
UNRULY = (SystemExit, GeneratorExit, MemoryError, Untyped)
LEAVING = ("break", "close", "drop", "left open")
Message = str | UserMessage | None


class Outcome:
    """How the caller of a run got out of it.

    `stored` is the transcript before it, where nothing was left to be closed; `killed` whether nobody was left to tell.
    """

    def __init__(self, world: World, plan: Plan) -> None:
        self.plan = plan
        self.stored = world.stored() if world.closed else ""
        self.began = len(world.log)
        self.result: RunResult[Any] | None = None
        self.error: BaseException | None = None
        self.left = False
        self.killed = False


class Caller:
    """Runs an agent as its plan says."""

    def __init__(self, world: World, plan: Plan, message: Message, answers: Mapping[str, Decision] | None) -> None:
        self.world, self.plan, self.outcome = world, plan, Outcome(world, plan)
        self._message = message
        scope = world.scope = Scope(clock=world.clock)
        self._options: dict[str, Any] = {
            "timeout": plan.timeout, "scope": scope, "output": plan.output, "answers": answers,
        }  # fmt: skip

    def _stream(self, **options: Any) -> RunStream[Any]:
        stream = self.world.stream = self.world.agent.stream(self._message, **self._options, **options)
        return stream

    def take(self) -> None:
        """The ways to run."""
        outcome = self.outcome
        match self.plan.way:
            case "run":
                outcome.result = self.world.agent.run(self._message, **self._options, check=False)
            case "checked":
                outcome.result = self.world.agent.run(self._message, **self._options)
            case "stream":
                self._iterate()
            case "text":
                with self._stream(check=False) as stream:
                    for _ in stream.text:
                        pass
                    outcome.result = stream.result
            case "result":
                outcome.result = self._stream().result
            case "break":
                with self._stream(check=False) as stream:
                    self._leave(stream)
                outcome.result = stream.result
            case "close":
                with closing(self._stream(check=False)) as stream:
                    self._leave(stream)
                outcome.result = self._result_of(stream)
            case "left open":
                stream = self._stream(check=False)
                try:
                    self._leave(stream)
                    if outcome.left and self.world.agent.status == "running":
                        self.world.hosts.expect_busy()
                        self.world.hosts.control("steer")
                        self.world.hosts.control("subscribe")
                finally:
                    stream.close()
                outcome.result = self._result_of(stream)
            case "drop":
                stream = self._stream()
                self._leave(stream)
                self.world.faults = []  # what a finaliser raises, nobody can catch
                self.world.stream = None
                del stream
            case way:
                raise AssertionError(way)

    def _iterate(self) -> None:
        world = self.world
        with self._stream(check=False) as stream:
            yielded = list(stream)
            result = self.outcome.result = stream.result
        observed = [entry.value for entry in world.log[self.outcome.began :] if entry.kind == "event"]
        mine = [event.to_dict() for event in observed if event.run_id == result.run_id]
        closed = any("close stream" in each for each in world.fired)
        if world.make.watched and not closed and [event.to_dict() for event in yielded] != mine:
            world.note("wrong", "the stream and the observer saw different events")

    def _leave(self, stream: RunStream[Any]) -> None:
        """Iterates some events and no more."""
        for index, event in enumerate(stream):
            if index == self.plan.leave_after and event.kind != "agent_end":
                self.outcome.left = True
                return

    @staticmethod
    def _result_of(stream: RunStream[Any]) -> RunResult[Any] | None:
        try:
            return stream.result
        except InvalidState:
            return None


def carry_out(
    world: World,
    plan: Plan,
    message: Message,
    answers: Mapping[str, Decision] | None = None,
    *,
    around: AbstractContextManager[None] | None = None,
) -> Outcome:
    """Runs the plan the way it says, within `around`, and keeps what came out."""
    caller = Caller(world, plan, message, answers)
    outcome = caller.outcome
    world.arm(plan)
    with _cancelling(world):
        try:
            with warnings.catch_warnings(record=plan.way == "drop") as told:
                warnings.simplefilter("always" if plan.way == "drop" else "error")
                with around or nullcontext():
                    caller.take()
            assert [each.category for each in told or ()] in ([], [ResourceWarning])
        except RunError as error:
            outcome.error, outcome.result = error, error.result
        except BaseException as error:
            outcome.error = error
        finally:
            world.disarm()
    outcome.killed = world.revive()
    return outcome


@contextmanager
def _cancelling(world: World) -> Generator[None]:
    """SIGUSR1 cancels the agent's run."""

    def handler(number: int, frame: FrameType | None) -> None:
        world.agent.cancel("by a signal")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


# What it is told


def judge(world: World, outcome: Outcome) -> None:
    """What the caller is told agrees with the transcript and the log."""
    error, result, plan = outcome.error, outcome.result, outcome.plan
    run_id = world.run_id if result is None else result.run_id
    problems = [] if result is None and outcome.left else controls(world, run_id, result)
    assert not problems, problems
    lost = [
        each for entry in world.log[outcome.began :] if (each := entry.kind) == "interrupt" and entry.value == "worker"
    ]
    if world.raised and not outcome.left and not (lost and result is not None and not result.ok):
        assert error in world.raised, f"{world.raised} was swallowed: {error!r}, {result}"
    if error in world.raised:
        return
    if error is None or isinstance(error, RunError):
        assert outcome.left or result is not None or plan.way in LEAVING
    elif isinstance(error, InvalidArgument | InvalidState | AgentClosed):
        assert outcome.stored in ("", world.stored()), f"misuse changes nothing: {error}"
    elif isinstance(error, GotatoError):
        assert outcome.stored in ("", world.stored()), f"{error!r} came out of a run that had begun"
        assert world.store_failed, f"{error!r} came out of a run"
    else:
        assert isinstance(error, UNRULY), f"{error!r} came out of a run"
    if result is not None:
        assert_result(world, plan, result)
        if isinstance(error, RunError):
            assert not result.ok
            assert result.status is not RunStatus.WAITING
            assert (error.code, error.result) == (result.error.code if result.error else None, result)
            assert error.__cause__ is result.error


def assert_result(world: World, plan: Plan, result: RunResult[Any]) -> None:
    """A result says what the log says."""
    lines = _lines_of(world, result.run_id)
    new = tuple(entry.value for entry in lines if entry.kind == "append")
    assert new == result.new_messages
    answers = [each for each in new if isinstance(each, AssistantMessage)]
    asked = [at for at, entry in enumerate(lines) if entry.kind in ("request", "rewritten")]
    kept = [at for at, entry in enumerate(lines) if entry.kind == "append" and entry.value in answers]
    silent = result.ok and asked and not result.stopped_by and isinstance(new[-1] if new else None, ToolMessage)
    taken = any(isinstance(each, ToolMessage) and "final_answer" in each.result.metadata for each in new)
    if silent and not taken:
        assert result.text == "", "silence after a result is an empty answer, and nothing is committed"
    elif asked:
        passed = result.message is None and asked and asked[-1] > max(kept, default=0)  # silence, and then the end
        assert passed or result.message == (answers[-1] if answers else None), (result, new)
    else:
        assert result.message in (None, *world.kept.messages), "a redelivered task gets its answer"
    _assert_ends(world, result, lines)
    _assert_output(plan, result)
    assert_waiting(world, result)


def _assert_ends(world: World, result: RunResult[Any], lines: list[Entry]) -> None:
    """Its status, error, metrics and record."""
    mine = [entry.value for entry in lines if entry.kind == "event" and entry.value.run_id == result.run_id]
    if world.makes[result.run_id].watched:
        assert (mine[-1].status, mine[-1].usage) == (result.status, result.usage)
        assert result.metrics.turns == len([event.turn for event in mine if event.kind == "turn_start"])
        assert not (problems := delivered(world, result.run_id)), problems
    ran = [entry for entry in world.log if entry.kind == "tool" and entry.value.run_id == result.run_id]
    assert result.metrics.tool_calls >= len(ran)
    limits = world.makes[result.run_id].limits
    assert limits.max_turns is None or result.metrics.turns <= limits.max_turns + limits.wrap_up
    assert limits.max_tool_calls is None or result.metrics.tool_calls <= limits.max_tool_calls
    vetoes = [entry for entry in lines if entry.kind == "append" and getattr(entry.value, "text", "") == "not yet"]
    assert limits.max_settle_vetoes is None or len(vetoes) <= limits.max_settle_vetoes
    assert not result.stopped_by or result.ok or world.store_failed
    match result.status:
        case RunStatus.COMPLETED | RunStatus.WAITING:
            assert result.error is None
        case RunStatus.LIMITED:
            assert isinstance(result.error, LimitExceeded)
            assert result.error.limit in LIMITS
        case status:
            assert isinstance(result.error, GotatoError), status
    (record,) = [entry.value for entry in lines if entry.kind == "end_run" and entry.value.run_id == result.run_id]
    assert world.store_failed or record.status == result.status
    assert (record.turns, record.usage) == (result.metrics.turns, result.usage)


def _lines_of(world: World, run_id: str) -> list[Entry]:
    """What was written between the beginning of a run and that of the next."""
    begun = [at for at, entry in enumerate(world.log) if entry.kind == "begin_run"]
    first = next(at for at in begun if world.log[at].value == run_id)
    return world.log[first : next((at for at in begun if at > first), None)]


def _assert_output(plan: Plan, result: RunResult[Any]) -> None:
    """There is an output of the right type, or the error why there is none."""
    if result.ok:
        assert result.stopped_by or isinstance(result.output, plan.output or type(None))
        return
    with pytest.raises((RunError, InvalidState)) as raised:
        repr(result.output)
    if result.error is not None:
        assert raised.value.code == result.error.code


def assert_waiting(world: World, result: RunResult[Any]) -> None:
    """A run that waits leaves open what waits and what stands behind it; any other leaves nothing that it opened."""
    opened = open_calls(list(world.kept.messages))
    undecided = [call for call in world.kept.waiting if call.key in opened and call.decision is None]
    if result.status is RunStatus.WAITING:
        assert list(result.waiting) == undecided != []
        assert world.agent.status in ("waiting", "closed")
    elif opened and not world.store_failed:  # it ended before it could go on with them, or had nothing to do with them
        assert list(result.waiting) == [call for call in world.kept.waiting if call.key in opened]
        assert not {message.id for message in result.new_messages} & {opened[0].rpartition(":")[0]}
