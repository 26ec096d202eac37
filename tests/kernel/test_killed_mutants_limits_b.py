"""What no other test would notice of limits: of progress that comes from elsewhere, of full transcripts, of cycles."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest

from gotato_py import Event, Hooks, Limits, MessageStart, RunStatus, ToolContext, ToolExecutionUpdate, Usage, tool
from gotato_testkit import call, say

from .laws import assert_laws
from .stage import Stage
from .workers import in_other_thread

HERE_OR_BESIDE = pytest.mark.parametrize("parallel", [1, 2], ids=["here", "on a worker"])


class Text(str):
    """Text of which it can be told whether anybody keeps it."""


class Teller:
    """Tells progress, one text after another, and knows which of them are still kept by somebody."""

    def __init__(self) -> None:
        self._told: list[weakref.ref[Text]] = []

    def tell(self, progress: Callable[[str], None], *texts: str) -> None:
        """Tells these."""
        for each in texts:
            text = Text(each)
            self._told.append(weakref.ref(text))
            progress(text)

    @property
    def kept(self) -> list[str]:
        """Those that are kept."""
        return [str(text) for told in self._told if (text := told()) is not None]


def updates(stage: Stage) -> list[str]:
    """The texts of all progress, in order."""
    return [event.text for event in stage.events if isinstance(event, ToolExecutionUpdate)]


class TestProgressFromOtherThreads:
    """A tool has started a thread, which tells how far it is."""

    def test_over_the_limits(self) -> None:
        """What is over the limits is dropped at once, not kept until the tool returns."""
        kept: list[str] = []

        @tool
        def work(use: ToolContext[object]) -> str:
            """Has another thread tell more than it may."""
            in_other_thread(lambda: teller.tell(use.progress, "one", "two", "three", "four"))
            kept.extend(teller.kept)
            return "done"

        teller = Teller()
        limits = Limits(max_tool_progress_updates=2)
        stage = Stage(call("work"), say("Done."), tools=[work], limits=limits)
        assert stage.run().text == "Done."
        assert (kept, updates(stage)) == (["one", "two"], ["one", "two"])
        assert_laws(stage)

    @HERE_OR_BESIDE
    def test_after_its_end(self, parallel: int) -> None:
        """What is told when the tool has returned goes nowhere, and nothing keeps it: such a thread may live long."""
        uses: list[ToolContext[object]] = []

        @tool
        def work(use: ToolContext[object]) -> str:
            """Is remembered by somebody."""
            uses.append(use)
            return "done"

        teller = Teller()
        stage = Stage(call("work"), say("Done."), tools=[work], limits=Limits(max_parallel_tools=parallel))
        assert stage.run().text == "Done."
        in_other_thread(lambda: teller.tell(uses[0].progress, "too late"))
        assert (teller.kept, updates(stage)) == ([], [])
        assert_laws(stage)


class TestFullTranscripts:
    """`max_transcript_bytes`."""

    @pytest.mark.parametrize(("message", "kept"), [("1", ["U 1"]), ("12", [])])
    def test_a_message_that_fills_it(self, message: str, kept: list[str]) -> None:
        """A message that just fits is kept, and only the turn behind it is refused."""
        stage = Stage(limits=Limits(max_transcript_bytes=1))
        assert stage.run(message).status is RunStatus.LIMITED
        assert stage.history == kept
        assert_laws(stage, again=False)


class TestTokens:
    """`max_total_tokens`."""

    def test_reached_by_an_answer_without_calls(self) -> None:
        """No further turn begins, whatever has been queued for one."""

        def queue(event: Event) -> None:
            if isinstance(event, MessageStart):
                stage.agent.follow_up("and then?")

        first, limits = say("One.", usage=Usage(5, 5)), Limits(max_total_tokens=10)
        stage = Stage(first, say("Two."), extensions=[Hooks(observe=queue)], limits=limits)
        assert stage.run().status is RunStatus.LIMITED
        assert len(stage.asked) == 1
        assert_laws(stage, again=False)


class TestCycles:
    """`max_repeated_calls`."""

    @pytest.mark.parametrize(("length", "status"), [(64, RunStatus.LIMITED), (65, RunStatus.COMPLETED)])
    def test_as_long_as_is_looked_back(self, length: int, status: RunStatus) -> None:
        """A cycle of 64 different calls is noticed; a longer one is not, so that nothing grows with the run."""

        @tool
        def work(number: int) -> str:
            """Works."""
            return "done"

        calls = call("work", number=0)
        for number in range(1, length):
            calls += call("work", number=number)
        stage = Stage(calls, call("work", number=0), say("Done."), tools=[work], limits=Limits(max_repeated_calls=1))
        assert stage.run().status is status
        assert_laws(stage)

    def test_the_order_of_arguments(self) -> None:
        """The same arguments in another order are the same call; others are another one, though its result is alike."""

        @tool
        def work(number: int, unit: str) -> str:
            """Works."""
            return "done"

        first, other = call("work", number=1, unit="m"), call("work", number=2, unit="m")
        stage = Stage(first, other, call("work", unit="m", number=1), tools=[work], limits=Limits(max_repeated_calls=1))
        assert stage.run().status is RunStatus.LIMITED
        assert len(stage.results) == 3
        assert_laws(stage)
