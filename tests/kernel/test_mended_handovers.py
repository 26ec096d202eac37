"""Faults that were found at the borders of a run: streams that were closed from within and dropped, what is shown of
arguments, and exceptions that come from nowhere."""

from __future__ import annotations

import copy
import sys
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

import pytest

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    Block,
    Deny,
    GotatoError,
    Hooks,
    InvalidState,
    Limits,
    MemoryTranscript,
    RunStatus,
    RunStream,
    TextDelta,
    ToolContext,
    ToolExecutionStart,
    ToolSpec,
    check_messages,
    tool,
)
from gotato_testkit import ScriptedModel, call, say

from .hosts import PATIENCE_S, in_thread
from .interrupts import AtLine, LineInterrupt
from .laws import assert_laws
from .stage import Stage
from .test_case_one_run import agent_on, assert_sendable
from .test_case_streams import ThreadNoting


class TestAStreamThatWasClosedFromWithin:
    """`close` from a tool, or from another thread, only cancels; the reader then leaves at an event."""

    def dropped(self, transcript: MemoryTranscript, *, by_other: bool) -> Any:
        """An agent whose stream was closed so, read on to the end of the call, and left in the given list."""
        streams: list[RunStream[None]] = []

        def act() -> str:
            """Closes the stream that it runs in."""
            in_thread(streams[0].close) if by_other else streams[0].close()
            return "done"

        agent = agent_on(transcript, call("act") + call("act"), say("never"), tools=[act])
        streams.append(agent.stream("go", check=False))
        while next(streams[0]).kind != "tool_execution_end":
            pass
        return agent, streams

    @pytest.mark.parametrize("by_other", [False, True], ids=["from within", "by another thread"])
    def test_the_collector_writes_nothing(self, by_other: bool) -> None:
        """Where the stream is dropped on another thread, that commits nothing; the agent's next entry closes it."""
        transcript = ThreadNoting()
        agent, streams = self.dropped(transcript, by_other=by_other)
        before = len(transcript.messages)
        with pytest.warns(ResourceWarning, match="dropped"):
            in_thread(streams.clear)
        assert len(transcript.messages) == before
        assert agent.wait_idle(PATIENCE_S)
        assert set(transcript.threads) == {get_ident()}
        assert_sendable(transcript)

    def test_another_agent_may_have_it_then(self) -> None:
        """It is left behind once it is dropped: another agent closes its calls, and nothing is written behind that."""
        transcript = MemoryTranscript()
        agent, streams = self.dropped(transcript, by_other=False)
        with pytest.warns(ResourceWarning, match="dropped"):
            streams.clear()
        assert agent_on(transcript).run("me too").ok
        assert agent.wait_idle(PATIENCE_S)
        assert_sendable(transcript)

    def test_closed_again_by_its_reader(self) -> None:
        """The reader's own `close` ends the run, as ever."""
        transcript = MemoryTranscript()
        agent, streams = self.dropped(transcript, by_other=False)
        streams[0].close()
        assert (agent.status, check_messages(transcript.messages)) == ("idle", [])


class TestWhatIsShownOfArguments:
    """Nobody who only looks at a call changes what is run."""

    def post(self, ran: list[Any]) -> Any:
        """A tool that notes what it was called with."""

        @tool
        def post(things: list[str]) -> str:
            """Posts."""
            ran.append(list(things))
            return "posted"

        return post

    def test_an_observer_changes_a_list(self) -> None:
        """A list in the arguments of an event is the event's own."""
        ran: list[Any] = []

        def observe(event: object) -> None:
            if isinstance(event, ToolExecutionStart):
                things: Any = event.arguments["things"]
                things.append("more")

        steps = call("post", things=["a"]), say("Done.")
        stage = Stage(*steps, tools=[self.post(ran)], extensions=[Hooks(observe=observe)])
        assert (stage.run().ok, ran) == (True, [["a"]])

    def test_a_gate_changes_the_call(self) -> None:
        """A gate has the call for itself: a name, a key or deps that it sets reach nobody."""
        seen: list[object] = []

        def gate(use: ToolContext[Any]) -> Allow:
            assert use.deps == "who"
            use.key = use.name = use.call_id = "mine"
            use.deps = "other"
            use.keywords()["things"] = ["b"]  # type: ignore[index]  # nobody should
            return Allow()

        @tool
        def look(use: ToolContext[str], things: str) -> str:
            """Looks."""
            seen.extend([use.name, use.deps, things])
            return "seen"

        gates = [Hooks(before_tool=gate), Hooks(before_tool=gate)]
        stage = Stage(call("look", things="a"), say("Done."), tools=[look], extensions=gates)
        assert stage.run(deps="who").ok
        assert seen == ["look", "who", "a"]
        assert_laws(stage)

    def test_a_tool_changes_what_was_approved(self) -> None:
        """The record of an approved call stays as it was shown."""
        transcript = MemoryTranscript()

        class Post:
            spec = ToolSpec("post", input_schema={"type": "object", "properties": {"things": {"type": "array"}}})

            def execute(self, use: ToolContext[object]) -> str:
                things: Any = use.arguments["things"]
                things.clear()
                shown.append(transcript.waiting[0].arguments)
                return "posted"

        shown: list[Any] = []
        gate = Hooks(before_tool=lambda use: Ask("post?"))
        agent = agent_on(transcript, call("post", things=["a"]), say("Ok."), tools=[Post()], extensions=[gate])
        (waiting,) = agent.run("go").waiting
        assert agent.run(answers={waiting.key: Approve()}).ok
        assert shown == [{"things": ["a"]}]

    def test_a_tool_that_empties_its_list_repeats_nothing(self) -> None:
        """Calls that differ are different calls, though the tool has emptied the list of each."""

        class Drain:
            spec = ToolSpec("drain", input_schema={"type": "object", "properties": {"items": {"type": "array"}}})

            def execute(self, use: ToolContext[object]) -> str:
                items: Any = use.arguments["items"]
                items.clear()
                return "drained"

        steps = [call("drain", items=[number]) for number in range(4)]
        stage = Stage(*steps, say("Done."), tools=[Drain()], limits=Limits(max_repeated_calls=2))
        assert stage.run().status is RunStatus.COMPLETED


def test_a_shallow_copy_is_another_transcript() -> None:
    """`copy.copy` during a run makes a transcript of its own: what is written to one is not in the other."""
    transcript = MemoryTranscript()
    copies: list[MemoryTranscript] = []

    def look() -> str:
        """Copies."""
        copies.append(copy.copy(transcript))
        assert_sendable(copies[0])
        return "copied"

    assert agent_on(transcript, call("look"), say("Done."), tools=[look]).run("go").text == "Done."
    assert [message.text for message in transcript.messages] == ["go", "", "copied", "Done."]
    assert copies[0].messages[:2] == transcript.messages[:2]
    assert_sendable(transcript)
    assert_sendable(copies[0])


@pytest.mark.parametrize("refuse", [Block("no " * 1000), Ask("sure?")], ids=["a gate", "a person"])
def test_a_reason_is_bounded(refuse: Block | Ask) -> None:
    """What the model is told of a refusal is no larger than the result of a tool may be."""
    limits = Limits(max_tool_result_bytes=500)
    gate = Hooks(before_tool=lambda use: refuse)
    stage = Stage(call("look"), say("Ok."), say("Ok."), tools=[look], extensions=[gate], limits=limits)
    result = stage.run()
    if result.waiting:
        stage.run(None, answers={result.waiting[0].key: Deny("no " * 1000)})
    (told,) = (message for message in stage.messages if message.role == "tool")
    assert len(told.text) < 600
    assert len(told.result.error) <= 500
    assert "bytes left out" in told.result.error
    assert_laws(stage)


def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.parametrize("kind", [TimeoutError, InvalidState])
@pytest.mark.parametrize("module", ["_ledger.py", "checks.py"])
def test_an_exception_from_nowhere_leaves_the_agent_well(kind: type[Exception], module: str) -> None:
    """An error of a signal handler that comes while the kernel counts messages ends the run; the next one sees what is
    there, whatever line that was."""
    number = 0
    while True:
        number += 1
        transcript = MemoryTranscript()
        model = ScriptedModel([say("One."), call("look"), *[say("On.")] * 4])
        told: list[str] = []
        observer = Hooks(observe=partial(note_committed, told))
        agent = Agent(model, transcript=transcript, tools=[look], extensions=[observer])
        agent.run("first")
        agent_on(transcript, say("Two."), say("Three.")).run("by another")  # which this agent has not counted yet
        line = LineInterrupt(number, kind, lines_of=module)
        with suppress(GotatoError):
            line(partial(agent.run, "go", check=False))
        if not line.where:
            break
        for _ in range(2):
            assert agent.run("next").ok
            shown = [message.text for message in model.requests[-1].messages]
            assert shown == [message.text for message in transcript.messages][: len(shown)]
        assert check_messages(transcript.messages) == []
        if kind is TimeoutError:  # one of ours ends a run as any other does: whoever raises it is not looked for
            others = {"by another", "Two."}
            assert told == [message.id for message in transcript.messages if message.text not in others]
    assert number > 30


def note_committed(told: list[str], event: object) -> None:
    """Notes the messages that are told to be committed."""
    message = getattr(event, "message", None)
    if message is not None:
        told.append(message.id)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="traces bytecodes of frames entered before alone")
def test_a_stream_is_closed_in_the_middle_of_its_close() -> None:
    """A signal handler that closes a stream which is being closed changes nothing: it is closed when both are through,
    and has a result."""
    number = 0
    while True:
        number += 1
        transcript = MemoryTranscript()
        agent = agent_on(transcript, [TextDelta("One"), *say(" two.")])
        stream = agent.stream("count", check=False)
        while next(stream).kind != "message_update":
            pass
        line = AtLine(number, stream.close, opcodes_of="stream.py")
        line(stream.close)
        assert (agent.status, stream.result.status) == ("idle", RunStatus.CANCELLED)
        if not line.where:
            break
    assert number > 30
