"""The state of one run, and the two things every part of the loop does with it: commit, then announce."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import call, length_hint
from threading import get_ident
from types import GeneratorType
from typing import Any, TypeVar
from weakref import ref

from ._answer import Answer
from ._event import ErrorInfo, EventHeader
from ._ledger import Ledger
from ._setup import Setup
from .context import PrefixHasher
from .errors import ErrorCode, GotatoError, StoreFailure
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
from .messages import AssistantMessage, Message, UserMessage
from .normalise import describe_exception
from .parts import NO_USAGE, StopReason, Usage
from .result import RunStatus
from .scope import Scope

log = logging.getLogger("gotato_py")
M = TypeVar("M", bound=Message)


_OPENS: dict[object, str] = {
    AgentStart: "agent",
    TurnStart: "turn",
    MessageStart: "message",
    ToolExecutionStart: "tool",
}
_CLOSES: dict[object, str] = {
    AgentEnd: "agent", TurnEnd: "turn", MessageEnd: "message", MessageDiscarded: "message", ToolExecutionEnd: "tool",
}  # fmt: skip


class Ending(Exception):
    """Ends the run from inside the loop with a status of its own. Never leaves the kernel."""

    def __init__(self, status: RunStatus, error: GotatoError | None = None, *, wrap_up: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.error = error
        self.wrap_up = wrap_up


class Run:
    """One run. The loop's functions take it; nothing else holds state.

    Whether it is still alive is asked of its generator: a run whose generator is gone or finished while the agent
    still holds it was interrupted in a place where it could not be closed, and the next entry closes it.
    """

    __slots__ = (
        "answer", "begun", "charged", "committed", "cut", "deps", "ended", "ended_at", "error", "executing",
        "generator", "given_up", "hasher", "id", "interrupted", "last_before", "last_told", "ledger", "left", "listening",
        "message", "model_s", "observers", "open", "outbox", "over", "recorded", "repeats", "scope", "sequence", "settling", "setup",
        "started_at", "started_time", "status", "stop_reason", "telling", "thread", "tool_calls", "tool_s", "turn",
        "turn_started", "turn_usage", "usage",
    )  # fmt: skip

    def __init__(self, setup: Setup, scope: Scope, deps: object, *, streaming: bool) -> None:
        clock = setup.clock
        self.setup = setup
        self.id = setup.ids("run")
        self.scope = scope
        self.deps = deps
        self.outbox: deque[Event] | None = deque() if streaming else None
        self.listening = streaming or bool(setup.extensions)
        self.generator: ref[GeneratorType[Event, None, None]] | None = None
        self.ledger = Ledger()
        self.hasher: PrefixHasher | None = None
        self.started_at = clock.monotonic()
        self.started_time = clock.time()
        self.observers = tuple([extension.observe for extension in setup.extensions])
        self.sequence = 0
        self.open: dict[str, Any] = {}  # what was told to have started and not to have ended: "agent", "turn", …
        self.telling: tuple[Any, tuple[Extension, ...], Iterator[Callable[[Event], object]]] | None = None
        self.last_told = ""
        self.turn = 0
        self.usage: Usage = NO_USAGE
        self.tool_calls = 0
        self.model_s = 0.0
        self.tool_s = 0.0
        self.cut = 0
        self.repeats: dict[tuple[str, str], tuple[object, int]] = {}
        self.committed: list[Message] = []
        self.last_before = ""
        self.message: AssistantMessage | None = None
        self.answer: Answer | None = None
        self.executing: tuple[str, str, float] | None = None
        self.turn_started = 0.0
        self.turn_usage: Usage = NO_USAGE
        self.stop_reason = StopReason.NONE
        self.status: RunStatus | None = None
        self.error: GotatoError | None = None
        self.settling = False
        self.given_up = False
        self.left = False  # the stream was closed or dropped at an event
        self.begun = False
        self.ended = False
        self.ended_at = self.started_at
        self.thread = get_ident()
        self.recorded = False
        self.interrupted = False
        self.charged: deque[Usage] = deque()
        self.over = Scope(clock=clock)

    def is_abandoned(self) -> bool:
        """Whether nothing will ever go on with this run."""
        generator = None if self.generator is None else self.generator()
        return generator is None or generator.gi_frame is None

    def commit(self, message: M) -> M:
        """Puts the message into the transcript; when this returns, it is kept."""
        try:
            kept = self.setup.transcript.append(message)
        except self.setup.interrupts:
            raise
        except Exception as error:
            raise store_failure(error, f"could not keep the {message.role} message")  # noqa: B904  # it carries its cause
        self.committed.append(kept)
        self.ledger.add(kept)
        return kept

    def commit_user(self, message: UserMessage) -> None:
        """Commits a user message, which arrives whole, and announces it."""
        kept = self.commit(message)
        if self.listening:
            self.emit(MessageEnd, kept)

    def emit(self, kind: Callable[..., EventHeader], *fields: Any) -> Event:  # Any: the fields of the kind
        """Makes an event and hands it to the observers, in order, and to the stream (the last one by the closing)."""
        if self.telling is not None:
            self.tell()
        setup = self.setup
        event: Any = kind(setup.agent_id, self.id, self.sequence + 1, self.turn, setup.clock.time(), *fields)
        listeners = self.observers if self.outbox is None or kind is AgentEnd else (self.outbox.append, *self.observers)
        self.telling = (event, setup.extensions, iter(listeners))
        self.tell()
        return event  # type: ignore[no-any-return]  # every kind is an Event

    def tell(self) -> None:
        """Tells the event in `telling`. From the moment that it stands there it is told, once: after an interrupt,
        calling this again goes on where it stopped. Every observer gets the event, also when one of them raises an
        interrupt, which is raised at the end."""
        if self.telling is None:
            return
        event, extensions, rest = self.telling
        self.sequence = event.sequence
        kind = type(event)
        if kind in _OPENS:
            self.open[_OPENS[kind]] = event
        elif kind in _CLOSES:
            self.open.pop(_CLOSES[kind], None)
        if kind is MessageEnd or kind is ToolResultCommitted:
            self.last_told = event.message.id
        interrupt: BaseException | None = None
        failed: list[tuple[Extension, BaseException]] = []
        while True:
            try:
                for _ in map(call, rest, repeat(event)):  # no interrupt comes between taking an observer and calling it
                    pass
                break
            except self.setup.interrupts as raised:
                interrupt = interrupt or raised
            except BaseException as raised:  # observers fail open, whatever they raise
                failed.append((extensions[-1 - length_hint(rest)], raised))
        self.telling = None
        for extension, failure in failed:
            self._tell_failure(extension, event, failure, tuple(each for each in extensions if each is not extension))
        if interrupt is not None:
            raise interrupt

    def _tell_failure(
        self, extension: Extension, event: Event, raised: BaseException, others: tuple[Extension, ...]
    ) -> None:
        if not extension.logged:
            extension.logged = True
            log.warning("extension %s failed at observe: %s", extension.name, type(raised).__name__)
        if type(event) is AgentEnd:
            return
        setup = self.setup
        error = ErrorInfo(ErrorCode.EXTENSION_FAILURE, describe_exception(raised, setup.interrupts))
        told = ExtensionFailed(
            setup.agent_id, self.id, self.sequence + 1, self.turn, setup.clock.time(), extension.name, "observe", error
        )
        outbox = () if self.outbox is None else (self.outbox.append,)
        self.telling = (told, others, iter((*outbox, *(each.observe for each in others))))
        self.tell()

    def count(self, usage: Usage) -> None:
        """Counts tokens into the run and its turn."""
        self.usage = self.usage + usage
        self.turn_usage = self.turn_usage + usage

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

    def is_mine(self) -> bool:
        """Whether the calling thread is the one that drives this run."""
        return self.thread == get_ident()

    def reconcile(self) -> None:
        """Completes the list of what this run committed: an interrupt may have come between the commit and the list."""
        self.committed.extend(self.messages_after(self.committed[-1].id if self.committed else self.last_before))

    def messages_after(self, known: str) -> Sequence[Message]:
        """The messages of the transcript behind the one with that id."""
        messages = self.setup.transcript.messages
        index = len(messages)
        while index and messages[index - 1].id != known:
            index -= 1
        return messages[index:] if index or not known else ()


def store_failure(error: Exception, what: str) -> GotatoError:
    """What a transcript's error is raised as: itself if it is one of ours, else a `StoreFailure` because of it."""
    if isinstance(error, GotatoError):
        return error
    return StoreFailure(f"the transcript {what} ({type(error).__name__})", cause=error)
