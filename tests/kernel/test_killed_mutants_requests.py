"""What no other test would notice of model calls: their requests, attempts, times, and answers that say nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gotato_py import (
    Agent,
    Cancelled,
    ConnectionFailed,
    ContextBuilt,
    ContextOverflow,
    ErrorCode,
    Hooks,
    Limits,
    Message,
    ModelContext,
    ModelRetry,
    RetryPolicy,
    RunStatus,
    StopReason,
    TurnView,
    Usage,
    UsageUpdate,
    UserMessage,
    assemble_request,
)
from gotato_testkit import Do, EventRecorder, FakeTool, ManualClock, Raise, ScriptedModel, Step, call, say

from .laws import assert_laws
from .stage import Stage

AT_ONCE = RetryPolicy(base=0, jitter=0)


def ping() -> str:
    """Answers."""
    return "pong"


class Showing:
    """A builder that shows some of the messages."""

    def __init__(self, end: int | None) -> None:
        self._end = end

    def build(self, view: TurnView) -> ModelContext:
        """All up to the end."""
        return ModelContext(system="", messages=tuple(view.messages)[: self._end])


class Raising:
    """A builder that raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def build(self, view: TurnView) -> ModelContext:
        """Ends the scope of the run where the error says that it has ended, and raises."""
        raise self._error


class TestAttempts:
    """One model call, tried again."""

    def test_numbers(self) -> None:
        """Every further attempt is told with the number of the one that failed, an overflow's too."""
        again = Hooks(on_overflow=lambda view, error: True)
        steps: list[Step] = [Raise(ContextOverflow("too long")), Raise(ConnectionFailed("gone")), say("Done.")]
        stage = Stage(*steps, extensions=[again], retry=AT_ONCE)
        assert stage.run().text == "Done."
        assert [event.attempt for event in stage.events if isinstance(event, ModelRetry)] == [1, 2]
        assert_laws(stage)

    def test_transformed_again(self) -> None:
        """A transform is asked again for each attempt, and what it says then is sent."""
        asked: list[int] = []

        def number(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            asked.append(1)
            return [*messages[:-1], UserMessage(f"attempt {len(asked)}")]

        steps: list[Step] = [Raise(ConnectionFailed("gone")), say("Done.")]
        stage = Stage(*steps, extensions=[Hooks(transform=number)], retry=AT_ONCE)
        assert stage.run().text == "Done."
        assert stage.asked == [["U attempt 1"], ["U attempt 2"]]

    def test_time_in_the_model(self) -> None:
        """The time in the model and in tools counts all turns, each from where it began."""
        clock = ManualClock()

        def slow() -> str:
            """Takes its time."""
            clock.advance(5.0)
            return "done"

        wait = Do(lambda: clock.advance(2.0))
        stage = Stage([wait, *call("slow")], [wait, *say("Done.")], tools=[slow], clock=clock)
        metrics = stage.run().metrics
        assert (metrics.model_s, metrics.tool_s, metrics.elapsed_s) == (4.0, 5.0, 9.0)
        assert_laws(stage)

    def test_silence_is_not_told(self) -> None:
        """An answer of which nothing came but its usage was no message: none is told to have begun."""
        stage = Stage(call("ping"), [UsageUpdate(Usage(1, 0)), *say("")], tools=[ping])
        assert stage.run().status is RunStatus.COMPLETED
        assert stage.kinds.count("message_start") == 1
        assert "message_discarded" not in stage.kinds
        assert_laws(stage)


class TestRequests:
    """What is sent."""

    def test_told_before_it_is_sent(self) -> None:
        """Each request is told once, with how much it holds."""
        stage = Stage(call("ping"), say("Done."), tools=[ping])
        stage.run()
        built = [(event.messages, event.tools) for event in stage.events if isinstance(event, ContextBuilt)]
        assert built == [(1, 1), (3, 1)]
        assert_laws(stage)

    def test_a_pause_is_gone_on_from(self) -> None:
        """After an answer that the provider paused, the request ends with that answer: nothing is said in between."""
        stage = Stage(say("Searching. ", stop_reason=StopReason.PAUSE), say("Found."))
        assert stage.run().text == "Found."
        assert stage.asked[1] == ["U do it", "A Searching.  pause"]
        assert_laws(stage)

    def test_a_pause_that_is_transformed(self) -> None:
        """The same where an extension puts something in front."""
        first = Hooks(transform=lambda view, messages: (UserMessage("Before."), *messages))
        stage = Stage(say("Searching. ", stop_reason=StopReason.PAUSE), say("Found."), extensions=[first])
        assert stage.run().text == "Found."
        assert stage.asked[1] == ["U Before.", "U do it", "A Searching.  pause"]
        assert_laws(stage)

    def test_a_builder_that_ends_with_an_answer(self) -> None:
        """No request ends with a finished answer: what a builder shows is closed by a line of the user's."""
        stage = Stage(say("One."), say("Two."), context_builder=Showing(None))
        stage.run("first")
        other = Stage(say("Two."), transcript=stage.transcript, context_builder=Showing(-1))
        assert other.run("second").text == "Two."
        assert [line[0] for line in other.asked[0]] == ["U", "A", "U"]


class Growing:
    """A source that gives another tool each time."""

    def __init__(self) -> None:
        self._given: list[FakeTool] = []

    def tools(self, view: TurnView) -> Sequence[FakeTool]:
        """One more."""
        self._given.append(FakeTool(f"tool_{len(self._given)}"))
        return list(self._given)


class TestThePrefix:
    """`context_built.prefix_hash` is that of the request that is sent."""

    def hashes(self, agent: Agent, model: ScriptedModel, events: EventRecorder) -> None:
        """Each hash that was told is the one of its request."""
        agent.run("go", check=False)
        told = [event.prefix_hash for event in events.of(ContextBuilt)]
        sent = [assemble_request(ModelContext("s", each.messages), each.tools)[1] for each in model.requests]
        assert len(told) > 1
        assert told == sent

    def test_where_the_tools_change(self) -> None:
        """Also where a source gives other tools than in the turn before."""
        model, events = ScriptedModel([call("tool_0"), call("tool_1"), say("Done.")]), EventRecorder()
        self.hashes(Agent(model, instructions="s", tools=[Growing()], extensions=[events]), model, events)

    def test_where_the_run_is_wrapped_up(self) -> None:
        """Also in the last request after a limit, which has no tools."""
        model, events = ScriptedModel([call("ping"), say("So far.")]), EventRecorder()
        limits = Limits(max_turns=1, wrap_up=True)
        agent = Agent(model, instructions="s", tools=[ping], extensions=[events], limits=limits)
        self.hashes(agent, model, events)


class TestABuilderThatRaises:
    """What a builder raises while its run goes on, and when that has ended."""

    def test_cancelled_by_nobody(self) -> None:
        """A builder that raises `Cancelled` in a run that nobody cancelled has failed."""
        stage = Stage(context_builder=Raising(Cancelled("by itself")))
        result = stage.run()
        assert result.error is not None
        assert (result.status, result.error.code) == (RunStatus.FAILED, ErrorCode.EXTENSION_FAILURE)

    @pytest.mark.parametrize("raised", [None, ZeroDivisionError()])
    def test_a_run_that_was_cancelled(self, raised: Exception | None) -> None:
        """The end of the run from within a builder cancels it; any other error there is the builder's failure."""

        class Ending:
            def build(self, view: TurnView) -> ModelContext:
                stage.cancel()
                if raised is not None:
                    raise raised
                view.scope.check()
                raise AssertionError

        stage = Stage(context_builder=Ending())
        result = stage.run()
        assert result.error is not None
        if raised is None:
            assert result.status is RunStatus.CANCELLED
        else:
            assert result.status is RunStatus.FAILED
            assert result.error.message == "Ending.build raised ZeroDivisionError"
