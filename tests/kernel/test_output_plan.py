"""What `output=` may be, the schema it is asked for by, and how an answer is read back."""

from __future__ import annotations

import datetime as dt
import enum
import gc
import inspect
import json
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, NewType, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gotato_py import ExtensionFailure, InvalidArgument, ToolEffect, tool
from gotato_py._output import FINAL_ANSWER, OutputPlan, Read, read_output
from gotato_py._returned import to_json
from gotato_py.arguments import MAX_DEPTH
from gotato_py.schema import SchemaCompiler, Validator, compile_schema
from gotato_py.violations import SchemaViolation

from .strategies import json_data
from .test_annotations import VALUES, Address, Checked, Level, Model, Node, Point, Shelf, Span, Unit

UserId = NewType("UserId", int)


@dataclass
class Weather:
    """The weather somewhere.

    Attributes:
        city: where
    """

    city: str
    degrees: float


@dataclass
class Refusal:
    """Why there is none."""

    reason: str


@dataclass
class Odd:
    """A field that has the wrapper's name."""

    value: int


class Timeout(Exception):
    """What a task queue raises into whatever runs."""


RAISED: list[BaseException] = []


@dataclass
class Raising:
    """A class whose constructor raises what the test put there."""

    a: int

    def __post_init__(self) -> None:
        if self.a:
            raise RAISED[-1]


def plan_of(output: object) -> OutputPlan:
    """The plan, by the kernel's own compiler."""
    return read_output(output, None)


def said_of(result: Read | SchemaViolation) -> str:
    """The violation, as the model is told it."""
    assert isinstance(result, SchemaViolation), result
    return str(result)


def wrapper(schema: dict[str, Any], **definitions: object) -> dict[str, Any]:
    """The schema of an object that holds the value."""
    made = {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}
    return made | ({"$defs": definitions} if definitions else {})


# The schema


@pytest.mark.parametrize(
    ("output", "schema"),
    [
        (bool, {"type": "boolean"}),
        (str, {"type": "string"}),
        (type(None), {"type": "null"}),
        (Any, {}),
        (UserId, {"type": "integer"}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Unit, {"type": "string", "enum": ["celsius", "fahrenheit"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045  # the old form is what is tested
        ({"type": "integer"}, {"type": "integer"}),
        ({}, {}),
        ({"type": ["object", "null"]}, {"type": ["object", "null"]}),
        ({"properties": {"a": {}}}, {"properties": {"a": {}}}),
        ({"$schema": "x", "$id": "y", "type": "null"}, {"type": "null"}),
    ],
)
def test_what_is_no_object_is_wrapped(output: object, schema: dict[str, Any]) -> None:
    """A type that is no object in JSON is asked for as the property `value` of one."""
    plan = plan_of(output)
    assert plan.wrapped
    assert plan.schema == wrapper(schema)


@pytest.mark.parametrize("output", [Weather, Address, Span, Model, Node, dict, dict[str, int], Odd, {"type": "object"}])
def test_objects_are_asked_for_as_they_are(output: object) -> None:
    """A type that is an object in JSON is asked for by its own schema, with its type at the top, recursive or not."""
    plan = plan_of(output)
    assert not plan.wrapped
    assert plan.schema["type"] == "object"


def test_schema_of_a_class() -> None:
    """A class is asked for with what its docstring says."""
    assert plan_of(Weather).schema == {
        "type": "object",
        "description": "The weather somewhere.",
        "properties": {"city": {"type": "string", "description": "where"}, "degrees": {"type": "number"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }


def test_definitions_are_lifted() -> None:
    """The definitions of a wrapped type are those of the wrapper, where their references lead."""
    schema: Any = plan_of(Node | None).schema
    assert schema["properties"]["value"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    assert list(schema["$defs"]) == ["Node"]


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
def test_combinations_at_the_top_are_wrapped(keyword: str) -> None:
    """An object that combines others at its top is wrapped: no provider takes that there."""
    schema = {"type": "object", keyword: [{"required": ["a"]}]}
    assert plan_of(schema).schema == wrapper(schema)
    assert plan_of(Weather | Refusal).wrapped


@pytest.mark.parametrize(
    ("schema", "asked"),
    [
        (  # notes beside the reference are kept
            {"$ref": "#/$defs/A", "title": "T", "$defs": {"A": {"type": "object", "title": "A"}}},
            {"type": "object", "title": "T", "$defs": {"A": {"type": "object", "title": "A"}}},
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}},
            {"type": "object", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "object"}}},
        ),
        (  # more than notes beside the reference
            {"$ref": "#/$defs/A", "minProperties": 1, "$defs": {"A": {"type": "object"}}},
            wrapper({"$ref": "#/$defs/A", "minProperties": 1}, A={"type": "object"}),
        ),
        (  # what leads elsewhere is not followed
            {"$ref": "#/$defs/A/$defs/B", "$defs": {"A": {"$defs": {"B": {"type": "object"}}}}},
            wrapper({"$ref": "#/$defs/A/$defs/B"}, A={"$defs": {"B": {"type": "object"}}}),
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "$defs": {}}}},
            wrapper({"$ref": "#/$defs/A"}, A={"type": "object", "$defs": {}}),
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": True}},
            wrapper({"$ref": "#/$defs/A"}, A=True),
        ),
    ],
)
def test_reference_at_the_top(schema: dict[str, Any], asked: dict[str, Any]) -> None:
    """What a reference at the top leads to stands in its place, where that changes nothing."""
    assert plan_of(schema).schema == asked


def test_references_to_the_root_move_with_it() -> None:
    """A wrapped schema that refers to its own root becomes a definition, and constants stay as they are."""
    schema = {
        "anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"enum": [{"$ref": "#"}]}, {"$ref": "#/$defs/value"}],
        "$defs": {"value": {"type": "object", "properties": {"$ref": {"$ref": "#"}}, "additionalProperties": False}},
    }
    plan = plan_of(schema)
    moved = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/value_"}},
            {"enum": [{"$ref": "#"}]},
            {"$ref": "#/$defs/value"},
        ]
    }
    inner = {
        "type": "object",
        "properties": {"$ref": {"$ref": "#/$defs/value_"}},
        "additionalProperties": False,
    }
    assert plan.schema == wrapper({"$ref": "#/$defs/value_"}, value=inner, value_=moved)
    validate = compile_schema(plan.schema)
    for fits, value in ((True, [[], [{"$ref": []}]]), (True, {"$ref": "#"}), (False, [[1]]), (False, {"a": []})):
        assert (validate({"value": value}) is None) is fits
        assert isinstance(plan.read_text(json.dumps(value)), Read) is fits


def accepting(schema: Mapping[str, object]) -> Validator:
    """A compiler that takes every schema, and whose validators take everything."""
    return lambda value: None


def test_schemas_that_only_the_agents_compiler_takes() -> None:
    """What another compiler takes is asked for as well as can be: references follow, odd definitions are left out."""
    schema = {"definitions": {"A": {}}, "items": {"$ref": "#/definitions/A"}, "not": {"$ref": "urn:x"}, "$defs": 5}
    assert read_output(schema, accepting).schema == wrapper(
        {"$ref": "#/$defs/value"},
        value={
            "definitions": {"A": {}},
            "items": {"$ref": "#/$defs/value/definitions/A"},
            "not": {"$ref": "urn:x"},
        },
    )
    circle: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert read_output(circle, accepting).wrapped


def test_deep_schemas() -> None:
    """A schema that is nested too deeply is refused, whichever step it is too deep for."""
    deep: dict[str, Any] = {}
    refused: list[str] = []
    left = sys.getrecursionlimit() - len(inspect.stack(0))
    for depth in range(left):
        deep = {"not": deep}
        if depth < left - 20:
            continue
        try:
            read_output(deep, accepting)
        except InvalidArgument as error:
            refused.append(str(error))
    assert refused
    assert all("nested too deeply" in each for each in refused)


def test_schema_is_copied() -> None:
    """A schema that is changed later changes nothing; any mapping is taken for one."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    plan = plan_of(MappingProxyType(schema))
    schema["properties"]["a"]["type"] = "string"
    assert plan.schema["properties"] == {"a": {"type": "integer"}}
    assert plan.read_text('{"a": 1}') == Read({"a": 1})


def test_final_answer_is_a_tool() -> None:
    """The tool takes the schema, changes nothing in the world, and tells the model when to call it."""
    spec = plan_of(int).spec()
    assert (spec.name, spec.effect, spec.input_schema) == (FINAL_ANSWER, ToolEffect.READ, wrapper({"type": "integer"}))
    assert "once" in spec.description
    assert "final answer" in spec.description


# What cannot be asked for


def function() -> int:
    """Is no type."""
    return 1


class Station:
    """A class that says nothing about its fields."""


@dataclass
class Complex:
    """A class with a field that JSON cannot say."""

    z: complex


class Broken(Model):
    """A model that cannot make its schema."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        raise RuntimeError("no schema")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("Weather", "not an instance of str: give the class itself"),
        (b"Weather", "not an instance of bytes"),
        (Weather("Oslo", 1.5), "not an instance of Weather: give the class itself, no name and no instance of it"),
        (function, "not an instance of function"),
        (tool(function), "not an instance of FunctionTool"),
        ([Weather], "A | B, Literal[...]) or a JSON Schema (a mapping), not an instance of list"),
        ((int, str), "not an instance of tuple"),
        (True, "not an instance of bool"),
        (5, "not an instance of int"),
        (complex, "output: the type complex cannot be described in JSON Schema"),
        (bytes, "a model cannot send bytes"),
        (Station, "output: the type Station cannot be described in JSON Schema"),
        (list[Station], "output: the type Station cannot be described"),
        (Complex, "output: Complex.z: the type complex cannot be described"),
        (Weather | complex, "output: the type complex cannot"),
        (Broken, "output: Broken.model_json_schema() failed (no schema)"),
        (Literal, "output: the type typing.Literal cannot"),
        (Union, "output: the type typing.Union cannot"),
        (Literal[b"x"], "may only hold"),
        (ForwardRef("Weather"), "output: the annotation 'Weather' is text; give the type itself"),
        (list["Weather"], "is text"),
        ({"type": "objekt"}, "output: JSON Schema at #/type: "),
        ({"city": {"type": "string"}}, "output: JSON Schema at #/city: keyword 'city': it is outside"),
        ({"properties": {"city": str}}, "output.properties.city must be JSON data (str, numbers"),
        ({1: 2}, "output must be JSON data, whose keys are str, not int"),
        ({"$ref": "#/$defs/Gone"}, "there is no #/$defs/Gone"),
        ({"$ref": "#"}, "only leads back to itself"),
    ],
)  # fmt: skip
def test_refuses(output: object, said: str) -> None:
    """What is no type and no schema is refused with what it is, without showing its content."""
    for _ in range(2):  # a refusal is not remembered as a plan
        with pytest.raises(InvalidArgument) as caught:
            plan_of(output)
        assert said in str(caught.value)
        assert "Oslo" not in str(caught.value)


# Reading


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Oslo", "degrees": 4}',
        ' \r\n\t{"city": "Oslo", "degrees": 4.0}\n\n',
        '```json\n{"city": "Oslo", "degrees": 4}\n```',
        '\n```JSON \r\n{"city": "Oslo",\n"degrees": 4}```\n',
        '```\n{"degrees": 4, "city": "Oslo"}\n```',
        '```json {"city": "Oslo", "degrees": 4} ```',
        '```{"city": "Oslo", "degrees": 4}```',
        '{"city": "x", "city": "Oslo", "degrees": 4}',
    ],
)
def test_reads_one_value(text: str) -> None:
    """White space and one code fence around the JSON are tolerated; of equal names the last wins, as in arguments."""
    assert plan_of(Weather).read_text(text) == Read(Weather("Oslo", 4.0))


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "an empty string"),
        (" \n", "an empty string"),
        ("```json\n```", "an empty string"),
        ("It is cold.", "text that is not valid JSON (Expecting value at character 0)"),
        ("Here it is: [1]", "text that is not valid JSON (Expecting value at character 0)"),
        ("[1] or so", "text that is not valid JSON (Extra data at character 4)"),
        ("[1] [2]", "text that is not valid JSON (Extra data at character 4)"),
        ('1, "value": 2', "text that is not valid JSON (Extra data at character 1)"),
        ("[1", "text that is not valid JSON ("),
        ("```json\n[1]", "text that is not valid JSON ("),
        ("```json\n[1]\n```\nThat is all.", "text that is not valid JSON ("),
        ("```json\n[1]\n```\n```json\n[2]\n```", "text that is not valid JSON ("),
        ("```python\n[1]\n```", "text that is not valid JSON ("),
        ("```json5\n```", "text that is not valid JSON ("),
        ("``````", "an empty string"),
        ("`````", "text that is not valid JSON ("),
        ("NaN", "NaN, which is no JSON"),
        ("[-Infinity]", "-Infinity, which is no JSON"),
        ("[1e999]", "a number too large for a float"),
        ("9" * 5000, "an integer of too many digits"),
        ("[" * 100_000, "nest"),
        ("[" * 500 + "]" * 500, "nested more than"),
    ],
)
def test_text_that_is_no_json(text: str, got: str) -> None:
    """Text that is not exactly one strict JSON value is told as such, whatever it holds."""
    result = plan_of(list[int]).read_text(text)
    assert isinstance(result, SchemaViolation)
    assert (result.path, result.expected) == ("$", "a JSON value")
    assert got in result.got
    assert len(result.got) < 100


def test_object_that_is_no_json() -> None:
    """An object is read as arguments are, its faults told in the same words."""
    read = plan_of(Weather).read_text
    assert said_of(read('{"city": NaN}')) == "$: expected a JSON object, got NaN, which is no JSON"
    assert "nested more than" in said_of(read('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)))
    assert said_of(read("[]")) == "$: expected an object, got an empty array"
    assert said_of(read('{"city": "Oslo"}')) == "$.degrees: missing, and it is required"


def test_lone_surrogates_are_replaced() -> None:
    """A lone surrogate becomes U+FFFD, escaped or not, in objects or outside of them."""
    assert plan_of(str).read_text('"\\ud800"') == Read("\ufffd")
    assert plan_of(str).read_text('"\ud800"') == Read("\ufffd")
    assert plan_of(dict[str, str]).read_text('{"\\ud800": "\ud83d\ude00"}') == Read({"\ufffd": "😀"})


@pytest.mark.parametrize(
    ("output", "said", "value"),
    [
        (bool, "true", True),
        (int, "5.0", 5),
        (float, "5", 5.0),
        (str, '"```"', "```"),
        (type(None), "null", None),
        (int | None, "null", None),
        (Literal["a", 1], '"a"', "a"),
        (Unit, '"celsius"', Unit.C),
        (Level, "2", Level.HIGH),
        (dt.date, '"2024-01-02"', dt.date(2024, 1, 2)),
        (list[Span], '[{"start": "2024-01-02"}]', [Span(dt.date(2024, 1, 2))]),
        (Weather | Refusal, '{"reason": "no"}', Refusal("no")),
        (Weather | Refusal, '{"city": "Oslo", "degrees": 4}', Weather("Oslo", 4.0)),
        (UserId, "7", 7),
        ({"type": "array"}, "[1, [2]]", [1, [2]]),
    ],
)
def test_wrapped_values_are_read_both_ways(output: object, said: str, value: object) -> None:
    """A text may say the value bare or wrapped, arguments wrap it; it arrives as the type that was asked for."""
    plan = plan_of(output)
    for result in (
        plan.read_text(said),
        plan.read_text(f'{{"value": {said}}}'),
        plan.read_text(f'```json\n{{"value": {said}}}\n```'),
        plan.read_arguments(f'{{"value": {said}}}'),
    ):
        assert result == Read(value)
        assert isinstance(result, Read)
        assert type(result.value) is type(value)


@pytest.mark.parametrize(
    ("output", "said", "value"),
    [
        (Weather, '{"city": "Oslo", "degrees": 4}', Weather("Oslo", 4.0)),
        (Odd, '{"value": 1.0}', Odd(1)),
        (Node, '{"value": 1, "children": [{"value": 2}]}', Node(1, [Node(2)])),
        (Shelf[Level], '{"boxes": [], "rows": {"item": [2]}}', None),
        (Model, '{"item": 1}', Model({"item": 1})),
        (dict[Unit, int], '{"celsius": 1}', {Unit.C: 1}),
        (dict, "", {}),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
    ],
)
def test_objects_are_read_from_arguments(output: object, said: str, value: object) -> None:
    """An object is read from the arguments of the call, which are that object."""
    result = plan_of(output).read_arguments(said)
    assert isinstance(result, Read)
    assert value is None or result.value == value


def test_json_of_a_schema_may_be_changed() -> None:
    """What a schema asked for arrives as plain JSON that is the caller's own."""
    result = plan_of({"type": "object"}).read_text('{"a": 1}')
    assert isinstance(result, Read)
    result.value["a"] = 2
    assert result == Read({"a": 2})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "$.value: missing, and it is required"),
        ("null", "$.value: missing, and it is required"),
        ("{}", "$.value: missing, and it is required"),
        ('{"value": [1], "note": "x"}', '$.note: expected no such property (there are "value"), got a string'),
        ('{"value": [1, "x"]}', "$.value[1]: expected an integer, got a string of 1 character"),
        ("[1]", "$: expected a JSON object, got an array of 1 items"),
        ('{"value": ', "$: expected a JSON object, got text that is not valid JSON"),
        ('{"value": {"a": 1}}', "$.value: expected an array, got an object"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(arguments: str, said: str) -> None:
    """Arguments that do not fit the wrapper, or what is in it, are told with the path that the model sees."""
    assert said_of(plan_of(list[int]).read_arguments(arguments)).startswith(said)


def test_text_that_does_not_fit() -> None:
    """What is told about a text follows the form that it has: the wrapper where it names the value, else the value."""
    read = plan_of(list[int]).read_text
    assert said_of(read('{"value": "x"}')).startswith("$.value: expected an array")
    assert said_of(read('{"value": [], "note": 1}')).startswith("$.note: expected no such property")
    assert said_of(read('["x"]')).startswith("$[0]: expected an integer")
    assert said_of(read('{"answer": []}')).startswith("$: expected an array, got an object")


def test_object_with_a_value_is_the_wrapper() -> None:
    """An object that has a `value` is never taken for the value itself, whose other names could be ignored."""
    plan = plan_of(Odd | Refusal)
    assert plan.read_text('{"value": {"value": 1}}') == Read(Odd(1))
    assert said_of(plan.read_text('{"value": 1}')) == "$.value: expected an object, got 1"
    loose = plan_of({"anyOf": [{"type": "object"}, {"type": "null"}]})
    assert loose.read_text('{"a": 1}') == Read({"a": 1})
    assert said_of(loose.read_text('{"value": 5}')).startswith("$.value: expected an object or null")
    assert said_of(loose.read_text('{"value": null, "a": 1}')).startswith("$.a: expected no such property")


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])), st.booleans())
def test_round_trip(case: tuple[Any, Any], fenced: bool) -> None:
    """A value of each type, said in JSON, comes back equal from text and from arguments."""
    kind, value = case
    said = to_json(value)
    if isinstance(value, Point):
        said.pop("made")
    plan = plan_of(kind)
    text = json.dumps(said, ensure_ascii=fenced)
    wrapped = f'{{"value": {text}}}' if plan.wrapped else text
    for result in (
        plan.read_text(f"```json\n{text}\n```" if fenced else f" {text}\n"),
        plan.read_text(wrapped),
        plan.read_arguments(wrapped),
    ):
        assert isinstance(result, Read), result
        if isinstance(value, Node):
            assert to_json(result.value) == said
        else:
            assert result.value == value


KINDS: list[Any] = [
    *VALUES, bool, str, type(None), Any, list[str], dict[str, Any], Literal["a", 1], Level, Weather | Refusal, Checked,
    Model, Odd | int, int | None, list[dict[str, Span]], {"type": "object"}, {"type": "array", "items": {"minimum": 0}},
]  # fmt: skip


@given(st.sampled_from(KINDS), json_data)
def test_any_json_is_an_answer(kind: Any, value: Any) -> None:
    """JSON of any form is read or told as a violation, and as the schema that the model was given would have it."""
    plan = plan_of(kind)
    text = json.dumps(value)
    for result in (plan.read_text(text), plan.read_text(f'{{"value": {text}}}'), plan.read_arguments(text)):
        assert isinstance(result, Read | SchemaViolation)
    whole = value if not plan.wrapped else {"value": value}
    if isinstance(plan.read_arguments(json.dumps(whole)), Read) and value is not None:
        assert Draft202012Validator(dict(plan.schema)).is_valid(whole)  # a converter may only refuse more


@given(st.sampled_from(KINDS), st.text() | st.text(alphabet='`json\n{}[]",:\\u0d8 1-.eEN'))
def test_any_text_is_an_answer(kind: Any, text: str) -> None:
    """No text raises."""
    plan = plan_of(kind)
    assert isinstance(plan.read_text(text), Read | SchemaViolation)
    assert isinstance(plan.read_arguments(text), Read | SchemaViolation)


@pytest.mark.parametrize("kind", KINDS)
def test_every_schema_is_valid(kind: Any) -> None:
    """Every schema asked for is a valid one, of the kernel's subset, and for an object."""
    schema = dict(plan_of(kind).schema)
    assert schema["type"] == "object"
    Draft202012Validator.check_schema(schema)
    compile_schema(schema)


# Code of the user's own


def test_constructors_that_refuse() -> None:
    """A constructor that raises is a violation with the path of its value and the reason."""
    text = '[{"low": 1, "high": 2}, {"low": 2, "high": 1}]'
    plan = plan_of(list[Checked])
    told = "expected a valid Checked, got ValueError: low must not be over high"
    assert said_of(plan.read_text(text)) == f"$[1]: {told}"
    assert said_of(plan.read_arguments(f'{{"value": {text}}}')) == f"$.value[1]: {told}"
    assert said_of(plan_of(Model).read_text('{"item": 13}')) == "$.rest[1]: expected a valid Model, got unlucky"


def below(frames: int, act: Callable[[], Read | SchemaViolation]) -> Read | SchemaViolation:
    """What a function returns, called with so many frames above it."""
    return below(frames - 1, act) if frames else act()


@pytest.mark.parametrize("compiler", [None, accepting])
def test_deep_values(compiler: SchemaCompiler | None) -> None:
    """A value that is nested too deeply for where it is read is a violation, wherever that shows."""
    text = '{"value": 1}'
    for _ in range(MAX_DEPTH - 1):
        text = f'{{"value": 1, "parent": {text}}}'
    plan = read_output(Node, compiler)
    assert isinstance(plan.read_text(text), Read)
    most = sys.getrecursionlimit() - len(inspect.stack(0)) - 60
    results = [below(frames, lambda: plan.read_text(text)) for frames in range(0, most, 20)]
    told = [str(each) for each in results if isinstance(each, SchemaViolation)]
    assert told
    assert all("too deep" in each for each in told)


@pytest.mark.parametrize("output", [Raising, list[Raising], dict[str, list[Raising | None]]])
@pytest.mark.parametrize("error", [Timeout("late"), KeyboardInterrupt(), SystemExit(1)])
def test_interrupts_pass(output: object, error: BaseException) -> None:
    """An interrupt in a constructor is raised as it is; an exception that is none is a violation."""
    RAISED[:] = [error]
    said: Any = {"a": 1}
    said = said if output is Raising else [said] if output == list[Raising] else {"x": [said]}
    plan = plan_of(output)
    text = json.dumps({"value": said} if plan.wrapped else said)
    for read in (plan.read_text, plan.read_arguments):
        with pytest.raises(type(error)) as caught:
            read(text, (KeyboardInterrupt, Timeout))
        assert caught.value is error
    if isinstance(error, Timeout):
        assert said_of(plan.read_text(text)).endswith("expected a valid Raising, got Timeout: late")


# The agent's own compiler


def test_own_compiler_checks() -> None:
    """A compiler of the agent's own is given the schema of the value, and its violations get their path."""
    seen: list[Mapping[str, object]] = []

    def compiler(schema: Mapping[str, object]) -> Validator:
        seen.append(schema)
        return lambda value: SchemaViolation("$.a", "b", "c") if value else None

    plan = read_output(list[int], compiler)
    assert seen == [{"type": "array", "items": {"type": "integer"}}]
    assert said_of(plan.read_text("[1]")) == "$.a: expected b, got c"
    assert said_of(plan.read_arguments('{"value": [1]}')) == "$.value.a: expected b, got c"
    assert plan.read_text("[]") == Read([])
    assert read_output({"type": "object", "x-mine": 1}, compiler).schema == {"type": "object", "x-mine": 1}


def test_own_compiler_fails() -> None:
    """A compiler that refuses is heard; one that raises, or makes no validator, is named."""

    def refusing(schema: Mapping[str, object]) -> Validator:
        raise InvalidArgument("no such keyword")

    def raising(schema: Mapping[str, object]) -> Validator:
        raise RuntimeError("secret")

    def making_nothing(schema: Mapping[str, object]) -> Any:
        return None

    with pytest.raises(InvalidArgument, match=r"^output: no such keyword$"):
        read_output(int, refusing)
    with pytest.raises(InvalidArgument, match=r"^output: Agent.schema_compiler raised RuntimeError on its schema$"):
        read_output(int, raising)
    with pytest.raises(InvalidArgument, match="must be a validator, not NoneType"):
        read_output(int, making_nothing)


def test_own_validator_fails() -> None:
    """A validator that raises is an extension's failure, unless it is an interrupt."""

    def compiler(schema: Mapping[str, object]) -> Validator:
        def validate(value: object) -> None:
            raise Timeout

        return validate

    plan = read_output(Weather, compiler)
    with pytest.raises(ExtensionFailure, match="the validator that schema_compiler made for the output raised Timeout"):
        plan.read_text("{}")
    with pytest.raises(Timeout):
        plan.read_text("{}", (Timeout,))


# Plans are kept


def test_classes_are_read_once() -> None:
    """A class is read once, by the kernel's own compiler; another compiler reads it again."""
    assert plan_of(Weather) is plan_of(Weather)
    assert plan_of(bool) is not plan_of(int)
    assert read_output(Weather, compile_schema) is not read_output(Weather, compile_schema)


def test_equal_types_are_told_apart() -> None:
    """Unions that Python calls equal keep the order of their alternatives, and equal classes are not mixed up."""
    assert plan_of(dt.date | str).read_text('"2024-01-02"') == Read(dt.date(2024, 1, 2))
    assert plan_of(str | dt.date).read_text('"2024-01-02"') == Read("2024-01-02")

    class Same(enum.EnumMeta):
        def __eq__(cls, other: object) -> bool:
            return isinstance(other, Same)

        def __hash__(cls) -> int:
            return 1

    first, second = Same("E", (enum.Enum,), _members("E", A="a")), Same("E", (enum.Enum,), _members("E", B="b"))
    assert first == second
    assert plan_of(first).schema != plan_of(second).schema


def _members(name: str, **members: str) -> Any:
    body: Any = enum.EnumMeta.__prepare__(name, (enum.Enum,))
    body.update(members)
    return body


def test_few_classes_are_kept() -> None:
    """A program that makes classes as it runs does not fill the memory with them."""

    def make() -> weakref.ref[type]:
        @dataclass
        class Local:
            a: int = 0

        Local.__annotations__["a"] = int
        assert plan_of(Local).read_text("{}") == Read(Local())
        return weakref.ref(Local)

    made = [make() for _ in range(200)]
    gc.collect()
    assert sum(each() is not None for each in made) <= 32


def test_threads_may_read_at_once() -> None:
    """Many threads may make plans and read with them."""
    results: list[object] = []

    def work() -> None:
        results.extend([plan_of(kind).read_text('{"value": 1}') for kind in [Weather, Refusal, Odd, bool, Unit] * 40])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800
    assert results.count(Read(Odd(1))) == 160


class Movie(TypedDict):
    """A TypedDict that needs no conversion."""

    title: str


class Pair(NamedTuple):
    """A named tuple with a default."""

    left: int
    right: list[Movie] = []  # noqa: RUF012  # never changed


@dataclass
class Library:
    """All of it together."""

    movies: list[Movie]
    pairs: dict[str, Pair] = field(default_factory=dict)
    unit: Unit = Unit.C


def test_types_in_types() -> None:
    """Dataclasses, TypedDicts, named tuples and enums arrive as such wherever they stand in the answer."""
    text = '{"movies": [{"title": "M"}], "pairs": {"a": {"left": 1.0}}, "unit": "fahrenheit"}'
    assert plan_of(Library).read_text(text) == Read(Library([{"title": "M"}], {"a": Pair(1)}, Unit.F))
    assert said_of(plan_of(Library).read_text('{"movies": [{}]}')) == "$.movies[0].title: missing, and it is required"
