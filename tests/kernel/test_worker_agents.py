"""Cases of agents that run inside the worker tools of another: cancelled together, each with limits of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    Busy,
    Clock,
    Event,
    Hooks,
    InvalidState,
    Limits,
    RunResult,
    RunStatus,
    TextDelta,
    ToolContext,
    Usage,
    check_messages,
    tool,
)
from gotato_testkit import FakeTool, ScriptedModel, Stall, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import PATIENCE_S, SOON_S, Grace, Hanging, LateClock, batch, beside, cancelling, until, within

TWO = Limits(max_parallel_tools=2)


class Family:
    """A parent on a stage that calls `delegate` twice, each time with an agent of its own that plays these steps."""

    def __init__(
        self,
        *steps: Any,
        raises: bool = False,
        child: dict[str, Any] | None = None,
        clock: Clock | None = None,
        **run: Any,
    ) -> None:
        self.children: dict[str, Agent] = {}
        self.results: list[RunResult[None]] = []
        self.ended: list[str] = []
        self._steps = steps
        self._raises = raises
        self._child = child or {}
        self._run = run
        self._asked = threading.Semaphore(0)
        self.stage = Stage(
            call("delegate", task="one") + call("delegate", task="two"),
            say("Both are back."),
            tools=[self.delegate],
            extensions=[Hooks(observe=self._parent_ended)],
            limits=TWO,
            clock=clock,
        )

    def delegate(self, task: str, use: ToolContext[object]) -> str:
        """Has another agent do it."""
        child = Agent(ScriptedModel(self._steps), extensions=[Hooks(observe=self._child_event)], **self._child)
        self.children[task] = child
        result = child.run(task, scope=use.scope, deps=task, check=False, **self._run)
        self.results.append(result)
        use.charge(result.usage)
        if self._raises:
            result.raise_for_status()
        return f"{result.text} ({result.status})"

    def wait_until_both_are_asked(self) -> None:
        """Blocks until both models have said something."""
        for _ in range(2):
            assert self._asked.acquire(timeout=PATIENCE_S)

    def _child_event(self, event: Event) -> None:
        if event.kind == "message_update":
            self._asked.release()
        if isinstance(event, AgentEnd):
            self.ended.append(f"child {event.status}")

    def _parent_ended(self, event: Event) -> None:
        if isinstance(event, AgentEnd):
            self.ended.append(f"parent {event.status}")

    def assert_settled(self) -> None:
        """The laws hold for the parent, and every child is idle with a whole transcript."""
        for child in self.children.values():
            assert child.status == "idle"
            assert check_messages(child.transcript.messages) == []
        assert_laws(self.stage)


class TestC59Cancel:
    """The parent ends while both children are in their model calls."""

    @pytest.mark.parametrize("raises", [False, True])
    def test_c59_abort_of_the_parent(self, raises: bool) -> None:
        """Both children settle first, then the parent; their calls have what they had said, or are cancelled."""
        family = Family([TextDelta("I am at it"), Stall()], raises=raises)
        with cancelling(family.stage, family.wait_until_both_are_asked), within(SOON_S), Grace() as grace:
            assert family.stage.run().status is RunStatus.CANCELLED
        if not grace.over:
            assert family.ended == ["child cancelled", "child cancelled", "parent cancelled"]
            assert raises or [each.text for each in family.stage.results] == ["I am at it (cancelled)"] * 2
            assert family.stage.agent.abandoned == ()
        assert not raises or family.stage.statuses == ["cancelled", "cancelled"]
        until(lambda: len(family.results) == 2)  # these settle in any case
        assert [str(each.error) for each in family.results] == ["by the host"] * 2
        family.assert_settled()

    def test_c59_the_time_of_the_parent_is_over(self) -> None:
        """The nearer end wins: the parent's deadline ends children that have more time of their own."""
        clock = LateClock()
        family = Family([TextDelta("I am at it"), Stall()], raises=True, clock=clock, timeout=60)

        def start() -> None:
            family.wait_until_both_are_asked()
            clock.start()

        with beside(start), within(SOON_S), Grace() as grace:
            assert family.stage.run(timeout=0.02).status is RunStatus.DEADLINE_EXCEEDED
        ended = ["child deadline_exceeded", "child deadline_exceeded", "parent deadline_exceeded"]
        assert family.ended == ended or grace.over
        assert family.stage.statuses == ["timed_out", "timed_out"]
        until(lambda: len(family.results) == 2)
        assert sorted(family.ended) == ended
        family.assert_settled()

    def test_c59_ctrl_c_in_the_parent(self) -> None:
        """An interrupt in the parent ends the children as well, and comes out when they have settled."""
        family = Family([TextDelta("I am at it"), Stall()])

        def interrupt(event: Event) -> None:
            if event.kind == "tool_execution_update":
                raise KeyboardInterrupt

        def tell(use: ToolContext[object]) -> str:
            """Tells when both are asked."""
            family.wait_until_both_are_asked()
            use.progress("now")
            use.scope.wait(PATIENCE_S)
            return "told"

        stage = Stage(
            call("delegate", task="one") + call("delegate", task="two") + call("tell"),
            tools=[family.delegate, tell],
            extensions=[Hooks(observe=interrupt)],
            limits=Limits(max_parallel_tools=3),
        )
        with pytest.raises(KeyboardInterrupt), within(SOON_S), Grace() as grace:
            stage.run()
        assert sorted(stage.statuses) == ["ok", "ok", "ok"] or grace.over
        until(lambda: len(family.results) == 2)
        assert family.ended == ["child cancelled", "child cancelled"]
        assert_laws(stage)


class TestC59Child:
    """A child ends before its parent wants it to."""

    @pytest.mark.parametrize(
        ("options", "run", "status"),
        [
            ({"limits": Limits(max_turns=1), "tools": [FakeTool("look")]}, {}, "limited"),
            ({}, {"timeout": 0.05}, "deadline_exceeded"),
        ],
    )
    @pytest.mark.parametrize("raises", [False, True])
    def test_c59_a_limit_or_deadline_of_the_child(
        self, options: dict[str, Any], run: dict[str, Any], status: str, raises: bool
    ) -> None:
        """It is a failed call of the parent, or what the tool makes of it, and the parent goes on."""
        step = say("Hm.", usage=Usage(30, 5)) + call("look") if options else [TextDelta("I am at it"), Stall()]
        family = Family(step, raises=raises, child=options, **run)
        result = family.stage.run()
        assert result.text == "Both are back."
        assert family.stage.statuses == (["failed"] * 2 if raises else ["ok"] * 2)
        assert all(status in each.text.lower() or raises for each in family.stage.results)
        assert {each.status.value for each in family.results} == {status}
        assert result.usage == (Usage(60, 10) if options else Usage())
        family.assert_settled()

    def test_c59_a_child_that_its_own_tool_cancels(self) -> None:
        """The other child and the parent go on."""

        def work(use: ToolContext[str]) -> str:
            """Has enough of it, in one of the children."""
            if use.deps == "one":
                family.children["one"].cancel("enough")
            return "worked"

        family = Family(call("work"), say("Done.", usage=Usage(10, 2)), child={"tools": [work]})
        result = family.stage.run()
        assert result.text == "Both are back."
        assert sorted(each.status.value for each in family.results) == ["cancelled", "completed"]
        assert family.stage.statuses == ["ok", "ok"]
        assert result.usage == Usage(10, 2)
        family.assert_settled()

    def test_c59_usage_adds_up_into_the_limits_of_the_parent(self) -> None:
        """What both children used ends the parent by its own limit, at its next turn."""
        family = Family(say("Done.", usage=Usage(40, 20)))
        limits = Limits(max_parallel_tools=2, max_total_tokens=100)
        stage = Stage(
            call("delegate", task="one") + call("delegate", task="two"), tools=[family.delegate], limits=limits
        )
        result = stage.run()
        assert getattr(result.error, "limit", "") == "max_total_tokens"
        assert (stage.statuses, result.usage) == (["ok", "ok"], Usage(80, 40))
        assert_laws(stage)
        family.assert_settled()


class TestNesting:
    """Agents with workers inside the workers of agents."""

    def test_three_deep_with_workers_on_every_level(self) -> None:
        """Every level runs its calls in parallel; an abort at the top ends all of them within the graces."""
        leaves = threading.Semaphore(0)

        def leaf(use: ToolContext[object]) -> str:
            """Waits."""
            leaves.release()
            use.scope.wait(PATIENCE_S)
            return "leaf"

        def level(inner: Callable[..., object]) -> Callable[..., object]:
            def ask(use: ToolContext[object]) -> str:
                """Asks two more."""
                name = getattr(inner, "__name__", "")
                agent = Agent(ScriptedModel([batch(name, name), say("never")]), tools=[inner], limits=TWO)
                return agent.run("go", scope=use.scope, check=False).status

            return ask

        stage = Stage(batch("ask", "ask"), tools=[level(level(leaf))], limits=TWO)
        all_wait = partial(all, (leaves.acquire(timeout=PATIENCE_S) for _ in range(8)))
        with cancelling(stage, all_wait), within(SOON_S), Grace() as grace:
            assert stage.run().status is RunStatus.CANCELLED
        assert [each.text for each in stage.results] == ["cancelled", "cancelled"] or grace.over
        until(lambda: not stage.agent.abandoned)
        assert_laws(stage)

    def test_the_outer_agent_from_an_inner_worker(self) -> None:
        """A tool of a child can close the parent and is told that it is busy; nothing dead-locks."""
        said: list[object] = []

        @tool(timeout=PATIENCE_S)
        def meddle() -> str:
            """Uses the agent two levels up."""
            for act in (lambda: stage.agent.run("me too"), lambda: stage.agent.wait_idle(0.01), stage.agent.close):
                try:
                    said.append(act())
                except (Busy, InvalidState) as error:
                    said.append(type(error).__name__)
            return "meddled"

        def delegate(use: ToolContext[object]) -> str:
            """Has another agent do it."""
            child = Agent(ScriptedModel([call("meddle"), say("Done.")]), tools=[meddle])
            return child.run("go", scope=use.scope, check=False).status

        stage = Stage(call("delegate"), say("never"), tools=[delegate], limits=TWO)
        with within(SOON_S):
            assert stage.run().status is RunStatus.CANCELLED
        until(lambda: len(said) == 3)
        assert said == ["Busy", False, None]
        assert stage.agent.status == "closed"
        assert_laws(stage)

    def test_a_child_that_gives_its_tool_up(self) -> None:
        """A thread that a child had to give up is the child's; the parent knows nothing of it and goes on."""
        with Hanging(timeout=0.02) as hang:
            child = Agent(ScriptedModel([call("hang"), say("It hangs.")]), tools=[hang])

            def delegate(use: ToolContext[object]) -> str:
                """Has another agent do it."""
                return child.run("go", scope=use.scope).text

            stage = Stage(call("delegate"), say("I see."), tools=[delegate], limits=TWO)
            assert stage.run().text == "I see."
            assert stage.results[0].text == "It hangs."
            assert len(child.abandoned) == 1
            assert stage.agent.abandoned == ()
            hang.let_go()
            until(lambda: child.abandoned == ())
            assert_laws(stage)
