"""The state of one run, and the two things every part of the loop does with it: commit, then announce."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from threading import get_ident
from types import GeneratorType
from typing import Any, TypeVar
from weakref import ref

from ._answer import Answer
from ._ledger import Ledger
from ._toolset import Toolset
from .context import ContextBuilder, PrefixHasher
from .errors import ErrorCode, GotatoError, StoreFailure
from .events import AgentEnd, ErrorInfo, Event, EventHeader, ExtensionFailed, MessageEnd
from .extensions import Extension
from .ids import Ids
from .limits import Limits
from .messages import AssistantMessage, Message, UserMessage
from .model import Model, ModelOptions
from .normalise import describe_exception
from .parts import NO_USAGE, StopReason, Usage
from .result import RunStatus
from .retry import RetryPolicy
from .scope import Clock, Scope
from .transcript import Transcript

log = logging.getLogger("gotato_py")
M = TypeVar("M", bound=Message)


class Setup:
    """What an agent is built from: checked once, shared by its runs, never changed."""

    __slots__ = (
        "agent_id", "builder", "clock", "extensions", "ids", "instructions", "interrupts", "limits", "model",
        "model_name", "monotonic", "name", "options", "result_bytes", "retry", "toolset", "transcript",
    )  # fmt: skip

    agent_id: str
    name: str
    model: Model
    model_name: str
    instructions: str
    toolset: Toolset
    transcript: Transcript
    builder: ContextBuilder
    extensions: tuple[Extension, ...]
    limits: Limits
    options: ModelOptions
    retry: RetryPolicy
    clock: Clock
    monotonic: Callable[[], float]
    ids: Ids
    result_bytes: int | None
    interrupts: tuple[type[BaseException], ...]


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
        "generator", "given_up", "hasher", "id", "interrupted", "last_before", "ledger", "left", "listening", "message",
        "message_open", "model_s", "outbox", "over", "recorded", "repeats", "scope", "sequence", "settling", "setup",
        "started_at", "started_time", "status", "stop_reason", "thread", "tool_calls", "tool_s", "turn", "turn_open",
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
        self.sequence = 0
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
        self.message_open = False
        self.executing: tuple[str, str, float] | None = None
        self.turn_open = False
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
        self.sequence += 1
        setup = self.setup
        event: Any = kind(setup.agent_id, self.id, self.sequence, self.turn, setup.clock.time(), *fields)
        if self.outbox is not None and kind is not AgentEnd:
            self.outbox.append(event)
        if kind is AgentEnd:
            self.ended = True  # only now: an interrupt while the event was made must not lose it
        if setup.extensions:
            self._notify(event, setup.extensions)
        return event  # type: ignore[no-any-return]  # every kind is an Event

    def _notify(self, event: Event, extensions: tuple[Extension, ...]) -> None:
        """Every observer gets the event, also when one of them raises an interrupt, which is raised at the end."""
        interrupt: BaseException | None = None
        failed: list[tuple[Extension, BaseException]] = []
        for extension in extensions:
            try:
                extension.observe(event)
            except self.setup.interrupts as raised:
                interrupt = interrupt or raised
            except BaseException as raised:  # observers fail open, whatever they raise
                failed.append((extension, raised))
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
        self.sequence += 1
        setup = self.setup
        error = ErrorInfo(ErrorCode.EXTENSION_FAILURE, describe_exception(raised, setup.interrupts))
        told = ExtensionFailed(
            setup.agent_id, self.id, self.sequence, self.turn, setup.clock.time(), extension.name, "observe", error
        )
        if self.outbox is not None:
            self.outbox.append(told)
        if others:
            self._notify(told, others)

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
        known = self.committed[-1].id if self.committed else self.last_before
        messages = self.setup.transcript.messages
        index = len(messages)
        while index and messages[index - 1].id != known:
            index -= 1
        if index or not known:
            self.committed.extend(messages[index:])


def store_failure(error: Exception, what: str) -> GotatoError:
    """What a transcript's error is raised as: itself if it is one of ours, else a `StoreFailure` because of it."""
    if isinstance(error, GotatoError):
        return error
    return StoreFailure(f"the transcript {what} ({type(error).__name__})", cause=error)
