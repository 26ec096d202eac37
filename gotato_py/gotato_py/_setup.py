"""What an agent is built from: checked once, shared by its runs, never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeVar, cast

from ._fields import wrong
from ._guards import can_take, is_sequence
from ._sources import Sources
from ._toolset import Toolset
from .context import ContextBuilder
from .errors import DeadlineExceeded, GotatoError, InvalidArgument
from .extensions import Points, install
from .ids import Ids, random_ids
from .limits import Limits
from .model import Model, ModelOptions
from .result import CostOf
from .retry import RetryPolicy
from .schema import SchemaCompiler
from .scope import SYSTEM_CLOCK, Clock
from .transcript import MemoryTranscript, Transcript

T = TypeVar("T")


class Bounds:
    """The limits that each turn and call is held against, as numbers: what is unlimited is infinite."""

    __slots__ = (
        "answer_bytes", "calls", "counts_tokens", "messages", "parallel", "result_bytes", "transcript_bytes", "turns",
        "workers",
    )  # fmt: skip

    def __init__(self, limits: Limits) -> None:
        self.turns: float = _number(limits.max_turns)
        none = limits.max_repeated_calls == 0 or limits.max_parallel_tools == 0
        self.calls = 0 if none else _number(limits.max_tool_calls)
        self.messages: float = _number(limits.max_messages)
        self.transcript_bytes: float = _number(limits.max_transcript_bytes)
        self.answer_bytes: float = _number(limits.max_message_bytes)
        self.counts_tokens: bool = limits.max_total_tokens is not None
        self.parallel: float = _number(limits.max_parallel_tools)
        self.workers: bool = self.parallel > 1 or limits.tool_timeout is not None
        nearest = min(_number(limits.max_tool_result_bytes), self.answer_bytes)
        self.result_bytes: int | None = None if nearest == inf else int(nearest)


def _number(limit: int | None) -> float:
    return inf if limit is None else limit


class Setup:
    """What an agent is built from: checked once, shared by its runs, never changed."""

    __slots__ = (
        "agent_id", "bounds", "builder", "clock", "compiler", "cost_of", "ids", "instructions", "interrupts", "limits",
        "model", "model_name", "monotonic", "name", "options", "points", "retry", "sources", "time", "toolset",
        "transcript",
    )  # fmt: skip

    agent_id: str
    name: str
    model: Model
    model_name: str
    cost_of: CostOf | None
    instructions: str
    compiler: SchemaCompiler | None
    toolset: Toolset
    sources: Sources
    transcript: Transcript
    builder: ContextBuilder
    points: Points
    limits: Limits
    options: ModelOptions
    retry: RetryPolicy
    clock: Clock
    monotonic: Callable[[], float]
    time: Callable[[], float]
    ids: Ids
    bounds: Bounds
    interrupts: tuple[type[BaseException], ...]


def a_kind(where: str, given: Any, kind: type[T]) -> T:
    """The argument, if it is of that class."""
    if not isinstance(given, kind):
        raise wrong(f"Agent.{where}", f"a {kind.__name__}", given)
    return given


def with_methods(where: str, given: T, *methods: str) -> T:
    """The argument, if it is an instance of something that has those methods."""
    if isinstance(given, type):
        raise InvalidArgument(f"Agent.{where} is the class {given.__name__}; pass an instance of it")
    for method in methods:
        if not callable(getattr(given, method, None)):
            raise wrong(f"Agent.{where}", f"an object that has a method {method}", given)
    return given


def with_hint(where: str, given: T, method: str, count: int, hint: str) -> T:
    """The argument, if its method takes so many; a str or a list in its place gets a hint."""
    if isinstance(given, str | list | tuple):
        raise InvalidArgument(f"Agent.{where} must be an object that has a method {method}; {hint}")
    with_methods(where, given, method)
    if not can_take(getattr(given, method), count):
        raise InvalidArgument(f"Agent.{where}.{method} cannot be called with {count} arguments: check its parameters")
    return given


def _sequence(where: str, given: Any) -> Sequence[Any]:
    if not is_sequence(given):
        raise wrong(f"Agent.{where}", "a sequence", given)
    return given


def a_callable(where: str, given: T | None, said: str) -> T | None:
    """The argument, if it can be called or is left out."""
    if given is not None and not callable(given):
        raise wrong(f"Agent.{where}", said, given)
    return given


def name_of(model: Model) -> str:
    """The model's name, where it has one."""
    name = getattr(model, "name", "")
    return name if isinstance(name, str) else ""


def cost_of(model: Model) -> CostOf | None:
    """What prices the model's runs, where it has such a member."""
    found: object = getattr(model, "cost_of", None)
    return cast("CostOf", found) if callable(found) else None


def a_transcript(given: Transcript | None) -> Transcript:
    """The transcript, or a new one in memory."""
    if given is None:
        return MemoryTranscript()
    with_hint("transcript", given, "append", 1, "wrap messages in MemoryTranscript(messages)")
    with_methods("transcript", given, "mark_started", "mark_waiting")
    for attribute in ("messages", "started", "waiting"):
        if not hasattr(given, attribute):
            raise wrong("Agent.transcript", f"a Transcript with the attribute {attribute}", given)
    return given


def a_clock(given: Clock | None) -> Clock:
    """The clock, or the system's."""
    return SYSTEM_CLOCK if given is None else with_methods("clock", given, "time", "monotonic", "wait")


def an_id_source(given: Ids | None) -> Ids:
    """The source of ids, or random ones."""
    return a_callable("ids", given, "a callable ids(kind) -> str") or random_ids


def first_id(ids: Ids) -> str:
    """The agent's id, which also shows that the source makes any."""
    try:
        made = ids("agent")
    except Exception as error:
        raise InvalidArgument(f"Agent.ids: ids('agent') raised {type(error).__name__}", cause=error) from error
    if not isinstance(made, str) or not made:
        raise wrong("Agent.ids: what ids('agent') returns", "a str that is not empty", made)
    return made


def extensions_of(given: Any) -> Points:
    """What the extensions offer, in the order of their installation."""
    return install(_sequence("extensions", given))


_OUR_BASES = {*InvalidArgument.__mro__, *DeadlineExceeded.__mro__}


def interrupts_of(given: Any) -> tuple[type[BaseException], ...]:
    """What ends a run from anywhere: `KeyboardInterrupt`, and the classes given."""
    kinds = _sequence("interrupts", given)
    for index, kind in enumerate(kinds):
        if isinstance(kind, type) and (kind in _OUR_BASES or issubclass(cast("type[object]", kind), GotatoError)):
            text = f"Agent.interrupts[{index}]: {kind.__name__} would take this package's own errors for interrupts"
            raise InvalidArgument(f"{text}; use a class of your own")
        if not (isinstance(kind, type) and issubclass(cast("type[object]", kind), BaseException)):
            raise wrong(f"Agent.interrupts[{index}]", "an exception class", cast("object", kind))
    return (KeyboardInterrupt, *kinds)
