"""The registry: tools by name, some of them active, shared by any number of agents and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace as with_fields
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar, overload

from gotato_py import FunctionTool, InvalidArgument, NotFound, Tool, ToolSpec, TurnView, as_tool

from ._listeners import Listener, Listeners
from ._plain import plain_json
from ._snapshot import Entry, Snapshot
from .changes import change_between

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Tool)

_LONGEST_NAME = 64
_MOST_NAMES = 8


class Registry:
    """Tools by name, of which agents get the active ones: give it to `Agent(tools=[registry])`, to as many as you like.

    An agent asks at the start of each turn, and the set that it gets holds for that turn. Every method may be called
    from any thread, from a signal handler and from a tool or a callback: a change happens at once and as a whole, and
    nothing waits for a lock. What raises `InvalidArgument` or `NotFound` has changed nothing.

    `tools` are registered as active; `InvalidArgument` for what is no tool and for two of one name.
    """

    __slots__ = ("_listeners", "_state")

    def __init__(self, tools: Iterable[Tool | Callable[..., object]] = ()) -> None:
        self._state = Snapshot()
        self._listeners = Listeners()
        for each in tools:
            self.register(each)

    def __repr__(self) -> str:
        state = self._now()
        return f"Registry({len(state.entries)} tools, {len(state.active)} active)"

    def tools(self, view: TurnView | None = None) -> tuple[Tool, ...]:
        """The active tools, in the order of registration: the same tuple object until they change."""
        return self._now().tools

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the active tools, in the order of registration."""
        return self._now().active

    def list(self) -> tuple[Tool, ...]:
        """Every tool, active or not, in the order of registration."""
        return tuple([entry.tool for entry in self._now().entries.values()])

    def lookup(self, name: str) -> Tool:
        """The tool of that name, active or not. Raises `NotFound`, which tells the names that are near."""
        return _entry(self._now(), "lookup", name).tool

    def describe(self, name: str) -> dict[str, Any]:  # Any: JSON data
        """What there is to know about a tool, as plain JSON data of the caller's own.

        The keys: name, description, effect, input_schema, active, sequential, timeout (seconds or None). Raises
        `NotFound`.
        """
        entry = _entry(self._now(), "describe", name)
        spec = entry.spec
        return {
            "name": spec.name,
            "description": spec.description,
            "effect": spec.effect.value,
            "input_schema": _plain_schema(spec),
            "active": entry.active,
            "sequential": spec.sequential,
            "timeout": spec.timeout,
        }

    @overload
    def register(self, tool: T, *, active: bool = True, replace: bool = False) -> T: ...
    @overload
    def register(self, tool: Callable[P, R], *, active: bool = True, replace: bool = False) -> FunctionTool[P, R]: ...
    def register(self, tool: object, *, active: bool = True, replace: bool = False) -> Any:  # Any: see the overloads
        """Adds a tool, or a function as a tool, and returns the tool; so it is a decorator, too.

        With `replace`, a tool of the same name gives up its place, whether it is there or not. Raises `InvalidArgument`
        for what is no tool, for one whose schema is no JSON data, and for two of one name.
        """
        for where, flag in (("active", active), ("replace", replace)):
            if not isinstance(flag, bool):
                raise InvalidArgument(f"Registry.register: {where} must be a bool, not {type(flag).__name__}")
        try:
            made = as_tool(tool)
        except InvalidArgument as error:
            raise InvalidArgument(f"Registry.register: {error}") from error.__cause__
        entry = Entry(made, made.spec, active)
        _plain_schema(entry.spec)
        name = entry.spec.name

        def added(now: Snapshot) -> Snapshot:
            if name in now.entries and not replace:
                raise InvalidArgument(
                    f"Registry.register: there is a tool named {_shown(name)} already; "
                    "give this one another name, or pass replace=True"
                )
            old = now.entries.get(name)
            if old is not None and old.active == active and old.same_tool(entry):
                return now
            return Snapshot({**now.entries, name: entry}, now)

        self._change(added)
        return made

    def unregister(self, name: str) -> Tool:
        """Takes a tool out and returns it. Raises `NotFound`. A call that runs already goes on."""

        def without(now: Snapshot) -> Snapshot:
            _entry(now, "unregister", name)
            return Snapshot({each: entry for each, entry in now.entries.items() if each != name}, now)

        return self._change(without).entries[name].tool

    def activate(self, *names: str) -> None:
        """Gives agents these tools from their next turn on: all of them, or none where one raises `NotFound`."""
        self._switch("activate", names, True)

    def deactivate(self, *names: str) -> None:
        """Takes these tools from agents, from their next turn on: all, or none where one raises `NotFound`."""
        self._switch("deactivate", names, False)

    def on_change(self, callback: Listener) -> Callable[[], None]:
        """Calls `callback(change)` after every change, in the thread that made it; returns what ends that.

        Callbacks are called in the order in which they came. They may use the registry, and change it: that is a
        change of its own, told before this one has reached the callbacks that follow. One that raises stops neither
        the others nor the change; the first time it is logged. What changes nothing is not told.
        """
        return self._listeners.add(callback)

    def _now(self) -> Snapshot:
        state = self._state
        newest = state.newest()
        if newest is not state:
            self._state = newest
        return newest

    def _switch(self, operation: str, names: tuple[str, ...], active: bool) -> None:
        def switched(now: Snapshot) -> Snapshot:
            given = {name: _entry(now, operation, name) for name in names}
            changed = {name: with_fields(each, active=active) for name, each in given.items() if each.active != active}
            return Snapshot({**now.entries, **changed}, now) if changed else now

        self._change(switched)

    def _change(self, make: Callable[[Snapshot], Snapshot]) -> Snapshot:
        """Puts what `make` makes of the present state in its place, and tells of it; returns the state before."""
        while True:
            before = self._now()
            after = make(before)
            if after is before:
                return before
            if before.followed_by(after):
                break  # else another thread was first: again, from its state
        self._listeners.tell(change_between(before, after))
        return before


def _entry(state: Snapshot, operation: str, name: str) -> Entry:
    if not isinstance(name, str):
        raise InvalidArgument(f"Registry.{operation}: a name must be a str, not {type(name).__name__}")
    entry = state.entries.get(name)
    if entry is None:
        raise NotFound(
            f"Registry.{operation}: no tool is named {_shown(name)}; {_near(name, state)}",
            operation=f"Registry.{operation}",
        )
    return entry


def _near(name: str, state: Snapshot) -> str:
    if not state.entries:
        return "the registry is empty"
    near = get_close_matches(name[:_LONGEST_NAME], state.entries, n=3)
    if near:
        return f"did you mean {' or '.join([_shown(each) for each in near])}?"
    shown = ", ".join([_shown(each) for each in [*state.entries][:_MOST_NAMES]])
    return f"there are {shown}{', ...' if len(state.entries) > _MOST_NAMES else ''}"


def _shown(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "...")


def _plain_schema(spec: ToolSpec) -> Any:  # Any: JSON data
    return plain_json(f"the input_schema of tool {_shown(spec.name)}", spec.input_schema)
