"""What no other test would notice of requests: when each is told, what is shared, what is refused before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    Compaction,
    ConnectionFailed,
    ContextBuilt,
    Done,
    ErrorCode,
    EventStream,
    Hooks,
    LimitExceeded,
    Limits,
    Message,
    ModelContext,
    ModelEvent,
    ModelRequest,
    ModelRetry,
    RetryPolicy,
    RunStatus,
    Scope,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    TurnView,
    UserMessage,
    assemble_request,
)
from gotato_testkit import FakeTool, ManualClock, Raise, ScriptedModel, call, say

from .laws import assert_laws
from .stage import Stage


class TestStreaming:
    """An iterator of events has each before what it announces."""

    def test_a_request(self) -> None:
        """Whoever iterates is told of a request before the model gets it."""
        stage = Stage(call("a"), say("Done."), tools=[FakeTool("a")])
        stream = stage.agent.stream("do it")
        asked = [len(stage.model.requests) for event in stream if isinstance(event, ContextBuilt)]
        assert asked == [0, 1]
        assert_laws(stage)

    def test_a_retry(self) -> None:
        """Whoever iterates is told of a further attempt before the wait for it begins."""
        clock = ManualClock()
        policy = RetryPolicy(base=5.0, jitter=0)
        stage = Stage(Raise(ConnectionFailed("gone")), say("Done."), clock=clock, retry=policy)
        began = clock.monotonic()
        times = [clock.monotonic() - began for event in stage.agent.stream("go") if isinstance(event, ModelRetry)]
        assert (times, clock.monotonic() - began) == ([0.0], 5.0)
        assert_laws(stage)


class TestArguments:
    """`max_message_bytes` while a model writes the arguments of a call."""

    def test_that_do_not_end(self) -> None:
        """Arguments that grow over the limit end the run at once, though they were never complete."""
        pieces = [ToolCallDelta(0, "a", '{"text": "'), *[ToolCallDelta(0, "", "x" * 40)] * 9]
        stage = Stage([*pieces, Raise(AssertionError())], tools=[FakeTool("a")], limits=Limits(max_message_bytes=100))
        result = stage.run()
        assert isinstance(result.error, LimitExceeded)
        assert (result.status, result.error.limit, stage.history) == (
            RunStatus.LIMITED,
            "max_message_bytes",
            ["U do it"],
        )
        assert_laws(stage)

    def test_are_counted_once(self) -> None:
        """Arguments that came piece by piece and then as a whole are no more than what they say."""
        arguments = '{"text": "' + "x" * 60 + '"}'
        pieces = [ToolCallDelta(0, "a", arguments[:30]), ToolCallDelta(0, "", arguments[30:])]
        whole = ToolCallReady(ToolCall("c1", "a", arguments))
        stage = Stage(
            [*pieces, whole, Done()], say("Done."), tools=[FakeTool("a")], limits=Limits(max_message_bytes=100)
        )
        assert stage.run().text == "Done."
        assert_laws(stage)


class Keeping(ScriptedModel):
    """A model that keeps the messages of its requests as they came."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Keeps them, and answers."""
        self.kept: Sequence[Message] = request.messages
        return super().stream(request, scope)


class Showing:
    """A builder that shows all messages, or none but the last batch."""

    def __init__(self, *, all_of_them: bool) -> None:
        self._all = all_of_them
        self.shown: Sequence[Message] = ()

    def build(self, view: TurnView) -> ModelContext:
        """Shows them."""
        self.shown = view.messages if self._all or len(view.messages) == 1 else view.messages[-2:]
        return ModelContext(system="", messages=self.shown)


class TestShared:
    """Messages are shared, not copied."""

    def test_what_a_builder_returns(self) -> None:
        """A builder that returns the messages of its view costs nothing: that very sequence is sent."""
        model, builder = Keeping([call("a"), say("Done.")]), Showing(all_of_them=True)
        Agent(model, tools=[FakeTool("a")], context_builder=builder).run("do it")
        assert model.kept is builder.shown

    def test_one_view_for_a_request(self) -> None:
        """The transforms of one request are all shown the same view."""
        seen: list[TurnView] = []

        def look(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            seen.append(view)
            return messages

        stage = Stage(say("Done."), extensions=[Hooks(transform=look), Hooks(transform=look)])
        stage.run()
        first, second = seen
        assert first is second
        assert_laws(stage)


class TestSomebodyComes:
    """A subscriber may come at any moment."""

    def test_while_a_request_is_made(self) -> None:
        """One who comes while the request is transformed is told the hash of its prefix, like everybody."""
        came: list[EventStream] = []

        def subscribe(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            came.append(agent.subscribe())
            return messages

        model = ScriptedModel([say("Done.")])
        agent = Agent(model, instructions="s", extensions=[Hooks(transform=subscribe)])
        agent.run("go")
        agent.close()
        (told,) = [event for event in came[0] if isinstance(event, ContextBuilt)]
        (sent,) = model.requests
        assert told.prefix_hash == assemble_request(ModelContext("s", sent.messages), sent.tools)[1]


OPEN = AssistantMessage(tool_calls=(ToolCall("c1", "a"), ToolCall("c2", "a")))
EMPTY = AssistantMessage()


class TestUnsendable:
    """What cannot be sent is refused before it is."""

    @pytest.mark.parametrize(
        ("added", "said"),
        [(OPEN, "message 1: call 0 has no result"), (EMPTY, "message 1: the answer is empty")],
        ids=["open calls", "an empty answer"],
    )
    def test_what_an_extension_has_committed(self, added: AssistantMessage, said: str) -> None:
        """Where an extension that compacts leaves a transcript that no provider takes, the run fails, and says why."""

        def spoil(view: TurnView) -> None:
            transcript = view.transcript
            last = transcript.messages[-1].id
            transcript.replace(Compaction(UserMessage("Summary."), last))  # type: ignore[attr-defined]
            transcript.append(added)

        stage = Stage(extensions=[Hooks(before_turn=spoil)])
        result = stage.run()
        assert result.error is not None
        assert (result.status, result.error.code) == (RunStatus.FAILED, ErrorCode.INVALID_STATE)
        assert f"the transcript cannot be sent: {said}" in result.error.message
        assert stage.model.requests == []

    def test_a_result_before_all_others(self) -> None:
        """A transform that begins with a result is refused for that message, whatever comes behind it."""

        def cut(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            return messages if len(messages) == 1 else [messages[-1], UserMessage("And?")]

        stage = Stage(call("a"), tools=[FakeTool("a")], extensions=[Hooks(transform=cut, name="cutter")])
        error = stage.run().error
        assert error is not None
        assert error.code is ErrorCode.EXTENSION_FAILURE
        assert "message 0 cannot be sent: a result without its call" in error.message
        assert_laws(stage)

    def test_a_result_behind_the_first_batch(self) -> None:
        """One that is put behind the batch with which the messages begin is refused, too."""

        def add(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            another = ToolMessage(ToolResult("c9", ToolResultStatus.OK, key="m:9"))
            return messages if len(messages) == 1 else [*messages, another, UserMessage("And?")]

        builder = Showing(all_of_them=False)
        extension = Hooks(transform=add, name="adder")
        stage = Stage(call("a"), tools=[FakeTool("a")], context_builder=builder, extensions=[extension])
        error = stage.run().error
        assert error is not None
        assert "message 2 cannot be sent" in error.message
        assert_laws(stage, again=False)
