"""What holds after every run, whatever happened: the six invariants of the contract, asserted by every case.

A case sets a `Stage` (an agent on a script, watched from within), plays on it, and ends with `assert_laws(stage)`,
which also runs the agent once more: the next run always works.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from gotato_py import (
    Agent,
    AgentEnd,
    AgentStart,
    AssistantMessage,
    Event,
    Hooks,
    MemoryTranscript,
    Message,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    ReasoningPart,
    RunResult,
    RunStatus,
    TextPart,
    Tool,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolMessage,
    ToolResultCommitted,
    ToolResultStatus,
    Transcript,
    TurnEnd,
    TurnStart,
    check_messages,
    tool,
)
from gotato_testkit import ScriptedModel, Step, say


class Script:
    """Steps that can be added to while they are played."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = deque(steps)

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        if not self._steps:
            raise StopIteration
        return self._steps.popleft()

    def replace(self, *steps: Step) -> None:
        """Forgets what was not played and plays these."""
        self._steps.clear()
        self._steps.extend(steps)


class Counted:
    """A tool that counts its effects by key, and looks whether it may run at all."""

    def __init__(self, stage: Stage, inner: Tool) -> None:
        self._stage = stage
        self._inner = inner
        self.spec = inner.spec

    def execute(self, use: ToolContext[object]) -> object:
        """Counts, looks, and runs the tool."""
        self._stage.effects[use.key] += 1
        self._stage.watcher.check_start(use.key, f"the tool {use.name}")
        return self._inner.execute(use)


class Watcher:
    """An observer that looks at the transcript at each event: what an event says has to be there already."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self.breaches: list[str] = []

    def observe(self, event: Event) -> None:
        """Checks one event."""
        if isinstance(event, MessageEnd | ToolResultCommitted):
            kept = [message for message in self._transcript.messages if message.id == event.message.id]
            if kept != [event.message]:
                self.breaches.append(f"{event.kind} {event.message.id}: {len(kept)} such messages in the transcript")
        elif isinstance(event, ToolExecutionStart):
            self.check_start(event.key, event.kind)

    def check_start(self, key: str, what: str) -> None:
        """A tool starts after its message is committed and its start recorded."""
        message_id, _, index = key.rpartition(":")
        found = [message for message in self._transcript.messages if message.id == message_id]
        if len(found) != 1 or not isinstance(found[0], AssistantMessage) or int(index) >= len(found[0].tool_calls):
            self.breaches.append(f"{what} {key}: its assistant message is not committed")
        if key not in self._transcript.started:
            self.breaches.append(f"{what} {key}: not recorded as started")


class Stage:
    """An agent on a script, its tools counted and its events kept; `then` puts further steps into the script."""

    def __init__(
        self,
        *steps: Step,
        tools: Sequence[Any] = (),
        transcript: Transcript | None = None,
        extensions: Sequence[object] = (),
        **options: Any,
    ) -> None:
        self.threads = set(threading.enumerate())
        self.events: list[Event] = []
        self.effects: Counter[str] = Counter()
        self.script = Script(steps)
        self.model = ScriptedModel(self.script)
        self.transcript: Transcript = MemoryTranscript() if transcript is None else transcript
        self.watcher = Watcher(self.transcript)
        # `append` itself is the first observer: an interrupt cannot come between the event and its place in the list.
        watching = (Hooks(observe=self.events.append), self.watcher)
        counted = [Counted(self, given if hasattr(given, "execute") else tool(given)) for given in tools]
        self.agent = Agent(
            self.model,
            tools=counted,
            transcript=self.transcript,
            extensions=(*watching, *extensions),
            **options,
        )

    def run(self, message: Any = "do it", **options: Any) -> RunResult[None]:
        """Runs the agent and returns the outcome, whatever it is."""
        return self.agent.run(message, check=False, **options)

    def cancel(self) -> None:
        """Cancels the run, from wherever this is called."""
        assert self.agent.cancel("by the test")

    @property
    def messages(self) -> list[Message]:
        """The transcript."""
        return list(self.transcript.messages)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events."""
        return [event.kind for event in self.events]

    @property
    def history(self) -> list[str]:
        """The transcript, each message in a line."""
        return history(self.transcript.messages)

    @property
    def asked(self) -> list[list[str]]:
        """What each request showed to the model, each message in a line."""
        return [history(request.messages) for request in self.model.requests]

    @property
    def statuses(self) -> list[ToolResultStatus]:
        """The statuses of all results, in the order of their commits."""
        return [message.result.status for message in self.results]

    @property
    def results(self) -> list[ToolMessage]:
        """All results, in the order of their commits."""
        return [message for message in self.transcript.messages if isinstance(message, ToolMessage)]


def history(messages: Sequence[Message]) -> list[str]:
    """Messages as in the cases: `U hi`, `A text [tool, tool] stop`, `R call status`."""
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = f" [{', '.join(call.name for call in message.tool_calls)}]" if message.tool_calls else ""
            lines.append(f"A {message.text}{calls} {message.stop_reason.value}")
        elif isinstance(message, ToolMessage):
            lines.append(f"R {message.result.call_id} {message.result.status.value}")
        else:
            lines.append(f"U {message.text}")
    return lines


def assert_laws(stage: Stage, *, again: bool = True, repair: bool = False, lost_streams: int = 0) -> None:
    """Asserts the six invariants, runs once more, and asserts them again.

    `again=False` where a limit of the agent lets no run succeed: then an agent without limits goes on from its
    transcript. `repair` after an interrupt that left no time for closing: the next run is to close what it left.
    `lost_streams` of the model's streams may never have reached the kernel, which then cannot close them.
    """
    if not repair:
        assert_invariants(stage, lost_streams)
    if again and stage.agent.status != "closed":
        assert stage.agent.status == ("running" if repair and stage.agent.status == "running" else "idle")
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
    for run_id in runs:
        assert_events([event for event in stage.events if event.run_id == run_id])
    order = [event.run_id for event in stage.events]
    assert order == [run_id for run_id in runs for _ in range(order.count(run_id))], "the events of runs are mixed"
    assert stage.agent.status in {"idle", "closed"}
    assert set(threading.enumerate()) <= stage.threads, threading.enumerate()
    assert stage.model.unclosed <= lost_streams
    assert [key for key, count in stage.effects.items() if count > 1] == [], "a tool ran twice for one key"


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


def assert_events(events: Sequence[Event]) -> None:
    """4: one start, one end, gapless numbers, every start has its one end, and all of it properly nested."""
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
        if isinstance(event, TurnEnd | ToolExecutionEnd):
            assert event.elapsed >= 0
    assert opened == [], kinds


def _nest(opened: list[tuple[str, str]], event: Event) -> None:
    """Opens or closes what the event starts or ends; tools and answers stand within a turn, and never in each other."""
    match event:
        case TurnStart():
            assert opened == []
            opened.append(("turn", ""))
        case MessageStart():
            assert opened == [("turn", "")]
            opened.append(("message", event.message_id))
        case ToolExecutionStart():
            assert opened == [("turn", "")]
            opened.append(("tool", event.key))
        case ToolExecutionUpdate():
            assert opened[-1] == ("tool", event.key)
        case MessageEnd() if isinstance(event.message, AssistantMessage):
            assert opened.pop() == ("message", event.message.id)
        case MessageDiscarded():
            assert opened.pop() == ("message", event.message_id)
        case ToolExecutionEnd():
            assert opened.pop() == ("tool", event.key)
        case TurnEnd():
            assert opened.pop() == ("turn", "")
            assert opened == []
        case ToolResultCommitted() | _:
            pass
