"""The agent: what it is built from, and the one slot that a run takes. The loop itself is `_loop`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from threading import get_ident
from types import GeneratorType, TracebackType
from typing import Any, TypeVar, cast, overload
from weakref import ref

from . import _entry as entry
from ._closing import close_run
from ._ledger import Ledger
from ._loop import drive
from ._run import Run, Setup
from .context import ContextBuilder, full_history
from .errors import AgentClosed, Busy
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
from .tools import Tool
from .transcript import Transcript

T = TypeVar("T")
MessageLike = UserMessage | PartsLike

_CLOSE_WAIT_S = 10.0  # a tool in another thread cannot be ended from here; `close` does not wait for it for ever


class Agent:
    """A model, its tools and a transcript, and one blocking loop over them.

    `tools` takes functions and tools in any mix; `interrupts` the exception types that, like `KeyboardInterrupt`, end
    a run from anywhere and are raised again. Everything is checked here, so that a run cannot fail for it later:
    raises `InvalidArgument` naming the argument. An idle agent owns no thread and no socket. Any method may be called
    from any thread; one run at a time has the agent.
    """

    __slots__ = ("__weakref__", "_closed", "_ledger", "_repairs", "_setup", "_slot")

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
        self._setup: Setup = entry.build_setup(
            model=model,
            instructions=instructions,
            tools=tools,
            transcript=transcript,
            builder=full_history if context_builder is None else context_builder,
            extensions=extensions,
            limits=limits,
            options=model_options,
            retry=retry,
            compiler=schema_compiler,
            interrupts=interrupts,
            name=name,
            clock=clock,
            ids=ids,
        )
        self._closed = False
        self._slot: dict[str, Run] = {}
        self._repairs: dict[str, int] = {}
        self._ledger: Ledger | None = None

    def __repr__(self) -> str:
        setup = self._setup
        named = f"{setup.name!r}, " if setup.name else ""
        return f"Agent({named}{setup.agent_id}, {self.status}, tools={len(setup.toolset.specs)})"

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
        run = self._slot.get("run")
        if run is not None and not run.is_abandoned():
            return "running"
        if self._closed:
            return "closed"
        return "waiting" if self._setup.transcript.waiting else "idle"

    @property
    def transcript(self) -> Transcript:
        """What happened so far."""
        return self._setup.transcript

    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order in which they were given."""
        return self._setup.toolset.tools()

    @overload
    def run(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: type[T],
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunResult[T]: ...
    @overload
    def run(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: Mapping[str, object],
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunResult[Any]: ...
    @overload
    def run(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: None = None,
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunResult[None]: ...
    def run(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: type[Any] | Mapping[str, object] | None = None,
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunResult[Any]:
        """Runs to the end, in the calling thread, and returns what it came to.

        `message` is committed first; without one the run goes on from the transcript. `timeout` is in seconds and
        `scope` an outer scope: the nearer end wins. `deps` reaches the tools as `use.deps`. With `check`, a run that
        does not complete raises its `RunError`, which holds the whole result; without, nothing about the run raises.
        Misuse raises at once and commits nothing: `Busy`, `AgentClosed`, `InvalidArgument`.
        """
        opening = entry.check_entry(self._setup, message, answers, output)
        run, events = self._start("Agent.run", opening, deps, timeout, scope, streaming=False)
        for _ in events:
            pass
        result = entry.result_of(run)
        if check:
            result.raise_for_status()
        return result

    @overload
    def stream(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: type[T],
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunStream[T]: ...
    @overload
    def stream(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: Mapping[str, object],
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunStream[Any]: ...
    @overload
    def stream(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: None = None,
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunStream[None]: ...
    def stream(
        self,
        message: MessageLike | None = None,
        *,
        answers: Mapping[str, object] | None = None,
        output: type[Any] | Mapping[str, object] | None = None,
        deps: object = None,
        timeout: float | None = None,
        scope: Scope | None = None,
        check: bool = True,
    ) -> RunStream[Any]:
        """The same run as an iterator of its events: it goes on as it is iterated. See `RunStream`.

        Checks its arguments now; takes the agent when the stream is entered or first asked for an event.
        """
        opening = entry.check_entry(self._setup, message, answers, output)
        run, events = self._start("Agent.stream", opening, deps, timeout, scope, streaming=True)
        return RunStream(run, events, entry.result_of, check=check)

    def cancel(self, reason: str = "") -> bool:
        """Ends the run that goes on, from any thread, tool, observer or signal handler. False if none does, or it is
        ending already. Takes no lock."""
        run = self._slot.get("run")
        return run is not None and not run.settling and run.scope.cancel(reason)

    def close(self) -> None:
        """Takes no further run, cancels the one that goes on and waits for its end, at most some seconds.

        From inside the run it returns at once, and the run ends as soon as it can. Closing twice does nothing.
        """
        self._closed = True
        run = self._slot.get("run")
        if run is None:
            return
        if run.is_abandoned():
            self._repair(run)
            return
        run.scope.cancel("closed")
        if not run.is_mine():
            run.over.wait(_CLOSE_WAIT_S)

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start(
        self,
        operation: str,
        opening: UserMessage | None,
        deps: object,
        timeout: float | None,
        scope: Scope | None,
        *,
        streaming: bool,
    ) -> tuple[Run, Generator[Event, None, None]]:
        run = Run(self._setup, entry.run_scope(self._setup, operation, timeout, scope), deps, streaming=streaming)
        self._refuse_closed(operation)
        events = drive(run, self._begin, opening, self._release)
        run.generator = ref(cast("GeneratorType[Event, None, None]", events))
        return run, events

    def _refuse_closed(self, operation: str) -> None:
        if self._closed:
            raise AgentClosed(f"the agent {self._setup.agent_id} is closed; make a new one", operation=operation)

    def _begin(self, run: Run, opening: UserMessage | None) -> None:
        """Takes the agent for the run, or raises and changes nothing. Closes a run that was left behind first."""
        self._refuse_closed("Agent.run")
        while (holder := self._slot.setdefault("run", run)) is not run:
            if not holder.is_abandoned():
                raise Busy(
                    f"the agent is busy with run {holder.id}; one run at a time",
                    run_id=holder.id,
                    since=holder.started_time,
                    operation="Agent.run",
                )
            self._repair(holder)
        try:
            self._refuse_closed("Agent.run")  # again: `close` may have come before the agent was taken
            entry.open_transcript(run, self._ledger, opening)
        except BaseException:
            self._slot.pop("run", None)
            raise

    def _repair(self, run: Run) -> None:
        """Closes a run that was interrupted where it could not close itself. One thread at a time does."""
        me = get_ident()
        if self._repairs.setdefault("thread", me) != me:
            raise Busy(f"run {run.id} is being closed by another thread", run_id=run.id, since=run.started_time)
        try:
            if self._slot.get("run") is run:
                run.interrupted = True
                close_run(run, self._release)
        finally:
            self._repairs.pop("thread", None)

    def _release(self, run: Run) -> None:
        self._ledger = None if run.interrupted else run.ledger
        self._slot.pop("run", None)
        run.over.cancel()
