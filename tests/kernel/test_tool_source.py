"""Tool sources: asked at the start of every turn, and their set holds for the turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gotato_py import (
    Agent,
    Approve,
    Ask,
    ExtensionFailure,
    Hooks,
    Limits,
    RunStatus,
    TurnView,
    Usage,
    tool,
)
from gotato_testkit import Do, FakeTool, SequentialIds, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import batch, fine


class Shelf:
    """A source that gives what lies on it, and keeps the views that it was asked with."""

    def __init__(self, *tools: object) -> None:
        self.offer: Any = tools  # what it gives: a sequence of tools, or something wrong
        self.views: list[TurnView] = []
        self.raises: BaseException | None = None

    def tools(self, view: TurnView) -> Any:
        """Gives it."""
        self.views.append(view)
        if self.raises is not None:
            raise self.raises
        return self.offer


def staged(tools: Sequence[object], *steps: Any, **options: Any) -> Stage:
    """A stage whose agent takes these tools and sources as they are."""
    stage = Stage(*steps)
    extensions = (Hooks(observe=stage.events.append), stage.watcher, *options.pop("extensions", ()))
    stage.agent = Agent(stage.model, tools=tools, transcript=stage.transcript, extensions=extensions, **options)
    return stage


def offered(stage: Stage) -> list[list[str]]:
    """The names of the tools in each request."""
    return [[spec.name for spec in request.tools] for request in stage.model.requests]


class TestAsked:
    """When a source is asked, and with what."""

    def test_at_the_start_of_every_turn_with_a_view_of_it(self) -> None:
        """It is asked once a turn, after the turn has begun, with the run, the turn and the messages so far."""
        shelf = Shelf(fine())
        stage = staged([shelf], call("fine"), call("fine"), say("Done."), instructions="Be brief.")
        result = stage.run(deps="mine")
        assert result.ok
        assert [view.turn for view in shelf.views] == [1, 2, 3]
        assert [len(view.messages) for view in shelf.views] == [1, 3, 5]
        first = shelf.views[0]
        assert (first.system, first.run_id, first.deps) == ("Be brief.", result.run_id, "mine")
        assert first.transcript is stage.transcript
        assert first.result is None
        assert_laws(stage)

    def test_after_before_turn(self) -> None:
        """What an extension does in `before_turn` is there when the source is asked."""
        shelf = Shelf()

        def restock(view: TurnView) -> None:
            shelf.offer = [fine()]

        stage = staged([shelf], call("fine"), say("Done."), extensions=[Hooks(before_turn=restock)])
        assert stage.run().ok
        assert stage.statuses == ["ok"]
        assert_laws(stage)

    def test_once_for_all_attempts_of_a_turn(self) -> None:
        """Another attempt at the same model call asks no source again."""
        shelf = Shelf(fine())
        stage = staged([shelf], say(), say("Late."))
        assert stage.run().text == "Late."
        assert (len(shelf.views), offered(stage)) == (1, [["fine"], ["fine"]])
        assert_laws(stage)

    def test_before_a_batch_that_waited(self) -> None:
        """On the answers the source is asked before the batch goes on: a tool that is gone by then is not run."""
        shelf = Shelf(fine("pay"), fine("mail"))
        gate = Hooks(before_tool=lambda use: Ask("Really?"))
        stage = staged([shelf], batch("pay", "mail"), say("Done."), extensions=[gate])
        waiting = stage.run()
        assert (waiting.status, len(waiting.waiting), len(shelf.views)) == (RunStatus.WAITING, 2, 1)
        shelf.offer = [fine("mail")]
        answers = {each.key: Approve() for each in waiting.waiting}
        assert stage.agent.run(answers=answers).text == "Done."
        assert stage.statuses == ["not_run", "ok"]
        assert 'no tool "pay"; available: mail' in stage.results[0].text
        assert [view.turn for view in shelf.views] == [1, 0, 1]
        assert_laws(stage)

    def test_by_nobody_where_there_is_none(self) -> None:
        """An agent with fixed tools alone offers them in every turn."""
        stage = staged([fine("b"), fine("a")], call("a"), say("Done."))
        assert stage.run().ok
        assert offered(stage) == [["a", "b"]] * 2
        assert_laws(stage)


class TestChanges:
    """Tools come and go between turns."""

    def test_a_turn_keeps_its_set(self) -> None:
        """What changes while a turn goes on counts from the next one: in the request, and for what may be called."""
        shelf = Shelf()

        def restock() -> str:
            shelf.offer = [switch, fine("new")]
            return "restocked"

        switch = FakeTool("switch", Do(restock))
        shelf.offer = [switch, fine("old")]
        stage = staged([shelf], batch("switch", "old", "new"), batch("old", "new"), say("Done."))
        assert stage.run().ok
        assert offered(stage) == [["old", "switch"], ["new", "switch"], ["new", "switch"]]
        assert stage.statuses == ["ok", "ok", "not_run", "not_run", "ok"]
        assert_laws(stage)

    def test_a_list_that_the_source_changes(self) -> None:
        """A source may give its own list each time: what is in it counts, not which list it is."""
        shelf = Shelf()

        def restock() -> str:
            shelf.offer.append(fine("new"))
            return "restocked"

        shelf.offer = [FakeTool("switch", Do(restock))]
        stage = staged([shelf], call("switch"), call("new"), say("Done."))
        assert stage.run().ok
        assert offered(stage) == [["switch"], ["new", "switch"], ["new", "switch"]]
        assert stage.statuses == ["ok", "ok"]
        assert_laws(stage)

    def test_no_tool_at_all(self) -> None:
        """An empty offer is one; the model is told that there is none."""
        shelf = Shelf(fine())

        def clear(view: TurnView) -> None:
            if view.turn == 2:
                shelf.offer = ()

        stage = staged([shelf], call("fine"), call("fine"), say("Done."), extensions=[Hooks(before_turn=clear)])
        assert stage.run().ok
        assert offered(stage) == [["fine"], [], []]
        assert stage.results[1].result.error == 'no tool "fine"; available: none'
        assert_laws(stage)

    def test_between_runs(self) -> None:
        """A new run asks anew."""
        shelf = Shelf(fine("a"))
        stage = staged([shelf], say("One."), say("Two."))
        stage.run()
        shelf.offer = (fine("b"),)
        stage.run()
        assert offered(stage) == [["a"], ["b"]]
        assert_laws(stage)


class TestMixed:
    """Fixed tools and sources in one agent."""

    def test_in_any_mix(self) -> None:
        """Tools, functions and sources stand together; `Agent.tools` has them in the order given, requests by name."""

        def plain() -> str:
            """A function."""
            return "plain"

        first, second = Shelf(fine("d"), fine("c")), Shelf(tool(lambda: "x", name="b"))
        stage = staged([first, plain, fine("a"), second], batch("a", "b", "c", "plain"), say("Done."))
        assert [each.spec.name for each in stage.agent.tools()] == ["d", "c", "plain", "a", "b"]
        assert stage.run().ok
        assert offered(stage)[0] == ["a", "b", "c", "d", "plain"]
        assert stage.statuses == ["ok"] * 4
        assert_laws(stage)

    def test_on_worker_threads(self) -> None:
        """Tools of a source run in parallel as others do, and a source is asked in the thread of the run."""
        shelf = Shelf(fine("a"), FakeTool("b", "b", timeout=5.0), FakeTool("c", "c", sequential=True))
        stage = staged([shelf], batch("a", "b", "c"), say("Done."), limits=Limits(max_parallel_tools=3))
        assert stage.run().ok
        assert sorted(stage.history[2:5]) == ["R call_1 ok", "R call_2 ok", "R call_3 ok"]
        assert_laws(stage)

    def test_the_tools_of_an_agent(self) -> None:
        """`Agent.tools()` asks the sources as a turn would, whether a run goes on or not, and changes nothing."""
        seen: list[list[str]] = []
        shelf = Shelf()

        def look() -> str:
            seen.append([each.spec.name for each in stage.agent.tools()])
            return "looked"

        shelf.offer = [FakeTool("look", Do(look))]
        stage = staged([fine(), shelf], say("Before."), call("look"), say("Done."))
        assert [each.spec.name for each in stage.agent.tools()] == ["fine", "look"]
        assert stage.run().text == "Before."
        assert stage.run().text == "Done."
        assert seen == [["fine", "look"]]
        assert stage.agent.tools()[1] is shelf.offer[0]
        shelf.raises = ValueError("empty")
        with pytest.raises(ExtensionFailure, match=r"Shelf\.tools raised ValueError"):
            stage.agent.tools()
        shelf.raises = None
        assert_laws(stage)

    def test_the_view_outside_of_a_run(self) -> None:
        """`Agent.tools()` shows the source the transcript as it is, in no run and before any turn."""
        shelf = Shelf(fine())
        ids = SequentialIds()
        stage = staged([shelf], say("Before."), ids=ids)
        stage.run()
        stage.agent.tools()
        view = shelf.views[-1]
        assert list(view.messages) == stage.messages
        assert (view.turn, view.run_id, view.usage, view.scope.cancelled) == (0, "", Usage(), False)
        assert ids("run") == "run-2"
        assert_laws(stage)
