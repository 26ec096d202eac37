"""What no other test would notice of streams that are closed, dropped or interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from gotato_py import (
    Done,
    Event,
    Hooks,
    MemoryTranscript,
    Message,
    ModelEvent,
    RunStatus,
    Scope,
    StopReason,
    TextDelta,
    ToolContext,
    tool,
)
from gotato_testkit import Do, Return, call, say

from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


class Leaving(MemoryTranscript):
    """A transcript in which a GeneratorExit is raised, once: by somebody else's generator, say."""

    leaves = True

    def append(self, message: M) -> M:
        """Commits a message, but for the first."""
        if self.leaves:
            self.leaves = False
            raise GeneratorExit
        return super().append(message)


def interrupt(*_: object) -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def speaking() -> Iterator[ModelEvent]:
    """A model's stream that Ctrl-C interrupts while it is being closed."""
    try:
        yield TextDelta("One ")
        yield Done(StopReason.END_TURN)
    finally:
        interrupt()


def test_a_generator_exit_from_elsewhere() -> None:
    """A GeneratorExit that a transcript raises is an interrupt: it comes out, and the run behind it is closed."""
    stage = Stage(say("Done."), transcript=Leaving())
    with pytest.raises(GeneratorExit):
        stage.run()
    assert (stage.agent.status, stage.kinds) == ("idle", ["agent_start", "agent_end"])
    assert_laws(stage)


def test_an_interrupt_while_a_closed_stream_ends() -> None:
    """An interrupt that comes while a closed stream closes its model is raised, and the run is closed all the same."""
    stage = Stage(Return(speaking()))
    stream = stage.agent.stream("count", check=False)
    for event in stream:
        if event.kind == "message_update":
            break
    with pytest.raises(KeyboardInterrupt):
        stream.close()
    assert (stage.agent.status, stage.kinds[-1]) == ("idle", "agent_end")
    assert_laws(stage)


def test_a_closed_stream_says_so() -> None:
    """The error of a stream that was closed early says that it was, and by what."""
    stage = Stage(say("One two three."))
    with stage.agent.stream("count", check=False) as stream:
        next(stream)
    error = stream.result.error
    assert error is not None
    assert (error.message, error.operation) == ("the stream was closed", "RunStream.close")
    assert_laws(stage)


def test_a_dropped_stream_cancels_the_scope() -> None:
    """What a tool has started under the scope of its run learns of it when the stream is dropped."""
    scopes: list[Scope] = []

    @tool
    def begin(use: ToolContext[None]) -> str:
        """Begins something."""
        scopes.append(use.scope)
        return "begun"

    stage = Stage(call("begin"), say("Done."), tools=[begin])
    streams = [stage.agent.stream("go")]
    while not scopes:
        next(streams[0])
    assert not scopes[0].cancelled
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    assert (scopes[0].cancelled, scopes[0].reason) == (True, "the stream was dropped")
    assert_laws(stage, repair=True)


def test_an_interrupted_stream_tells_its_end() -> None:
    """A stream that an interrupt ends gives every event, agent_end too, before it raises the interrupt."""
    stage = Stage([*say("One "), Do(interrupt)])
    seen: list[Event] = []
    stream = stage.agent.stream("count")
    with pytest.raises(KeyboardInterrupt):
        seen.extend(iter(stream.__next__, None))
    assert seen == stage.events
    assert stage.kinds[-1] == "agent_end"
    assert_laws(stage)


def test_a_stream_closed_from_within_tells_its_end() -> None:
    """A stream that an observer closes goes on to agent_end where it is iterated."""
    closing = Hooks(observe=lambda event: stream.close() if event.kind == "message_update" else None)
    stage = Stage(say("One two three."), extensions=[closing])
    stream = stage.agent.stream("count", check=False)
    kinds = [event.kind for event in stream]
    assert kinds == stage.kinds
    assert kinds[-1] == "agent_end"
    assert stream.result.status is RunStatus.CANCELLED
    assert_laws(stage)
