"""`@tool`: a typed function as a tool. Its annotations and docstring are the schema; arguments arrive converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from ._conversion import Rejected, convert_fields
from ._fields import wrong
from ._signature import read_plan, refuse_asynchronous
from ._value import replace
from .errors import ErrorCode, GotatoError, InvalidArgument
from .schema import Validator
from .tool_spec import ToolEffect, ToolSpec
from .tools import Tool, ToolContext
from .violations import SchemaViolation, too_deep

P = ParamSpec("P")
R = TypeVar("R")

_ACCEPTED = "a Tool (a `spec` and an `execute(use)`), or a function or method with annotations"


class ArgumentsRejected(GotatoError):
    """Arguments that fit the schema and still cannot be converted: the function was not called.

    `violation` says which and why; `__cause__` is what a constructor or parser raised, if one did.
    """

    code = ErrorCode.INVALID_ARGUMENT
    facts: tuple[str, ...] = ("violation",)

    def __init__(
        self, message: str = "", *, violation: SchemaViolation, **common: Any
    ) -> None:  # Any: GotatoError's own
        super().__init__(message or str(violation), **common)
        self.violation = violation


class FunctionTool(Generic[P, R]):
    """A function as a `Tool`; called like the function, it is that function.

    A kernel goes through three steps: `validate(arguments)` checks them against the schema, `convert(arguments)` makes
    keyword arguments of them, `call(use, converted)` calls the function. `execute(use)` is the last two. The parameter
    annotated `ToolContext` receives the use; arguments left out keep the function's own defaults.

    Raises `InvalidArgument`, naming the tool and the parameter, for a function that cannot be described: a parameter
    without annotation or of a type that JSON Schema cannot say, `*args`, `**kwargs`, `async def`, a generator.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        description: str = "",
        effect: ToolEffect | str = ToolEffect.UNSPECIFIED,
        sequential: bool = False,
        timeout: float | None = None,
    ) -> None:
        if isinstance(function, _NO_FUNCTION) or not callable(function):
            raise wrong("tool: function", "a function, method or partial", function)
        own = _name_of(function)
        self._plan = read_plan(function, name or own)
        if not name and not own.isidentifier():
            raise InvalidArgument("tool: a lambda has no name to call it by; give one: tool(name=...)")
        self._function: Callable[..., R] = function
        self._unbound = self._plan.is_method
        self.spec: ToolSpec = self._plan.spec(name or own)
        if description or effect != ToolEffect.UNSPECIFIED or sequential or timeout is not None:
            changes = {"effect": effect, "sequential": sequential, "timeout": timeout}
            self.spec = replace(self.spec, description=description or self._plan.description, **changes)
        self.__wrapped__ = function
        self.__name__ = own
        self.__qualname__ = getattr(function, "__qualname__", own)
        self.__module__ = getattr(function, "__module__", None) or __name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., R]:
        """As a method: the tool of one instance."""
        if instance is None or not self._unbound:
            return self
        bound: FunctionTool[..., R] = FunctionTool.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._function = MethodType(self._function, instance)
        bound._unbound = False
        return bound

    @property
    def takes_context(self) -> bool:
        """Whether the function has a parameter for its `ToolContext`."""
        return bool(self._plan.context)

    @property
    def unbound(self) -> bool:
        """Whether it is a method in the body of a class, and needs an instance before it can be a tool."""
        return self._unbound

    def __repr__(self) -> str:
        return f"FunctionTool(name={self.spec.name!r}, function={self.__qualname__})"

    @property
    def validate(self) -> Validator:
        """Checks arguments against `spec.input_schema`; compiled once, at first use."""
        return self._plan.validator(self.spec.name)

    def convert(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:  # Any: JSON goes in, annotated types come out
        """Converts arguments that fit the schema to the annotated types: a new mapping, or the same if none needs it.

        Raises `ArgumentsRejected`. Calls constructors of the annotated classes, but never the function.
        """
        converts = self._plan.converts
        if not converts:
            return arguments
        try:
            return convert_fields(converts, arguments)
        except Rejected as error:
            raise ArgumentsRejected(violation=error.failure.violation()) from error.__cause__
        except RecursionError as error:
            raise ArgumentsRejected(violation=too_deep("converted")) from error

    def call(self, use: ToolContext[Any], converted: Mapping[str, Any]) -> R:  # Any: the function's own types
        """Calls the function with arguments that `convert` returned; raises what it raises."""
        plan = self._plan
        if plan.simple:
            return self._function(**converted)
        keywords = dict(converted)
        if plan.context:
            keywords[plan.context] = use
        if not plan.positional:
            return self._function(**keywords)
        positional = [keywords.pop(name, default) for name, default in plan.positional]
        return self._function(*positional, **keywords)

    def execute(self, use: ToolContext[Any]) -> R:  # Any: the type of the deps is between the function and its caller
        """Converts `use.arguments`, which fit the schema, and calls the function.

        Raises `ArgumentsRejected` before the function is called, and what the function raises.
        """
        if self._plan.simple:
            return self._function(**use.keywords())
        return self.call(use, self.convert(use.keywords()))


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str = "",
    description: str = "",
    effect: ToolEffect | str = ToolEffect.UNSPECIFIED,
    sequential: bool = False,
    timeout: float | None = None,
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effect: ToolEffect | str = ToolEffect.UNSPECIFIED,
    sequential: bool = False,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,  # Any: what it returns; the overloads keep its type
    /,
    *,
    name: str = "",
    description: str = "",
    effect: ToolEffect | str = ToolEffect.UNSPECIFIED,
    sequential: bool = False,
    timeout: float | None = None,
) -> Any:
    """Makes a typed function a tool: `@tool`, or `@tool(name=…, …)`.

    `name` and `description` default to those of the function. `effect` says what it may change, `sequential` asks to
    run alone, `timeout` in seconds moves the call to a worker thread, where it is given up if it does not end.
    In the body of a class it makes tools of the instances' methods. Raises as `FunctionTool` does.
    """

    def decorate(given: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool(
            given, name=name, description=description, effect=effect, sequential=sequential, timeout=timeout
        )  # fmt: skip

    return decorate if function is None else decorate(function)


def as_tool(given: object) -> Tool:
    """A `Tool` as it is, a function, method or partial as a `FunctionTool`.

    Raises `InvalidArgument` for anything else: a class, a method without its instance, an asynchronous tool.
    """
    if isinstance(given, FunctionTool):
        made = cast("FunctionTool[..., Any]", given)
    elif isinstance(given, type):
        raise InvalidArgument(f"{given.__qualname__} is a class; a tool is an instance of it: {_ACCEPTED}")
    elif isinstance(getattr(given, "spec", None), ToolSpec) and callable(execute := getattr(given, "execute", None)):
        refuse_asynchronous(execute, f"tool {given.spec.name!r}")  # type: ignore[attr-defined]  # looked at just now
        return cast("Tool", given)
    elif callable(given) and (hasattr(given, "__name__") or hasattr(given, "func")):
        made = FunctionTool(cast("Callable[..., Any]", given))
    else:
        raise InvalidArgument(f"a tool is {_ACCEPTED}, not {type(given).__name__}")
    if made.unbound:
        raise InvalidArgument(f"tool {made.spec.name!r} is a method without its instance; take it from an object")
    return made


def _name_of(function: Any) -> str:  # Any: a function, a method, or a partial around one
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


_NO_FUNCTION: Any = (FunctionTool, type)  # Any: its type parameters say nothing here
