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
from .errors import ErrorCode, InvalidArgument
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
from .extensions import Extension, Hook, WrongReturn
from .normalise import describe_exception

Listener = Callable[[Event], object]
_PAIRS: dict[object, tuple[str, bool]] = {  # what an event opens (True) or closes; a tool's by its key
    AgentStart: ("agent", True),
    TurnStart: ("turn", True),
    MessageStart: ("message", True),
    ToolExecutionStart: ("", True),
    AgentEnd: ("agent", False),
    TurnEnd: ("turn", False),
    MessageEnd: ("message", False),
    MessageDiscarded: ("message", False),
    ToolExecutionEnd: ("", False),
}
_HEADER = len(EventHeader.__match_args__)
_makers: dict[object, Callable[..., EventHeader]] = {}  # constructors without checks, each made at first use


class Announcer:
    """Tells one run's events to the observers and, through `outbox`, to the stream.

    An event that stands in `_telling` is told: an interrupt may come at any bytecode, but going on takes up where it
    stopped. `open` holds what was told to have started and not to have ended, so that the closing ends just that.
    """

    __slots__ = (
        "_agent_id",
        "_hooks",
        "_listeners",
        "_observers",
        "_run_id",
        "_setup",
        "_telling",
        "_time",
        "joined",
        "last",
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
        self._hooks = setup.points.observe
        self._observers: tuple[Listener, ...] = tuple([hook.call for hook in self._hooks]) if self._hooks else ()
        self._telling: tuple[Any, tuple[Hook, ...], tuple[Listener, ...], Iterator[Listener]] | None = None
        self.outbox: deque[Event] | None = deque() if streaming else None
        self._listeners = self._observers if self.outbox is None else (self.outbox.append, *self._observers)
        self.open: dict[str, Any] = {}  # "agent", "turn", "message", the keys of tools: each with its start event
        self.joined: bool = False  # whether somebody came after agent_start
        self.last: Event | None = None  # agent_end
        self.sequence: int = 0
        self.turn: int = 0
        self.last_told: str = ""  # the id of the last message that was announced as committed
        self.left: bool = False  # the stream was closed or dropped at an event

    def emit(self, kind: Callable[..., EventHeader], *fields: Any) -> Event:  # Any: the fields of the kind
        """Makes an event of all its `fields` and tells it; the stream gets the last one only when the agent is free
        (`tell_stream`)."""
        if self._telling is not None:
            self.go_on()
        make = _makers.get(kind) or _makers.setdefault(kind, unchecked(kind, packed=_HEADER))
        event: Any = make(self._agent_id, self._run_id, self.sequence + 1, self.turn, self._time(), fields)
        listeners = self._listeners
        if kind is AgentEnd:
            listeners, self.last = self._observers, event
        self._telling = (event, self._hooks, listeners, iter(listeners))
        self.go_on()
        told: Event = event
        return told

    @property
    def is_open(self) -> bool:
        """Whether agent_start was told, or somebody came later, and agent_end was not told."""
        return "agent" in self.open or (self.joined and self.last is None)

    @property
    def is_over(self) -> bool:
        """Whether agent_end was told."""
        return self.last is not None and "agent" not in self.open

    def is_told(self) -> bool:
        """Whether nothing that was to be told is still on its way."""
        return self._telling is None

    def go_on(self) -> None:
        """Tells what is on its way. Every observer gets the event, also when one of them raises an interrupt, which is
        raised at the end."""
        if self._telling is None:
            return
        event, hooks, listeners, rest = self._telling
        self.sequence = event.sequence  # what follows from the event is kept first; doing that twice is doing it once
        kind: type[EventHeader] = event.__class__
        pair = _PAIRS.get(kind)
        if pair is not None:
            name, opens = pair
            if opens:
                self.open[name or event.key] = event
            else:
                self.open.pop(name or event.key, None)
        if kind is MessageEnd or kind is ToolResultCommitted:
            self.last_told = event.message.id
        try:
            # On one line: nothing comes between taking an observer and calling it, neither a signal nor a tracer.
            for observe in rest: observe(event)  # fmt: skip  # noqa: E701  # as the comment says
        except BaseException as raised:
            self._go_on_after(raised, event, hooks, listeners, rest)
        else:
            self._telling = None

    def _go_on_after(
        self,
        raised: BaseException,
        event: Any,
        hooks: tuple[Hook, ...],
        listeners: tuple[Listener, ...],
        rest: Iterator[Listener],
    ) -> None:
        """Tells the others after one has raised. Observers fail open, an interrupt is raised last."""
        interrupt: BaseException | None = None
        failed: list[tuple[Hook, BaseException]] = []
        while True:
            left = length_hint(rest)
            if left >= len(hooks):  # in a queue, where taking an event twice in a row is taking it once
                interrupt = interrupt or raised
                if left < len(listeners):
                    self._queue_again(event, listeners[-1 - left])
            elif isinstance(raised, self._setup.interrupts):
                interrupt = interrupt or raised
            else:
                failed.append((hooks[-1 - left], raised))
            try:
                for observe in rest: observe(event)  # fmt: skip  # noqa: E701  # as above
                break
            except BaseException as another:
                raised = another
        self._telling = None
        for hook, failure in failed:
            self._log_failure(hook.extension, hook.point, failure)
            if type(event) is not AgentEnd:
                self._tell_others(hook.extension, hook.point, failure, hooks)
        if interrupt is not None:
            raise interrupt

    def _queue_again(self, event: Event, queue: Listener) -> None:
        """Queues an event for a subscriber in whose queue an interrupt came; the stream's own is one step of C."""
        if self.outbox is None or queue != self.outbox.append:
            queue(event)

    def tell_failure(self, extension: Extension, point: str, raised: BaseException) -> None:
        """Tells that an extension failed: everybody but itself, and the log at its first failure."""
        self._log_failure(extension, point, raised)
        if self._listeners:
            self.go_on()
            self._tell_others(extension, point, raised, self._hooks)

    def _tell_others(self, extension: Extension, point: str, raised: BaseException, hooks: tuple[Hook, ...]) -> None:
        setup = self._setup
        error = ErrorInfo(ErrorCode.EXTENSION_FAILURE, describe_exception(raised, setup.interrupts))
        told = ExtensionFailed(
            setup.agent_id, self._run_id, self.sequence + 1, self.turn, setup.time(), extension.name, point, error
        )
        others = tuple(hook for hook in hooks if hook.extension is not extension)
        listeners = self._listeners
        outer = listeners[: len(listeners) - len(self._hooks)]
        told_to = (*outer, *(hook.call for hook in others))
        self._telling = (told, others, told_to, iter(told_to))
        self.go_on()

    def _log_failure(self, extension: Extension, point: str, raised: BaseException) -> None:
        if not extension.logged:
            extension.logged = True
            said = f": {raised}" if isinstance(raised, WrongReturn | InvalidArgument) else ""  # our own words
            warn("extension %s failed at %s: %s%s", extension.name, point, type(raised).__name__, said)
        debug("extension %s failed at %s", extension.name, point, exc_info=raised)

    def listen(self, subscribers: tuple[Listener, ...], *, late: bool) -> bool:
        """Tells these from now on, beside the stream and the observers. Returns whether anybody listens.

        Those who come `late`, after the run has begun, get its `agent_end` too, though nobody saw its start.
        """
        self.joined = self.joined or late  # not in `open`, whose other entries are the run's thread's alone
        own = self._observers if self.outbox is None else (self.outbox.append, *self._observers)
        self._listeners = (*subscribers, *own)
        return bool(self._listeners)

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
