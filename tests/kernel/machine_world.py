"""The world that the agent's state machine drives: a model, tools, a transcript, an observer, a clock and ids.

Everything that the kernel calls is a *probe*: it is counted, and may carry a `Fault`. Everything that happens is
written to one log in the order in which it happened, for `machine_laws` to read.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import gotato_testkit as kit
from gotato_py import (
    Agent,
    Busy,
    Cancelled,
    DeadlineExceeded,
    Event,
    Hooks,
    Limits,
    MemoryTranscript,
    Message,
    ModelEvent,
    ModelRequest,
    RetryPolicy,
    RunRecord,
    Scope,
    StoreFailure,
    ToolContext,
    ToolError,
    ToolSpec,
    Usage,
    WaitingCall,
)

M = TypeVar("M", bound=Message)


class Interrupt(BaseException):
    """What a task queue raises in the middle of a task; given to the agent as `interrupts=`."""


class TimeLimit(Exception):
    """The same as an ordinary exception, as Celery's and RQ's are."""


class Untyped(BaseException):
    """A BaseException that nobody announced."""


class BrokenText(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Entry(NamedTuple):
    """One line of the log. `size` is the number of messages in the transcript at that moment."""

    kind: str
    value: Any
    size: int


@dataclass(frozen=True)
class Fault:
    """Something that happens at the `nth` probe of the kind `at` ("any" counts all of them)."""

    at: str
    nth: int
    action: str


class World:
    """One transcript and the agents that take turns on it."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.clock = kit.ManualClock()
        self.next_id = kit.SequentialIds()
        self.kept = MemoryTranscript()
        self.transcript = ProbedTranscript(self)
        self.steps: deque[kit.Step] = deque()
        self.model = ProbedModel(self)
        self.faults: list[Fault] = []
        self.counts: dict[str, int] = {}
        self.fired: list[str] = []
        self.raised: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.broken_store = False
        self.limited = False
        self.noting = False  # what the log itself asks of the kernel is nothing to interrupt
        self.grumbles: Collection[str] = ()
        self.agent = self.build()

    def build(self, limits: Limits | None = None, retry: RetryPolicy | None = None, *, watched: bool = True) -> Agent:
        """A new agent on the same transcript."""
        return Agent(
            self.model,
            instructions="Be brief.",
            tools=[Act(self), self.add],
            transcript=self.transcript,
            extensions=[Hooks(observe=self._grumble, name="grumbler"), Hooks(observe=self._watch)] if watched else (),
            limits=limits or Limits(),
            retry=retry or RetryPolicy(jitter=0),
            interrupts=[Interrupt, TimeLimit],
            clock=ProbedClock(self),
            ids=self._ids,
        )

    def add(self, a: int, b: int, use: ToolContext[object]) -> int:
        """Adds two numbers."""
        self.note("tool", use)
        self.probe("tool")
        return a + b

    # Probes

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        self.noting = True
        self.log.append(Entry(kind, value, len(self.kept.messages)))
        self.noting = False

    def arm(self, faults: Sequence[Fault]) -> None:
        """Counts probes from zero, for these faults."""
        self.faults, self.counts, self.fired, self.raised = list(faults), {}, [], []

    def disarm(self) -> None:
        """Ends the faults, and waits for the threads that they started."""
        self.faults, self.broken_store, self.grumbles = [], False, ()
        for thread in self.threads:
            thread.join()
        self.threads.clear()

    def probe(self, at: str) -> None:
        """Called wherever the kernel calls out."""
        if not self.faults or threading.current_thread() is not threading.main_thread():
            return
        for kind in (at, "any"):
            self.counts[kind] = self.counts.get(kind, 0) + 1
        due = [each for each in self.faults if each.at in (at, "any") and each.nth == self.counts[each.at]]
        for fault in due:
            self.faults.remove(fault)
        for fault in due:
            self._happen(fault.action, at)

    def _happen(self, action: str, at: str) -> None:
        self.fired.append(action)
        if action in INTERRUPTS:
            self.note("interrupt", at)
            try:
                INTERRUPTS[action]()
            except BaseException as error:
                self.raised.append(error)
                raise
        match action:
            case "cancel":
                self.agent.cancel("by a callback")
            case "signal":
                signal.raise_signal(signal.SIGUSR1)
            case "thread":
                thread = threading.Thread(target=self.agent.cancel, args=("by a thread",))
                thread.start()
                thread.join()
            case "late thread":
                thread = threading.Thread(target=self.agent.cancel, args=("by a late thread",))
                self.threads.append(thread)
                thread.start()
            case "busy":
                self.expect_busy()
            case "os error":
                raise OSError(28, "no space")
            case "store failure":
                raise StoreFailure("no space")
            case "broken store":
                self.broken_store = True
            case _:
                raise AssertionError(action)

    def expect_busy(self) -> None:
        """A second run is refused while the first goes on, and nothing is committed."""
        before = len(self.kept.messages)
        for attempt in (lambda: self.agent.run("again"), lambda: next(self.agent.stream("again"))):
            try:
                attempt()
            except Busy:
                pass
            else:
                self.note("wrong", "a second run was let in")
        if len(self.kept.messages) != before:
            self.note("wrong", "a refused run has committed something")

    def refuse_if_broken(self) -> None:
        """A store that has failed for good refuses everything, until it is disarmed."""
        if self.broken_store:
            raise StoreFailure("no space for anything")

    # Observers, ids

    def _watch(self, event: Event) -> None:
        self.note("event", event)
        self.probe("observer")

    def _grumble(self, event: Event) -> None:
        if event.kind in self.grumbles:
            raise LookupError("an observer that fails")

    def _ids(self, kind: str) -> str:
        self.probe("ids")
        return self.next_id(kind)

    # What tools do

    def act(self, do: str, use: ToolContext[object]) -> object:
        """Does what the call asks for."""
        self.note("tool", use)
        self.probe("tool")
        if do in RAISES:
            raise RAISES[do]()
        if do in RETURNS:
            return RETURNS[do]()
        match do:
            case "busy":
                self.expect_busy()
            case "cancel":
                self.agent.cancel("by a tool")
            case "signal":
                signal.raise_signal(signal.SIGUSR1)
            case "charge":
                use.charge(Usage(7, 5))
            case "progress":
                use.progress("half")
                use.progress("nearly")
            case "wait":
                use.scope.wait(3)
            case "time":
                self.clock.advance(30)
            case "nested":
                inner = Agent(kit.ScriptedModel([kit.say("inside")]), clock=self.clock)
                return inner.run("inner", scope=use.scope, check=False).text
            case _:
                return f"did {do}"
        return "done"


def _raise(kind: type[BaseException]) -> NoReturn:
    raise kind


INTERRUPTS: dict[str, Callable[[], None]] = {
    "interrupt": lambda: _raise(KeyboardInterrupt),
    "ctrl-c": lambda: signal.raise_signal(signal.SIGINT),
    "stop": lambda: _raise(Interrupt),
    "time limit": lambda: _raise(TimeLimit),
}
"""What ends a run from anywhere and comes out of it unchanged."""
RAISES: dict[str, Callable[[], BaseException]] = {
    "raise ValueError": lambda: ValueError("no such row"),
    "raise ToolError": lambda: ToolError("my own words"),
    "raise BrokenText": BrokenText,
    "raise SystemExit": lambda: SystemExit(3),
    "raise GeneratorExit": GeneratorExit,
    "raise MemoryError": MemoryError,
    "raise StopIteration": StopIteration,
    "raise CancelledError": asyncio.CancelledError,
    "raise Untyped": Untyped,
    "raise Cancelled": lambda: Cancelled("not mine"),
    "raise DeadlineExceeded": lambda: DeadlineExceeded("not mine"),
    "raise StoreFailure": lambda: StoreFailure("not mine"),
}
"""What a tool may raise: each is told to the model, none ends the run."""


def _cycle() -> object:
    cycle: list[object] = []
    cycle.append(cycle)
    return cycle


async def _coroutine() -> None:
    raise AssertionError("never awaited")


RETURNS: dict[str, Callable[[], object]] = {
    "return None": lambda: None,
    "return empty": lambda: "",
    "return False": lambda: False,
    "return bytes": lambda: b"\xff\x00",
    "return nan": lambda: float("nan"),
    "return set": lambda: {3, 1, 2},
    "return time": lambda: datetime(2024, 5, 1, tzinfo=UTC),
    "return keys": lambda: {1: "a", "1": "b"},
    "return surrogate": lambda: "\ud800",
    "return long": lambda: "é" * 300,
    "return cycle": _cycle,
    "return object": object,
    "return generator": lambda: (each for each in "ab"),
    "return coroutine": _coroutine,
    "return exception": lambda: ValueError("returned"),
}
SAID_AS_FAILED = frozenset(
    {"return cycle", "return object", "return keys", "return generator", "return coroutine", "return exception"}
)
"""What a tool may return that nobody can say in JSON."""
DEEDS = ("busy", "cancel", "signal", "charge", "progress", "wait", "time", "nested", "thing")


class Act:
    """A tool that does as it is told."""

    spec = ToolSpec(
        "act",
        "Does something.",
        {
            "type": "object",
            "properties": {"do": {"type": "string"}},
            "required": ["do"],
            "additionalProperties": False,
        },
    )

    def __init__(self, world: World) -> None:
        self._world = world

    def execute(self, use: ToolContext[object]) -> object:
        return self._world.act(cast(str, use.arguments["do"]), use)


class ProbedModel:
    """A scripted model whose script is refilled for each run; when that is used up, it says "fine"."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scripted = kit.ScriptedModel(self._steps(), heed_scope=False)
        self.open: set[int] = set()

    def _steps(self) -> Iterator[kit.Step]:
        while True:
            yield self._world.steps.popleft() if self._world.steps else kit.say("fine", usage=Usage(2, 1))

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        self._world.note("request", tuple(request.messages))
        self._world.probe("request")
        stream = self._scripted.stream(request, scope)
        if not hasattr(stream, "__next__"):
            return stream
        return cast("Iterator[ModelEvent]", ProbedStream(self._world, stream, self.open))


class ProbedStream:
    """One answer on its way: in `open` from its first event until it has ended, raised or been closed."""

    def __init__(self, world: World, stream: Iterator[ModelEvent], opened: set[int]) -> None:
        self._world, self._stream, self._open = world, stream, opened

    def __iter__(self) -> ProbedStream:
        return self

    def __next__(self) -> ModelEvent:
        self._open.add(id(self))
        self._world.probe("model event")
        try:
            return next(self._stream)
        except BaseException:
            self._open.discard(id(self))
            raise

    def close(self) -> None:
        self._open.discard(id(self))
        cast(Any, self._stream).close()


class ProbedTranscript:
    """A transcript in memory that notes what is committed, and may fail."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def messages(self) -> Sequence[Message]:
        return self._world.kept.messages

    @property
    def started(self) -> Collection[str]:
        return self._world.kept.started

    @property
    def waiting(self) -> Sequence[WaitingCall]:
        return self._world.kept.waiting

    def append(self, message: M) -> M:
        self._world.probe("append")
        self._world.refuse_if_broken()
        size = len(self._world.kept.messages)
        try:
            kept = self._world.kept.append(message)
        finally:  # an interrupt may come when it is kept already
            self._world.noting = True
            for each in self._world.kept.messages[size:]:
                self._world.note("append", each)
        self._world.probe("appended")
        return kept

    def mark_started(self, key: str) -> None:
        self._world.probe("mark")
        self._world.refuse_if_broken()
        try:
            self._world.kept.mark_started(key)
        finally:
            self._world.noting = True
            if key in self._world.kept.started:
                self._world.note("started", key)
            self._world.noting = False
        self._world.probe("marked")

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        self._world.kept.mark_waiting(calls)

    def begin_run(self, run_id: str) -> None:
        self._world.probe("begin_run")
        self._world.note("begin_run", run_id)

    def end_run(self, record: RunRecord) -> None:
        self._world.note("end_run", record)
        self._world.probe("end_run")


class ProbedClock:
    """The manual clock, as a probe."""

    def __init__(self, world: World) -> None:
        self._world = world

    def time(self) -> float:
        self._world.probe("clock")
        return self._world.clock.time()

    def monotonic(self) -> float:
        self._world.probe("clock")
        return self._world.clock.monotonic()

    def wait(self, scope: Scope, seconds: float) -> bool:
        self._world.probe("clock")
        return self._world.clock.wait(scope, seconds)
