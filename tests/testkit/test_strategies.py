"""The public strategies: what they promise of their values, and how simple those become."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from gotato_py import (
    Agent,
    AssistantMessage,
    Done,
    MemoryTranscript,
    Message,
    ModelError,
    ModelEvent,
    Part,
    RetryPolicy,
    Scope,
    ToolCallDelta,
    ToolCallReady,
    ToolMessage,
    UserMessage,
    check_messages,
    collect,
    compile_schema,
    message_from_dict,
    message_to_dict,
)
from gotato_testkit import (
    FakeTool,
    FaultPlan,
    FaultyTool,
    FaultyTranscript,
    ManualClock,
    Raise,
    ScriptedModel,
    Stall,
    Step,
    call,
)
from gotato_testkit import strategies as gst

QUICK = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
SIMPLEST = settings(max_examples=300, phases=[Phase.generate, Phase.shrink], database=None)
CALLS = st.sampled_from([call("find", id=1), call("find"), call("lose")]).map(lambda answer: answer[0].call)  # type: ignore[union-attr]


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
    """Texts hold no lone surrogate unless asked to, and visible ones more than white space."""
    text.encode("utf-8")
    assert visible.strip()
    assert find(gst.texts(surrogates=True), lambda each: "\ud800" <= each[:1] <= "\udfff", settings=SIMPLEST)


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
    assert find(gst.messages(), wanted, settings=settings(SIMPLEST, max_examples=2000))


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
def test_loose_histories_break_the_rules_or_do_not(history: list[Message]) -> None:
    """They are messages, and nothing that makes `check_messages` raise."""
    check_messages(history)
    assert check_messages(find(gst.loose_histories(), lambda each: len(check_messages(each)) > 1, settings=SIMPLEST))


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
    """Results out of order, without keys, and answers of several calls are among them."""

    def out_of_order(history: list[Message]) -> bool:
        keys = [each.result.key for each in history if isinstance(each, ToolMessage)]
        return any(
            one.partition(":")[0] == other.partition(":")[0] and one > other for one, other in zip(keys, keys[1:])
        )

    many = settings(SIMPLEST, max_examples=2000)
    assert find(gst.histories(), out_of_order, settings=many)
    keyless = lambda each: any(isinstance(one, ToolMessage) and not one.result.key for one in each)  # noqa: E731
    assert find(gst.histories(), keyless, settings=many)


# schemas


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
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


KEYWORDS = ["type", "enum", "const", "properties", "required", "additionalProperties", "minProperties", "maxProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "anyOf", "oneOf", "allOf", "$defs", "$ref", "format", "description"]


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_of_the_subset_is_drawn(keyword: str) -> None:
    """The subset is covered, keyword by keyword."""
    wanted = settings(max_examples=5000, phases=[Phase.generate], database=None)
    assert find(gst.schemas(), lambda schema: f'"{keyword}":' in json.dumps(schema), settings=wanted)


def test_schemas_shrink_to_the_simplest() -> None:
    """A counterexample is a string where any schema will do, and has one property where one is needed."""
    assert find(gst.schema_cases(), lambda each: True, settings=SIMPLEST) == gst.SchemaCase(
        {"type": "string"}, ("",), (None,)
    )
    case = find(gst.schema_cases(objects=True), lambda each: bool(each.schema["properties"]), settings=SIMPLEST)
    assert case.schema == {"type": "object", "properties": {"city": {"type": "string"}}}


# what a model streams


@QUICK
@given(gst.answers(calls=CALLS))
def test_answers_are_whole(answer: list[ModelEvent]) -> None:
    """They collect to a message that says something, with the calls that were asked for."""
    message = collect(ScriptedModel([answer]), request(), retry=RetryPolicy(max_attempts=1))
    assert message.text.strip() or message.tool_calls
    assert {each.name for each in message.tool_calls} <= {"find", "lose"}
    assert isinstance(answer[-1], Done)
    for index, event in enumerate(answer):
        if isinstance(event, ToolCallDelta):
            assert any(isinstance(later, ToolCallReady) for later in answer[index:])


def request() -> Any:
    """A request that any script answers."""
    return Agent(model := ScriptedModel([[Done()]])).run("Hi", check=False) and model.requests[0]


@QUICK
@given(gst.cut_answers(), gst.broken_answers(), gst.silent_answers())
def test_other_answers_are_none(cut: list[object], broken: list[object], silent: list[ModelEvent]) -> None:
    """What is cut off or broken ends in a typed error, and what is silent is an empty response."""
    once = RetryPolicy(max_attempts=1)
    for step in (cut, broken):
        with pytest.raises(ModelError):
            collect(ScriptedModel([step]), request(), retry=once)
    result = Agent(ScriptedModel([silent] * 3)).run("Hi", check=False)
    assert result.error is not None
    assert result.error.code == "empty_response"


@QUICK
@given(gst.scripts(calls=CALLS, stalls=True))
def test_scripts_play_to_an_agent(steps: list[Step]) -> None:
    """Whatever a script holds, an agent with a deadline settles, and its history keeps the rules."""
    agent = Agent(ScriptedModel(steps), tools=[FakeTool("find", "found")], clock=ManualClock())
    agent.run("Hi", timeout=60, check=False)
    assert agent.status == "idle"
    assert check_messages(agent.transcript.messages) == []


def test_scripts_hold_every_fault() -> None:
    """Every typed error, a stall and a broken answer are among the steps; without `faults` there are whole answers only."""
    many = settings(SIMPLEST, max_examples=3000)
    for kind in gst.MODEL_ERRORS:
        found = find(
            gst.steps(), lambda each, kind=kind: isinstance(each, Raise) and type(each.error) is kind, settings=many
        )  # type: ignore[misc]
        assert found
    assert find(
        gst.steps(stalls=True), lambda each: isinstance(each, list) and isinstance(each[-1], Stall), settings=many
    )
    assert find(gst.steps(), lambda each: each == [], settings=many) == []
    for wanted in (Raise, Stall):
        with pytest.raises(NoSuchExample):
            find(gst.steps(faults=False), lambda each, wanted=wanted: isinstance(each, wanted), settings=SIMPLEST)  # type: ignore[misc]


@QUICK
@given(gst.model_events(), gst.model_errors())
def test_single_events_and_errors(event: ModelEvent, error: ModelError) -> None:
    """An event is one, and an error is of a type that the kernel knows."""
    assert isinstance(event, ModelEvent)
    assert type(error) in gst.MODEL_ERRORS


def test_scripts_shrink_to_the_simplest() -> None:
    """A counterexample is one short answer where any script will do."""
    assert find(gst.scripts(), lambda each: True, settings=SIMPLEST) == [find(gst.answers(), lambda each: True)]
    assert [type(each).__name__ for each in find(gst.answers(), lambda each: True)] == ["TextDelta", "Done"]


# faults


@QUICK
@given(gst.fault_plans(), gst.scripts(calls=CALLS))
def test_faults_fail_runs_and_nothing_else(plan: FaultPlan, steps: list[Step]) -> None:
    """A run whose transcript and tool fail by plan settles, and the next run works."""
    kept = MemoryTranscript()
    transcript = FaultyTranscript(kept, plan)
    agent = Agent(
        ScriptedModel(steps),
        tools=[FaultyTool(FakeTool("find", "found"), plan)],
        transcript=transcript,
        clock=ManualClock(),
    )
    agent.run("Hi", scope=Scope(60, clock=ManualClock()), check=False)
    assert agent.status in ("idle", "running")


def test_plans_shrink_to_no_fault() -> None:
    """The simplest plan has no fault; one that is needed comes early."""
    assert find(gst.fault_plans(), lambda each: True, settings=SIMPLEST).faults == ()
    (fault,) = find(gst.fault_plans(), lambda each: len(each.faults) > 0, settings=SIMPLEST).faults
    assert (fault.operation, fault.number) == ("append", 1)
    (fault,) = find(
        gst.fault_plans(gst.TOOL_OPERATIONS, errors=st.just(KeyError("k"))),
        lambda each: len(each.faults) == 1,
        settings=SIMPLEST,
    ).faults
    assert (fault.operation, repr(fault.error)) == ("execute", "KeyError('k')")
