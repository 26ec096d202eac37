"""`@tool`: a typed function as a tool. The schema comes from its annotations and docstring; arguments arrive converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from ._conversion import Rejected, convert_fields
from ._signature import NO_DEFAULT, Plan, read_plan
from ._value import wrong
from .errors import ErrorCode, GotatoError, InvalidArgument
from .schema import Validator
from .tool_spec import ToolEffect, ToolSpec
from .tools import Tool, ToolContext
from .violations import SchemaViolation

P = ParamSpec("P")
R = TypeVar("R")

_TOO_DEEP = SchemaViolation("$", "a value that is not nested too deeply to be converted", "deeper nesting")
_ACCEPTED = "a Tool (a `spec` and an `execute(use)`), or a function or method with annotations"


class ArgumentsRejected(GotatoError):
    """Arguments that fit the schema and still cannot be converted: the function was not called.

    `violation` says which and why; `__cause__` is what a constructor or parser raised, if one did.
    """

    code = ErrorCode.INVALID_ARGUMENT
    facts = ("violation",)

    def __init__(self, message: str = "", *, violation: SchemaViolation, **common: Any) -> None:  # Any: GotatoError's own
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
        if isinstance(function, FunctionTool | type) or not callable(function):
            raise wrong("tool: function", "a function, method or partial", function)
        own = _name_of(function)
        self._plan = read_plan(function, name or own)
        if not name and not own.isidentifier():
            raise InvalidArgument("tool: a lambda has no name to call it by; give one: tool(name=...)")
        self._function = function
        self.spec = ToolSpec(
            name or own, description or self._plan.description, self._plan.schema,
            effect=ToolEffect(effect) if effect in _EFFECTS else effect,
            sequential=sequential, timeout=timeout,
        )  # fmt: skip
        self.__wrapped__ = function
        self.__name__ = own
        self.__qualname__ = getattr(function, "__qualname__", own)
        self.__module__ = getattr(function, "__module__", None) or __name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself."""
        return self._function(*args, **kwargs)
