"""The tools of an agent: looked up by name, their schemas compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ._mapping import copied
from .arguments import parse_arguments
from .context import sorted_tools
from .errors import ExtensionFailure, InvalidArgument
from .function_tool import ArgumentsRejected, FunctionTool, as_tool
from .parts import ToolCall
from .schema import SchemaCompiler, Validator, compile_schema, compiled_by
from .tool_spec import ToolSpec
from .tools import Tool, ToolContext
from .violations import SchemaViolation

LONGEST_NAME = 64  # of an unknown tool's name, as the model is told it


class BoundTool:
    """A tool with its compiled schema; `function` is the tool where that is a function, `sees_use` whether it gets the
    call's context."""

    __slots__ = ("function", "sees_use", "spec", "timeout", "tool", "validate")

    def __init__(self, tool: Tool, spec: ToolSpec, validate: Validator) -> None:
        self.tool = tool
        self.spec = spec
        self.timeout = spec.timeout
        self.validate = validate
        self.function: FunctionTool[..., Any] | None = (
            cast("FunctionTool[..., Any]", tool) if isinstance(tool, FunctionTool) else None
        )
        self.sees_use = self.function is None or self.function.takes_context

    def execute(self, use: ToolContext[Any], converted: Mapping[str, Any]) -> object:
        """Runs the tool."""
        if self.function is not None:
            return self.function.call(use, converted)
        return self.tool.execute(use)


Prepared = tuple[BoundTool, Mapping[str, Any], Mapping[str, Any]]
"""A call that can run: its tool, the arguments as the model sent them, and as the tool takes them."""


class Toolset:
    """A set of tools with different names; `specs` is what the model is offered."""

    __slots__ = ("_by_name", "specs")

    def __init__(self, by_name: Mapping[str, BoundTool], more: Sequence[ToolSpec] = ()) -> None:
        self._by_name = by_name
        self.specs: tuple[ToolSpec, ...] = sorted_tools([*(each.spec for each in by_name.values()), *more])

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order in which they were given."""
        return tuple(each.tool for each in self._by_name.values())

    def offering(self, spec: ToolSpec) -> Toolset:
        """The same tools, and one more offer to the model that the kernel itself answers."""
        return Toolset(self._by_name, (spec,))

    def prepare(
        self, call: ToolCall, interrupts: tuple[type[BaseException], ...], shown: Mapping[str, Any] | None = None
    ) -> Prepared | str:
        """The tool and its arguments, checked and converted; or why the call cannot run, in words for the model.

        `shown` are the arguments that a person approved, which stand for those of the call. Raises an interrupt that
        came while a constructor of the arguments ran.
        """
        bound = self._by_name.get(call.name)
        if bound is None:
            available = ", ".join([spec.name for spec in self.specs]) or "none"
            return f'no tool "{call.name[:LONGEST_NAME]}"; available: {available}'
        arguments = parse_arguments(call.arguments) if shown is None else copied(shown)
        if isinstance(arguments, SchemaViolation):
            return f"invalid arguments for {call.name}: {arguments}"
        try:
            violation = bound.validate(arguments)
        except interrupts:
            raise
        except Exception as error:
            text = f"the validator that schema_compiler made for {call.name} raised {type(error).__name__}"
            raise ExtensionFailure(text, cause=error) from error
        if violation is not None:
            return f"invalid arguments for {call.name}: {violation}"
        if bound.function is None:
            return bound, arguments, arguments
        try:
            return bound, arguments, bound.function.convert(arguments)
        except ArgumentsRejected as rejected:
            if isinstance(rejected.__cause__, interrupts):
                raise rejected.__cause__ from None
            return f"invalid arguments for {call.name}: {rejected.violation}"


NO_TOOLS = Toolset({})


def bind_tool(given: object, where: str, compiler: SchemaCompiler | None) -> BoundTool:
    """Binds one tool. Raises `InvalidArgument` for what is none, and for a schema that cannot be checked."""
    try:
        tool = as_tool(given)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from error.__cause__
    return BoundTool(tool, tool.spec, _validator(tool, tool.spec, compiler))


def add_tool(bound: dict[str, BoundTool], each: BoundTool, where: str) -> None:
    """Adds a tool to those of other names."""
    if each.spec.name in bound:
        raise InvalidArgument(f"{where}: two tools are named {each.spec.name!r}; give one of them another name")
    bound[each.spec.name] = each


def _validator(tool: Tool, spec: ToolSpec, compiler: SchemaCompiler | None) -> Validator:
    kind = spec.input_schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list | tuple) and "object" in kind):
        raise InvalidArgument(
            f"Agent.tools: the input_schema of {spec.name} must describe an object: arguments are one"
        )
    where = f"tool {spec.name!r}"
    if compiler is not None:
        return compiled_by(compiler, spec.input_schema, where)
    if isinstance(tool, FunctionTool):  # it has compiled its schema once, for all agents
        return tool.validate
    return compile_schema(spec.input_schema, where=where)
