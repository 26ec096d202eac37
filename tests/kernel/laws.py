"""What holds after every run, whatever happened: the six invariants of the contract, asserted by every case.

A case sets a `Stage` (an agent on a script, watched from within), plays on it, and ends with `assert_laws(stage)`,
which also runs the agent once more: the next run always works.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Sequence

from gotato_py import (
    Agent,
    AgentEnd,
    AgentStart,
    AssistantMessage,
    Event,
    Message,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    ReasoningPart,
    RunStatus,
    TextPart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolMessage,
    ToolResultCommitted,
    Transcript,
    TurnEnd,
    TurnStart,
    check_messages,
)
from gotato_testkit import ScriptedModel, say

from .hosts import PATIENCE_S
from .stage import Stage


def assert_laws(stage: Stage, *, again: bool = True, repair: bool = False, lost_streams: int = 0) -> None:
    """Asserts the six invariants, runs once more, and asserts them again.

    `again=False` where a limit of the agent lets no run succeed: then an agent without limits goes on from its
    transcript. `repair` after an interrupt that left no time for closing: the next run is to close what it left.
    `lost_streams` of the model's streams may never have reached the kernel, which then cannot close them.
    """
    if not repair:
        assert_invariants(stage, lost_streams)
    if again and stage.agent.status != "closed":
        assert stage.agent.status == "idle"
        stage.script.replace(say("And on it goes."))
        result = stage.agent.run("once more", check=False)
        assert (result.status, result.text) == (RunStatus.COMPLETED, "And on it goes."), result
    else:
        model = ScriptedModel([say("And on it goes.")])
        assert Agent(model, transcript=stage.transcript).run("once more").text == "And on it goes."
        assert_request(model.requests[0].messages)
    assert_invariants(stage, lost_streams)


def assert_invariants(stage: Stage, lost_streams: int = 0) -> None:
    """The six, as they stand now."""
    assert_history(stage.transcript)
    for request in stage.model.requests:
        assert_request(request.messages)
    assert stage.watcher.breaches == []
    runs = list(dict.fromkeys(event.run_id for event in stage.events))
    parallel = stage.agent._setup.limits.max_parallel_tools
    for run_id in runs:
        assert_events([event for event in stage.events if event.run_id == run_id], parallel)
    order = [event.run_id for event in stage.events]
    assert order == [run_id for run_id in runs for _ in range(order.count(run_id))], "the events of runs are mixed"
    assert stage.agent.status in {"idle", "closed"}
    assert_threads(stage)
    assert stage.model.unclosed <= lost_streams
    assert [key for key, count in stage.effects.items() if count > 1] == [], "a tool ran twice for one key"


def assert_threads(stage: Stage) -> None:
    """5: no thread of a run is left but those of calls that were given up, which keep no interpreter from its exit."""
    most = len(stage.agent.abandoned)  # asked first: they may end meanwhile
    end = time.monotonic() + PATIENCE_S  # a run waits for the threads of ended tools, but not as long as one may stall
    while len(left := _threads_of(stage)) > most and time.monotonic() < end:
        time.sleep(0.001)
    assert len(left) <= most, left
    assert all(thread.daemon for thread in left), left


def _threads_of(stage: Stage) -> list[threading.Thread]:
    """The threads that are alive and were not when the stage was set."""
    return [thread for thread in threading.enumerate() if thread not in stage.threads and thread.is_alive()]


def assert_history(transcript: Transcript) -> None:
    """1 and 2: every call has its one result, no answer is empty, no id comes twice."""
    assert check_messages(transcript.messages, transcript.waiting) == []
    ids = [message.id for message in transcript.messages]
    assert "" not in ids
    assert len(set(ids)) == len(ids)
    assert_no_empty_answer(transcript.messages)


def assert_request(messages: Sequence[Message]) -> None:
    """1 and 2 in a request: the results stand directly after their message, in the order of its calls."""
    assert check_messages(messages) == []
    assert_no_empty_answer(messages)
    expected: deque[str] = deque()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert expected, "a result without its call"
            assert message.result.key == expected.popleft()
        else:
            assert not expected, "a call without its result"
            if isinstance(message, AssistantMessage):
                expected.extend(f"{message.id}:{index}" for index in range(len(message.tool_calls)))
    assert not expected, "a call without its result"


def assert_no_empty_answer(messages: Sequence[Message]) -> None:
    """2: an assistant message says something or calls something; reasoning that nothing closed is not in it."""
    for message in messages:
        if isinstance(message, AssistantMessage):
            said = [part for part in message.parts if not isinstance(part, ReasoningPart)]
            text = any(not isinstance(part, TextPart) or part.text.strip() for part in said)
            assert text or message.tool_calls, "an empty assistant message"


def assert_events(events: Sequence[Event], parallel: int | None = 1) -> None:
    """4: one start, one end, gapless numbers, every start has its one end, and all of it properly nested; of the tools
    no more run at once than the limit says."""
    kinds = [event.kind for event in events]
    assert isinstance(events[0], AgentStart), kinds
    assert isinstance(events[-1], AgentEnd), kinds
    assert (kinds.count("agent_start"), kinds.count("agent_end")) == (1, 1), kinds
    assert [event.sequence for event in events] == list(range(1, len(events) + 1)), kinds
    assert len({event.agent_id for event in events}) == 1
    opened: list[tuple[str, str]] = []
    for event in events:
        json.dumps(event.to_dict(), allow_nan=False)
        _nest(opened, event)
        running = sum(kind == "tool" for kind, _ in opened)
        assert parallel is None or running <= parallel, kinds
        if isinstance(event, TurnEnd | ToolExecutionEnd):
            assert event.elapsed >= 0
    assert opened == [], kinds


def _nest(opened: list[tuple[str, str]], event: Event) -> None:
    """Opens or closes what the event starts or ends; tools and answers stand within a turn, and never in each other.

    Tools that run at once overlap as they like: each has its start, its progress, its end, and then its result. A batch
    that waited for a person goes on before the first turn of its run.
    """
    match event:
        case TurnStart():
            assert opened == []
            opened.append(("turn", ""))
        case MessageStart():
            assert (opened, event.role) == ([("turn", "")], "assistant")
            opened.append(("message", event.message_id))
        case ToolExecutionStart():
            turn = [("turn", "")] if event.turn else []
            assert opened[: len(turn)] == turn
            assert {kind for kind, _ in opened[len(turn) :]} <= {"tool"}
            assert ("tool", event.key) not in opened
            opened.append(("tool", event.key))
        case ToolExecutionUpdate():
            assert ("tool", event.key) in opened
        case MessageEnd() if isinstance(event.message, AssistantMessage):
            assert opened.pop() == ("message", event.message.id)
        case MessageDiscarded():
            assert opened.pop() == ("message", event.message_id)
        case ToolExecutionEnd():
            assert ("tool", event.key) in opened
            opened.remove(("tool", event.key))
        case ToolResultCommitted():
            assert ("tool", event.message.result.key) not in opened
        case TurnEnd():
            assert opened.pop() == ("turn", "")
            assert opened == []
        case _:
            pass
