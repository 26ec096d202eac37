"""Cases of what is refused as an extension when the agent is built: slips that would silently do nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gotato_py import Agent, Allow, Event, Hooks, InvalidArgument, ToolContext, TurnView
from gotato_testkit import ScriptedModel

from .test_case_extensions import POINTS, TWO, Watching, build, refused


class TestRefused:
    """What is surely a slip is refused when the agent is built, by its place and with what to do."""

    def test_a_class(self) -> None:
        """A class in the place of an instance."""
        assert refused(Watching) == "Agent.extensions[0] is the class Watching; pass an instance of it"
        assert refused(Watching(), Hooks) == "Agent.extensions[1] is the class Hooks; pass an instance of it"

    @pytest.mark.parametrize(
        "given", [object(), 5, "observe", None, Hooks(), Hooks(name="x", advisory=True), {}, print]
    )
    def test_no_point_at_all(self, given: object) -> None:
        """An object that offers nothing would silently do nothing."""
        assert "offers no extension point" in refused(given)
        assert "before_tool" in refused(given)

    @pytest.mark.parametrize("given", [Watching(), 5, "watching"])
    def test_no_sequence(self, given: object) -> None:
        """A single extension in the place of a sequence."""
        with pytest.raises(InvalidArgument, match=r"Agent\.extensions"):
            Agent(ScriptedModel([]), extensions=given)  # type: ignore[arg-type]  # on purpose

    @pytest.mark.parametrize(
        ("name", "point"),
        [
            ("before_tol", "before_tool"), ("before_tools", "before_tool"), ("befor_tool", "before_tool"),
            ("beforetool", "before_tool"), ("beforeTool", "before_tool"), ("before_toll", "before_tool"),
            ("on_before_tool", "before_tool"), ("after_tol", "after_tool"), ("should_sotp", "should_stop"),
            ("shouldStop", "should_stop"), ("on_observe", "observe"), ("Observe", "observe"), ("observer", "observe"),
            ("overflow", "on_overflow"), ("onOverflow", "on_overflow"), ("before_tunr", "before_turn"),
            ("transforms", "transform"), ("check_answers", "check_answer"), ("before_settled", "before_settle"),
            ("beforerun", "before_run"), ("before_tool_call", "before_tool"), ("transform_messages", "transform"),
        ],
    )  # fmt: skip
    def test_a_name_that_is_close(self, name: str, point: str) -> None:
        """A public method whose name is close to a point's, beside points that are right."""
        kind = type("Slip", (Watching,), {name: lambda self, given: None})
        assert refused(kind()) == f"Agent.extensions[0] has a method {name!r}; did you mean the point {point!r}?"
        assert "did you mean" in refused(kind())  # each time, not only the first

    @pytest.mark.parametrize(
        "name", ["report", "on_event", "run", "stop", "tool", "settle", "reserve", "_before_tol", "format"]
    )
    def test_a_name_that_is_not(self, name: str) -> None:
        """Methods with other names, and private ones, are nobody's business."""
        build(type("Fine", (Watching,), {name: lambda self, given: None})())

    def test_a_longer_name_beside_the_point_itself(self) -> None:
        """A method whose name begins with a point's is a helper where the point is there, else it is a slip."""
        helper = {"observe_turns": lambda self, given: None}
        build(type("Fine", (Watching,), helper)())
        assert "'observe'" in refused(type("Slip", (), {"before_turn": Watching.before_turn, **helper})())

    @pytest.mark.parametrize("point", POINTS)
    def test_a_signature_that_cannot_be_called(self, point: str) -> None:
        """Too few or too many parameters, or a keyword that nobody gives: told with what the point gives."""
        count = "2 arguments" if point in TWO else "one argument"
        slips: list[Callable[..., Any]] = [
            lambda: None,
            lambda one, two, three: None,
            lambda one, two=0, *, three: None,
        ]
        for slip in slips:
            said = refused(Hooks(**{point: slip}))  # type: ignore[arg-type]
            assert said.startswith(f"Agent.extensions[0].{point} cannot be called with {count} (")
        forgotten = type("Forgotten", (), {point: lambda given: None})  # no self
        assert point in refused(forgotten()) if point in TWO else True

    def test_asynchronous(self) -> None:
        """A coroutine function, an asynchronous generator, an object with an asynchronous `__call__`."""

        async def gate(use: ToolContext[Any]) -> Allow:
            return Allow()

        async def events(event: Event) -> Any:
            yield event

        class Calls:
            """Is called, and would have to be awaited."""

            async def __call__(self, event: Event) -> None:
                """Never runs."""

        class Methods:
            """Has such a method."""

            async def before_turn(self, view: TurnView) -> None:
                """Never runs."""

        slips: list[object] = [
            Hooks(before_tool=gate), Hooks(observe=events), Hooks(observe=Calls()), Methods(),  # type: ignore[arg-type]
            Hooks(before_tool=partial(gate)),  # type: ignore[arg-type]
        ]  # fmt: skip
        for slip in slips:
            assert "asynchronous" in refused(slip)

    def test_a_generator(self) -> None:
        """A generator function, which would silently do nothing."""

        def look(view: TurnView) -> Iterator[None]:
            yield

        assert "generator function" in refused(Hooks(before_turn=look))

    def test_what_is_no_callable_in_an_object(self) -> None:
        """An attribute with a point's name that cannot be called."""
        assert "Agent.extensions[0].observe must be a callable that takes one argument (event), not bool" in refused(
            SimpleNamespace(observe=True)
        )
