"""The agent: what it is built from, and the one slot that a run takes. The loop itself is `_loop`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import GeneratorType, TracebackType
from typing import Any, TypeVar, cast, overload
from weakref import ref

from . import _entry as entry
from . import _setup as setup
from ._abandoned import AbandonedCall
from ._inbox import FOLLOW_UP, STEER, not_running
from ._loop import drive
from ._run import Run
from ._setup import Setup
from ._slot import Slot
from ._sources import read_tools
from ._value import replace
from ._waiting import is_waiting
from .context import ContextBuilder, TurnView, full_history
from .decisions import Decision
from .events import Event
from .ids import Ids
from .limits import DEFAULT_LIMITS, Limits
from .messages import PartsLike, UserMessage
from .model import DEFAULT_OPTIONS, Model, ModelOptions
from .result import RunResult
from .retry import DEFAULT_RETRY, RetryPolicy
from .schema import SchemaCompiler
from .scope import Clock, Scope
from .stream import RunStream
from .subscription import EventStream
from .tools import Tool
from .transcript import Transcript

T = TypeVar("T")
MessageLike = UserMessage | PartsLike
Answers = Mapping[str, Decision] | None


class Agent:
    """A model, its tools and a transcript, and one blocking loop over them.

    `tools` takes functions, tools and tool sources in any mix; `interrupts` the exception types that, like
    `KeyboardInterrupt`, end a run from anywhere and are raised again. Everything is checked here, so that a run cannot
    fail for it later: raises `InvalidArgument` naming the argument. An idle agent owns no thread and no socket. Any
    method may be called from any thread; one run at a time has the agent.
    """

    __slots__ = ("__weakref__", "_setup", "_slot")

    def __init__(
        self,
        model: Model,
        *,
        instructions: str = "",
        tools: Sequence[object] = (),
        transcript: Transcript | None = None,
        context_builder: ContextBuilder | None = None,
        extensions: Sequence[object] = (),
        limits: Limits = DEFAULT_LIMITS,
        model_options: ModelOptions = DEFAULT_OPTIONS,
        retry: RetryPolicy = DEFAULT_RETRY,
        schema_compiler: SchemaCompiler | None = None,
        interrupts: Sequence[type[BaseException]] = (),
        name: str = "",
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        made = self._setup = Setup()
        made.ids = setup.an_id_source(ids)
        made.agent_id = setup.first_id(made.ids)
        made.name = setup.a_kind("name", name, str)
        made.model = setup.with_hint("model", model, "stream", 2, "gotato_gateway.connect('provider:name') makes one")
        made.model_name = setup.name_of(model)
        made.cost_of = setup.cost_of(model)
        made.instructions = setup.a_kind("instructions", instructions, str)
        compiler = setup.a_callable("schema_compiler", schema_compiler, "a callable that takes a schema")
        made.compiler = compiler
        made.sources = read_tools(tools, compiler)
        made.toolset = made.sources.fixed
        made.transcript = setup.a_transcript(transcript)
        builder = full_history if context_builder is None else context_builder
        made.builder = setup.with_hint("context_builder", builder, "build", 1, "full_history is the default")
        made.points = setup.extensions_of(extensions)
        made.limits = setup.a_kind("limits", limits, Limits)
        made.bounds = setup.Bounds(limits)
        made.options = setup.a_kind("model_options", model_options, ModelOptions)
        made.retry = setup.a_kind("retry", retry, RetryPolicy)
        made.clock = setup.a_clock(clock)
        made.monotonic, made.time = made.clock.monotonic, made.clock.time
        made.interrupts = setup.interrupts_of(interrupts)
        self._slot = Slot()

    def __repr__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        return f"Agent({named}{self.id}, {self.status}, tools={len(self._setup.toolset.specs)})"

    @property
    def id(self) -> str:
        """The agent's id, in every event."""
        return self._setup.agent_id

    @property
    def name(self) -> str:
        """The name that it was given, or ""."""
        return self._setup.name

    @property
    def status(self) -> str:
        """ "idle", "running", "waiting" or "closed"."""
        run = self._slot.holder()
        if run is not None and not run.is_abandoned():
            return "running"
        if self._slot.closed:
            return "closed"
        transcript = self._setup.transcript
        return "waiting" if is_waiting(transcript.messages, transcript.waiting) else "idle"

    @property
    def transcript(self) -> Transcript:
        """What happened so far."""
        return self._setup.transcript

    @property
    def instructions(self) -> str:
        """The system text that it was given."""
        return self._setup.instructions

    @property
    def context_builder(self) -> ContextBuilder:
        """What decides what the model sees; `full_history` if none was given."""
        return self._setup.builder

    def tools(self) -> tuple[Tool, ...]:
        """The tools that a turn would have now, in the order in which they were given; asks the tool sources.

        Raises `ExtensionFailure` where a source fails.
        """
        made = self._setup
        if not made.sources.changes:
            return made.toolset.tools()
        view = TurnView(made.instructions, made.transcript.messages, made.transcript, scope=Scope(clock=made.clock))
        return made.sources.ask(view, None, made.interrupts).toolset.tools()

    @property
    def abandoned(self) -> tuple[AbandonedCall, ...]:
        """The tool calls that were given up and whose threads still run."""
        return () if self._slot.abandoned is None else self._slot.abandoned.alive()

    @overload
    def run(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: type[T],
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunResult[T]: ...  # fmt: skip
    @overload
    def run(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: None = None,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunResult[None]: ...  # fmt: skip
    @overload
    def run(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: object,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunResult[Any]: ...  # fmt: skip
    def run(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: object = None,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunResult[Any]:  # fmt: skip
        """Runs to the end, in the calling thread, and returns what it came to.

        `message` is committed first; without one the run goes on from the transcript. `answers`, in place of a message,
        maps keys of `result.waiting` to `Approve()` or `Deny(reason)`. `output` is a type or a JSON Schema that the
        run is to come to, as `result.output`. `timeout` is in seconds and `scope` an outer scope: the nearer end wins.
        `deps` reaches the tools as `use.deps`.

        With `check`, whatever is neither completed nor waiting raises its `RunError`, which holds the whole result;
        without, nothing about the run raises. Misuse raises at once and commits nothing: `Busy`, `AgentClosed`,
        `InvalidArgument`.
        """
        opening = entry.check_entry(self._setup, message, answers)
        run, events = self._start("Agent.run", opening, answers, output, deps, timeout, scope)
        for _ in events:
            pass
        result = entry.result_of(run)
        if check:
            result.raise_for_status()
        return result

    @overload
    def stream(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: type[T],
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunStream[T]: ...  # fmt: skip
    @overload
    def stream(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: None = None,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunStream[None]: ...  # fmt: skip
    @overload
    def stream(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: object,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunStream[Any]: ...  # fmt: skip
    def stream(
        self, message: MessageLike | None = None, *, answers: Answers = None, output: object = None,
        deps: object = None, timeout: float | None = None, scope: Scope | None = None, check: bool = True,
    ) -> RunStream[Any]:  # fmt: skip
        """The same run as an iterator of its events: it goes on as it is iterated. See `RunStream`.

        Checks its arguments now; takes the agent when the stream is entered or first asked for an event.
        """
        opening = entry.check_entry(self._setup, message, answers)
        run, events = self._start("Agent.stream", opening, answers, output, deps, timeout, scope)
        return RunStream(run, events, entry.result_of, check=check)

    def steer(self, message: MessageLike) -> str:
        """Queues a message for the run that goes on, which commits it at its next turn boundary; returns its id.

        From any thread, tool or extension. Raises `NotRunning` where no run could deliver it any more, and
        `LimitExceeded` while `limits.max_steer` wait. What the run does not deliver is in its `result.undelivered`.
        """
        return self._queue(STEER, message, self._setup.limits.max_steer)

    def follow_up(self, message: MessageLike) -> str:
        """Queues a message for where the run that goes on would settle: then it goes on with it. See `steer`."""
        return self._queue(FOLLOW_UP, message, self._setup.limits.max_follow_up)

    def withdraw(self, message_id: str) -> bool:
        """Takes back a queued message, told by its id. False if it is not queued (any more)."""
        run = self._slot.holder_here("Agent.withdraw")
        return run is not None and run.inbox.withdraw(message_id)

    def subscribe(self, maxsize: int = 256) -> EventStream:
        """The events from now on, for another thread: a queue of at most `maxsize`. See `EventStream`."""
        return self._slot.subscribe(maxsize)

    def cancel(self, reason: str = "") -> bool:
        """Ends the run that goes on, from any thread, tool, observer or signal handler. False if none does, or it is
        ending already. Takes no lock."""
        run = self._slot.holder()
        if run is None or run.settling or run.is_abandoned() or run.is_of_parent():
            return False
        return run.scope.cancel(reason)

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Waits until no run has the agent, at most `timeout` seconds (None: without end). Returns whether none has.

        Closes a run that was left behind. Raises `InvalidState` from inside the run, which would wait for itself.
        """
        return self._slot.wait_idle(timeout)

    def close(self) -> None:
        """Takes no further run, cancels the one that goes on and waits for its end, at most some seconds.

        From inside the run it returns at once, and the run ends as soon as it can; one that stands at an event of its
        stream ends when the stream is read on, closed or dropped. Calls that wait for a person stay so. Closing twice
        does nothing.
        """
        self._slot.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _queue(self, control: str, message: MessageLike, most: int | None) -> str:
        operation = f"Agent.{control}"
        queued = entry.user_message(self._setup, message, operation)
        run = self._slot.holder_here(operation)
        if run is None:
            raise not_running(operation)
        if not queued.id:
            queued = replace(queued, id=self._setup.ids("message"))
        elif entry.position_of(self._setup.transcript.messages, queued.id) is not None:
            return queued.id  # it was delivered before
        run.inbox.put(control, queued, most)
        return queued.id

    def _start(
        self,
        operation: str,
        opening: UserMessage | None,
        answers: Answers,
        output: object,
        deps: object,
        timeout: float | None,
        scope: Scope | None,
    ) -> tuple[Run, Generator[Event, None, None]]:
        ends = entry.run_scope(self._setup, operation, timeout, scope)
        run = entry.new_run(self._setup, operation, ends, opening, answers, output, deps)
        self._slot.refuse_closed(self.id, operation)
        events = drive(run, self._slot.begin, self._slot.release)
        run.generator = ref(cast("GeneratorType[Event, None, None]", events))
        return run, events
