"""What an agent's tools are made of: fixed ones, bound once, and sources that are asked at the start of each turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ._fields import wrong
from ._guards import can_take, is_sequence
from ._toolset import NO_TOOLS, BoundTool, Toolset, add_tool, bind_tool
from .context import TurnView
from .errors import ExtensionFailure, GotatoError, InvalidArgument
from .schema import SchemaCompiler
from .tool_source import ToolSource


class Sources:
    """The tools of an agent in the order in which they were given; `fixed` are those that never change."""

    __slots__ = ("_compiler", "_given", "changes", "fixed")

    def __init__(self, given: Sequence[BoundTool | ToolSource], compiler: SchemaCompiler | None) -> None:
        self._given = given
        self._compiler = compiler
        fixed: dict[str, BoundTool] = {}
        for each in given:
            if isinstance(each, BoundTool):
                add_tool(fixed, each, "Agent.tools")
        self.fixed = Toolset(fixed) if fixed else NO_TOOLS
        self.changes = len(fixed) != len(given)

    def ask(self, view: TurnView, last: Asked | None, interrupts: tuple[type[BaseException], ...]) -> Asked:
        """The tools now. `last` is what came the last time: what is the same is not bound again.

        Raises `ExtensionFailure` for a source that raises, for what it gives that is no tool, and for two of one name.
        """
        offers = [_ask(each, view, interrupts) for each in self._given if not isinstance(each, BoundTool)]
        if last is not None and all(old is new for old, new in zip(last.offers, offers, strict=True)):
            return last
        known = {} if last is None else last.by_identity
        made = Asked(offers)
        rest = iter(offers)
        try:
            for each in self._given:
                if isinstance(each, BoundTool):
                    add_tool(made.bound, each, "Agent.tools")
                    continue
                where = f"{type(each).__name__}.tools"
                for tool in next(rest):
                    bound = known.get(id(tool)) or bind_tool(tool, where, self._compiler)
                    made.by_identity[id(tool)] = bound
                    add_tool(made.bound, bound, where)
        except InvalidArgument as error:
            raise ExtensionFailure(str(error), operation="Agent.run", cause=error) from error
        made.toolset = Toolset(made.bound)
        return made


class Asked:
    """What the sources gave at one time, and what was made of it."""

    __slots__ = ("bound", "by_identity", "offers", "toolset")

    def __init__(self, offers: list[Sequence[object]]) -> None:
        self.offers = offers  # kept, so that an identity stays that of its object
        self.bound: dict[str, BoundTool] = {}
        self.by_identity: dict[int, BoundTool] = {}
        self.toolset = NO_TOOLS


def _ask(source: ToolSource, view: TurnView, interrupts: tuple[type[BaseException], ...]) -> Sequence[object]:
    name = f"{type(source).__name__}.tools"
    try:
        offered: Any = source.tools(view)  # Any: a source may return anything
    except interrupts:
        raise
    except Exception as error:
        said = f": {error}" if isinstance(error, GotatoError) else ""
        text = f"{name} raised {type(error).__name__}{said}"
        raise ExtensionFailure(text, operation="Agent.run", cause=error) from error
    if not is_sequence(offered):
        text = f"{name} returned a {type(offered).__name__}; it has to return a sequence of tools"
        raise ExtensionFailure(text, operation="Agent.run")
    return offered


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
