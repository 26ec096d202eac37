"""Faults that were found when the first ones were mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    Busy,
    ContextBuilt,
    Done,
    ExtensionFailure,
    Hooks,
    InvalidArgument,
    LimitExceeded,
    Limits,
    MemoryTranscript,
    Message,
    ModelContext,
    RateLimited,
    StopReason,
    ToolCall,
    ToolCallReady,
    TurnView,
    UserMessage,
    WaitingCall,
    assemble_request,
    full_history,
)
from gotato_testkit import FakeTool, ScriptedModel, call, outline, say


def waiting(*steps: Any, limits: Limits | None = None) -> Agent:
    """An agent on a transcript in which a call waits."""
    history: list[Message] = [UserMessage("go", id="u1"), AssistantMessage("", [ToolCall("c", "pay")], id="a1")]
    transcript = MemoryTranscript(history)
    transcript.mark_waiting([WaitingCall("a1:0", "c", "pay", {}, "ok?")])
    return Agent(ScriptedModel(steps), tools=[FakeTool("pay")], transcript=transcript, limits=limits or Limits())


def test_a_redelivered_message_supersedes_nothing() -> None:
    """The message whose call waits, delivered again, leaves the call waiting."""
    agent = waiting(say("x"))
    result = agent.run(UserMessage("go", id="u1"))
    assert (result.status, [each.key for each in result.waiting]) == ("waiting", ["a1:0"])
    assert (agent.status, len(agent.transcript.messages)) == ("waiting", 2)


def test_a_message_that_is_refused_supersedes_nothing() -> None:
    """A message for which there is no room leaves the call waiting."""
    agent = waiting(limits=Limits(max_transcript_bytes=80))
    assert agent.run("x" * 100, check=False).status == "limited"
    assert (agent.status, len(agent.transcript.messages)) == ("waiting", 2)


class Alternating:
    """A builder that shows every message under system text that changes each turn."""

    def build(self, view: TurnView) -> ModelContext:
        """The system text names the turn."""
        return ModelContext(f"turn {view.turn}", view.messages)


def test_the_prefix_hash_follows_the_system_text() -> None:
    """A builder that changes the system text changes the hash, to that of its request."""
    built: list[str] = []

    def observe(event: object) -> None:
        if isinstance(event, ContextBuilt):
            built.append(event.prefix_hash)

    model = ScriptedModel([call("pay"), say("done")])
    Agent(model, tools=[FakeTool("pay", "ok")], context_builder=Alternating(), extensions=[Hooks(observe=observe)]).run(
        "go"
    )
    public = [assemble_request(ModelContext(each.system, each.messages), each.tools)[1] for each in model.requests]
    assert built == public


class NowAndThen:
    """A builder that shows every message in odd turns, and in even ones those from the second on in another form."""

    def build(self, view: TurnView) -> ModelContext:
        """The system text stays the same."""
        shown = view.messages if view.turn % 2 else [UserMessage("In other words."), *view.messages[1:]]
        return ModelContext("always", shown)


def test_the_prefix_hash_follows_the_messages_that_a_builder_shows() -> None:
    """What a builder shows instead has a hash of its own, and what it shows unchanged the one that it always had."""
    built: list[str] = []

    def observe(event: object) -> None:
        if isinstance(event, ContextBuilt):
            built.append(event.prefix_hash)

    model = ScriptedModel([call("pay"), call("pay"), call("pay"), call("pay"), say("done")])
    hooks = Hooks(observe=observe)
    Agent(model, tools=[FakeTool("pay", "ok")], context_builder=NowAndThen(), extensions=[hooks]).run("go")
    public = [assemble_request(ModelContext(each.system, each.messages), each.tools)[1] for each in model.requests]
    assert built == public


class Slip:
    """A builder that makes its context wrongly."""

    def build(self, view: TurnView) -> ModelContext:
        """The messages are no sequence."""
        return ModelContext(view.system, cast("Any", 5))


def test_a_builders_slip_is_the_builders() -> None:
    """An error of ours that a builder provokes is told as the builder's."""
    result = Agent(ScriptedModel([]), context_builder=Slip()).run("go", check=False)
    assert isinstance(result.error, ExtensionFailure)
    assert "Slip.build raised InvalidArgument: ModelContext.messages" in str(result.error)


def test_a_wait_past_every_float_is_none() -> None:
    """`retry_after` of four hundred digits is no wait that could be kept."""
    assert RateLimited(retry_after=10**400).retry_after is None


def test_interrupts_that_are_no_classes() -> None:
    """What cannot even be hashed is refused by name."""
    with pytest.raises(InvalidArgument, match=r"interrupts\[0\]"):
        Agent(ScriptedModel([]), interrupts=cast("Any", ([],)))


def test_ids_of_a_run() -> None:
    """An id source that fails, or gives a run no text, is refused before anything is committed."""

    def numbers(kind: str) -> str:
        return cast("Any", 5) if kind == "run" else kind

    def raising(kind: str) -> str:
        raise KeyError(kind)

    agent = Agent(ScriptedModel([say("x")]), ids=numbers)
    with pytest.raises(InvalidArgument, match="ids"):
        agent.run("hi")
    assert len(agent.transcript.messages) == 0
    with pytest.raises(InvalidArgument, match="ids"):
        Agent(ScriptedModel([]), ids=raising)


def test_a_refused_stream_stays_refused() -> None:
    """A stream that met `Busy` raises it each time it is entered."""
    agent = Agent(ScriptedModel([say("one two")]))
    with agent.stream("go") as first:
        second = agent.stream("too")
        for _ in range(2):
            with pytest.raises(Busy), second:
                pass
        assert first.result.ok


def test_a_validator_that_raises() -> None:
    """A compiled validator's own fault fails the run and names the tool, before the tool starts."""

    def compiler(schema: object) -> Any:
        return lambda value: 1 // 0

    tool = FakeTool("pay", "ok")
    agent = Agent(ScriptedModel([call("pay")]), tools=[tool], schema_compiler=compiler)
    result = agent.run("go", check=False)
    assert isinstance(result.error, ExtensionFailure)
    assert "made for pay raised ZeroDivisionError" in str(result.error)
    assert (tool.uses, outline(agent.transcript.messages)[-1].split(":")[0]) == ([], "tool pay")


def test_the_order_of_nested_arguments_is_nothing() -> None:
    """Calls that differ in the order of an inner object's names alone are the same call."""
    texts = ('{"q": {"a": 1, "b": 2}}', '{"q": {"b": 2, "a": 1}}')
    steps = [[ToolCallReady(ToolCall("c", "look", texts[turn % 2])), Done(StopReason.TOOL_CALLS)] for turn in range(9)]
    tool = FakeTool("look", "same")
    limits = Limits(max_repeated_calls=3)
    result = Agent(ScriptedModel(steps), tools=[tool], limits=limits).run("go", check=False)
    assert isinstance(result.error, LimitExceeded)
    assert (result.error.limit, len(tool.uses)) == ("max_repeated_calls", 4)


class StopsInClose:
    """A stream of one event whose closing is interrupted."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return say("word")[0]

    def close(self) -> None:
        """Ctrl-C."""
        raise KeyboardInterrupt


class Endless:
    """A model whose stream never ends and cannot be closed in peace."""

    def stream(self, request: object, scope: object) -> Any:
        """Its stream."""
        return StopsInClose()


def test_an_interrupt_while_a_stream_is_closed_comes_out() -> None:
    """Ctrl-C during `RunStream.close()` is raised as it is, and the agent is free afterwards."""
    agent = Agent(Endless())
    stream = agent.stream("go")
    while next(stream).kind != "message_update":
        pass
    with pytest.raises(KeyboardInterrupt):
        stream.close()
    assert agent.status == "idle"


def test_an_agent_says_what_it_was_built_from() -> None:
    """Its instructions and its context builder can be read, as `gotato_modelctx.inspect` does."""
    builder = Alternating()
    agent = Agent(ScriptedModel([]), instructions="Be brief.", context_builder=builder)
    assert (agent.instructions, agent.context_builder) == ("Be brief.", builder)
    plain = Agent(ScriptedModel([]))
    assert (plain.instructions, plain.context_builder) == ("", full_history)
