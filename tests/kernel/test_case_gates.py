"""Cases of gates before a tool: they fail closed, the first block wins, and what they block is told to the model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from gotato_py import (
    Allow,
    Ask,
    Block,
    ExtensionFailed,
    Hooks,
    JSONPart,
    Limits,
    RunStatus,
    Scope,
    TextPart,
    ToolContext,
    ToolExecutionStart,
    ToolResult,
    ToolResultStatus,
    Usage,
    tool,
)
from gotato_testkit import call, say

from .laws import assert_laws
from .notes import note
from .stage import Stage

Gate = Callable[[ToolContext[Any]], Any]


def add(a: int = 0, b: int = 0) -> int:
    """Adds."""
    return a + b


def send(to: str = "") -> str:
    """Sends."""
    return f"sent to {to}"


def gated(*gates: Gate | Hooks, steps: Any = None, **options: Any) -> Stage:
    """A stage with two tools, a script that calls both at once, and these gates."""
    hooks = [
        gate if isinstance(gate, Hooks) else Hooks(before_tool=gate, name=f"gate{at}")
        for at, gate in enumerate(gates, 1)
    ]
    script = steps or [call("send", to="Kari") + call("add", a=1, b=2), say("Done.")]
    return Stage(*script, tools=[add, send], extensions=hooks, **options)


def on(name: str, act: Callable[[], Any]) -> Gate:
    """A gate that does this for calls of one tool, and lets the others pass."""

    def gate(use: ToolContext[Any]) -> Any:
        return act() if use.name == name else Allow()

    return gate


def raising(error: BaseException) -> Callable[[], Any]:
    """A function that raises the error."""

    def act() -> Any:
        raise error

    return act


def failures(stage: Stage) -> list[tuple[str, str, str]]:
    """The extensions that were told to have failed: name, point, what was raised."""
    told = [event for event in stage.events if isinstance(event, ExtensionFailed)]
    return [(each.extension, each.point, "" if each.error is None else each.error.message) for each in told]


class TestC36AGateFails:
    """A gate raises, or returns what is no decision."""

    def test_c36_one_of_three_raises(self, caplog: pytest.LogCaptureFixture) -> None:
        """The call is blocked in the extension's name, the next gate is not asked about it, and the other call runs."""
        asked: list[str] = []
        third = Hooks(before_tool=lambda use: note(asked, use.name, Allow()), name="third")
        stage = gated(lambda use: Allow(), on("send", raising(KeyError("x"))), third)
        with caplog.at_level(logging.WARNING, logger="gotato_py"):
            result = stage.run()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "Done.")
        assert [status.value for status in stage.statuses] == ["blocked", "ok"]
        assert stage.results[0].result.error == "gate2 failed"
        assert "gate2 failed" in stage.results[0].text
        assert "not run" in stage.results[0].text
        assert (failures(stage), asked) == ([("gate2", "before_tool", "KeyError: 'x'")], ["add"])
        assert [record.getMessage() for record in caplog.records] == ["extension gate2 failed at before_tool: KeyError"]
        assert sum(stage.effects.values()) == 1
        assert_laws(stage)

    @pytest.mark.parametrize(
        "returned",
        [None, True, False, 1, "allow", "", Allow, Ask, {"allow": True}, ToolResult("c", "ok"), NotImplemented],
        ids=repr,
    )
    def test_c36_what_is_no_decision(self, returned: object) -> None:
        """Anything but the three is a failure: the call is blocked, whatever was meant."""
        stage = gated(on("send", lambda: returned))
        assert stage.run().text == "Done."
        assert [status.value for status in stage.statuses] == ["blocked", "ok"]
        ((name, point, message),) = failures(stage)
        assert (name, point) == ("gate1", "before_tool")
        assert f"Allow(), Block(reason) or Ask(question), not {type(returned).__name__}" in message
        assert_laws(stage)

    @pytest.mark.parametrize(
        "error",
        [ValueError("no"), SystemExit(1), GeneratorExit(), MemoryError(), StopIteration(), RecursionError()],
        ids=lambda error: type(error).__name__,
    )
    def test_c36_whatever_is_raised(self, error: BaseException) -> None:
        """Whatever a gate raises blocks its call, and nothing but its call."""
        stage = gated(on("send", raising(error)))
        assert stage.run().text == "Done."
        assert [status.value for status in stage.statuses] == ["blocked", "ok"]
        assert_laws(stage)

    @pytest.mark.parametrize("act", [raising(KeyError("x")), lambda: None], ids=["raises", "returns nothing"])
    def test_c36_advisory(self, act: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> None:
        """A gate that is only advisory fails open, is told each time and logged once; the others still decide."""
        advice = Hooks(before_tool=lambda use: act(), advisory=True, name="advice")
        stage = gated(advice, on("add", lambda: Block("no sums")))
        with caplog.at_level(logging.WARNING, logger="gotato_py"):
            assert stage.run().text == "Done."
        assert [status.value for status in stage.statuses] == ["ok", "blocked"]
        assert [each[:2] for each in failures(stage)] == [("advice", "before_tool")] * 2
        assert len(caplog.records) == 1
        assert_laws(stage)

    def test_c36_an_interrupt_passes(self) -> None:
        """Ctrl-C in a gate ends the run: nothing starts, every call is closed."""
        stage = gated(on("send", raising(KeyboardInterrupt())))
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert [status.value for status in stage.statuses] == ["not_run", "not_run"]
        assert failures(stage) == []
        assert_laws(stage)

    def test_c36_cancelled_by_another_scope(self) -> None:
        """`Cancelled` is the end of the run only where the run's own scope has ended; another's is a failure."""
        other = Scope()
        other.cancel()
        stage = gated(on("send", other.check))
        assert stage.run().text == "Done."
        assert [status.value for status in stage.statuses] == ["blocked", "ok"]
        assert_laws(stage)

    def test_c36_cancelled_by_the_own_scope(self) -> None:
        """A gate that looks at its scope, which has ended, has not failed: the run is cancelled."""

        def gate(use: ToolContext[Any]) -> None:
            stage.cancel()
            use.scope.check()

        stage = gated(gate)
        assert stage.run().status is RunStatus.CANCELLED
        assert (failures(stage), sum(stage.effects.values())) == ([], 0)
        assert_laws(stage)


class TestC36WhatAGateDecides:
    """Allow and block; asking a person is in the cases of approvals."""

    def test_c36_a_gate_that_takes_its_time(self) -> None:
        """A run that is cancelled while a gate decides starts nothing, though the gate allows it."""

        def slow(use: ToolContext[Any]) -> Allow:
            stage.cancel()
            return Allow()

        stage = gated(slow)
        assert stage.run().status is RunStatus.CANCELLED
        assert [status.value for status in stage.statuses] == ["not_run", "not_run"]
        assert sum(stage.effects.values()) == 0
        assert_laws(stage)

    def test_c36_in_the_order_of_installation(self) -> None:
        """Gates are asked in order to the first block; those behind it are not."""
        asked: list[tuple[str, int]] = []

        def gate(number: int, verdict: Any) -> Gate:
            return lambda use: note(asked, (use.name, number), verdict)

        stage = gated(gate(1, Allow()), gate(2, Block("no")), gate(3, Allow()))
        stage.run()
        assert asked == [("send", 1), ("send", 2), ("add", 1), ("add", 2)]
        assert [message.result.error for message in stage.results] == ["no", "no"]
        assert_laws(stage)

    @pytest.mark.parametrize("shown", [[1, [2]], {"to": [1]}], ids=["a list", "an object"])
    def test_c36_what_a_gate_does_to_arguments_is_not_run(self, shown: Any) -> None:
        """A gate may take a list in the arguments apart: the next gate and the tool have it whole."""
        ran: list[Any] = []

        @tool
        def post(things: Any) -> str:
            """Posts."""
            ran.append(things)
            return "posted"

        def gate(use: ToolContext[Any]) -> Allow:
            things: Any = use.arguments["things"]
            assert things == shown
            things.clear()
            return Allow()

        stage = Stage(call("post", things=shown), say("Done."), tools=[post], extensions=[Hooks(before_tool=gate)] * 2)
        assert stage.run().ok
        assert ran == [shown]
        assert_laws(stage)

    def test_c36_asked_when_it_is_their_turn(self) -> None:
        """A gate is asked about a call when the calls before it have run: it may look at what they did."""
        seen: list[int] = []
        stage = gated(lambda use: note(seen, sum(stage.effects.values()), Allow()))
        stage.run()
        assert seen == [0, 1]
        assert_laws(stage)

    def test_c36_what_a_gate_sees(self) -> None:
        """A gate sees the call as its tool will: arguments checked, key, effect, deps; progress it tells is dropped."""
        uses: list[ToolContext[Any]] = []

        def gate(use: ToolContext[Any]) -> Allow:
            uses.append(use)
            use.progress("thinking about it")
            use.charge(Usage(input_tokens=7))
            with pytest.raises(TypeError):
                cast("Any", use.arguments)["to"] = "everybody"
            return Allow()

        stage = gated(gate)
        result = stage.run(deps="who")
        first, second = uses
        assert (first.name, dict(first.arguments), first.deps, first.index, first.turn) == (
            "send", {"to": "Kari"}, "who", 0, 1,
        )  # fmt: skip
        assert second.key == stage.results[1].result.key
        assert "tool_execution_update" not in stage.kinds
        assert result.usage.input_tokens == 14
        assert [event.key for event in stage.events if isinstance(event, ToolExecutionStart)] == [first.key, second.key]
        assert_laws(stage)

    @pytest.mark.parametrize(
        ("result", "text", "parts"),
        [
            (None, "The call was blocked and the tool not run: too late", 1),
            ("Try tomorrow.", "Try tomorrow.", 1),
            (TextPart("Try tomorrow."), "Try tomorrow.", 1),
            (("Try ", "tomorrow."), "Try tomorrow.", 2),
            (JSONPart({"next": "tomorrow"}), "", 1),
            (ToolResult("other", "ok", "Try tomorrow.", key="m-9:9"), "Try tomorrow.", 1),
        ],
        ids=["nothing", "text", "a part", "parts", "data", "a result"],
    )
    def test_c36_a_block_with_a_result(self, result: Any, text: str, parts: int) -> None:
        """A block may say what the model is told; whose result it is, and that the tool did not run, stays so."""
        stage = gated(on("send", lambda: Block("too late", result)))
        assert stage.run().text == "Done."
        told = stage.results[0].result
        assert (told.text, len(told.parts), told.error) == (text, parts, "too late")
        assert (told.status, told.executed, told.call_id) == (ToolResultStatus.BLOCKED, False, "call_1")
        assert_laws(stage)

    def test_c36_a_block_is_bounded(self) -> None:
        """What a gate has the model told is bounded like what a tool says."""
        most = 200
        stage = gated(on("send", lambda: Block("too long", "x" * 5000)), limits=Limits(max_tool_result_bytes=most))
        assert stage.run().text == "Done."
        assert len(stage.results[0].text) <= most + 200
        assert_laws(stage)

    def test_c36_calls_that_cannot_run(self) -> None:
        """No gate is asked about an unknown tool, wrong arguments or a call that was cut off."""
        asked: list[str] = []
        cut = say("Cut. ", stop_reason="max_tokens") + call("add")
        steps = [call("dda") + call("add", a="x") + call("add", a=1), cut, say("Done.")]
        stage = gated(lambda use: note(asked, use.name, Allow()), steps=steps)
        assert stage.run().text == "Done."
        assert (asked, [status.value for status in stage.statuses]) == (
            ["add"],
            ["not_run", "not_run", "ok", "not_run"],
        )
        assert_laws(stage)

    def test_c36_before_workers(self) -> None:
        """With worker threads gates are asked in the thread of the run, one call after another."""
        asked: list[str] = []
        stage = gated(
            lambda use: note(asked, use.name, (Block("no") if use.name == "add" else Allow())),
            steps=[call("send") + call("add") + call("send", to="b"), say("Done.")],
            limits=Limits(max_parallel_tools=3),
        )
        assert stage.run().text == "Done."
        assert (asked, sum(stage.effects.values())) == (["send", "add", "send"], 2)
        assert sorted(status.value for status in stage.statuses) == ["blocked", "ok", "ok"]
        assert_laws(stage)

    def test_c36_blocked_in_circles(self) -> None:
        """A call that is blocked again and again is a circle like any other."""
        stage = gated(lambda use: Block("no"), steps=[call("add")] * 20, limits=Limits(max_repeated_calls=3))
        assert stage.run().status is RunStatus.LIMITED
        assert len(stage.asked) == 4
        assert_laws(stage)
