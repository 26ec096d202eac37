"""A tool that returns from a script, and a recorder of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeVar

from gotato_py import (
    Event,
    InvalidArgument,
    MessageDiscarded,
    MessageEnd,
    MessageUpdate,
    ToolContext,
    ToolEffect,
    ToolSpec,
)

from .steps import Do, Raise, Stall, Wait, wait_for_end

E = TypeVar("E")


class FakeTool:
    """A tool that gives what it was told to, in order, then the last one again; "" if it was told nothing.

    `Raise(error)` is raised, `Do(fn)` returns what `fn()` returns, `Stall()` blocks until the call's scope ends;
    everything else is returned as it is, an exception too. `.uses` holds each ToolContext that it was called with,
    `.arguments` what they were called with. Without a `schema` it takes any arguments.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import ScriptedModel, call, say
    >>> find = FakeTool("find", Raise(ValueError("no such row")), {"row": 7})
    >>> script = [call("find", id=1), call("find", id=2), say("Found.")]
    >>> Agent(ScriptedModel(script), tools=[find]).run("Find it.").text
    'Found.'
    >>> find.arguments
    [{'id': 1}, {'id': 2}]
    """

    def __init__(
        self,
        name: str,
        *returns: object,
        schema: Mapping[str, object] | None = None,
        effect: ToolEffect | str = ToolEffect.UNSPECIFIED,
        description: str = "",
        sequential: bool = False,
        timeout: float | None = None,
    ) -> None:
        if any(isinstance(value, Wait) for value in returns):
            raise InvalidArgument("FakeTool.returns takes no Wait, which returns nothing; use Do(…)")
        self.spec: ToolSpec = ToolSpec(
            name,
            description,
            {"type": "object"} if schema is None else schema,
            effect=ToolEffect(effect),
            sequential=sequential,
            timeout=timeout,
        )
        self._returns = returns or ("",)
        self._turns = count()
        self._uses: list[ToolContext[object]] = []

    def __repr__(self) -> str:
        return f"FakeTool({self.spec.name!r}, used {len(self._uses)}×)"

    @property
    def uses(self) -> list[ToolContext[object]]:
        """The calls so far, in the order in which they began."""
        return list(self._uses)

    @property
    def arguments(self) -> list[dict[str, object]]:
        """The arguments of the calls so far, in the same order."""
        return [dict(use.arguments) for use in self._uses]

    def execute(self, use: ToolContext[object]) -> object:
        """Gives the next scripted value. Any number of threads may call it."""
        self._uses.append(use)
        value = self._returns[min(next(self._turns), len(self._returns) - 1)]
        if isinstance(value, Raise):
            raise value.error
        if isinstance(value, Stall):
            wait_for_end(use.scope)
        return value.fn() if isinstance(value, Do) else value


class EventRecorder:
    """An extension that keeps every event of an agent's runs.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import ScriptedModel, say
    >>> recorder = EventRecorder()
    >>> _ = Agent(ScriptedModel([say("Hello there.")]), extensions=[recorder]).run("Hi")
    >>> recorder.kinds[0], recorder.kinds[-1], recorder.kinds.count("message_update")
    ('agent_start', 'agent_end', 2)
    >>> recorder.text
    'Hello there.'
    """

    def __init__(self) -> None:
        self._events: list[Event] = []  # append and copy are atomic: no lock that a signal handler could meet
        self._wakeups: dict[object, Callable[[], object]] = {}

    def __repr__(self) -> str:
        return f"EventRecorder({len(self._events)} events)"

    def observe(self, event: Event) -> None:
        """Keeps the event."""
        self._events.append(event)
        for wake in list(self._wakeups.values()):
            wake()

    @property
    def events(self) -> list[Event]:
        """The events so far, in order."""
        return list(self._events)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events so far, in order."""
        return [event.kind for event in self.events]

    @property
    def text(self) -> str:
        """The text that was streamed so far, without that of answers that were taken back."""
        kept: list[str] = []
        answer: list[str] = []
        for event in self.events:
            if isinstance(event, MessageUpdate):
                answer.append(event.text)
            elif isinstance(event, MessageEnd):
                kept += answer
                answer = []
            elif isinstance(event, MessageDiscarded):
                answer = []
        return "".join(kept + answer)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order: `recorder.of(ModelRetry)`."""
        return [event for event in self.events if isinstance(event, kind)]

    def wait_for(self, kind: type[E], *, count: int = 1, timeout: float = 5.0) -> E:
        """Blocks until there have been `count` events of a class, and returns the last of these; for a run in another
        thread. Raises `TimeoutError` after `timeout` real seconds, with the kinds that there were.
        """
        wakeup, token = SimpleQueue[None](), object()
        self._wakeups[token] = partial(wakeup.put, None)
        end = monotonic() + timeout
        try:
            left = timeout
            while len(found := self.of(kind)) < count:
                if left <= 0:
                    there = ", ".join(self.kinds) or "none"
                    raise TimeoutError(
                        f"{len(found)} of {count} {kind.__name__} after {timeout} s; the events: {there}"
                    )
                with suppress(Empty):  # and look once more: this process may have been kept from running
                    wakeup.get(timeout=left)
                left = end - monotonic()
        finally:
            del self._wakeups[token]
        return found[count - 1]

    def clear(self) -> None:
        """Forgets the events so far."""
        self._events.clear()

    def to_jsonl(self) -> str:
        """The events as lines of JSON; with a ManualClock and SequentialIds the same in every run."""
        return "".join(json.dumps(event.to_dict(), ensure_ascii=False) + "\n" for event in self.events)
