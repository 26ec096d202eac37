"""The public strategies: what they promise of their values, and how simple those become."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from gotato_py import (
    Agent,
    AssistantMessage,
    Message,
    Part,
    ToolMessage,
    UserMessage,
    check_messages,
    compile_schema,
    message_from_dict,
    message_to_dict,
)
from gotato_testkit import (
    FakeTool,
    ScriptedModel,
    call,
)
from gotato_testkit import strategies as gst

from ..effort import costly
from .drawing import QUICK, REACH, SIMPLEST

# data and single values


@given(gst.json_values(), gst.json_objects(), gst.extras())
def test_json_is_plain_and_strict(value: Any, object_: dict[str, Any], extra: dict[str, Any]) -> None:
    """JSON data goes through text and comes back as it was; unknown members have names that nothing else has."""
    for each in (value, object_, extra):
        assert json.loads(json.dumps(each, allow_nan=False)) == each
        json.dumps(each, ensure_ascii=False).encode("utf-8")
    assert all(name.startswith("x-") for name in extra)


@given(gst.texts(), gst.visible_texts())
def test_texts_can_be_encoded(text: str, visible: str) -> None:
    """Texts hold no lone surrogate, and visible ones more than white space."""
    text.encode("utf-8")
    assert visible.strip()


def test_texts_hold_lone_surrogates_where_they_may() -> None:
    """With `surrogates` there are texts that no encoding takes."""
    assert find(gst.texts(surrogates=True), lambda each: "\ud800" <= each[:1] <= "\udfff", settings=REACH)


@QUICK
@given(gst.messages(), gst.parts())
def test_messages_are_of_every_kind(message: Message, part: Part) -> None:
    """A drawn message is one, with everything that it can hold, and has a JSON form."""
    assert isinstance(message, Message)
    assert isinstance(part, Part)
    assert message_from_dict(message_to_dict(message)) == message


@pytest.mark.parametrize(
    "wanted",
    [
        lambda each: isinstance(each, UserMessage) and each.extra,
        lambda each: isinstance(each, AssistantMessage) and each.tool_calls and each.usage.extra,
        lambda each: isinstance(each, ToolMessage) and each.result.metadata and each.metadata,
    ],
)
def test_messages_reach_their_corners(wanted: Any) -> None:
    """Members that are rarely set are drawn too."""
    assert wanted(find(gst.messages(), wanted, settings=REACH))


# histories


@QUICK
@given(gst.histories())
def test_histories_keep_the_rules(history: list[Message]) -> None:
    """They begin with a user message, `check_messages` finds nothing, and every id is there once."""
    assert check_messages(history) == []
    assert not history or isinstance(history[0], UserMessage)
    ids = [message.id for message in history]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@QUICK
@given(gst.open_histories())
def test_open_histories_are_open_at_the_tail(drawn: gst.OpenHistory) -> None:
    """Exactly the calls that are told of are open; where some wait, nothing else is wrong."""
    problems = check_messages(drawn.messages)
    assert len(problems) == len(drawn.open) > 0
    answer = next(each for each in reversed(drawn.messages) if isinstance(each, AssistantMessage))
    keys = [f"{answer.id}:{index}" for index in range(len(answer.tool_calls))]
    done = [each.result.key for each in drawn.messages if isinstance(each, ToolMessage) and each.result.key in keys]
    assert [key for key in keys if key not in done] == list(drawn.open)
    assert set(done) <= drawn.started <= set(keys)
    if drawn.waiting:
        assert check_messages(drawn.messages, drawn.waiting) == []
        assert drawn.waiting[0].key == drawn.open[0]
        assert {each.key for each in drawn.waiting} <= set(drawn.open)
        assert drawn.started == set(done)


@QUICK
@given(st.data())
def test_open_histories_are_of_the_kind_asked_for(data: st.DataObject) -> None:
    """`waiting` decides between a waiting run and one that was cut off."""
    assert data.draw(gst.open_histories(waiting=True)).waiting
    assert not data.draw(gst.open_histories(waiting=False)).waiting


@QUICK
@given(gst.loose_histories())
def test_loose_histories_are_histories(history: list[Message]) -> None:
    """They are messages, and nothing that makes `check_messages` raise."""
    check_messages(history)


@pytest.mark.parametrize("broken", [set(), {1}, {2}, {1, 2}])
def test_loose_histories_break_rules(broken: set[int]) -> None:
    """Some keep the rules, some break one and some both."""

    def breaks(history: list[Message]) -> bool:
        return len(history) > 1 and {problem.rule for problem in check_messages(history)} == broken

    assert find(gst.loose_histories(), breaks, settings=REACH)


def test_histories_shrink_to_the_simplest() -> None:
    """A counterexample has one short text where it does not matter what is said, and no round that is not needed."""
    shortest = find(gst.histories(), lambda each: len(each) > 0, settings=SIMPLEST)
    assert shortest == [UserMessage("0")]
    with_a_call = find(
        gst.histories(), lambda each: any(isinstance(one, ToolMessage) for one in each), settings=SIMPLEST
    )
    assert [message.role for message in with_a_call] == ["user", "assistant", "tool"]
    assert with_a_call[1].parts == ()
    assert find(gst.histories(min_turns=2, max_turns=2), lambda each: True, settings=SIMPLEST) == [UserMessage("0")] * 2
    open_one = find(gst.open_histories(), lambda each: True, settings=SIMPLEST)
    assert [message.role for message in open_one.messages] == ["user", "assistant"]


def test_histories_come_in_every_shape() -> None:
    """Results out of order, and results without keys, are among them."""
    orders, shapes = set[bool](), set[bool]()

    def all_were_drawn(history: list[Message]) -> bool:
        keys = [each.result.key.rpartition(":") for each in history if isinstance(each, ToolMessage)]
        orders.update(one[2] < other[2] for one, other in pairwise(keys) if one[0] == other[0])
        shapes.update(bool(key[2]) for key in keys)
        return orders == shapes == {True, False}

    assert find(gst.histories(), all_were_drawn, settings=REACH)


# schemas


@settings(costly(2), suppress_health_check=[HealthCheck.too_slow])
@given(gst.schema_cases())
def test_values_fit_their_schema_or_do_not(case: gst.SchemaCase) -> None:
    """The kernel's compiler and the full one agree with what was drawn."""
    validate, full = compile_schema(case.schema), jsonschema.Draft202012Validator(case.schema)
    jsonschema.Draft202012Validator.check_schema(case.schema)
    assert case.fitting
    for value in case.fitting:
        assert validate(value) is None
        assert full.is_valid(value)
    for value in case.unfitting:
        assert validate(value) is not None
        assert not full.is_valid(value)


@QUICK
@given(gst.schema_cases(objects=True, depth=1), gst.schemas(depth=0))
def test_schemas_of_tools_describe_objects(case: gst.SchemaCase, scalar: dict[str, Any]) -> None:
    """With `objects` the root is an object, so a tool can have it; with depth 0 nothing lies within it."""
    assert case.schema["type"] == "object"
    tool = FakeTool("find", "found", schema=case.schema)
    model = ScriptedModel([call("find", **case.fitting[0])])
    Agent(model, tools=[tool]).run("Go.", check=False)
    assert tool.arguments == [case.fitting[0]]
    assert not {"properties", "items", "prefixItems", "anyOf", "oneOf", "$ref"} & set(scalar)


SUBSET = (
    "type enum const properties required additionalProperties minProperties maxProperties items prefixItems minItems "
    "maxItems uniqueItems minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "anyOf oneOf allOf $defs $ref format description"
)


def test_every_keyword_of_the_subset_is_drawn() -> None:
    """The subset is covered, keyword by keyword."""
    missing = set(SUBSET.split(" "))

    def all_were_drawn(schema: dict[str, Any]) -> bool:
        written = json.dumps(schema)
        missing.difference_update([keyword for keyword in missing if f'"{keyword}":' in written])
        return not missing

    assert find(gst.schemas(depth=1), all_were_drawn, settings=REACH), f"never drawn: {missing}"


def test_schemas_shrink_to_the_simplest() -> None:
    """A counterexample is a string where any schema will do, and has one property where one is needed."""
    assert find(gst.schema_cases(), lambda each: True, settings=SIMPLEST) == gst.SchemaCase(
        {"type": "string"}, ("",), (None,)
    )
    case = find(gst.schema_cases(objects=True), lambda each: bool(each.schema["properties"]), settings=SIMPLEST)
    assert case.schema == {"type": "object", "properties": {"city": {"type": "string"}}}
