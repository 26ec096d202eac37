"""Types as JSON Schema: every type's schema accepts what its converter takes, and values come back as they were."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import pathlib
import sys
import uuid
from collections import abc
from dataclasses import InitVar, dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typing_extensions import TypedDict as ExtendedTypedDict

from gotato_py import InvalidArgument
from gotato_py._annotations import Description, describe
from gotato_py._conversion import Rejected
from gotato_py._returned import to_json
from gotato_py.schema import compile_schema

T = TypeVar("T")
S = TypeVar("S", bound=int)
C = TypeVar("C", int, str)
UserId = NewType("UserId", int)


class Unit(enum.Enum):
    """Members by value."""

    C = "celsius"
    F = "fahrenheit"


class Level(enum.IntEnum):
    """Members that are numbers."""

    LOW = 1
    HIGH = 2


class Shape(enum.Enum):
    """Members that only have names in JSON."""

    BOX = (1, 1)
    LINE = (1, 0)


class Empty(enum.Enum):
    """No member at all."""


@dataclass
class Point:
    """A place.

    Attributes:
        x: how far right
    """

    x: float
    y: float = 0.0
    unit: Unit = Unit.C
    tags: set[str] = field(default_factory=set)
    made: int = field(default=0, init=False, compare=False)
    kind: ClassVar[str] = "point"


@dataclass
class Node:
    """A tree."""

    value: int
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Checked:
    """A class that refuses some of what fits its schema."""

    low: int
    high: int
    scale: InitVar[int] = 1

    def __post_init__(self, scale: int) -> None:
        if self.low > self.high:
            raise ValueError("low must not be over high")
        self.high *= scale


class Address(TypedDict, total=False):
    """A TypedDict with both kinds of keys."""

    street: Required[str]
    number: int
    since: dt.date


class Plain(TypedDict):
    """A TypedDict that needs no conversion."""

    name: str


class Person(ExtendedTypedDict):
    """A TypedDict of typing_extensions."""

    name: str
    age: NotRequired[int]


class Span(NamedTuple):
    """A named tuple."""

    start: dt.date
    days: int = 1


Untyped = collections.namedtuple("Untyped", "a b")  # pyright: ignore[reportUntypedNamedTuple]  # the old form is what is tested


@dataclass
class Box(Generic[T]):
    """A generic class."""

    item: T
    more: list[T] = field(default_factory=list)


@dataclass
class Shelf(Generic[T]):
    """A generic class of generic classes."""

    boxes: list[Box[T]]
    rows: Box[list[T]]


class Model:
    """What looks like a pydantic model: an own schema, an own validation."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.value == self.value

    __hash__ = None  # type: ignore[assignment]  # nothing here hashes it

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """A schema with definitions, and with keywords that the kernel does not know."""
        return {
            "type": "object",
            "properties": {
                "item": {"$ref": "#/$defs/Item"},
                "again": {"$ref": "#"},
                "code": {"type": "string", "pattern": "(?<ab>"},
                "any": True,
                "pattern": {"anyOf": [{"type": "string", "pattern": "^x"}, {"type": "null"}]},
                "rest": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "contains": True},
            },
            "discriminator": {"propertyName": "item"},
            "$defs": {"Item": {"type": "integer", "x-mine": 1}, "Other": {"$ref": "#/$defs/Item"}},
        }

    @classmethod
    def model_validate(cls, value: object) -> Model:
        """Takes what has no item 13."""
        if isinstance(value, dict) and value.get("item") == 13:
            raise PydanticLike
        if isinstance(value, dict) and value.get("item") == 14:
            raise ValueError("not fourteen")
        return cls(value)


class PydanticLike(ValueError):
    """A validation error that lists its errors."""

    def errors(self, **options: bool) -> list[dict[str, Any]]:
        """One error, inside the value."""
        return [{"loc": ("rest", 1), "msg": "unlucky"}]


class OtherModel(Model):
    """Another model with a definition of the same name and content."""


class Clash(Model):
    """A model with a definition of the same name and other content."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"properties": {"item": {"$ref": "#/$defs/Item"}}, "$defs": {"Item": {"type": "string"}}}


def read(annotation: Any, value: object, where: str = "x") -> Any:
    """The value, checked and converted."""
    described = describe(annotation, where)
    violation = compile_schema(described.schema)(value)
    assert violation is None, str(violation)
    return value if described.convert is None else described.convert(value)


def refusal(annotation: Any) -> str:
    """What is said about an annotation that cannot be described."""
    with pytest.raises(InvalidArgument) as caught:
        describe(annotation, "parameter 'x'")
    assert str(caught.value).startswith("parameter 'x'")
    return str(caught.value)


def rejection(annotation: Any, value: object) -> str:
    """What is said about a value that fits the schema and cannot be converted."""
    described = describe(annotation, "x")
    assert compile_schema(described.schema)(value) is None
    assert described.convert is not None
    with pytest.raises(Rejected) as caught:
        described.convert(value)
    return str(caught.value.failure.violation())


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, True, None], {"enum": [1, True, None]}),
        (Unit, {"type": "string", "enum": ["celsius", "fahrenheit"]}),
        (Level, {"enum": [1, 2]}),
        (Shape, {"type": "string", "enum": ["BOX", "LINE"]}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[Any], {"type": "array"}),
        (abc.Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple, {"type": "array"}),
        (tuple[()], {"type": "array", "maxItems": 0}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (abc.Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045  # the old form is what is tested
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007  # the same
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, {"no": "text"}, []], {"type": "integer"}),
        (UserId, {"type": "integer"}),
        (Final[int], {"type": "integer"}),
        (T, {}),
        (S, {"type": "integer"}),
        (C, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.timedelta, {"type": "number", "description": "in seconds"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (decimal.Decimal, {"type": ["string", "number"], "format": "decimal"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
    ],
)
def test_schema(annotation: Any, schema: dict[str, Any]) -> None:
    """Each type has the schema that the field knows it by."""
    assert describe(annotation, "x").schema == schema


def test_class_schema() -> None:
    """A class is an object of its fields: documented, with the defaults that JSON can say, and closed."""
    assert describe(Point, "x").schema == {
        "type": "object",
        "description": "A place.",
        "properties": {
            "x": {"type": "number", "description": "how far right"},
            "y": {"type": "number", "default": 0.0},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


def test_default_that_json_cannot_say_is_left_out() -> None:
    """A default that JSON cannot say, or that its type cannot be, is not in the schema; the class still has it."""

    @dataclass
    class Odd:
        a: object = complex
        b: int = None  # type: ignore[assignment]  # seen in the wild

    Odd.__annotations__.update(a=object, b=int)
    assert describe(Odd, "x").schema["properties"] == {"a": {}, "b": {"type": "integer"}}
    assert read(Odd, {}) == Odd()


def test_required_keys_of_typed_dicts() -> None:
    """Required and NotRequired count, whether `typing` saw them in annotations that are text or not."""
    assert describe(Address, "x").schema["required"] == ["street"]
    assert describe(Person, "x").schema["required"] == ["name"]


def test_recursive_class_is_a_definition() -> None:
    """A class that needs itself, or is used twice, is a definition; one that is used once stands where it is used."""
    schema = describe(Node, "x").schema
    assert schema["$ref"] == "#/$defs/Node"
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert "$defs" not in describe(list[Point], "x").schema
    assert list(describe(tuple[Point, Point], "x").schema["$defs"]) == ["Point"]


def test_generic_classes() -> None:
    """Type variables stand for what the class is given, also through other generic classes."""
    schema = describe(Box[int], "x").schema
    assert schema["properties"]["item"] == {"type": "integer"}
    assert read(Shelf[Level], {"boxes": [{"item": 1}], "rows": {"item": [2]}}) == Shelf(
        [Box(Level.LOW)], Box([Level.HIGH])
    )
    assert describe(Box, "x").schema["properties"]["item"] == {}


def test_names_of_definitions_do_not_clash() -> None:
    """Two classes of one name are two definitions."""

    def make(annotation: Any) -> type:
        return dataclass(type("Same", (), {"__annotations__": {"a": annotation}}))

    first, second = make(int), make(str)
    schema = describe(tuple[first, first, second, second], "x").schema  # type: ignore[valid-type]  # made here
    assert list(schema["$defs"]) == ["Same", "Same_2"]


@pytest.mark.parametrize(
    ("annotation", "value", "converted"),
    [
        (int, 5.0, 5),
        (float, 5, 5.0),
        (int | None, None, None),
        (int | None, 5.0, 5),
        (float | str, "x", "x"),
        (int | float, 5.5, 5.5),
        (Union[dt.date, str], "soon", "soon"),  # noqa: UP007  # the old form is what is tested
        (dt.date | str, "2024-01-02", dt.date(2024, 1, 2)),
        (list[int] | int, [1.0], [1]),
        (Literal[1, "a"], 1.0, 1),
        (Literal[Unit.C], "celsius", Unit.C),
        (Unit, "celsius", Unit.C),
        (Level, 2.0, Level.HIGH),
        (Shape, "BOX", Shape.BOX),
        (list[Unit], ["celsius"], [Unit.C]),
        (tuple[int, ...], [1.0], (1,)),
        (tuple[int, str, Unit], [1.0, "a", "celsius"], (1, "a", Unit.C)),
        (tuple[()], [], ()),
        (set[int], [1, 2.0], {1, 2}),
        (frozenset[str], ["a"], frozenset("a")),
        (abc.Set[str], ["a"], frozenset("a")),
        (abc.MutableSet[str], ["a"], {"a"}),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (dict[int, str], {"-1": "a"}, {-1: "a"}),
        (dict[Unit, int], {"celsius": 1}, {Unit.C: 1}),
        (dict[Literal["a"], int], {"a": 1}, {"a": 1}),
        (dict[dt.date, str], {"2024-01-02": "a"}, {dt.date(2024, 1, 2): "a"}),
        (Point, {"x": 1, "tags": ["a"], "unit": "fahrenheit"}, Point(1.0, unit=Unit.F, tags={"a"})),
        (Node, {"value": 1.0, "children": [{"value": 2}]}, Node(1, [Node(2)])),
        (Checked, {"low": 1, "high": 2, "scale": 10}, Checked(1, 20)),
        (Address, {"street": "x", "since": "2024-01-02"}, {"street": "x", "since": dt.date(2024, 1, 2)}),
        (Span, {"start": "2024-01-02"}, Span(dt.date(2024, 1, 2))),
        (Untyped, {"a": 1, "b": [2]}, Untyped(1, [2])),
        (dt.datetime, "2024-01-02T03:04:05Z", dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        (dt.time, "03:04", dt.time(3, 4)),
        (dt.timedelta, 90, dt.timedelta(seconds=90)),
        (uuid.UUID, "0" * 32, uuid.UUID(int=0)),
        (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
        (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (pathlib.PurePosixPath, "a/b", pathlib.PurePosixPath("a/b")),
    ],
)
def test_conversion(annotation: Any, value: object, converted: object) -> None:
    """JSON values arrive as values of the annotated type, exactly."""
    found = read(annotation, value)
    assert found == converted
    assert type(found) is type(converted)


@pytest.mark.parametrize(
    "annotation", [str, bool, list[str], dict[str, bool], str | None, Literal["a"], Any, Plain, Person | str]
)
def test_no_conversion_where_json_is_the_value(annotation: Any) -> None:
    """Types whose JSON value is the value need no converter, so that plain calls pay nothing."""
    assert (describe(annotation, "x").convert is None) is (annotation != Person | str)


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (dt.date, "soon", "$: expected a date in ISO 8601 format, got ValueError: "),
        (list[uuid.UUID], ["0" * 32, "x"], "$[1]: expected a UUID, got ValueError: "),
        (tuple[int, uuid.UUID], [1, "x"], "$[1]: expected a UUID"),
        (dict[str, dt.time], {"a": "x"}, "$.a: expected a time"),
        (dict[int, str], {"x": "a"}, "$.x: expected a name that is an integer"),
        (dict[Unit, str], {"x": "a"}, "$.x: expected one of the names celsius, fahrenheit, got another name"),
        (Checked, {"low": 2, "high": 1}, "$: expected a valid Checked, got ValueError: low must not be over high"),
        (list[Span], [{"start": "x"}], "$[0].start: expected a date"),
        (dt.date | uuid.UUID, "x", "$: expected a date"),
        (decimal.Decimal, "NaN", "$: expected a decimal number, got ValueError: not a finite number"),
        (float, 10**400, "$: expected a number that a float can hold, got OverflowError: "),
        (set[list[int]], [[1]], "$: expected an array that can be converted, got TypeError: "),
        (Model, {"item": 13}, "$.rest[1]: expected a valid Model, got unlucky"),
        (Model, {"item": 14}, "$: expected a valid Model, got ValueError: not fourteen"),
    ],
)
def test_failed_conversion_has_a_path(annotation: Any, value: object, said: str) -> None:
    """What fits the schema and is still no value of the type is told with its path and the reason."""
    assert rejection(annotation, value).startswith(said)


def test_union_without_a_taker() -> None:
    """A converter that is given what does not fit any alternative rejects it."""
    described = describe(list[int] | int, "x")
    assert described.convert is not None
    with pytest.raises(Rejected):
        described.convert("x")


def test_reason_is_cut() -> None:
    """A constructor's endless message is told by its beginning."""

    @dataclass
    class Loud:
        a: int

        def __post_init__(self) -> None:
            raise ValueError("x" * 10_000)

    Loud.__annotations__["a"] = int
    assert len(rejection(Loud, {"a": 1})) < 500


def test_models_bring_their_schema() -> None:
    """A model's definitions become ours: shared if equal, renamed if not, without keywords that only it checks."""
    schema = describe(tuple[Model, OtherModel, Clash], "x").schema
    Draft202012Validator.check_schema(schema)
    names = list(schema["$defs"])
    assert len([name for name in names if name.startswith("Item")]) == 2
    validate = compile_schema(schema)
    assert validate([{"item": 1, "again": {"item": 2}}, {"pattern": "x"}, {"item": "a"}]) is None
    assert str(validate([{"item": 1, "again": {"item": "x"}}, {}, {}])).startswith(
        "$[0].again.item: expected an integer"
    )
    assert "discriminator" not in json.dumps(schema)
    assert "x-mine" not in json.dumps(schema)
    assert read(Model, {"item": 1}) == Model({"item": 1})


def test_models_that_fail_are_refused() -> None:
    """A model that cannot make its schema is refused with its name."""

    class Broken(Model):
        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            raise RuntimeError("no schema")

    class Odd(Model):
        @classmethod
        def model_json_schema(cls) -> Any:
            return []

    assert "Broken.model_json_schema() failed (no schema)" in refusal(Broken)
    assert "must return a mapping" in refusal(Odd)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (complex, "the type complex cannot be described"),
        (bytes, "a model cannot send bytes"),
        (abc.Callable[[], int], "Callable"),
        (abc.Iterator[int], "Iterator"),
        (type[int], "type"),
        (Empty, "has no members"),
        (Literal[b"x"], "may only hold"),
        (dict[tuple[int, int], int], "tuple[int, int] cannot be the key"),
        (dict[float, int], "float cannot be the key"),
        (dict[complex, int], "(its keys)"),
        (list[complex], "complex"),
        ("int", "is text"),
        (list["Nowhere"], "is text"),  # type: ignore[name-defined]  # noqa: F821  # on purpose
        (lambda: 1, "<lambda>"),
    ],
)
def test_refuses_what_cannot_be_described(annotation: Any, said: str) -> None:
    """A type that JSON Schema cannot say is refused with the place and the type, and no memory address."""
    message = refusal(annotation)
    assert said in message
    assert " at 0x" not in message


def test_refuses_fields_by_their_path() -> None:
    """A field that cannot be described is named with its class; annotations that lead nowhere are told."""

    @dataclass
    class Outer:
        inner: int

    Outer.__annotations__["inner"] = complex
    assert "Outer.inner: the type complex" in refusal(Outer)
    Outer.__annotations__["inner"] = "Missing"
    assert "the annotations of test_refuses_fields_by_their_path.<locals>.Outer cannot be resolved" in refusal(Outer)
    endless: Any = list["Endless"]  # type: ignore[name-defined]  # noqa: F821  # resolved below
    with pytest.raises(InvalidArgument, match="refers to itself without end"):
        describe(endless, "x", resolve=lambda text: endless)


def test_text_is_resolved() -> None:
    """Annotations given as text are resolved by whoever describes them, nested ones too."""
    found = describe(list["Unit"], "x", resolve={"Unit": Unit}.__getitem__)
    assert found.schema["items"]["enum"] == ["celsius", "fahrenheit"]
    with pytest.raises(InvalidArgument, match="'Gone' cannot be resolved"):
        describe("Gone", "x", resolve=dict[str, object]().__getitem__)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_type_aliases() -> None:
    """A `type` statement is described by what it stands for, also when it needs itself or type variables."""
    names: dict[str, Any] = {}
    exec(  # the syntax is a later Python's
        "type Json = dict[str, Json] | list[Json] | int\ntype Two[A] = tuple[A, A]\ntype Text = str\ntype Deep = Text",
        names,
    )
    schema = describe(names["Json"], "x").schema
    assert compile_schema(schema)({"a": [1, {"b": 2}]}) is None
    assert compile_schema(schema)({"a": ["x"]}) is not None
    assert read(names["Json"], {"a": [1.0]}) == {"a": [1]}
    assert read(names["Two"][int], [1.0, 2]) == (1, 2)
    assert describe(names["Deep"], "x").schema == {"type": "string"}


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(10**18), 10**18),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Unit: st.sampled_from(Unit),
    Shape: st.sampled_from(Shape),
    set[int]: st.sets(st.integers(-9, 9)),
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    tuple[int, Unit]: st.tuples(st.integers(), st.sampled_from(Unit)),
    dict[int, float]: st.dictionaries(st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    Point: st.builds(Point, st.floats(0, 1), st.floats(0, 1), st.sampled_from(Unit), st.sets(st.text())),
    Node: st.recursive(
        st.builds(Node, st.integers()),
        lambda inner: st.builds(Node, st.integers(), st.lists(inner, max_size=2), inner),
        max_leaves=6,
    ),
    Span: st.builds(Span, st.dates(), st.integers()),
    list[Span | None]: st.lists(st.none() | st.builds(Span, st.dates())),
    dt.datetime: st.datetimes(timezones=st.just(dt.UTC)),
    dt.date: st.dates(),
    dt.time: st.times(),
    uuid.UUID: st.uuids(),
    decimal.Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    pathlib.PurePosixPath: st.text("ab/.").map(pathlib.PurePosixPath),
    Address: st.fixed_dictionaries({"street": st.text()}, optional={"number": st.integers(), "since": st.dates()}),
}


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
def test_round_trip(case: tuple[Any, Any]) -> None:
    """A value of each type, said in JSON as a tool's result would be, fits the type's schema and comes back equal."""
    kind, value = case
    said = json.loads(json.dumps(to_json(value)))
    if isinstance(value, Point):
        said.pop("made")
    if not isinstance(value, Node):
        assert read(kind, said) == value
    else:
        assert to_json(read(kind, said)) == said


@given(st.sampled_from(list(VALUES)))
def test_every_schema_is_valid(kind: Any) -> None:
    """Every schema made is valid by the standard's own meta-schema."""
    described = describe(kind, "x")
    assert isinstance(described, Description)
    Draft202012Validator.check_schema(described.schema)
