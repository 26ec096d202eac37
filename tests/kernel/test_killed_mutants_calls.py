"""What no other test would notice of single calls: unwatched, interrupted, given up, unsaved, repeated."""

from __future__ import annotations

import time
from enum import Enum
from typing import TypeVar

import pytest

from gotato_py import (
    Agent,
    Ask,
    Block,
    Hooks,
    Limits,
    MemoryTranscript,
    Message,
    Pending,
    RunStatus,
    ToolCall,
    ToolContext,
    ToolExecutionEnd,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    tool,
)
from gotato_py._calls import _unstarted
from gotato_testkit import Do, FakeTool, ScriptedModel, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import Grace, Hanging

M = TypeVar("M", bound=Message)
TWO = Limits(max_parallel_tools=2)


class Colour(Enum):
    """A converted argument."""

    RED = "red"


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class Stingy(MemoryTranscript):
    """A transcript that fails to keep the first result."""

    failed = False

    def append(self, message: M) -> M:
        """Keeps all but the first result."""
        if isinstance(message, ToolMessage) and not self.failed:
            self.failed = True
            raise OSError("full")
        return super().append(message)


def exceptions(stage: Stage) -> list[str]:
    """What the tools were told to have raised."""
    return [event.exception for event in stage.events if isinstance(event, ToolExecutionEnd)]


class TestOnWorkers:
    """Calls on worker threads."""

    def test_nobody_watches(self) -> None:
        """They run without any observer, and tell their progress to nobody."""

        @tool
        def plain(use: ToolContext[object]) -> str:
            """Works."""
            use.progress("half way")
            return "done"

        agent = Agent(ScriptedModel([call("plain") + call("plain"), say("Done.")]), tools=[plain], limits=TWO)
        assert agent.run("go").text == "Done."
        results = [message.result.text for message in agent.transcript.messages if isinstance(message, ToolMessage)]
        assert results == ["done", "done"]

    def test_an_interrupt_comes_out(self) -> None:
        """What a tool on a worker raises to interrupt the run ends it."""
        stage = Stage(call("stop") + call("stop"), tools=[FakeTool("stop", Do(interrupt))], limits=TWO)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert_laws(stage)

    def test_cancelled_by_itself(self) -> None:
        """A tool that cancels its own run, and ends at once, was cancelled: no time has passed."""

        @tool
        def cancel(use: ToolContext[object]) -> None:
            """Ends its run."""
            stage.cancel()
            use.scope.check()

        stage = Stage(call("cancel"), tools=[cancel], limits=Limits(tool_timeout=60.0))
        assert stage.run().status is RunStatus.CANCELLED
        assert stage.statuses == ["cancelled"]
        assert_laws(stage)

    def test_an_answer_within_the_grace(self) -> None:
        """What a tool returns at the end of its time, instead of raising, is its result."""

        @tool(timeout=0.05)
        def late(use: ToolContext[object]) -> str:
            """Waits for the end."""
            use.scope.wait(10.0)
            time.sleep(0.1)
            return "as far as I came"

        stage = Stage(call("late"), say("Done."), tools=[late])
        with Grace() as grace:
            stage.run()
        assert grace.over or (stage.statuses, stage.results[0].result.text) == (["ok"], "as far as I came")
        assert_laws(stage)

    def test_without_a_thread(self) -> None:
        """A call that gets no thread has raised nothing: there was no tool that could have."""
        result, exception = _unstarted(ToolCall("call_1", "a"), "m-1:0", RuntimeError("no room"))
        assert (result.status, result.key, exception) == (ToolResultStatus.NOT_RUN, "m-1:0", "")

    def test_given_up_without_an_exception(self) -> None:
        """A call that is given up has raised nothing that anybody knows of."""
        with Hanging(timeout=0.05) as hang:
            stage = Stage(call("hang"), say("Done."), tools=[hang])
            stage.run()
            assert (stage.statuses, exceptions(stage)) == (["timed_out"], [""])
            assert_laws(stage)


class TestUnsaved:
    """A transcript cannot keep a result at first."""

    @pytest.mark.parametrize("limits", [Limits(), TWO], ids=["here", "on a worker"])
    def test_the_real_result_is_kept(self, limits: Limits) -> None:
        """The run has failed, and its closing keeps what the tool has really answered."""
        stage = Stage(call("a"), tools=[FakeTool("a", "paid")], transcript=Stingy(), limits=limits)
        assert stage.run().status is RunStatus.FAILED
        assert [message.result.text for message in stage.results] == ["paid"]
        assert_laws(stage)


class TestRepeated:
    """`max_repeated_calls`."""

    def test_without_limit(self) -> None:
        """None admits any number of the same call."""
        limits = Limits(max_repeated_calls=None, max_turns=None)
        stage = Stage(*[call("a")] * 12, say("Done."), tools=[FakeTool("a", "a")], limits=limits)
        assert stage.run().text == "Done."
        assert {message.result.text for message in stage.results} == {"a"}
        assert_laws(stage)

    def test_wrapped_up(self) -> None:
        """A run that goes in circles is wrapped up as one that has taken its turns."""
        limits = Limits(max_repeated_calls=2, wrap_up=True)
        stage = Stage(*[call("a")] * 3, say("That is all."), tools=[FakeTool("a", "a")], limits=limits)
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.LIMITED, "That is all.")
        assert_laws(stage)


class TestBlocked:
    """Calls that do not run, and what extensions see of them."""

    def test_seen_with_its_arguments_as_sent(self) -> None:
        """`after_tool` sees a blocked call with the arguments that the model sent, not with what they become."""
        seen: list[object] = []

        @tool
        def paint(colour: Colour) -> str:
            """Paints."""
            return colour.value

        def look(use: ToolContext[object], result: ToolResult) -> ToolResult:
            seen.append(dict(use.arguments))
            return result

        hooks = Hooks(before_tool=lambda use: Block("no"), after_tool=look)
        agent = Agent(ScriptedModel([call("paint", colour="red"), say("Done.")]), tools=[paint], extensions=[hooks])
        assert agent.run("go").text == "Done."
        assert seen == [{"colour": "red"}]

    def test_a_failure_before_a_question(self) -> None:
        """A run in which an extension has failed does not wait for a person: it has failed."""

        def fail(use: ToolContext[object], result: ToolResult) -> ToolResult:
            raise ValueError

        hooks = Hooks(before_tool=lambda use: Ask("May it?") if use.name == "b" else Block("no"), after_tool=fail)
        stage = Stage(call("a") + call("b"), tools=[FakeTool("a"), FakeTool("b")], extensions=[hooks])
        assert stage.run().status is RunStatus.FAILED
        assert not stage.effects


class TestResults:
    """What a result holds beside its text."""

    def test_pending(self) -> None:
        """The handle of work that goes on elsewhere is kept with the result, and no other result has one."""
        stage = Stage(
            call("order") + call("a"), say("Done."), tools=[FakeTool("order", Pending("job-7")), FakeTool("a")]
        )
        stage.run()
        assert [message.result.metadata for message in stage.results] == [{"handle": "job-7"}, {}]
        assert_laws(stage)

    def test_empty_text(self) -> None:
        """A tool that returns empty text says nothing: its result has no part."""
        stage = Stage(call("a"), say("Done."), tools=[FakeTool("a", "")])
        stage.run()
        assert (stage.statuses, stage.results[0].result.parts) == (["ok"], ())
        assert_laws(stage)
