"""Faults that the state machine found, each as small as it became."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TypeVar

import pytest

from gotato_py import (
    Agent,
    Approve,
    AssistantMessage,
    EventStream,
    Hooks,
    MemoryTranscript,
    Message,
    ToolCall,
    ToolMessage,
    TurnView,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_py._audience import Audience
from gotato_py._subscribers import Subscribers
from gotato_testkit import ScriptedModel, call, say

M = TypeVar("M", bound=Message)


def add(a: int) -> int:
    """Adds one."""
    return a + 1


class InterruptedTranscript(MemoryTranscript):
    """Ctrl-C comes when the first result of a tool is kept, before `append` has returned."""

    __slots__ = ("_interrupted",)

    def append(self, message: M) -> M:
        kept = super().append(message)
        if isinstance(message, ToolMessage) and not hasattr(self, "_interrupted"):
            self._interrupted = True
            raise KeyboardInterrupt
        return kept


def test_the_result_of_an_interrupted_run_holds_every_message_that_it_committed() -> None:
    """A message that was kept when Ctrl-C came is in `new_messages`, though the closing commits others behind it."""
    model = ScriptedModel([call("add", a=1) + call("add", a=2)])
    agent = Agent(model, tools=[add], transcript=InterruptedTranscript())
    stream = agent.stream("do it", check=False)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert list(stream.result.new_messages) == list(agent.transcript.messages)
    assert len(stream.result.new_messages) == 4


class AtLineOf:
    """A trace function that acts once, at the n-th line that a function executes, as a signal handler would."""

    def __init__(self, code: CodeType, nth: int, act: Callable[[], object]) -> None:
        self.lines, self._code, self._nth, self._act = 0, code, nth, act

    def __call__(self, frame: FrameType, event: str, argument: object) -> AtLineOf | None:
        if frame.f_code is self._code and event == "line":
            self.lines += 1
            if self.lines == self._nth:
                self._act()
        return self if event != "call" or frame.f_code is self._code else None

    def during(self, act: Callable[[], object]) -> None:
        """Acts under trace."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            act()
        finally:
            sys.settrace(before)


def kinds_of(stream: EventStream) -> list[str]:
    """The kinds of the events that are queued."""
    kinds: list[str] = []
    while (event := stream.get(timeout=0)) is not None:
        kinds.append(event.kind)
    return kinds


def test_whoever_subscribes_in_a_signal_handler_while_another_joins_misses_nothing() -> None:
    """A signal handler that subscribes while a run takes up its listeners, at any line, sees the whole run."""
    for nth in range(1, 20):
        agent = Agent(ScriptedModel([say("Hello.")]))
        streams = [agent.subscribe()]
        at_line = AtLineOf(Audience.join.__code__, nth, lambda: streams.append(agent.subscribe()))  # noqa: B023
        at_line.during(lambda: agent.run("hi"))  # noqa: B023
        seen = [kinds_of(stream) for stream in streams]
        assert all(kinds == seen[0] for kinds in seen), nth
        assert (seen[0][0], seen[0][-1]) == ("agent_start", "agent_end")
        if at_line.lines < nth:
            return
    raise AssertionError("joining takes fewer lines than that")


def test_whoever_subscribes_in_a_signal_handler_while_another_subscribes_first_is_kept() -> None:
    """A signal handler that subscribes in the middle of the first subscription, at any line, is not forgotten by it."""
    for nth in range(1, 20):
        agent = Agent(ScriptedModel([say("Hello.")]))
        streams: list[EventStream] = []
        at_line = AtLineOf(Audience.add.__code__, nth, lambda: streams.append(agent.subscribe()))  # noqa: B023
        at_line.during(lambda: streams.append(agent.subscribe()))  # noqa: B023
        agent.run("hi")
        assert [kinds_of(stream)[-1:] for stream in streams] == [["agent_end"]] * len(streams), nth
        if at_line.lines < nth:
            return
    raise AssertionError("subscribing takes fewer lines than that")


def test_what_was_interrupted_while_it_was_made_is_dropped_in_silence() -> None:
    """Ctrl-C in the middle of the first subscription leaves nothing that complains when it is collected."""
    lost: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lost.append
    try:
        made = Subscribers.__new__(Subscribers)  # as an interrupt in `__init__` leaves it
        del made
    finally:
        sys.unraisablehook = before
    assert lost == []


def test_calls_behind_one_that_was_started_when_its_process_ended_wait_no_more() -> None:
    """An approved call that a power cut ended is closed at the next entry; so are those behind it, though it fails."""

    def fails(view: TurnView) -> None:
        raise LookupError

    asking = AssistantMessage(tool_calls=[ToolCall(f"c{index}", "add", '{"a": 1}') for index in range(3)], id="m1")
    transcript = MemoryTranscript([UserMessage("do it", id="u1"), asking])
    transcript.mark_waiting([WaitingCall("m1:0", "c0", "add", {"a": 1}, "may it?", decision=Approve())])
    transcript.mark_started("m1:0")
    agent = Agent(ScriptedModel([]), tools=[add], transcript=transcript, extensions=[Hooks(before_run=fails)])
    result = agent.run(answers={"m1:0": Approve()}, check=False)
    assert result.status == "failed"
    assert [str(each.result.status) for each in result.new_messages if isinstance(each, ToolMessage)] == [
        "cancelled",
        "not_run",
        "not_run",
    ]
    assert check_messages(transcript.messages, transcript.waiting) == []
    assert agent.status == "idle"
