"""Cases of extension points: who is asked in which order, and what becomes of a run when one of them fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gotato_py import (
    Accept,
    Allow,
    ContextOverflow,
    ErrorCode,
    Event,
    ExtensionFailed,
    ExtensionFailure,
    Hooks,
    InvalidState,
    RunStatus,
    Scope,
    ToolContext,
    ToolResult,
    TurnView,
)
from gotato_testkit import Raise, call, say

from .laws import assert_laws
from .notes import fail
from .stage import Stage

GOING_IN = ("before_run", "before_turn", "transform", "before_tool", "on_overflow", "observe")
COMING_OUT = ("check_answer", "after_tool", "should_stop", "before_settle")
POINTS = (*GOING_IN, *COMING_OUT)
ASKED = tuple(point for point in POINTS if point not in {"observe", "before_tool"})
"""The points where a failure fails the run: not where the world is only watched, and not at a gate, which blocks."""


def raising(error: BaseException) -> Callable[[], None]:
    """A function that raises the error."""

    def act() -> None:
        raise error

    return act


class Extension:
    """An extension with every point: it writes down when it is asked, and does there what it is told to."""

    def __init__(
        self, name: str, log: list[str], at: str = "", act: Callable[[], object] = list, *, advisory: bool = False
    ) -> None:
        self.name, self.advisory = name, advisory
        self._log, self._at, self._act = log, at, act
        self.told: list[ExtensionFailed] = []

    def _asked(self, point: str) -> None:
        self._log.append(f"{point} {self.name}")
        if point == self._at:
            self._act()

    def before_run(self, view: TurnView) -> None:
        """Looks."""
        self._asked("before_run")

    def before_turn(self, view: TurnView) -> None:
        """Looks."""
        self._asked("before_turn")

    def transform(self, view: TurnView, messages: Sequence[Any]) -> Sequence[Any]:
        """Changes nothing."""
        self._asked("transform")
        return messages

    def check_answer(self, view: TurnView, message: Any) -> Any:
        """Accepts."""
        self._asked("check_answer")
        return Accept()

    def before_tool(self, use: ToolContext[Any]) -> Any:
        """Allows."""
        self._asked("before_tool")
        return Allow()

    def after_tool(self, use: ToolContext[Any], result: ToolResult) -> ToolResult:
        """Changes nothing."""
        self._asked("after_tool")
        return result

    def should_stop(self, view: TurnView) -> str | None:
        """Goes on."""
        self._asked("should_stop")
        return None

    def before_settle(self, view: TurnView) -> None:
        """Is content."""
        self._asked("before_settle")

    def on_overflow(self, view: TurnView, error: ContextOverflow) -> bool:
        """Has it tried again, if no other extension is asked after this one."""
        self._asked("on_overflow")
        return self.name in {"c", "alone"}

    def observe(self, event: Event) -> None:
        """Keeps what it is told of failures."""
        if isinstance(event, ExtensionFailed):
            self.told.append(event)
        if event.kind == "turn_start" and event.turn == 1:
            self._asked("observe")


def work(n: int = 0) -> str:
    """Works."""
    return f"worked {n}"


def played(*extensions: Any, steps: Any = None) -> Stage:
    """A stage of two turns: an overflow, two calls, and an answer."""
    script = steps or [Raise(ContextOverflow("full")), call("work", n=1) + call("work", n=2), say("Done.")]
    return Stage(*script, tools=[work], extensions=extensions)


class TestOrder:
    """Who is asked first."""

    def test_installation_order_going_in_reverse_coming_out(self) -> None:
        """Three extensions at every point: a, b, c on the way in, c, b, a on the way out, each time."""
        log: list[str] = []
        stage = played(*(Extension(name, log) for name in "abc"))
        assert stage.run().text == "Done."
        for point in POINTS:
            asked = "".join(line.split()[1] for line in log if line.startswith(f"{point} "))
            order = "abc" if point in GOING_IN else "cba"
            assert {asked[at : at + 3] for at in range(0, len(asked), 3)} == {order}, (point, asked)
        assert_laws(stage)

    def test_the_points_of_a_run_in_their_order(self) -> None:
        """One extension sees a run go by: in, the turns, each call, out."""
        log: list[str] = []
        stage = played(Extension("alone", log))
        stage.run()
        turn = ["before_turn", "transform"]
        assert [line.split()[0] for line in log] == [
            "before_run", "observe", *turn, "on_overflow", "transform", "check_answer",
            "before_tool", "after_tool", "before_tool", "after_tool", "should_stop",
            *turn, "check_answer", "should_stop", "before_settle",
        ]  # fmt: skip
        assert_laws(stage)


ERRORS: list[tuple[Callable[[], BaseException], str]] = [
    (lambda: ValueError("no such row"), "ValueError"),
    (lambda: KeyError("x"), "KeyError"),
    (lambda: InvalidState("not now"), "not now"),
    (lambda: SystemExit(3), "SystemExit"),
    (GeneratorExit, "GeneratorExit"),
    (StopIteration, "StopIteration"),
    (MemoryError, "MemoryError"),
]


class TestFailing:
    """An extension raises at one of its points."""

    @pytest.mark.parametrize(("make", "told"), ERRORS, ids=[told for _, told in ERRORS])
    @pytest.mark.parametrize("point", ASKED)
    def test_fails_the_run(
        self, point: str, make: Callable[[], BaseException], told: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The run fails in the extension's name; the others are told by an event, it is not; there is one log line."""
        log: list[str] = []
        failing, others = Extension("b", log, point, raising(make())), (Extension("a", log), Extension("c", log))
        stage = played(others[0], failing, others[1])
        with caplog.at_level(logging.WARNING, logger="gotato_py"):
            result = stage.run()
        assert (result.status, type(result.error)) == (RunStatus.FAILED, ExtensionFailure)
        assert result.error is not None
        assert f"extension b failed at {point} (" in str(result.error)
        assert told in str(result.error)
        assert type(result.error.cause) is type(make())
        assert failing.told == []
        for other in others:
            told_of = {(event.extension, event.point, event.error and event.error.code) for event in other.told}
            assert told_of == {("b", point, ErrorCode.EXTENSION_FAILURE)}
            assert len(other.told) == log.count(f"{point} b")
        assert len(caplog.records) == 1
        assert "no such row" not in caplog.text  # an exception's text may quote a prompt
        assert_laws(stage, again=False)

    @pytest.mark.parametrize("point", POINTS)
    def test_advisory_changes_nothing(self, point: str, caplog: pytest.LogCaptureFixture) -> None:
        """One that is only advisory fails open: the run goes on as if it were not there, and the others are asked."""
        log: list[str] = []
        failing = Extension("b", log, point, raising(ValueError("no")), advisory=True)
        others = Extension("a", log), Extension("c", log)
        stage = played(others[0], failing, others[1])
        with caplog.at_level(logging.WARNING, logger="gotato_py"):
            result = stage.run()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "Done.")
        assert failing.told == []
        times = log.count(f"{point} b")
        assert times == log.count(f"{point} a") > 0
        assert [[event.point for event in other.told] for other in others] == [[point] * times] * 2
        assert len(caplog.records) == 1
        assert_laws(stage)

    @pytest.mark.parametrize("point", POINTS)
    def test_an_interrupt_comes_out(self, point: str) -> None:
        """Ctrl-C at any point ends the run and is raised again; nobody is told that an extension has failed."""
        stage = played(Extension("alone", [], point, raising(KeyboardInterrupt())))
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert "extension_failed" not in stage.kinds
        assert_laws(stage, again=False)

    @pytest.mark.parametrize("point", [point for point in POINTS if point != "observe"])
    def test_the_end_of_the_run(self, point: str) -> None:
        """A point that meets the end of the run's scope has not failed: the run is cancelled."""
        other = Scope()
        other.cancel()

        def end() -> None:
            stage.agent.cancel()
            other.check()  # as a model that was asked in this scope would

        stage = played(Extension("alone", [], point, end))
        assert stage.run().status is RunStatus.CANCELLED
        assert "extension_failed" not in stage.kinds
        assert_laws(stage, again=False)

    @pytest.mark.parametrize("point", ASKED)
    def test_cancelled_by_another_scope(self, point: str) -> None:
        """`Cancelled` of some other scope is a failure like any other."""
        other = Scope()
        other.cancel()
        stage = played(Extension("alone", [], point, other.check))
        assert isinstance(stage.run().error, ExtensionFailure)
        assert_laws(stage, again=False)

    def test_one_log_line_an_extension(self, caplog: pytest.LogCaptureFixture) -> None:
        """An extension that fails at many points, in many runs, is logged once; another one has its own line."""
        log: list[str] = []
        one = Hooks(before_turn=lambda view: fail(), observe=lambda event: fail(), advisory=True, name="one")
        two = Hooks(should_stop=lambda view: fail(), advisory=True, name="two")
        stage = played(one, two, Extension("c", log))
        with caplog.at_level(logging.WARNING, logger="gotato_py"):
            stage.run()
            stage.script.replace(say("Again."))
            stage.run()
        assert [record.getMessage().split()[1] for record in caplog.records] == ["one", "two"]
        assert_laws(stage)

    def test_an_observer_that_fails_at_a_failure(self) -> None:
        """An observer that fails when it is told of a failure is told of to the others in its turn, and so on to the
        end: nothing goes round in circles."""

        def grumble(event: Event) -> None:
            if isinstance(event, ExtensionFailed):
                raise LookupError(event.extension)

        grumblers = [Hooks(observe=grumble, name=name) for name in ("one", "two")]
        failing = Hooks(before_turn=lambda view: fail(), advisory=True, name="bad")
        stage = played(*grumblers, failing, steps=[say("Done.")])
        assert stage.run().text == "Done."
        told = [event.extension for event in stage.events if isinstance(event, ExtensionFailed)]
        assert told[0] == "bad"
        assert set(told) == {"bad", "one", "two"}
        assert_laws(stage)
