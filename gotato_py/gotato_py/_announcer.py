"""How events are told: made only for listeners, in order, each to every listener once, whatever interrupts it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

from ._event import ErrorInfo, EventHeader
from ._log import debug, warn
from ._setup import Setup
from ._value import unchecked
from .errors import ErrorCode
from .events import (
    AgentEnd,
    AgentStart,
    Event,
    ExtensionFailed,
    MessageDiscarded,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResultCommitted,
    TurnEnd,
    TurnStart,
)
from .extensions import Extension
from .normalise import describe_exception

_PAIRS: dict[object, tuple[str, str]] = {  # what an event opens, and what it closes
    AgentStart: ("agent", ""),
    TurnStart: ("turn", ""),
    MessageStart: ("message", ""),
    ToolExecutionStart: ("tool", ""),
    AgentEnd: ("", "agent"),
    TurnEnd: ("", "turn"),
    MessageEnd: ("", "message"),
    MessageDiscarded: ("", "message"),
    ToolExecutionEnd: ("", "tool"),
}
_makers: dict[object, Callable[..., EventHeader]] = {}  # constructors without checks, each made at first use


class Announcer:
    """Tells one run's events to the observers and, through `outbox`, to the stream.

    An event that stands in `_telling` is told: an interrupt may come at any bytecode, but going on takes up where it
    stopped. `open` holds what was told to have started and not to have ended, so that the closing ends just that.
    """

    __slots__ = (
        "_agent_id",
        "_listeners",
        "_observers",
        "_run_id",
        "_setup",
        "_telling",
        "_time",
        "last_told",
        "left",
        "open",
        "outbox",
        "sequence",
        "turn",
    )

    def __init__(self, setup: Setup, run_id: str, *, streaming: bool) -> None:
        self._setup = setup
        self._agent_id, self._run_id, self._time = setup.agent_id, run_id, setup.time
        self._observers = tuple([extension.observe for extension in setup.extensions])
        self._telling: tuple[Any, tuple[Extension, ...], Iterator[Callable[[Event], object]]] | None = None
        self.outbox: deque[Event] | None = deque() if streaming else None
        self._listeners = self._observers if self.outbox is None else (self.outbox.append, *self._observers)
        self.open: dict[str, Any] = {}  # "agent", "turn", "message", "tool": each with its start event
        self.sequence = 0
        self.turn = 0
        self.last_told = ""  # the id of the last message that was announced as committed
        self.left = False  # the stream was closed or dropped at an event

    def emit(self, kind: Callable[..., EventHeader], *fields: Any) -> Event:  # Any: the fields of the kind
        """Makes an event and tells it; the stream gets the last one only when the agent is free (`tell_stream`)."""
        if self._telling is not None:
            self.go_on()
        make = _makers.get(kind) or _makers.setdefault(kind, unchecked(kind))
        number = self.sequence + 1
        event: Any = make(self._agent_id, self._run_id, number, self.turn, self._time(), *fields)
        self._telling = (event, self._setup.extensions, iter(self._observers if kind is AgentEnd else self._listeners))
        self.go_on()
        told: Event = event
        return told

    def is_told(self) -> bool:
        """Whether nothing that was to be told is still on its way."""
        return self._telling is None

    def go_on(self) -> None:
        """Tells what is on its way. Every observer gets the event, also when one of them raises an interrupt, which is
        raised at the end."""
        if self._telling is None:
            return
        event, extensions, rest = self._telling
        self.sequence = event.sequence  # what follows from the event is kept first; doing that twice is doing it once
        kind: type[EventHeader] = event.__class__
        if kind in _PAIRS:
            opens, closes = _PAIRS[kind]
            if opens:
                self.open[opens] = event
            else:
                self.open.pop(closes, None)
        if kind is MessageEnd or kind is ToolResultCommitted:
            self.last_told = event.message.id
        interrupt: BaseException | None = None
        failed: list[tuple[Extension, BaseException]] = []
        while True:
            try:
                # On one line: nothing comes between taking an observer and calling it, neither a signal nor a tracer.
                for observe in rest: observe(event)  # fmt: skip  # noqa: E701
                break
            except self._setup.interrupts as raised:
                interrupt = interrupt or raised
            except BaseException as raised:  # observers fail open, whatever they raise
                failed.append((extensions[-1 - length_hint(rest)], raised))
        self._telling = None
        for extension, failure in failed:
            self._tell_failure(extension, event, failure, tuple(each for each in extensions if each is not extension))
        if interrupt is not None:
            raise interrupt

    def _tell_failure(
        self, extension: Extension, event: Event, raised: BaseException, others: tuple[Extension, ...]
    ) -> None:
        if not extension.logged:
            extension.logged = True
            warn("extension %s failed at observe: %s", extension.name, type(raised).__name__)
        debug("extension %s failed at observe", extension.name, exc_info=raised)
        if type(event) is AgentEnd:
            return
        setup = self._setup
        error = ErrorInfo(ErrorCode.EXTENSION_FAILURE, describe_exception(raised, setup.interrupts))
        told = ExtensionFailed(
            setup.agent_id, self._run_id, self.sequence + 1, self.turn, setup.time(), extension.name, "observe", error
        )
        outbox = () if self.outbox is None else (self.outbox.append,)
        self._telling = (told, others, iter((*outbox, *(each.observe for each in others))))
        self.go_on()

    def drain(self) -> Iterator[Event]:
        """What the stream has not seen yet."""
        outbox = self.outbox
        while outbox:
            event = outbox.popleft()
            try:
                yield event
            except GeneratorExit:
                self.left = True
                raise

    def tell_stream(self, event: Event) -> None:
        """Gives the stream the run's last event."""
        if self.outbox is not None:
            self.outbox.append(event)
