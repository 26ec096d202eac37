"""What no other test would notice of transcripts that change hands: holds in two places, and what is read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    Approve,
    Ask,
    AssistantMessage,
    Busy,
    Done,
    Event,
    Hooks,
    InvalidArgument,
    MemoryTranscript,
    MessageView,
    ModelEvent,
    ModelRequest,
    RunHold,
    Scope,
    StopReason,
    ToolCall,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import FakeTool, say

from .hosts import PATIENCE_S
from .test_case_one_run import agent_on, assert_sendable, drop_half_read, record
from .test_case_taken_over import KINDS, Between, Foreign, Mirrored
from .test_killed_mutants_entries_a import Source


class TestAHoldInTwoPlaces:
    """Two transcripts that one run has: from its end on each may go to another run, and these go on side by side."""

    def assert_apart(self, one: MemoryTranscript, other: MemoryTranscript) -> None:
        """A run has the one; another has the other meanwhile."""
        with agent_on(one, say("One two.")).stream("count", check=False) as stream:
            next(stream)
            assert agent_on(other).run("and you").ok

    def test_without_an_agent(self) -> None:
        """What the end of a run frees, it frees everywhere."""
        one, other, hold = MemoryTranscript(), MemoryTranscript(), RunHold.of("import-1")
        one.begin_run(hold)
        other.begin_run(hold)
        one.end_run(record("import-1"))
        self.assert_apart(one, other)

    def test_refused_in_the_second(self) -> None:
        """Who is refused in one place keeps nothing in the other."""
        mirrored = Mirrored(MemoryTranscript())
        mirrored.mirror.begin_run("other")
        with pytest.raises(Busy, match="with run other"):
            mirrored.begin_run(RunHold.of("import-1"))
        mirrored.mirror.end_run(record("other"))
        assert_sendable(mirrored)

    def test_as_its_end_is_told(self) -> None:
        """An observer of the end finds both free."""
        mirrored = Mirrored(MemoryTranscript())
        told: list[str] = []

        def observe(event: Event) -> None:
            if isinstance(event, AgentEnd):
                told.extend(agent_on(each).run("me").text for each in (mirrored, mirrored.mirror))

        assert agent_on(mirrored, say("Done."), extensions=[Hooks(observe=observe)]).run("go").ok
        assert told == ["Fine.", "Fine."]

    def test_refused_when_it_has_read_again(self) -> None:
        """A run that fails because of what came in between frees both."""
        mirror = Between()
        mirrored = Mirrored(mirror)
        mirrored.append(UserMessage("hi"))
        mirror.happens.append(lambda: mirrored.append(AssistantMessage("Hello.")))
        with pytest.raises(InvalidArgument, match="finished"):
            agent_on(mirrored).run()
        mirrored.mirror = Between()
        self.assert_apart(mirrored, mirror)


class SoftTimeLimit(RuntimeError):
    """What a task queue raises in the middle of a task."""


@KINDS
def test_an_interrupt_while_it_is_read_again(kind: type[Between]) -> None:
    """An interrupt there comes out as it is; the run is the one that it cut off, and the agent's next entry ends it."""

    class Interrupting(kind):  # type: ignore[misc, valid-type]  # a class that is given
        interrupts = False

        @property
        def waiting(self) -> tuple[WaitingCall, ...]:
            if self.interrupts:
                self.interrupts = False
                raise SoftTimeLimit
            waits: tuple[WaitingCall, ...] = super().waiting
            return waits

    transcript = Interrupting()
    transcript.happens.append(lambda: setattr(transcript, "interrupts", True))
    agent = agent_on(transcript, interrupts=(SoftTimeLimit,))
    with pytest.raises(SoftTimeLimit):
        agent.run("hi")
    assert transcript.records == []
    assert agent.wait_idle(PATIENCE_S)
    assert [(each.status, each.error) for each in transcript.records] == [("cancelled", "cancelled")]
    assert list(transcript.messages) == []
    assert_sendable(transcript)


def test_what_waited_is_forgotten_when_it_is_read_again() -> None:
    """A run that was to go on with an answered call, which another has done meanwhile, is one that goes on from the
    tail: its tool sources are asked once a turn, and not before."""
    transcript, source = Between(), Source()
    transcript.append(UserMessage("pay"))
    asked = transcript.append(AssistantMessage((), tool_calls=(ToolCall("c1", "pay"),)))
    transcript.mark_waiting([WaitingCall(f"{asked.id}:0", "c1", "pay", {}, "pay?", decision=Approve())])
    gate = Hooks(before_tool=lambda use: Ask("pay?"))
    cut = [*say("Paid, and")[:-1], Done(StopReason.MAX_TOKENS)]
    transcript.happens.append(agent_on(transcript, cut, tools=[FakeTool("pay")], extensions=[gate]).run)
    assert agent_on(transcript, say("that is all."), tools=[source]).run().text == "that is all."
    assert source.turns == [1]


def test_who_was_refused_has_nothing_to_close() -> None:
    """A run that a transcript refused, which knows no holds, never was: its agent's next entry tells nothing of it."""
    transcript = Foreign()
    transcript.begin_run("other")
    agent = agent_on(transcript)
    for _ in range(2):
        with pytest.raises(Busy):
            agent.run("hi")
        assert agent.wait_idle(PATIENCE_S)
        assert (transcript.records, transcript.runs) == ([], ["other"])


def test_what_a_displaced_run_cost_is_told() -> None:
    """A dropped run whose place another has taken writes no message, but its record."""
    transcript = Between()
    first = agent_on(transcript, say("One two."))
    drop_half_read(first)
    assert agent_on(transcript).run("me").ok
    written = list(transcript.messages)
    assert first.wait_idle(PATIENCE_S)
    assert [each.status for each in transcript.records] == ["completed", "cancelled"]
    assert list(transcript.messages) == written


class Connection:
    """What a model reads its answer from. Ctrl-C comes while it is read, and again while it is closed."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.is_open = True
        self._closes: list[Callable[[], object]] = [act]

    def __iter__(self) -> Connection:
        return self

    def __next__(self) -> ModelEvent:
        raise KeyboardInterrupt

    def close(self) -> None:
        """Closes it, but for the first time."""
        if self._closes:
            self._closes.pop()()
            raise KeyboardInterrupt
        self.is_open = False


class CutOff(MemoryTranscript):
    """A transcript in whose `messages` Ctrl-C comes, once, when that is wanted."""

    interrupts = False

    def interrupt_next(self) -> None:
        """Wants it."""
        self.interrupts = True

    @property
    def messages(self) -> MessageView:
        """What the model may see."""
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return super().messages


def test_a_displaced_run_closes_its_model() -> None:
    """A run that Ctrl-C cut off again and again, and whose place another has taken, still lets its connection go."""
    transcript = CutOff()
    connection = Connection(transcript.interrupt_next)

    class Connected:
        name = "connected"

        def stream(self, request: ModelRequest, scope: Scope) -> Connection:
            return connection

    first = Agent(Connected(), transcript=transcript)
    with pytest.raises(KeyboardInterrupt):
        first.run("go")
    assert agent_on(transcript).run("me").ok
    assert connection.is_open
    assert first.wait_idle(PATIENCE_S)
    assert not connection.is_open
    assert_sendable(transcript)
