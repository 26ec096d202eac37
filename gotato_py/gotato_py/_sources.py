"""What an agent's tools are made of: fixed ones, bound once, and sources that are asked at the start of each turn."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, cast

from ._fields import wrong
from ._guards import can_take, is_sequence
from ._toolset import NO_TOOLS, BoundTool, Toolset, add_tool, bind_tool
from .context import TurnView
from .errors import Cancelled, DeadlineExceeded, ExtensionFailure, GotatoError, InvalidArgument
from .schema import SchemaCompiler
from .tool_source import ToolSource


class Sources:
    """The tools of an agent in the order in which they were given; `fixed` are those that never change."""

    __slots__ = ("_compiler", "_given", "_known", "changes", "fixed")

    def __init__(self, given: Sequence[BoundTool | ToolSource], compiler: SchemaCompiler | None) -> None:
        self._given = given
        self._compiler = compiler
        self._known: Asked | None = None  # what came the last time, to whichever run
        fixed: dict[str, BoundTool] = {}
        for each in given:
            if isinstance(each, BoundTool):
                add_tool(fixed, each, "Agent.tools")
        self.fixed: Toolset = Toolset(fixed) if fixed else NO_TOOLS
        self.changes: bool = len(fixed) != len(given)

    def ask(self, view: TurnView, last: Asked | None, interrupts: tuple[type[BaseException], ...]) -> Asked:
        """The tools now; `last` itself where they are still those. A tool that came the last time is not bound again.

        Raises `ExtensionFailure` for a source that raises, for what it gives that is no tool, and for two of one name.
        """
        offers = [_ask(each, view, interrupts) for each in self._given if not isinstance(each, BoundTool)]
        known = last or self._known
        if known is not None and all(map(_are_same, known.offers, offers)):
            return known
        made = Asked(offers)
        rest = iter(offers)
        try:
            for each in self._given:
                if isinstance(each, BoundTool):
                    add_tool(made.bound, each, "Agent.tools")
                    continue
                where = f"{type(each).__name__}.tools"
                for index, tool in enumerate(next(rest)):
                    bound = None if known is None else known.by_identity.get(id(tool))
                    bound = bound or bind_tool(tool, f"{where}[{index}]", self._compiler)
                    made.by_identity[id(tool)] = bound
                    add_tool(made.bound, bound, where)
        except InvalidArgument as error:
            if isinstance(error.cause, interrupts):  # it came while a schema was compiled
                raise error.cause from None
            raise ExtensionFailure(str(error), operation="Agent.run", cause=error) from error
        made.toolset = Toolset(made.bound)
        self._known = made
        return made


class Asked:
    """What the sources gave at one time, and what was made of it."""

    __slots__ = ("bound", "by_identity", "offers", "toolset")

    def __init__(self, offers: list[tuple[object, ...]]) -> None:
        self.offers: list[tuple[object, ...]] = offers  # kept, so that an identity stays that of its object
        self.bound: dict[str, BoundTool] = {}
        self.by_identity: dict[int, BoundTool] = {}
        self.toolset: Toolset = NO_TOOLS


def _are_same(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Whether a source gave the same tools. It may give a list that it changes: what is in it counts."""
    return old is new or (len(old) == len(new) and all(map(is_, old, new)))


def _ask(source: ToolSource, view: TurnView, interrupts: tuple[type[BaseException], ...]) -> tuple[object, ...]:
    name = f"{type(source).__name__}.tools"
    try:
        offered: Any = source.tools(view)  # Any: a source may return anything
        if is_sequence(offered):
            return tuple(offered)
    except interrupts:
        raise
    except Exception as error:
        if isinstance(error, Cancelled | DeadlineExceeded) and view.scope.cancelled:
            raise
        said = f": {error}" if isinstance(error, GotatoError) else ""
        text = f"{name} raised {type(error).__name__}{said}"
        raise ExtensionFailure(text, operation="Agent.run", cause=error) from error
    text = f"{name} returned a {type(offered).__name__}; it has to return a sequence of tools"
    raise ExtensionFailure(text, operation="Agent.run")


def read_tools(given: object, compiler: SchemaCompiler | None) -> Sources:
    """The argument `tools`. Raises `InvalidArgument` for what is neither tool, function nor source, for two tools of
    one name, and for a schema that cannot be checked."""
    if not is_sequence(given):
        raise wrong("Agent.tools", "a sequence of tools, functions and tool sources", given)
    read: list[BoundTool | ToolSource] = []
    for index, each in enumerate(given):
        where = f"Agent.tools[{index}]"
        if _is_source(each):
            if not can_take(each.tools, 1):
                raise InvalidArgument(f"{where}.tools cannot be called with one view: check its parameters")
            read.append(cast("ToolSource", each))
        else:
            read.append(bind_tool(each, where, compiler))
    return Sources(read, compiler) if read else NO_SOURCES


def _is_source(given: Any) -> bool:  # Any: whatever was given as a tool
    return not isinstance(given, type) and not hasattr(given, "spec") and callable(getattr(given, "tools", None))


NO_SOURCES = Sources((), None)
