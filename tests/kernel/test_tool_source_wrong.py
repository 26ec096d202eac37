"""What a tool source does wrong, and what is bound once however often it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gotato_py import (
    Agent,
    ErrorCode,
    ExtensionFailure,
    Hooks,
    InvalidArgument,
    RunStatus,
    SchemaViolation,
    TurnView,
    tool,
)
from gotato_testkit import DemoModel, FakeTool, call, say

from .laws import assert_laws
from .test_tool_source import Shelf, staged
from .workers import fine


class TestWrong:
    """A source fails, or gives what cannot be used."""

    @pytest.mark.parametrize(
        ("offer", "said"),
        [
            (None, "Shelf.tools returned a NoneType; it has to return a sequence of tools"),
            ({"a": 1}, "Shelf.tools returned a dict"),
            ("fine", "Shelf.tools returned a str"),
            (iter(()), "Shelf.tools returned a tuple_iterator"),
            ([42], "Shelf.tools[0]"),
            ([FakeTool], "Shelf.tools[0]"),
            ([FakeTool("a"), FakeTool("a")], "two tools are named 'a'"),
            ([FakeTool("fixed")], "two tools are named 'fixed'"),
            ([FakeTool("a", schema={"type": "object", "odd": 1})], "odd"),
        ],
    )
    @pytest.mark.parametrize("turn", [1, 2])
    def test_what_cannot_be_used_fails_the_run(self, offer: object, said: str, turn: int) -> None:
        """The run fails before its request, with what is wrong and where; the next run asks again."""
        shelf = Shelf()
        good = (fine(),)

        def stock(view: TurnView) -> None:
            shelf.offer = offer if view.turn == turn else good

        fixed = fine("fixed")
        stage = staged([fixed, shelf], call("fine"), say("Done."), extensions=[Hooks(before_turn=stock)])
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert isinstance(result.error, ExtensionFailure)
        assert result.error.code is ErrorCode.EXTENSION_FAILURE
        assert said in str(result.error)
        assert len(stage.model.requests) == turn - 1
        assert stage.statuses == ["ok"] * (turn - 1)
        offer = good
        assert_laws(stage)

    def test_what_it_raises_fails_the_run(self) -> None:
        """The error names the source and the type, has the cause, and does not quote what it said."""
        cause = ValueError("secret")
        shelf = Shelf()
        shelf.raises = cause
        stage = staged([shelf], say("never"))
        result = stage.run()
        assert str(result.error) == "Shelf.tools raised ValueError"
        assert isinstance(result.error, ExtensionFailure)
        assert result.error.cause is cause
        shelf.raises = None
        assert_laws(stage)

    @pytest.mark.parametrize("turn", [1, 2])
    def test_an_interrupt_ends_the_run(self, turn: int) -> None:
        """Ctrl-C while a source is asked is raised again, and the run is closed."""
        shelf = Shelf(fine())

        def interrupt(view: TurnView) -> None:
            shelf.raises = KeyboardInterrupt() if view.turn == turn else None

        stage = staged([shelf], call("fine"), say("never"), extensions=[Hooks(before_turn=interrupt)])
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.kinds[-1] == "agent_end"
        turn = 0
        assert_laws(stage)

    def test_an_interrupt_while_a_schema_is_compiled(self) -> None:
        """A type that interrupts is no error of a tool, wherever in the binding it comes."""

        class SoftTimeLimit(Exception):  # named as task queues name theirs
            """As a task queue raises it."""

        limit = SoftTimeLimit()
        raising = [True]

        def compiler(schema: Mapping[str, Any]) -> Callable[[object], SchemaViolation | None]:
            if raising[0]:
                raise limit
            return lambda arguments: None

        stage = staged([Shelf(fine())], say("never"), schema_compiler=compiler, interrupts=[SoftTimeLimit])
        with pytest.raises(SoftTimeLimit) as caught:
            stage.run()
        assert caught.value is limit
        raising[0] = False
        assert_laws(stage)

    def test_the_end_of_the_run_is_no_failure_of_a_source(self) -> None:
        """A source that heeds the scope of its view when the run is cancelled leaves the run cancelled."""

        class Careful(Shelf):
            """Looks at the scope."""

            def tools(self, view: TurnView) -> Any:
                """Is cancelled meanwhile."""
                if not self.views:
                    stage.agent.cancel("by the host")
                    self.views.append(view)
                view.scope.check()
                return super().tools(view)

        stage = staged([Careful()], say("never"))
        result = stage.run()
        assert (result.status, str(result.error)) == (RunStatus.CANCELLED, "by the host")
        assert_laws(stage)

    def test_what_is_no_source_is_refused_when_the_agent_is_built(self) -> None:
        """A class, a method that cannot take the view, and an object whose `tools` is none are refused at once."""

        class Blind:
            """Takes no view."""

            def tools(self) -> tuple[()]:
                """Gives nothing."""
                return ()

        class Bag:
            """Has tools, but is no source."""

            tools = (fine(),)

        for given, said in (
            (Shelf, "Agent.tools[0]"),
            (Blind(), "Agent.tools[0].tools cannot be called with one view"),
            (Bag(), "Agent.tools[0]"),
        ):
            with pytest.raises(InvalidArgument) as caught:
                Agent(DemoModel(), tools=[given])
            assert said in str(caught.value)


class TestBoundOnce:
    """A tool that was given before is neither read nor compiled again."""

    def test_the_same_tool_in_other_company(self) -> None:
        """Each object is compiled once, in whichever turn, run or sequence it comes; an equal one is another."""
        compiled: list[str] = []

        def compiler(schema: Mapping[str, Any]) -> Callable[[object], SchemaViolation | None]:
            compiled.append(str(schema["title"]))
            return lambda arguments: None

        def titled(name: str) -> FakeTool:
            return FakeTool(name, name, schema={"type": "object", "title": name})

        a, b, c = titled("a"), titled("b"), titled("c")
        offers = [[a, b], (b, a), [a, b, c], [c, b], [c, b]]
        shelf = Shelf()

        def stock(view: TurnView) -> None:
            shelf.offer = offers.pop(0)

        stage = staged(
            [shelf],
            *[call("b"), say("One."), call("b"), say("Two.")],
            say("Three."),
            extensions=[Hooks(before_turn=stock)],
            schema_compiler=compiler,
        )
        for text in ("One.", "Two.", "Three."):
            assert stage.run().text == text
        assert compiled == ["a", "b", "c"]
        offers.append([titled("b")])
        assert_laws(stage)
        assert compiled == ["a", "b", "c", "b"]

    def test_functions_that_a_source_gives(self) -> None:
        """A bare function is made a tool once; its tool is the same in every turn."""

        def plain(n: int) -> int:
            """Doubles."""
            return 2 * n

        decorated = tool(name="other")(lambda: "x")
        shelf = Shelf(plain, decorated)
        stage = staged([shelf], call("plain", n=2), say("Done."))
        before = stage.agent.tools()
        assert stage.run().ok
        after = stage.agent.tools()
        assert before[0] is after[0]
        assert after[1] is decorated
        assert stage.results[0].text == "4"
        assert_laws(stage)
