"""The stage that every case plays on: an agent on a script, its tools counted, its events kept, watched from within."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from gotato_py import (
    Agent,
    AssistantMessage,
    Event,
    Hooks,
    MemoryTranscript,
    Message,
    MessageEnd,
    RunResult,
    Tool,
    ToolContext,
    ToolExecutionStart,
    ToolMessage,
    ToolResultCommitted,
    ToolResultStatus,
    Transcript,
    tool,
)
from gotato_testkit import ScriptedModel, Step


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
    """An agent on a script; `script.replace` gives it further steps."""

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
