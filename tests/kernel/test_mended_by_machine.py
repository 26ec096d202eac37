"""Faults that the state machine found, each as small as it became."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, TypeVar

import pytest

from gotato_py import Agent, MemoryTranscript, Message, ToolMessage
from gotato_py._audience import Audience
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


def test_whoever_subscribes_in_a_signal_handler_while_another_subscribes_misses_nothing() -> None:
    """A signal handler that subscribes at any line of another subscription's joining sees the whole run."""
    lines = 0
    at = 1
    while lines >= at - 1:
        agent = Agent(ScriptedModel([say("Hello.")]))
        streams = [agent.subscribe()]
        lines = 0

        def trace(frame: FrameType, event: str, argument: object) -> Any:  # Any: itself or None
            nonlocal lines
            if frame.f_code is not Audience.join.__code__:
                return trace if event == "call" else None
            if event == "line":
                lines += 1
                if lines == at:  # noqa: B023  # called before the loop goes on
                    streams.append(agent.subscribe())  # noqa: B023
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            agent.run("hi")
        finally:
            sys.settrace(before)
        seen = []
        for stream in streams:
            events = []
            while (event := stream.get(timeout=0)) is not None:
                events.append(event.kind)
            seen.append(events)
        assert all(events == seen[0] for events in seen), at
        assert seen[0][0] == "agent_start"
        assert seen[0][-1] == "agent_end"
        at += 1
    assert at > 3
