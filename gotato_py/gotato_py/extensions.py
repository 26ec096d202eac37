"""Extensions: plain callables at named points. This release has one point, `observe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ._fields import field, wrong
from ._guards import can_take
from ._value import value
from .errors import InvalidArgument, NotSupported
from .events import Event

POINTS = ("observe",)
LATER_POINTS = (
    "before_run", "before_turn", "transform", "check_answer", "before_tool", "after_tool", "should_stop",
    "before_settle", "on_overflow",
)  # fmt: skip


class Observer(Protocol):
    """An extension that watches."""

    def observe(self, event: Event) -> object:
        """Called for every event, in order, in the thread of the run; what it returns is ignored.

        An observer that raises is told of by an `extension_failed` event to the others, and the run goes on;
        `KeyboardInterrupt` ends the run. It may call `agent.cancel()` and `agent.close()`.
        """
        ...


def _callable_or_none(where: str, given: Any) -> Callable[[Event], object] | None:
    if given is not None and not callable(given):
        raise wrong(where, "a callable that takes one event", given)
    return given  # type: ignore[no-any-return]  # its result is ignored


@value
class Hooks:
    """An extension made of plain callables; a misspelled point is a TypeError."""

    observe: Callable[[Event], object] | None = field(default=None, check=_callable_or_none, kw_only=True)
    advisory: bool = field(default=False, kw_only=True)
    name: str = field(default="", kw_only=True)


class Extension:
    """An installed extension: its name and its observer."""

    __slots__ = ("logged", "name", "observe")

    def __init__(self, name: str, observe: Callable[[Event], object]) -> None:
        self.name = name
        self.observe = observe
        self.logged = False


def install(index: int, given: object) -> Extension:
    """Checks that the object is an extension; it names what is wrong with one that is not."""
    where = f"Agent.extensions[{index}]"
    if isinstance(given, type):
        raise InvalidArgument(f"{where} is the class {given.__name__}; pass an instance of it")
    for point in LATER_POINTS:
        if getattr(given, point, None) is not None:
            raise NotSupported(
                f"{where} offers {point}, which this release does not call yet; it would be ignored silently"
            )
    if type(given) is not Hooks:  # whose fields are all that it has
        _refuse_near_miss(where, given)
    observe = getattr(given, "observe", None)
    if observe is None:
        raise InvalidArgument(
            f"{where} ({type(given).__name__}) offers no extension point; it has to have: {', '.join(POINTS)}"
        )
    if not callable(observe):
        raise wrong(f"{where}.observe", "a callable that takes one event", observe)
    if not can_take(observe, 1):
        raise InvalidArgument(f"{where}.observe cannot be called with one event: check its parameters")
    return Extension(getattr(given, "name", "") or type(given).__name__, observe)


def _refuse_near_miss(where: str, given: object) -> None:
    points = {*POINTS, *LATER_POINTS}
    for name in dir(type(given)):
        if name.startswith("_") or name in points or not callable(getattr(type(given), name, None)):
            continue
        for point in points:
            if _is_near(name.lower().removeprefix("on_"), point.removeprefix("on_")):
                raise InvalidArgument(f"{where} has a method {name!r}; did you mean the point {point!r}?")


def _is_near(name: str, point: str) -> bool:
    """Whether one edit (a letter more, less or other, two swapped) or a missing underscore turns one into the other."""
    if name.replace("_", "") == point.replace("_", ""):
        return name != point
    if abs(len(name) - len(point)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(name, point, strict=False)) if a != b), min(len(name), len(point)))
    a, b = name[start:], point[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
