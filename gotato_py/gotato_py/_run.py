"""The state of one run, and how it commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from types import GeneratorType
from typing import TypeVar
from weakref import ref

from ._announcer import Announcer
from ._answer import Answer
from ._ledger import Ledger
from ._setup import Setup
from .context import PrefixHasher
from .errors import GotatoError, StoreFailure
from .events import (
    Event,
    MessageEnd,
)
from .messages import AssistantMessage, Message, ToolResult, UserMessage
from .parts import NO_USAGE, StopReason, Usage
from .result import RunStatus
from .scope import Scope

M = TypeVar("M", bound=Message)


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
        "announcer", "answer", "begun", "charged", "committed", "cut", "deps", "ended", "ended_at", "error",
        "executing", "follow_late", "generator", "given_up", "hasher", "id", "interrupted", "last_before", "ledger",
        "listening", "message", "model_s", "opening", "outbox", "over", "recorded", "redelivered", "repeats", "scope",
        "settling", "setup", "started_at", "started_time", "status", "stop_reason", "thread", "tool_calls", "tool_s",
        "turn", "turn_started", "turn_usage", "unsaved", "usage",
    )  # fmt: skip

    def __init__(
        self, setup: Setup, scope: Scope, deps: object, opening: UserMessage | None, *, streaming: bool
    ) -> None:
        clock = setup.clock
        self.setup = setup
        self.id = setup.ids("run")
        self.scope = scope
        self.deps = deps
        self.opening = opening
        self.unsaved: ToolResult | None = None  # what a tool answered, until that is committed
        self.redelivered: AssistantMessage | None = None  # the answer that was there already
        self.follow_late: Callable[[], None] | None = None  # announces progress that other threads told
        self.announcer = Announcer(setup, self.id, streaming=streaming)
        self.outbox = self.announcer.outbox
        self.listening = streaming or bool(setup.extensions)
        self.generator: ref[GeneratorType[Event, None, None]] | None = None
        self.ledger = Ledger()
        self.hasher: PrefixHasher | None = None
        self.started_at = clock.monotonic()
        self.started_time = clock.time()
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
            self.announcer.emit(MessageEnd, kept)

    def count(self, usage: Usage) -> None:
        """Counts tokens into the run and its turn."""
        self.usage = usage if self.usage is NO_USAGE else self.usage + usage
        self.turn_usage = usage if self.turn_usage is NO_USAGE else self.turn_usage + usage

    def is_executing(self) -> bool:
        """Whether some thread is inside the run now; a stream may also stand at an event."""
        generator = None if self.generator is None else self.generator()
        return generator is not None and generator.gi_running

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
