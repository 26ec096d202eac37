"""Agents that run inside the tools of other agents: one thread, one time, one bill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import gotato_testkit as kit
from gotato_py import (
    Agent,
    Busy,
    Event,
    Hooks,
    Limits,
    RunLimited,
    RunResult,
    RunStatus,
    Scope,
    ToolContext,
    ToolMessage,
    Usage,
    check_messages,
)

from .machine_laws import pairing

DEPTH = 3


class Tower:
    """Agents, each of which calls the next one with its tool `ask`; the innermost answers with `steps`."""

    def __init__(
        self,
        steps: list[kit.Step],
        *,
        clock: kit.ManualClock | None = None,
        limits: Limits | None = None,
        check: bool = False,
        hooks: Hooks | None = None,
    ) -> None:
        self.check = check
        self.threads: list[int] = []
        self.results: dict[int, RunResult[Any]] = {}
        ids = kit.SequentialIds()
        self.agents: list[Agent] = []
        for level in reversed(range(DEPTH)):
            innermost = level == DEPTH - 1
            script = steps if innermost else [kit.call("ask"), kit.say(f"level {level}", usage=Usage(10, 1))]
            self.agents.insert(
                0,
                Agent(
                    kit.ScriptedModel(script),
                    tools=[] if innermost else [self._ask(level + 1)],
                    clock=clock,
                    ids=ids,
                    limits=limits if limits and innermost else Limits(),
                    extensions=[hooks] if hooks and level == 0 else [],
                ),
            )

    def _ask(self, level: int) -> Callable[[ToolContext[object]], str]:
        def ask(use: ToolContext[object]) -> str:
            self.threads.append(threading.get_ident())
            result = self.agents[level].run(f"from level {level - 1}", scope=use.scope, check=False)
            self.results[level] = result
            use.charge(result.usage)
            if self.check:
                result.raise_for_status()
            return result.text

        return ask

    def results_of(self, level: int) -> list[str]:
        """The statuses of the results in the transcript of a level."""
        return [
            str(each.result.status) for each in self.agents[level].transcript.messages if isinstance(each, ToolMessage)
        ]

    def assert_settled(self) -> None:
        """Every transcript is whole, every agent idle."""
        for agent in self.agents:
            assert agent.status == "idle"
            messages = agent.transcript.messages
            assert check_messages(messages) == []
            assert pairing(messages) == []


def test_agents_inside_agents_answer_in_the_same_thread() -> None:
    """Three agents deep, everything runs in the caller's thread, and the answer comes out."""
    tower = Tower([kit.say("innermost", usage=Usage(100, 20))])
    result = tower.agents[0].run("go", timeout=60)
    assert result.text == "level 0"
    assert tower.threads == [threading.get_ident()] * (DEPTH - 1)
    assert tower.results_of(0) == tower.results_of(1) == ["ok"]
    tower.assert_settled()


def test_usage_is_charged_upwards() -> None:
    """What an inner run used is in the usage of every run around it, once."""
    tower = Tower([kit.say("innermost", usage=Usage(100, 20))])
    result = tower.agents[0].run("go")
    assert tower.results[2].usage == Usage(100, 20)
    assert tower.results[1].usage == Usage(110, 21)
    assert result.usage == Usage(120, 22)


def test_charged_usage_counts_against_the_limit() -> None:
    """Tokens that a sub-agent used end the outer run by its max_total_tokens."""

    def spend(use: ToolContext[object]) -> str:
        use.charge(Usage(90, 20))
        return "spent"

    model = kit.ScriptedModel([kit.call("spend"), kit.say("never asked")])
    agent = Agent(model, tools=[spend], limits=Limits(max_total_tokens=100))
    with pytest.raises(RunLimited) as caught:
        agent.run("go")
    assert caught.value.result is not None
    assert caught.value.result.usage == Usage(90, 20)
    assert getattr(caught.value.result.error, "limit", "") == "max_total_tokens"
    assert len(model.requests) == 1


@pytest.mark.parametrize("steps", [[kit.Stall()], [(*kit.say("half an")[:-1], kit.Stall())]])
def test_a_timeout_on_the_outermost_ends_all_of_them(steps: list[kit.Step]) -> None:
    """When the innermost model stalls, the outermost's timeout ends every level at that moment."""
    clock = kit.ManualClock()
    tower = Tower(steps, clock=clock)
    result = tower.agents[0].run("go", timeout=5, check=False)
    assert clock.monotonic() == 5
    assert [result.status, tower.results[1].status, tower.results[2].status] == [RunStatus.DEADLINE_EXCEEDED] * 3
    tower.assert_settled()
    for agent in tower.agents[::-1]:
        assert agent.run("and now?", check=False).status in (RunStatus.COMPLETED, RunStatus.FAILED)


def test_a_timeout_holds_in_real_time() -> None:
    """The same by the machine's clock: nothing dead-locks, and the outer call returns in time."""
    tower = Tower([kit.Stall()])
    began = time.monotonic()
    result = tower.agents[0].run("go", timeout=0.1, check=False)
    assert result.status is RunStatus.DEADLINE_EXCEEDED
    assert 0.1 <= time.monotonic() - began < 5
    tower.assert_settled()


def test_a_cancel_from_another_thread_ends_all_of_them() -> None:
    """Cancelling the outermost while the innermost model stalls cancels every level, from inside out."""
    ended: list[int] = []
    started = threading.Event()
    tower = Tower([[kit.Do(started.set), kit.Stall()]])

    def cancel() -> None:
        started.wait(10)
        tower.agents[0].cancel("enough")

    thread = threading.Thread(target=cancel)
    thread.start()
    result = tower.agents[0].run("go", check=False)
    thread.join()
    ended = [level for level in (2, 1) if tower.results[level].status is RunStatus.CANCELLED]
    assert (result.status, ended) == (RunStatus.CANCELLED, [2, 1])
    tower.assert_settled()


def test_the_nearer_deadline_wins() -> None:
    """An inner run_timeout ends the inner run alone; the outer one gets an ordinary result and goes on."""
    clock = kit.ManualClock()
    tower = Tower([kit.Stall()], clock=clock, limits=Limits(run_timeout=2), check=True)
    result = tower.agents[0].run("go", timeout=50)
    assert (clock.monotonic(), result.text) == (2, "level 0")
    assert tower.results[2].status is RunStatus.DEADLINE_EXCEEDED
    assert tower.results_of(1) == ["failed"]
    assert tower.results_of(0) == ["ok"]
    tower.assert_settled()


@pytest.mark.parametrize(
    ("steps", "limits", "status"),
    [
        ([kit.say("never")], Limits(max_turns=0), RunStatus.LIMITED),
        ([kit.Raise(ValueError("a bug"))], Limits(), RunStatus.FAILED),
        ([], Limits(), RunStatus.FAILED),
    ],
)
def test_the_end_of_an_inner_run_is_a_result(steps: list[kit.Step], limits: Limits, status: RunStatus) -> None:
    """An inner agent that is limited or fails is a failed call of the outer one, which goes on."""
    tower = Tower(steps, limits=limits, check=True)
    result = tower.agents[0].run("go")
    assert result.text == "level 0"
    assert tower.results[2].status is status
    assert tower.results_of(1) == ["failed"]
    tower.assert_settled()


def test_an_inner_cancel_is_a_result() -> None:
    """An inner agent cancelled for itself is a failed call of the outer one, which goes on."""
    tower = Tower([], check=True)
    tower.agents[2] = Agent(kit.ScriptedModel([[kit.Do(lambda: tower.agents[2].cancel("mine alone")), kit.Stall()]]))
    result = tower.agents[0].run("go")
    assert result.text == "level 0"
    assert tower.results[2].status is RunStatus.CANCELLED
    assert (tower.results_of(1), tower.results_of(0)) == (["failed"], ["ok"])
    tower.assert_settled()


def test_an_outer_agent_is_busy_for_the_inner_ones() -> None:
    """A tool, however deep, that runs an agent further out gets Busy as an ordinary failure, and nothing hangs."""
    refused: list[str] = []
    tower = Tower([kit.call("out"), kit.say("so be it")])

    def out() -> str:
        try:
            return tower.agents[0].run("round we go").text
        except Busy as error:
            refused.append(error.run_id)
            raise

    tower.agents[2] = Agent(kit.ScriptedModel([kit.call("out"), kit.say("so be it")]), tools=[out])
    result = tower.agents[0].run("go")
    assert refused == [result.run_id]
    assert tower.results_of(2) == ["failed"]
    tower.assert_settled()


def test_an_interrupt_in_the_innermost_closes_every_level() -> None:
    """Ctrl-C in the innermost model closes every transcript on its way out, and comes out unchanged."""
    interrupt = KeyboardInterrupt()
    events: list[Event] = []
    tower = Tower([kit.Raise(interrupt)], hooks=Hooks(observe=events.append))
    with pytest.raises(KeyboardInterrupt) as caught:
        tower.agents[0].run("go")
    assert caught.value is interrupt
    assert (tower.results_of(0), tower.results_of(1)) == (["cancelled"], ["cancelled"])
    assert [event.kind for event in events].count("agent_end") == 1
    tower.assert_settled()


def test_an_ended_scope_starts_nothing() -> None:
    """A run in a scope that has ended already commits the message and asks no model."""
    scope = Scope()
    scope.cancel("too late")
    model = kit.ScriptedModel([kit.say("never")])
    agent = Agent(model)
    result = agent.run("go", scope=scope, check=False)
    assert (result.status, len(agent.transcript.messages), model.requests) == (RunStatus.CANCELLED, 1, [])
