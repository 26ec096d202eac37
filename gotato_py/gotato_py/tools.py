"""The seam to tools: the Protocol, and what a call is told about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, Protocol

from ._fields import wrong
from ._mapping import EMPTY
from ._typing import D
from ._value import value
from .parts import Usage
from .scope import Scope
from .tool_spec import ToolEffect, ToolSpec


def drop_progress(text: str) -> None:
    """Progress of a call that nobody follows."""


def drop_usage(usage: Usage) -> None:
    """Usage of a call that nobody pays for."""


class ToolContext(Generic[D]):
    """One call, as its tool sees it. Made by the kernel; made by hand, with the defaults, to test a tool alone.

    `key` is the same after a restart: use it as the idempotency key of an outside effect. Code that blocks bounds
    itself by `scope`; a tool that starts another agent passes `scope=use.scope`. `deps` is what the caller gave `run`.
    """

    __slots__ = (
        "_arguments", "_on_charge", "_on_progress", "call_id", "deps", "effect", "index", "key", "name", "run_id",
        "scope", "turn",
    )  # fmt: skip

    def __init__(
        self,
        name: str = "",
        arguments: Mapping[str, object] = EMPTY,
        *,
        run_id: str = "",
        turn: int = 0,
        call_id: str = "",
        key: str = "",
        index: int = 0,
        effect: ToolEffect = ToolEffect.UNSPECIFIED,
        scope: Scope | None = None,
        deps: D | None = None,
        on_progress: Callable[[str], None] = drop_progress,
        on_charge: Callable[[Usage], None] = drop_usage,
    ) -> None:
        self.name: str = name
        self._arguments = arguments
        self.run_id: str = run_id
        self.turn: int = turn
        self.call_id: str = call_id
        self.key: str = key
        self.index: int = index
        self.effect: ToolEffect = effect
        self.scope: Scope = Scope() if scope is None else scope
        self.deps: D = deps  # type: ignore[assignment]  # left out, D is None
        self._on_progress = on_progress
        self._on_charge = on_charge

    @classmethod
    def for_call(
        cls,
        name: str,
        arguments: Mapping[str, object],
        run_id: str,
        turn: int,
        call_id: str,
        key: str,
        index: int,
        effect: ToolEffect,
        scope: Scope,
        deps: Any,  # whatever the caller of the run gave
        on_progress: Callable[[str], None],
        on_charge: Callable[[Usage], None],
    ) -> ToolContext[Any]:
        """The kernel's own way to make one: twelve keywords with defaults would cost as much as a commit."""
        use: ToolContext[Any] = object.__new__(ToolContext)
        use.name, use._arguments = name, arguments
        use.run_id, use.turn = run_id, turn
        use.call_id, use.key, use.index = call_id, key, index
        use.effect, use.scope, use.deps = effect, scope, deps
        use._on_progress, use._on_charge = on_progress, on_charge
        return use

    def keywords(self) -> Mapping[str, Any]:  # Any: JSON values
        """The arguments to call a function with: a read-only view of them is three times slower there."""
        return self._arguments

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments, checked against the schema; read-only."""
        return MappingProxyType(self._arguments)

    def __repr__(self) -> str:
        return f"ToolContext(name={self.name!r}, key={self.key!r}, turn={self.turn})"

    def progress(self, text: str) -> None:
        """Tells observers how far the call has come. Bounded by the limits; what is over them is dropped."""
        if not isinstance(text, str):
            raise wrong("ToolContext.progress: text", "a str", text)
        self._on_progress(text)

    def charge(self, usage: Usage) -> None:
        """Counts the tokens of work done inside this call, a sub-agent's for one, into the run."""
        if not isinstance(usage, Usage):
            raise wrong("ToolContext.charge: usage", "a Usage", usage)
        self._on_charge(usage)


class Tool(Protocol):
    """Anything with a spec that can be called. Functions become tools by themselves."""

    @property
    def spec(self) -> ToolSpec:
        """Read when the agent is built."""
        ...

    def execute(self, use: ToolContext[object]) -> object:
        """Does the work, in the thread of the run or, if it has a time or runs beside others, on a worker thread.

        `use.arguments` fit the schema. May return text, parts, or data that JSON can say; anything else, and anything
        raised, is told to the model as a failed call. `KeyboardInterrupt` ends the run.
        """
        ...


@value
class Pending:
    """Returned by a tool whose work goes on elsewhere; `handle` names that work, `note` is told to the model."""

    handle: str
    note: str = ""
