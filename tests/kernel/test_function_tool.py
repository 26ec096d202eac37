"""Functions as tools: what they say about themselves, how they are called, and what is refused at decoration."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from gotato_py import FunctionTool, InvalidArgument, Tool, ToolContext, ToolEffect, ToolSpec, tool
from gotato_py import _signature as signature
from gotato_py import tools as t
from gotato_py.function_tool import ArgumentsRejected, as_tool
from gotato_py.violations import SchemaViolation

if TYPE_CHECKING:
    from somewhere import Deps  # type: ignore[import-not-found]  # there is none: what type checkers alone see


Use = ToolContext[Any]


@dataclass
class Order:
    """What to buy.

    Args:
        item: its name
        count: how many
    """

    item: str
    count: int = 1


def weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    For as long as it lasts.

    Args:
        city: where
        days (int, optional): how many days,
            the first is today

    Returns:
        A sentence.
    """
    return f"Sunny in {city} for {days!r} days"


def use(**arguments: object) -> ToolContext[Any]:
    """A call with these arguments."""
    return ToolContext("name", arguments, key="m:0")


def test_function_describes_itself() -> None:
    """Name, description and schema come from the function."""
    spec = as_tool(weather).spec
    assert spec.name == "weather"
    assert spec.description == "The weather in a city.\n\nFor as long as it lasts."
    assert spec.input_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where"},
            "days": {"type": "integer", "description": "how many days, the first is today", "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert spec == ToolSpec("weather", spec.description, spec.input_schema)


def test_decorator_stays_a_function() -> None:
    """What `@tool` makes is a Tool and still that function."""

    @tool
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert add(1, b=4) == 5
    assert add.__name__ == "add"
    assert add.__doc__ == "Adds."
    assert add.__module__ == __name__
    assert add.__wrapped__(1) == 3
    assert repr(add) == "FunctionTool(name='add', function=test_decorator_stays_a_function.<locals>.add)"
    assert as_tool(add) is add
    assert add.execute(use(a=1)) == 3


def test_decorator_with_options() -> None:
    """The options of the decorator are those of the spec."""

    @tool(name="sum", description="Sums.", effect="read", sequential=True, timeout=2)
    def add(a: int) -> int:
        """Adds."""
        return a

    assert add.spec == ToolSpec(
        "sum", "Sums.", add.spec.input_schema, effect=ToolEffect.READ, sequential=True, timeout=2.0
    )
    assert tool(weather, name="w").spec.name == "w"
    assert tool(weather, effect=ToolEffect.READ).spec.description == as_tool(weather).spec.description
    with pytest.raises(InvalidArgument, match="effect"):
        tool(weather, effect="wild")
    with pytest.raises(InvalidArgument, match="timeout"):
        tool(weather, timeout=-1)


def test_arguments_arrive_converted() -> None:
    """Arguments arrive as the annotated types; those left out keep the function's own defaults."""

    def buy(order: Order, day: date | None = None, *, notes: Annotated[set[str], "why"] = frozenset()) -> Any:  # type: ignore[assignment]  # any default
        return order, day, notes

    made = as_tool(buy)
    assert made.execute(use(order={"item": "x", "count": 2.0}, day="2024-01-02", notes=["a"])) == (
        Order("x", 2),
        date(2024, 1, 2),
        {"a"},
    )
    assert made.execute(use(order={"item": "x"})) == (Order("x"), None, frozenset())
    schema: Any = made.spec.input_schema
    assert schema["properties"]["order"]["properties"]["item"]["description"] == "its name"
    assert schema["properties"]["notes"]["description"] == "why"


def test_three_steps() -> None:
    """A kernel can validate, convert and call on its own; convert never calls the function."""
    made = tool(weather)
    assert made.validate({"city": "Oslo"}) is None
    assert str(made.validate({"city": 1})) == "$.city: expected a string, got 1"
    assert made.validate is made.validate
    arguments = {"city": "Oslo", "days": 2.0}
    converted = made.convert(arguments)
    assert converted == {"city": "Oslo", "days": 2}
    assert arguments == {"city": "Oslo", "days": 2.0}
    assert made.call(use(), converted) == "Sunny in Oslo for 2 days"

    def plain(city: str) -> str:
        return city

    assert tool(plain).convert(arguments) is arguments
    assert tool(plain).call(use(), {"city": "x"}) == "x"


def test_failed_conversion_is_rejected_before_the_call() -> None:
    """Arguments that cannot be converted are rejected with their path and the cause, and the function is not called."""
    called: list[date] = []

    def remember(day: date) -> None:
        called.append(day)

    with pytest.raises(ArgumentsRejected) as caught:
        as_tool(remember).execute(use(day="soon"))
    assert caught.value.violation.path == "$.day"
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value).startswith("$.day: expected a date in ISO 8601 format")
    assert called == []


def test_endless_value_is_rejected() -> None:
    """A value too deep to be converted is rejected, not a RecursionError."""

    @dataclass
    class Link:
        next: Any

    Link.__annotations__["next"] = Link
    value: dict[str, Any] = {}
    value["next"] = value

    def follow(link: Any) -> None: ...

    follow.__annotations__["link"] = Link
    with pytest.raises(ArgumentsRejected, match="nested too deeply"):
        tool(follow).convert({"link": value})


def test_context_is_given_and_not_in_the_schema() -> None:
    """A parameter annotated ToolContext receives the use, wherever it stands and however it is spelled."""

    def plain(context: ToolContext[Any], a: int) -> Any:
        return context, a

    def generic(a: int, *, context: ToolContext[int]) -> Any:
        return context, a

    def other_name(a: int, context: t.ToolContext[Any]) -> Any:
        return context, a

    def hidden(a: int, context: ToolContext[Deps]) -> Any:
        return context, a

    def maybe(a: int, context: ToolContext[Any] | None = None) -> Any:
        return context, a

    def first(context: ToolContext[Any], a: int, /) -> Any:
        return context, a

    real = ToolContext[int]

    def evaluated(a: int, context: Any) -> Any:
        return context, a

    def evaluated_optional(a: int, context: Any = None) -> Any:
        return context, a

    evaluated.__annotations__["context"] = real
    evaluated_optional.__annotations__["context"] = real | None
    given = use(a=1.0)
    for function in (plain, generic, other_name, hidden, maybe, first, evaluated, evaluated_optional):
        made = as_tool(function)
        assert list(made.spec.input_schema["properties"]) == ["a"]  # type: ignore[call-overload]  # a mapping
        assert made.execute(given) == (given, 1)

    def renamed(use: Use, a: int) -> Any:
        return use, a

    assert as_tool(renamed).execute(given) == (given, 1)

    def twice(a: ToolContext[Any], b: ToolContext[Any]) -> None: ...

    with pytest.raises(
        InvalidArgument, match="parameter 'b': only one parameter can take the ToolContext, and 'a' does"
    ):
        tool(twice)


def test_positional_parameters() -> None:
    """Parameters that cannot be given by name are given by position, defaults between them too."""

    def call(a: int, b: str = "b", c: int = 3, /, d: int = 4) -> Any:
        return a, b, c, d

    assert as_tool(call).execute(use(a=1)) == (1, "b", 3, 4)
    assert as_tool(call).execute(use(a=1, c=5, d=6)) == (1, "b", 5, 6)


class Station:
    """A class with methods that are tools."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool(effect="read")
    def report(self, days: int) -> str:
        """Reports."""
        return f"{self.name} {days}"

    def plain(self, days: int) -> str:
        """Reports plainly."""
        return f"{self.name} {days}"

    @classmethod
    def of_class(cls, days: int) -> str:
        """Reports of all."""
        return f"{cls.__name__} {days}"

    @staticmethod
    def of_nobody(days: int) -> str:
        """Reports of none."""
        return f"{days}"

    shared = tool(weather)


def test_methods() -> None:
    """Methods of every kind are tools without their first parameter; each instance has its own."""
    a, b = Station("a"), Station("b")
    assert [as_tool(each).execute(use(days=1)) for each in (a.report, b.report, a.plain, a.of_class, a.of_nobody)] == [
        "a 1", "b 1", "a 1", "Station 1", "1",
    ]  # fmt: skip
    assert a.report.spec is b.report.spec
    assert a.report(2) == "a 2"
    assert a.shared is Station.shared
    for unbound in (Station.report, Station.plain):
        with pytest.raises(InvalidArgument, match="is a method without its instance"):
            as_tool(unbound)


def test_partials_hide_what_they_bind() -> None:
    """What a partial binds is not in the schema; its name and description are the function's."""
    by_name = as_tool(functools.partial(weather, days=3))
    assert list(by_name.spec.input_schema["properties"]) == ["city"]  # type: ignore[call-overload]  # a mapping
    assert by_name.spec.name == "weather"
    assert by_name.execute(use(city="Oslo")) == "Sunny in Oslo for 3 days"
    by_position = as_tool(functools.partial(functools.partial(weather, "Rome")))
    assert by_position.execute(use(days=2)) == "Sunny in Rome for 2 days"
    assert as_tool(functools.partial(Station("a").plain)).execute(use(days=2)) == "a 2"


def test_wrapped_functions() -> None:
    """A wrapper has the signature of what it wraps, and is what is called."""
    cached = functools.lru_cache(weather)
    assert as_tool(cached).spec == as_tool(weather).spec
    as_tool(cached).execute(use(city="x"))
    assert cached.cache_info().misses == 1

    @functools.wraps(weather)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return weather(*args, **kwargs) + "!"

    assert as_tool(wrapper).execute(use(city="x")) == "Sunny in x for 1 days!"

    async def later(a: int) -> int:
        return a

    @functools.wraps(later)
    def sooner(a: int) -> int:
        return a

    assert as_tool(sooner).execute(use(a=1)) == 1


def test_a_lambda_needs_a_name() -> None:
    """A lambda is a tool when it is given a name."""
    assert tool(lambda: 1, name="one").execute(use()) == 1
    with pytest.raises(InvalidArgument, match="a lambda has no name"):
        as_tool(lambda: 1)


def test_local_types_of_text_annotations() -> None:
    """A name that only a closure knows is resolved through it; one that nothing knows is told with its parameter."""

    @dataclass
    class Local:
        a: int

    Local.__annotations__["a"] = int

    def seen(value: Local) -> Local:
        return Local(value.a)

    def unseen(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # on purpose

    assert as_tool(seen).execute(use(value={"a": 1.0})) == Local(1)
    with pytest.raises(
        InvalidArgument, match="tool 'unseen': parameter 'value': the annotation 'Nowhere' cannot be resolved"
    ):
        tool(unseen)

    def early(value: Later) -> None:
        Later()

    with pytest.raises(InvalidArgument, match="parameter 'value'"):
        tool(early)

    class Later:
        pass

    def builtin(a: None, b: list[int]) -> object:
        return b

    assert as_tool(builtin).execute(use(a=None, b=[1.0])) == [1]


def bad_star(*values: int) -> None:
    """Takes anything by position."""


def bad_stars(a: int, **values: int) -> None:
    """Takes anything by name."""


def bad_unannotated(a: int, limit=10) -> None:  # type: ignore[no-untyped-def]  # on purpose
    """Has a parameter without a type."""


def bad_type(a: int, z: complex) -> None:
    """Has a type that JSON cannot say."""


async def bad_async(a: int) -> None:
    """Is asynchronous."""


async def bad_stream(a: int) -> AsyncIterator[int]:
    """Is an asynchronous generator."""
    yield a


def bad_generator(a: int) -> Iterator[int]:
    """Is a generator."""
    yield a


class AsyncCall:
    """An object whose call is asynchronous."""

    __name__ = "caller"

    async def __call__(self, a: int) -> int:
        return a


class SyncCall:
    """An object that can be called, and is no function."""

    __name__ = "caller"

    def __call__(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (bad_star, r"tool 'bad_star': parameter '\*values' has no schema"),
        (bad_stars, r"tool 'bad_stars': parameter '\*\*values' has no schema"),
        (
            bad_unannotated,
            "tool 'bad_unannotated': parameter 'limit' has no annotation; write its type, as in `limit: int`",
        ),
        (bad_type, "tool 'bad_type': parameter 'z': the type complex cannot be described"),
        (bad_async, "tool 'bad_async' is asynchronous, and this is a synchronous runtime"),
        (bad_stream, "synchronous runtime"),
        (bad_generator, "is a generator function"),
        (functools.partial(bad_async, 1), "synchronous runtime"),
        (functools.lru_cache(bad_async), "synchronous runtime"),
        (AsyncCall(), "synchronous runtime"),
        (SyncCall(), "not of SyncCall"),
        (print, "not of builtin_function_or_method"),
        (5, "not int"),
        ("weather", "not str"),
        (Station, "Station is a class; a tool is an instance of it"),
        (None, "not NoneType"),
    ],
)
def test_refuses(given: object, said: str) -> None:
    """What cannot be a tool is refused with the tool, the parameter and what to do."""
    with pytest.raises(InvalidArgument, match=said):
        as_tool(given)


def test_decorator_takes_functions_only() -> None:
    """The decorator refuses classes, tools and what cannot be called."""
    for given in (Station, tool(weather), 5):
        with pytest.raises(InvalidArgument, match="tool: function must be a function, method or partial"):
            tool(given)  # type: ignore[arg-type]  # on purpose


class Echo:
    """A tool written as a class."""

    spec = ToolSpec("echo")

    def execute(self, use: ToolContext[object]) -> object:
        return dict(use.arguments)


def test_a_tool_is_taken_as_it_is() -> None:
    """An object with a spec and an execute is a tool; its class is not, nor one whose execute is asynchronous."""
    made: Tool = Echo()
    assert as_tool(made) is made

    class Later(Echo):
        async def execute(self, use: ToolContext[object]) -> object:
            return 1

    class Called:
        spec = ToolSpec("callable")
        execute = SyncCall()

    with pytest.raises(InvalidArgument, match="tool 'echo' is asynchronous"):
        as_tool(Later())
    with pytest.raises(InvalidArgument, match="Echo is a class"):
        as_tool(Echo)
    wanted: object = Called()
    assert as_tool(wanted) is wanted


def test_same_code_is_read_once() -> None:
    """Functions of the same code share what was read of them, as long as it would be the same again."""

    def make(default: object, kind: Any, doc: str) -> Callable[..., object]:
        def made(a: Any = default) -> object:
            return a, default

        made.__annotations__ = {"a": kind}
        made.__doc__ = doc
        return made

    first, second = as_tool(make(1, int, "x")), as_tool(make(1, int, "x"))
    assert first.spec is second.spec
    assert (first.execute(use()), second.execute(use(a=2.0))) == ((1, 1), (2, 1))
    others = [make(2, int, "x"), make(1, str, "x"), make(1, int, "y")]
    assert all(as_tool(other).spec is not second.spec for other in others)
    assert as_tool(others[0]).spec.input_schema["properties"]["a"]["default"] == 2  # type: ignore[index]  # a mapping


def test_nothing_is_kept_of_code_that_is_gone() -> None:
    """What was read of a function is forgotten with its code."""
    names: dict[str, Any] = {}
    exec("def gone(a: int) -> int: return a", names)
    key = id(names["gone"].__code__)
    as_tool(names["gone"])
    assert key in signature._plans
    names.clear()
    assert key not in signature._plans


def test_threads_may_build_tools_at_once() -> None:
    """Many threads may make and call tools of the same function."""
    results: list[object] = []

    def build() -> None:
        for _ in range(50):
            made = tool(weather)
            assert made.validate({"city": "x"}) is None
            results.append(made.execute(use(city="x")))

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["Sunny in x for 1 days"] * 200


def test_rejection_pickles() -> None:
    """A rejection survives a pickle with its violation."""
    error = ArgumentsRejected(violation=SchemaViolation("$.a", "x", "y"))
    again = pickle.loads(pickle.dumps(error))
    assert (again.violation, str(again), again.code) == (error.violation, str(error), error.code)


def test_tool_is_generic_in_its_signature() -> None:
    """The type of the tool keeps the function's parameters and result."""
    made: FunctionTool[[str, int], str] = tool(weather)
    assert made("Oslo", 1) == "Sunny in Oslo for 1 days"
