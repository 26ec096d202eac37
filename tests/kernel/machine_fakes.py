"""What the machine's agents are built from, all of it probed: a model, a transcript, a clock, a source of tools."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

import gotato_testkit as kit
from gotato_py import (
    Approve,
    AssistantMessage,
    Compaction,
    MemoryTranscript,
    Message,
    ModelContext,
    ModelEvent,
    ModelRequest,
    RunRecord,
    Scope,
    StoreFailure,
    Tool,
    ToolCall,
    ToolMessage,
    TurnView,
    Usage,
    UserMessage,
    WaitingCall,
)

from .machine_deeds import RAISES

M = TypeVar("M", bound=Message)


class Probing(Protocol):
    """What the fakes ask of their world."""

    clock: kit.ManualClock
    kept: MemoryTranscript
    steps: deque[kit.Step]
    offers: deque[str]
    broken_store: bool
    builds: deque[str]
    built: bool
    rewritten: bool
    wants_output: bool
    noting: bool

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        ...

    def probe(self, at: str) -> None:
        """Called wherever the kernel calls out."""
        ...


class ProbedModel:
    """A scripted model whose script is refilled for each run; after that it says "fine", or gives the output."""

    def __init__(self, world: Probing) -> None:
        self._world = world
        self._scripted = kit.ScriptedModel(self._steps(), heed_scope=False)
        self.capabilities: frozenset[str] = frozenset()
        self.open: set[int] = set()

    def _steps(self) -> Iterator[kit.Step]:
        while True:
            yield self._world.steps.popleft() if self._world.steps else self._last()

    def _last(self) -> kit.Step:
        if not self._world.wants_output:
            return kit.say("fine", usage=Usage(2, 1))
        return kit.say("7") if self.capabilities else kit.call("final_answer", value=7)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        changed = self._world.rewritten or self._world.built
        self._world.note("rewritten" if changed else "request", tuple(request.messages))
        self._world.note("offered", [spec.name for spec in request.tools])
        self._world.probe("request")
        stream = self._scripted.stream(request, scope)
        if not hasattr(stream, "__next__"):
            return stream
        return cast("Iterator[ModelEvent]", ProbedStream(self._world, stream, self.open))


class ProbedStream:
    """One answer on its way: in `open` from its first event until it has ended, raised or been closed."""

    def __init__(self, world: Probing, stream: Iterator[ModelEvent], opened: set[int]) -> None:
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
    """A transcript in memory that notes what is committed, and may fail before and be interrupted after each step."""

    def __init__(self, world: Probing) -> None:
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

    @property
    def compactions(self) -> Sequence[Compaction]:
        return self._world.kept.compactions

    def _may_fail(self, at: str) -> None:
        self._world.probe(at)
        if self._world.broken_store:
            raise StoreFailure("no space for anything")

    def append(self, message: M) -> M:
        self._may_fail("append")
        size = len(self._world.kept.messages)
        try:
            kept = self._world.kept.append(message)
        finally:  # an interrupt may come when it is kept already
            self._world.noting = True
            for each in self._world.kept.messages[size:]:
                self._world.note("append", each)
            self._world.noting = False
        self._world.probe("appended")
        return kept

    def mark_started(self, key: str) -> None:
        self._may_fail("mark")
        try:
            self._world.kept.mark_started(key)
        finally:
            self._world.noting = True
            if key in self._world.kept.started:
                self._world.note("started", key)
            self._world.noting = False
        self._world.probe("marked")

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        self._may_fail("mark waiting")
        before = {call.key: call for call in self._world.kept.waiting}
        for call in calls:
            overdue = call.expires_at is not None and call.expires_at <= self._world.clock.time()
            known = before.get(call.key)
            if overdue and known is not None and known.decision is None and call.decision == Approve():
                self._world.note("wrong", f"{call.key} was approved after its time")
            if known is not None and known.decision is not None and known.decision != call.decision:
                self._world.note("wrong", f"the answer to {call.key} was changed")
        try:
            self._world.kept.mark_waiting(calls)
        finally:
            self._world.noting = True
            if self._world.kept.waiting == tuple(calls):
                self._world.note("waiting", tuple(calls))
            self._world.noting = False
        self._world.probe("marked waiting")

    def replace(self, compaction: Compaction) -> bool:
        self._may_fail("replace")
        count = len(self._world.kept.compactions)
        try:
            return self._world.kept.replace(compaction)
        finally:
            self._world.noting = True
            for each in self._world.kept.compactions[count:]:
                self._world.note("replace", each)
            self._world.noting = False

    def begin_run(self, run_id: str) -> None:
        self._may_fail("begin_run")
        self._world.note("begin_run", run_id)

    def end_run(self, record: RunRecord) -> None:
        self._world.note("end_run", record)
        self._may_fail("end_run")


class ProbedClock:
    """The manual clock, as a probe."""

    def __init__(self, world: Probing) -> None:
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


class Source:
    """A tool source whose tools change as the plan says: none, one, two, the same again, or what it must not give."""

    def __init__(self, world: Probing, tools: Sequence[Tool]) -> None:
        self._world, self._tools = world, tuple(tools)
        self._last: Sequence[Tool] = self._tools

    def tools(self, view: TurnView) -> Sequence[Tool]:
        offer = self._world.offers.popleft() if self._world.offers else "same"
        self._world.probe("source")
        if offer in RAISES:
            raise RAISES[offer]()
        match offer:
            case "none":
                self._last = ()
            case "one":
                self._last = self._tools[:1]
            case "two":
                self._last = list(self._tools)
            case "twice":
                return [*self._tools, *self._tools]
            case "wrong":
                return cast("Sequence[Tool]", [object()])
            case "nothing":
                return cast("Sequence[Tool]", None)
            case _:
                pass
        self._world.note("offer", [tool.spec.name for tool in self._last])
        return self._last


class Builder:
    """A context builder that shows everything, the last message of the user and what follows, or what it must not."""

    def __init__(self, world: Probing) -> None:
        self._world = world

    def build(self, view: TurnView) -> ModelContext:
        does = self._world.builds.popleft() if self._world.builds else "same"
        self._world.probe("source")
        self._world.built = does != "same"
        if does in RAISES:
            raise RAISES[does]()
        match does:
            case "window":
                users = [at for at, each in enumerate(view.messages) if isinstance(each, UserMessage)]
                return ModelContext(view.system, view.messages[users[-1] if users else 0 :])
            case "panel":
                return ModelContext(view.system, view.messages, "what the time is")
            case "copy":
                return ModelContext("Be long.", tuple(view.messages))
            case "open":
                return ModelContext(
                    view.system, [UserMessage("do"), AssistantMessage(tool_calls=[ToolCall("c", "act")])]
                )
            case "nothing":
                return ModelContext(view.system, ())
            case "wrong":
                return cast(ModelContext, view.messages)
            case _:
                return ModelContext(view.system, view.messages)


def open_calls(messages: Sequence[Message]) -> list[str]:
    """The keys of the calls at the tail that have no result."""
    results: set[str] = set()
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
            keys = [f"{message.id}:{index}" for index in range(len(calls))]
            return [key for key in keys if key not in results]
        results.add(message.result.key)
    return []
