"""Extensions: plain callables at named points of a run. What a run does with them is in `_hooks` and `_gates`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from ._fields import field, wrong
from ._guards import can_take
from ._mapping import EMPTY
from ._signature import refuse_asynchronous
from ._value import value
from .context import TurnView
from .decisions import Accept, Allow, Ask, Block, Reject
from .errors import InvalidArgument
from .events import Event
from .messages import AssistantMessage, Message, ToolResult, UserMessage
from .model_errors import ContextOverflow
from .tools import ToolContext

POINTS: Mapping[str, tuple[str, ...]] = {
    "before_run": ("view",),
    "before_turn": ("view",),
    "transform": ("view", "messages"),
    "check_answer": ("view", "message"),
    "before_tool": ("use",),
    "after_tool": ("use", "result"),
    "should_stop": ("view",),
    "before_settle": ("view",),
    "on_overflow": ("view", "error"),
    "observe": ("event",),
}
"""Every point, and what its callables are given."""

_COMING_OUT = frozenset({"check_answer", "after_tool", "should_stop", "before_settle"})
"""The points where the extension that was installed last is asked first."""


class Observer(Protocol):
    """An extension that watches."""

    def observe(self, event: Event) -> object:
        """Called for every event, in order, in the thread of the run; what it returns is ignored.

        An observer that raises is told of by an `extension_failed` event to the others, and the run goes on;
        `KeyboardInterrupt` ends the run. It may call `agent.cancel()` and `agent.close()`.
        """
        ...


class WrongReturn(TypeError):
    """An extension returned what its point cannot take."""


def _expected(point: str) -> str:
    given = POINTS[point]
    count = "one argument" if len(given) == 1 else f"{len(given)} arguments"
    return f"a callable that takes {count} ({', '.join(given)})"


def _point(name: str) -> Any:
    def check(where: str, given: Any) -> Any:
        if given is not None and not callable(given):
            raise wrong(where, _expected(name), given)
        return given

    return field(default=None, check=check, kw_only=True)


@value
class Hooks:
    """An extension made of plain callables; a misspelled point is a TypeError. All are called in the run's thread.

    `before_run` before the message of a run (`view.message`) is committed, `before_turn` before each request: both may
    compact (`view.transcript.replace`). `transform` returns the messages of each request, retries too, as they go on
    the wire; the same object is no work. `check_answer` judges an answer before it is committed. `before_tool` is a
    gate before a call whose arguments are valid; asked again when a person has answered its question. `after_tool`
    returns what the model is told of a call, also of one that did not run; whose result it is, and whether the tool
    ran, stays so. `should_stop` returns a reason to end the run after a turn, or None; `before_settle` a message with
    which the run goes on where it would end, or None; `on_overflow` whether it has made room for a request that was
    too large, once a model call. `observe` sees every event.

    Installed first is asked first at `before_run`, `before_turn`, `transform`, `before_tool`, `on_overflow` and
    `observe`, last at `check_answer`, `after_tool`, `should_stop` and `before_settle`. What a callable raises, or
    returns instead of what it should, fails the run; at `before_tool` it blocks the call; from `observe`, and with
    `advisory`, it changes nothing but is told.
    """

    before_run: Callable[[TurnView], object] | None = _point("before_run")
    before_turn: Callable[[TurnView], object] | None = _point("before_turn")
    transform: Callable[[TurnView, Sequence[Message]], Sequence[Message]] | None = _point("transform")
    check_answer: Callable[[TurnView, AssistantMessage], Accept | Reject] | None = _point("check_answer")
    before_tool: Callable[[ToolContext[Any]], Allow | Block | Ask] | None = _point("before_tool")
    after_tool: Callable[[ToolContext[Any], ToolResult], ToolResult] | None = _point("after_tool")
    should_stop: Callable[[TurnView], str | None] | None = _point("should_stop")
    before_settle: Callable[[TurnView], UserMessage | None] | None = _point("before_settle")
    on_overflow: Callable[[TurnView, ContextOverflow], bool] | None = _point("on_overflow")
    observe: Callable[[Event], object] | None = _point("observe")
    advisory: bool = field(default=False, kw_only=True)
    name: str = field(default="", kw_only=True)


class Extension:
    """An installed extension: its name, whether its failures change nothing, and whether one was logged already."""

    __slots__ = ("advisory", "logged", "name", "offers")

    def __init__(self, name: str, advisory: bool, offers: Mapping[str, Callable[..., Any]]) -> None:
        self.name: str = name
        self.advisory: bool = advisory
        self.offers: Mapping[str, Callable[..., Any]] = offers
        self.logged: bool = False


class Hook:
    """One extension's callable at one point."""

    __slots__ = ("call", "extension", "point")

    def __init__(self, extension: Extension, point: str, call: Callable[..., Any]) -> None:
        self.extension: Extension = extension
        self.point: str = point
        self.call: Callable[..., Any] = call


class Points:
    """Which callables each point has, in the order in which they are asked. Made once an agent."""

    __slots__ = tuple(POINTS)

    before_run: tuple[Hook, ...]
    before_turn: tuple[Hook, ...]
    transform: tuple[Hook, ...]
    check_answer: tuple[Hook, ...]
    before_tool: tuple[Hook, ...]
    after_tool: tuple[Hook, ...]
    should_stop: tuple[Hook, ...]
    before_settle: tuple[Hook, ...]
    on_overflow: tuple[Hook, ...]
    observe: tuple[Hook, ...]

    def __init__(self, extensions: Sequence[Extension] = ()) -> None:
        for point in POINTS:
            setattr(self, point, ())
        for extension in extensions:
            for point, call in extension.offers.items():
                hook, others = Hook(extension, point, call), getattr(self, point)
                setattr(self, point, (hook, *others) if point in _COMING_OUT else (*others, hook))


NO_POINTS = Points()


def install(given: Sequence[object]) -> Points:
    """What the extensions offer. Raises `InvalidArgument` naming the one that is none, and what is wrong with it."""
    return (
        Points([_installed(f"Agent.extensions[{at}]", each) for at, each in enumerate(given)]) if given else NO_POINTS
    )


def _installed(where: str, given: object) -> Extension:
    if isinstance(given, type):
        raise InvalidArgument(f"{where} is the class {given.__name__}; pass an instance of it")
    offers: dict[str, Callable[..., Any]] = {}
    for point in _offered(where, given):
        offered = getattr(given, point, None)
        if offered is None:
            continue
        if not callable(offered):
            raise wrong(f"{where}.{point}", _expected(point), offered)
        if not can_take(offered, len(POINTS[point])):
            said = _expected(point).removeprefix("a callable that takes ")
            raise InvalidArgument(f"{where}.{point} cannot be called with {said}: check its parameters")
        refuse_asynchronous(offered, f"{where}.{point}")
        offers[point] = offered
    if not offers:
        raise InvalidArgument(
            f"{where} ({type(given).__name__}) offers no extension point; it has to have one of: {', '.join(POINTS)}"
        )
    name = getattr(given, "name", "")
    named = name if isinstance(name, str) and name else type(given).__name__
    return Extension(named, getattr(given, "advisory", False) is True, offers)


def _offered(where: str, given: object) -> Iterable[str]:
    """The points that the extension may offer: what its type has is looked up once a type."""
    kind = type(given)
    if kind is Hooks:
        return POINTS
    declared = _declared.get(kind)
    if declared is None:
        declared = _declared[kind] = _points_of(where, kind)
    own: Mapping[str, object] = getattr(given, "__dict__", EMPTY)
    found = [point for point in POINTS if point in declared or point in own] if own else declared
    return found or POINTS  # an object may make up its attributes when it is asked for them


_declared: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def _points_of(where: str, kind: type) -> tuple[str, ...]:
    """The points that a class has. Raises `InvalidArgument` for a public method whose name is close to one, or begins
    with one that the class does not have: `before_tool_call` would be a gate that nobody asks."""
    names = dir(kind)
    for name in names:
        if name.startswith("_") or name in POINTS or not callable(getattr(kind, name, None)):
            continue
        for point in POINTS:
            longer = point not in names and _bare(name).startswith(_bare(point))
            if longer or _is_near(_bare(name), _bare(point)):
                raise InvalidArgument(f"{where} has a method {name!r}; did you mean the point {point!r}?")
    return tuple([point for point in POINTS if point in names])


def _bare(name: str) -> str:
    return name.lower().replace("_", "").removeprefix("on")


def _is_near(name: str, point: str) -> bool:
    """Whether they are equal but for case, underscores and a leading "on", or one edit apart: a letter more, less or
    other, or two swapped."""
    if abs(len(name) - len(point)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, point, strict=False)) if a != b), min(len(name), len(point)))
    a, b = name[start:], point[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
