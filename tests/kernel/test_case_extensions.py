"""Cases of what can be installed as an extension, and what is refused when the agent is built."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gotato_py import (
    Accept,
    Agent,
    Allow,
    Block,
    Event,
    Hooks,
    InvalidArgument,
    MessageEnd,
    TurnView,
)
from gotato_testkit import EventRecorder, FakeTool, ScriptedModel, call, say

from .laws import assert_laws
from .notes import fail, note
from .stage import Stage

POINTS = (
    "before_run", "before_turn", "transform", "check_answer", "before_tool", "after_tool", "should_stop",
    "before_settle", "on_overflow", "observe",
)  # fmt: skip
TWO = {"transform", "check_answer", "after_tool", "on_overflow"}


def build(*extensions: object) -> Agent:
    """An agent with these extensions."""
    return Agent(ScriptedModel([say("Hi.")]), extensions=extensions)


def refused(*extensions: object) -> str:
    """Why an agent with these cannot be built."""
    with pytest.raises(InvalidArgument) as raised:
        build(*extensions)
    return str(raised.value)


class Watching:
    """An extension with two points, and a method that is none."""

    name = "watching"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def observe(self, event: Event) -> None:
        """Keeps the kind."""
        self.seen.append(event.kind)

    def before_turn(self, view: TurnView) -> None:
        """Keeps the turn."""
        self.seen.append(f"turn {view.turn}")

    def report(self) -> str:
        """What it has seen."""
        return ", ".join(self.seen)


class Calling:
    """An object that can be called."""

    def __init__(self, look: Callable[[int, Event], None]) -> None:
        self._look = look

    def __call__(self, event: Event) -> None:
        """Looks."""
        self._look(1, event)


class Static:
    """An object whose method is handed over."""

    def __init__(self, look: Callable[[int, Event], None]) -> None:
        self._look = look

    def watch(self, event: Event) -> None:
        """Looks."""
        self._look(1, event)


class TestObjects:
    """Any object with a method of a point's name."""

    def test_an_object_with_methods(self) -> None:
        """Its methods are asked; others of its own are its own business."""
        watching = Watching()
        assert build(watching).run("hi").text == "Hi."
        assert watching.seen[0] == "agent_start"
        assert "turn 1" in watching.report()

    def test_inherited(self) -> None:
        """A subclass offers what its base does; None in the place of a method takes it back."""

        class Quiet(Watching):
            """Does not look at turns."""

            before_turn = None  # type: ignore[assignment]  # that is how a point is taken back

        quiet = Quiet()
        build(quiet).run("hi")
        assert "turn 1" not in quiet.seen
        assert "agent_end" in quiet.seen

    @pytest.mark.parametrize("point", POINTS)
    def test_attributes_of_the_instance(self, point: str) -> None:
        """A callable that only this object has counts as well, whatever else its type offers."""
        seen: list[object] = []

        def look(*given: object) -> Any:
            seen.append(given)
            return {
                "transform": given[-1],
                "check_answer": Accept(),
                "before_tool": Allow(),
                "after_tool": given[-1],
            }.get(point)

        for holder in (SimpleNamespace(), EventRecorder()):
            setattr(holder, point, look)
            stage = Stage(call("work"), say("Hi."), tools=[FakeTool("work")], extensions=[holder])
            assert stage.run().text == "Hi."
        assert bool(seen) == (point != "on_overflow")
        assert_laws(stage)

    def test_attributes_that_are_made_up(self) -> None:
        """An object that hands on to another one whatever it is asked for."""

        class Proxy:
            """Hands on."""

            def __init__(self, inner: object) -> None:
                self._inner = inner

            def __getattr__(self, name: str) -> object:
                return getattr(self._inner, name)

        watching = Watching()
        build(Proxy(watching)).run("hi")
        assert "agent_end" in watching.seen

    @pytest.mark.parametrize(
        "make",
        [
            lambda look: partial(look, 1),
            Calling,
            lambda look: lambda *given: look(1, *given),
            lambda look: lambda event, more=1: look(more, event),
            lambda look: Static(look).watch,
        ],
        ids=["partial", "callable object", "any number", "defaults", "method"],
    )
    def test_any_callable(self, make: Callable[[Callable[[int, Event], None]], Any]) -> None:
        """A partial, an object that can be called, a function with defaults: whatever takes what the point gives."""
        seen: list[str] = []
        build(Hooks(observe=make(lambda number, event: note(seen, event.kind)))).run("hi")
        assert seen[-1] == "agent_end"

    def test_the_set_is_fixed(self) -> None:
        """What an extension offers is looked up when the agent is built: what it becomes later changes nothing."""
        watching = Watching()
        agent = build(watching)
        watching.observe = lambda event: note(watching.seen, "changed")  # type: ignore[method-assign]  # on purpose
        agent.run("hi")
        assert "changed" not in watching.seen

    def test_the_same_twice(self) -> None:
        """An extension that is installed twice is asked twice."""
        seen: list[MessageEnd] = []

        def look(event: Event) -> None:
            if isinstance(event, MessageEnd):
                seen.append(event)

        hooks = Hooks(observe=look)
        build(hooks, hooks).run("hi")
        assert len(seen) == 4

    def test_in_two_agents(self) -> None:
        """One extension may serve many agents: what it fails at in one is logged for each."""
        gate = Hooks(before_tool=lambda use: Block("no"))
        for _ in range(2):
            stage = Stage(call("work"), say("Hi."), tools=[FakeTool("work")], extensions=[gate])
            assert stage.run().text == "Hi."
            assert stage.statuses == ["blocked"]
            assert_laws(stage)


class TestHooks:
    """The value with a callable for each point."""

    def test_it_is_a_value(self) -> None:
        """It is frozen, compares, and can be replaced field by field."""
        look = Watching().observe
        hooks = Hooks(observe=look, name="one", advisory=True)
        assert hooks == Hooks(observe=look, name="one", advisory=True)
        with pytest.raises(AttributeError):
            hooks.name = "two"  # type: ignore[misc]  # on purpose
        assert (hooks.advisory, hooks.before_turn) == (True, None)

    @pytest.mark.parametrize("name", ["before_tol", "on_event", "beforeTool", "after_turn"])
    def test_a_misspelled_point(self, name: str) -> None:
        """A point that there is not is a TypeError, as for any function."""
        with pytest.raises(TypeError, match=name):
            Hooks(**{name: print})  # type: ignore[arg-type]  # on purpose

    @pytest.mark.parametrize("point", POINTS)
    def test_what_cannot_be_called(self, point: str) -> None:
        """What is no callable is refused where it is given, with the number of arguments that it should take."""
        count = "2 arguments" if point in TWO else "one argument"
        with pytest.raises(InvalidArgument, match=rf"Hooks\.{point} must be a callable that takes {count} .*, not int"):
            Hooks(**{point: 5})  # type: ignore[arg-type]  # on purpose

    def test_positional(self) -> None:
        """Points are named: nobody has to remember their order."""
        with pytest.raises(TypeError):
            Hooks(print)  # pyright: ignore[reportCallIssue]  # on purpose


class TestNames:
    """An extension has a name, by which it is told of."""

    @pytest.mark.parametrize(
        ("given", "name"),
        [
            (Hooks(before_turn=lambda view: fail(), name="auditor"), "auditor"),
            (Hooks(before_turn=lambda view: fail()), "Hooks"),
            (SimpleNamespace(before_turn=lambda view: fail(), name="auditor"), "auditor"),
            (SimpleNamespace(before_turn=lambda view: fail(), name=5), "SimpleNamespace"),
            (SimpleNamespace(before_turn=lambda view: fail(), name=""), "SimpleNamespace"),
        ],
    )
    def test_its_own_or_its_types(self, given: object, name: str) -> None:
        """The name that it has, or that of its type."""
        error = build(given).run("hi", check=False).error
        assert str(error).startswith(f"extension {name} failed at before_turn (KeyError)")

    def test_advisory_is_said_with_true(self) -> None:
        """Only True makes an extension advisory: a method or a text of that name does not."""
        strict = SimpleNamespace(before_turn=lambda view: fail(), advisory="no")
        assert not build(strict).run("hi", check=False).ok
        lenient = SimpleNamespace(before_turn=lambda view: fail(), advisory=True)
        assert build(lenient).run("hi").ok
