"""What a function says about itself as a tool: its schema, its converters, how it wants to be called.

Read from the function's code object: `inspect` would cost the import of this package several milliseconds.
"""

from __future__ import annotations

import builtins
from _weakref import ref
from collections.abc import Callable, Mapping
from functools import partial
from operator import is_
from types import CodeType, FunctionType, MethodType, UnionType
from typing import Any, Union, get_args, get_origin

from ._annotations import Describer, Resolve
from ._class_types import ObjectSchema
from ._conversion import Convert
from ._docstrings import parse_docstring
from .errors import InvalidArgument
from .schema import Validator, compile_schema
from .tool_spec import ToolSpec
from .tools import ToolContext

_VARARGS, _VARKEYWORDS, _GENERATOR = 0x04, 0x08, 0x20
_ASYNCHRONOUS = 0x80 | 0x100 | 0x200  # coroutine, coroutine by decorator, asynchronous generator
NO_DEFAULT: Any = object()
_PARTIAL: Any = partial  # Any: its type parameter says nothing here
_FUNCTION: Any = FunctionType


class Plan:
    """One signature, read: shared by all tools that are made of the same code.

    `simple`: the arguments are the function's keywords as they are. `context` names the parameter that takes the
    ToolContext, `positional` those that cannot be given by name, each with its default.
    """

    __slots__ = (
        "_spec", "_validate", "context", "converts", "description", "is_method", "positional", "schema", "simple",
    )  # fmt: skip

    def __init__(
        self,
        description: str,
        schema: dict[str, object],
        converts: tuple[tuple[str, Convert], ...],
        positional: tuple[tuple[str, object], ...],
        context: str,
        is_method: bool,
    ) -> None:
        self.description = description
        self.schema = schema
        self.converts = converts
        self.positional = positional
        self.context = context
        self.is_method = is_method
        self.simple = not (converts or positional or context)
        self._spec: ToolSpec | None = None
        self._validate: Validator | None = None

    def spec(self, name: str) -> ToolSpec:
        """The spec of a tool that says nothing more about itself."""
        made = self._spec
        if made is None or made.name != name:
            made = self._spec = ToolSpec(name, self.description, self.schema)
        return made

    def validator(self, name: str) -> Validator:
        """The validator of the schema, compiled at its first use."""
        if self._validate is None:
            self._validate = compile_schema(self.schema, where=f"tool {name!r}")
        return self._validate


class _Target:
    """The function whose signature counts, how many of its first parameters are taken, and which by name."""

    __slots__ = ("function", "named", "taken")

    def __init__(self, function: FunctionType, taken: int, named: frozenset[str]) -> None:
        self.function: Any = function  # Any: type checkers would bind it like a method
        self.taken, self.named = taken, named


def read_plan(function: Callable[..., object], name: str) -> Plan:
    """Reads the signature of a function, method, partial, or what `functools.wraps` has made of one.

    Raises `InvalidArgument`, naming the tool and the parameter, for what cannot be a tool.
    """
    where = f"tool {name!r}"
    refuse_asynchronous(function, where)
    target = _target(function, where)
    known = _plans.get(id(target.function.__code__))
    if known is not None and known.fits(target):
        return known.plan
    plan = _read(target, where)
    _remember(target, plan)
    return plan


class _Known:
    """A plan, and what it was read from."""

    __slots__ = ("code", "facts", "plan", "values")

    def __init__(self, target: _Target, plan: Plan, code: ref[CodeType]) -> None:
        self.code, self.plan = code, plan
        self.facts, self.values = _facts(target), _values(target)

    def fits(self, target: _Target) -> bool:
        """Whether reading the target again would give the same plan."""
        values = _values(target)
        return (
            self.code() is target.function.__code__
            and self.facts == _facts(target)
            and len(values) == len(self.values)
            and all(map(is_, self.values, values))
        )


# Agents that live for one request are given the same functions again and again; an entry goes when its code does.
_plans: dict[int, _Known] = {}


def _facts(target: _Target) -> tuple[object, ...]:
    function = target.function
    return (
        target.taken,
        target.named,
        id(function.__globals__),
        function.__annotations__,
        function.__doc__,
        function.__qualname__,
    )


def _values(target: _Target) -> tuple[object, ...]:
    """The defaults: compared by identity, for they may be anything."""
    function = target.function
    by_keyword: dict[str, object] = function.__kwdefaults__ or {}
    return (*(function.__defaults__ or ()), *by_keyword.values())


def _remember(target: _Target, plan: Plan) -> None:
    code, annotations = target.function.__code__, target.function.__annotations__
    if target.function.__closure__ and any(isinstance(each, str) for each in annotations.values()):
        return  # what the names in the text mean may be different in the next function of the same code
    key = id(code)
    _plans[key] = _Known(target, plan, ref(code, lambda gone: _plans.pop(key, None)))


def refuse_asynchronous(function: Callable[..., object], where: str) -> None:
    """Refuses a callable whose result something asynchronous, or a loop, would have to take."""
    inner = _inner(function)
    if not isinstance(inner, FunctionType):
        inner = type(inner).__call__
    flags: int = inner.__code__.co_flags if isinstance(inner, FunctionType) else 0
    if flags & _ASYNCHRONOUS:
        raise InvalidArgument(f"{where} is asynchronous, and this is a synchronous runtime: make it a plain `def`")
    if flags & _GENERATOR:
        raise InvalidArgument(f"{where} is a generator function, whose result nothing would iterate: return a list")


def _inner(function: Any) -> Any:  # Any: whatever is callable
    """The callable inside partials, bound methods and caches, whose own code is Python's."""
    while not isinstance(function, _FUNCTION):
        for step in ("func", "__func__", "__wrapped__"):
            if hasattr(function, step):
                function = getattr(function, step)
                break
        else:
            return function
    return function


def _target(function: Any, where: str) -> _Target:
    taken, named = 0, frozenset[str]()
    while True:
        if not hasattr(function, "__wrapped__") and isinstance(function, FunctionType):
            return _Target(function, taken, named)
        if isinstance(function, _PARTIAL):
            taken += len(function.args)
            named |= function.keywords.keys()
            function = function.func
        elif isinstance(function, MethodType):
            taken += 1
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not isinstance(function, type):
            function = function.__wrapped__
        else:
            raise InvalidArgument(
                f"{where}: a tool is made of a function, method or partial, not of {type(function).__name__}"
            )


def _read(target: _Target, where: str) -> Plan:
    function, code = target.function, target.function.__code__
    _refuse_variable(code, where)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults: dict[str, object] = dict(function.__kwdefaults__ or {})
    given = function.__defaults__ or ()
    defaults.update(zip(names[code.co_argcount - len(given) : code.co_argcount], given, strict=True))
    annotations = function.__annotations__
    resolve = _resolver(function)
    description, documented = parse_docstring(function.__doc__ or "")
    describer = Describer(resolve)
    built = ObjectSchema(describer, documented)
    is_method = _is_method(target, names, annotations)
    taken = target.taken + is_method
    context, positional = "", list[tuple[str, object]]()
    for index, name in enumerate(names):
        if index < taken or name in target.named:
            continue
        place = f"{where}: parameter {name!r}"
        if name not in annotations:
            raise InvalidArgument(
                f"{place} has no annotation; write its type, as in `{name}: {_example(defaults, name)}`"
            )
        annotation = annotations[name]
        if _is_context(annotation, resolve):
            if context:
                raise InvalidArgument(f"{place}: only one parameter can take the ToolContext, and {context!r} does")
            context = name
        else:
            built.add(name, annotation, place, required=name not in defaults, default=defaults.get(name, ...))
        if index < code.co_posonlyargcount:
            positional.append((name, defaults.get(name, NO_DEFAULT)))
    schema: dict[str, object] = built.finish()
    definitions = describer.definitions.finish()
    if definitions:
        schema["$defs"] = definitions
    converts = tuple([(name, convert) for name, convert in built.converts.items() if convert is not None])
    return Plan(description, schema, converts, tuple(positional), context, is_method)


def _refuse_variable(code: CodeType, where: str) -> None:
    at = code.co_argcount + code.co_kwonlyargcount
    for flag, stars in ((_VARARGS, "*"), (_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            name = code.co_varnames[at]
            raise InvalidArgument(
                f"{where}: parameter {stars + name!r} has no schema; name each argument that the model may give"
            )


def _is_method(target: _Target, names: tuple[str, ...], annotations: Mapping[str, object]) -> bool:
    """Whether this is a function in the body of a class, still without its instance."""
    outer = target.function.__qualname__.rpartition(".")[0]
    in_class = bool(outer) and not outer.endswith("<locals>")
    return in_class and target.taken == 0 and bool(names) and names[0] == "self" and "self" not in annotations


def _example(defaults: Mapping[str, object], name: str) -> str:
    kind = type(defaults.get(name))
    return kind.__name__ if kind in (int, float, bool) else "str"


def _is_context(annotation: Any, resolve: Resolve) -> bool:
    if isinstance(annotation, str):
        base = annotation.partition("[")[0].strip()
        if base.rpartition(".")[2] == "ToolContext":  # also where it, or its type argument, is for type checkers only
            return True
        if "ToolContext" not in annotation and not base.isidentifier():
            return False
        try:
            annotation = resolve(annotation)
        except Exception:  # told when the parameter is described
            return False
    if get_origin(annotation) in (Union, UnionType):
        return any(_is_context(each, resolve) for each in get_args(annotation))
    return annotation is ToolContext or get_origin(annotation) is ToolContext


def _resolver(function: FunctionType) -> Resolve:
    """Evaluates an annotation given as text, with the names that the function itself sees."""

    def resolve(text: str) -> object:
        names: dict[str, Any] = function.__globals__
        if function.__closure__:
            inner: dict[str, Any] = {}
            for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
                try:
                    inner[name] = cell.cell_contents
                except ValueError:  # not yet assigned
                    continue
            names = names | inner
        if text in names:
            return names[text]
        if text.isidentifier():
            return _builtin(text)
        return eval(text, names)  # the program's own source, as `typing.get_type_hints` does

    return resolve


def _builtin(name: str) -> object:
    if name != "None" and not hasattr(builtins, name):
        raise NameError(f"name {name!r} is not defined")
    return getattr(builtins, name, None)
