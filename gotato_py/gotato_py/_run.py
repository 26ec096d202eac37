"""The state of one run, and how it commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from os import getpid
from threading import get_ident
from types import GeneratorType
from typing import TypeVar
from weakref import ref

from ._abandoned import Abandoned
from ._announcer import Announcer
from ._answer import Answer
from ._crew import Crew
from ._hold import RunHold
from ._inbox import Inbox
from ._ledger import Ledger
from ._setup import Setup
from ._sources import Asked
from ._structured import Output
from ._toolset import Toolset
from ._value import replace
from .context import PrefixHasher
from .decisions import Decision
from .errors import GotatoError, StoreFailure
from .events import Event, MessageEnd
from .messages import AssistantMessage, Message, ToolResult, UserMessage
from .model import ModelOptions
from .parts import NO_USAGE, StopReason, Usage
from .records import WaitingCall
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
        "abandoned", "announcer", "answer", "answers", "asked", "begun", "charged", "closing", "committed",
        "compactions", "crew", "cut", "deps", "displaced", "ended", "ended_at", "error", "executing", "failure",
        "follow_late", "generator", "given_up", "hasher", "hold", "id", "inbox", "interrupted", "last_before",
        "leaves_open", "ledger", "listening", "message", "model_s", "opening", "options", "outbox", "output", "over",
        "pid", "recorded", "redelivered", "repeats", "resumed", "scope", "settling", "setup", "started_at",
        "started_time", "status", "stop_reason", "stopped_by", "superseded", "thread", "tool_calls", "tool_s",
        "toolset", "turn", "turn_mark", "turn_started", "turn_usage", "undelivered", "unsaved", "usage", "vetoes",
        "waiting",
    )  # fmt: skip

    def __init__(
        self,
        setup: Setup,
        scope: Scope,
        deps: object,
        opening: UserMessage | None,
        *,
        streaming: bool,
        answers: Mapping[str, Decision] | None = None,
        output: Output | None = None,
    ) -> None:
        self._begin_empty()
        clock = setup.clock
        self.setup: Setup = setup
        self.id: str = setup.ids("run")
        self.scope: Scope = scope
        self.deps: object = deps
        self.opening: UserMessage | None = opening
        self.answers: Mapping[str, Decision] | None = answers
        self.output: Output | None = output
        self.options: ModelOptions = setup.options
        self.toolset: Toolset = setup.toolset if output is None else output.offer(setup.toolset)
        if output is not None and output.native:
            self.options = replace(setup.options, response_schema=output.plan.schema)
        self.unsaved: dict[str, ToolResult] = {}  # by key: what a tool answered, until that is committed
        self.announcer: Announcer = Announcer(setup, self.id, streaming=streaming)
        self.outbox: deque[Event] | None = self.announcer.outbox
        self.listening: bool = streaming or bool(setup.points.observe)
        self.inbox: Inbox = Inbox()
        self.ledger: Ledger = Ledger()
        self.started_at: float = clock.monotonic()
        self.started_time: float = clock.time()
        self.repeats: dict[tuple[str, str], tuple[object, int]] = {}
        self.committed: list[Message] = []
        self.executing: dict[str, tuple[str, float]] = {}  # by key: the tools that run, their names and starts
        self.waiting: dict[str, WaitingCall] = {}  # by key: the open calls that wait, answered ones too
        self.ended_at: float = self.started_at
        self.thread: int = get_ident()
        self.pid: int = getpid()
        self.charged: deque[Usage] = deque()
        self.over: Scope = Scope(clock=clock)

    def _begin_empty(self) -> None:
        """What every run begins with."""
        self.redelivered: AssistantMessage | None = None  # the answer that was there already
        self.follow_late: Callable[[], None] | None = None  # announces progress that other threads told
        self.abandoned: Abandoned | None = None  # the agent's, once the run has begun
        self.crew: Crew | None = None  # the worker threads of the batch
        self.asked: Asked | None = None  # what the tool sources gave
        self.generator: ref[GeneratorType[Event, None, None]] | None = None
        self.hasher: PrefixHasher | None = None
        self.hold: RunHold | None = None  # on the transcript, from when that was asked to begin the run
        self.message: AssistantMessage | None = None
        self.resumed: AssistantMessage | None = None  # whose calls had waited
        self.answer: Answer | None = None
        self.status: RunStatus | None = None
        self.error: GotatoError | None = None
        self.failure: GotatoError | None = None  # of an extension: it ends the run when the batch is done
        self.superseded: frozenset[str] = frozenset()  # the keys of those that a new message drops
        self.undelivered: tuple[UserMessage, ...] = ()
        self.usage: Usage = NO_USAGE
        self.turn_usage: Usage = NO_USAGE
        self.stop_reason: StopReason = StopReason.NONE
        self.stopped_by: str = ""
        self.last_before: str = ""
        self.turn: int = 0
        self.turn_mark: int = 0  # how many messages were committed before this turn
        self.turn_started: float = 0.0
        self.tool_calls: int = 0
        self.model_s: float = 0.0
        self.tool_s: float = 0.0
        self.cut: int = 0
        self.vetoes: int = 0
        self.compactions: int = 0
        self.leaves_open: bool = False  # whether this run, should it end now, leaves open what waits
        self.settling: bool = False
        self.given_up: bool = False  # whether its stream was closed, so that nobody waits for its outcome
        self.closing: set[object] = set()  # who is closing its stream right now
        self.begun: bool = False
        self.ended: bool = False
        self.recorded: bool = False
        self.interrupted: bool = False
        self.displaced: bool = False  # whether the transcript is none of its business: another run has taken it since

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

    def is_inside(self) -> bool:
        """Whether the caller is part of this run: its thread, or a tool of it on a worker thread."""
        return self.is_mine() or (self.crew is not None and self.crew.has_thread(get_ident()))

    def is_of_parent(self) -> bool:
        """Whether the process was forked while this run went on: it belongs to the parent process."""
        return self.pid != getpid()

    def reconcile(self) -> None:
        """Completes the list of what this run committed: an interrupt may have come between the commit and the list."""
        last = [message.id for message in self.committed[-1:]]  # a compaction may have covered it
        self.committed.extend(self.messages_after(self.last_before, *last))

    def messages_after(self, *known: str) -> Sequence[Message]:
        """The messages of the transcript behind the last one with such an id."""
        messages = self.setup.transcript.messages
        index = len(messages)
        while index and messages[index - 1].id not in known:
            index -= 1
        return messages[index:] if index or "" in known else ()


def store_failure(error: Exception, what: str) -> GotatoError:
    """What a transcript's error is raised as: itself if it is one of ours, else a `StoreFailure` because of it."""
    if isinstance(error, GotatoError):
        return error
    return StoreFailure(f"the transcript {what} ({type(error).__name__})", cause=error)
