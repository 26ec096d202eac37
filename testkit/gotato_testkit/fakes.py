"""A tool that returns from a script, and a recorder of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import TypeVar

from gotato_py import Event, InvalidArgument, ToolContext, ToolEffect, ToolSpec

from .steps import Do, Raise, Stall, Wait, wait_for_end

E = TypeVar("E")


class FakeTool:
    """A tool that gives what it was told to, in order, then the last one again; "" if it was told nothing.

    `Raise(error)` is raised, `Do(fn)` returns what `fn()` returns, `Stall()` blocks until the call's scope ends;
    everything else is returned as it is, an exception too. `.uses` holds each ToolContext that it was called with.
    Without a `schema` it takes any arguments.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import ScriptedModel, call, say
    >>> find = FakeTool("find", Raise(ValueError("no such row")), {"row": 7})
    >>> script = [call("find", id=1), call("find", id=2), say("Found.")]
    >>> Agent(ScriptedModel(script), tools=[find]).run("Find it.").text
    'Found.'
    >>> [dict(use.arguments) for use in find.uses]
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
        self.spec = ToolSpec(
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
    """

    def __init__(self) -> None:
        self._events: list[Event] = []  # append and copy are atomic: no lock that a signal handler could meet

    def __repr__(self) -> str:
        return f"EventRecorder({len(self._events)} events)"

    def observe(self, event: Event) -> None:
        """Keeps the event."""
        self._events.append(event)

    @property
    def events(self) -> list[Event]:
        """The events so far, in order."""
        return list(self._events)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events so far, in order."""
        return [event.kind for event in self.events]

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class, in order: `recorder.of(ModelRetry)`."""
        return [event for event in self.events if isinstance(event, kind)]

    def to_jsonl(self) -> str:
        """The events as lines of JSON; with a ManualClock and SequentialIds the same in every run."""
        return "".join(json.dumps(event.to_dict(), ensure_ascii=False) + "\n" for event in self.events)
