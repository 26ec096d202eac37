"""Cases of `output=`: a run that comes to a value, natively or by a call of `final_answer`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from gotato_py import (
    AssistantMessage,
    Hooks,
    InvalidArgument,
    InvalidState,
    Limits,
    ModelOptions,
    RunResult,
    RunStatus,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from gotato_testkit import Stall, call, say

from .laws import assert_laws
from .notes import note
from .stage import Stage


@dataclass(frozen=True)
class Weather:
    """What the weather is."""

    city: str
    degrees: int
    sky: Literal["clear", "cloudy"] = "clear"


SUNNY = Weather("Oslo", 21)
GIVEN = {"city": "Oslo", "degrees": 21}
JSON = '{"city": "Oslo", "degrees": 21}'


def look(city: str = "") -> str:
    """Looks."""
    return f"sunny in {city}"


def final(**given: Any) -> Any:
    """A call of `final_answer`."""
    return call("final_answer", **given)


def wanted(*steps: Any, native: bool = False, tools: Any = (look,), **options: Any) -> Stage:
    """A stage that is asked for a value; `native` if its model keeps to a schema by itself."""
    stage = Stage(*steps, tools=tools, **options)
    stage.model.capabilities = frozenset({"response_schema"} if native else ())
    return stage


def ask(stage: Stage, message: Any = "do it", output: Any = Weather) -> RunResult[Any]:
    """Runs for the value."""
    return stage.agent.run(message, output=output, check=False)


def statuses(stage: Stage) -> list[str]:
    """What became of each call."""
    return [status.value for status in stage.statuses]


class TestTheValue:
    """The run comes to a value of the type that was asked for."""

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_a_dataclass(self, native: bool) -> None:
        """The value is of that type, converted and checked; the result is completed."""
        stage = wanted(call("look", city="Oslo"), say(JSON) if native else final(**GIVEN), native=native)
        result = ask(stage)
        assert (result.status, result.output) == (RunStatus.COMPLETED, SUNNY)
        assert (result.metrics.turns, len(stage.asked)) == (2, 2)
        assert_laws(stage)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    @pytest.mark.parametrize(
        ("output", "value"),
        [
            (int, 7),
            (list[str], ["a"]),
            (int | None, None),
            (Literal["a", "b"], "b"),
            (bool, False),
            (dict[str, int], {"a": 1}),
        ],
        ids=str,
    )
    def test_what_is_no_object(self, output: Any, value: object, native: bool) -> None:
        """A type that is no object in JSON is asked for as the `value` of one; None and False are values too."""
        text = {"value": value}
        given = value if output == dict[str, int] else text
        stage = wanted(say(json.dumps(given)) if native else final(**given), native=native)  # type: ignore[arg-type]
        result = ask(stage, output=output)
        assert (result.status, result.output) == (RunStatus.COMPLETED, value)
        assert_laws(stage)

    def test_a_schema(self) -> None:
        """A JSON Schema in the place of a type: the value is the JSON value."""
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        stage = wanted(final(n="x"), final(n=3))
        assert ask(stage, output=schema).output == {"n": 3}
        assert_laws(stage)

    def test_what_is_asked_for_natively(self) -> None:
        """A model that can is given the schema with its other options, and no further tool."""
        stage = wanted(say(JSON), native=True, model_options=ModelOptions(temperature=0.5))
        ask(stage)
        (request,) = stage.model.requests
        assert request.options.temperature == 0.5
        assert request.options.response_schema is not None
        assert request.options.response_schema["required"] == ["city", "degrees"]
        assert [spec.name for spec in request.tools] == ["look"]
        assert_laws(stage)
        assert stage.model.requests[-1].options.response_schema is None  # the next run asked for none

    def test_what_is_offered_otherwise(self) -> None:
        """Any other model is offered a tool whose arguments are the value, beside the agent's; for this run alone."""
        stage = wanted(final(**GIVEN))
        ask(stage)
        (request,) = stage.model.requests
        assert request.options.response_schema is None
        assert [spec.name for spec in request.tools] == ["final_answer", "look"]
        assert request.tools[0].input_schema["required"] == ["city", "degrees"]
        assert [tool.spec.name for tool in stage.agent.tools()] == ["look"]
        assert_laws(stage)
        assert [spec.name for spec in stage.model.requests[-1].tools] == ["look"]

    def test_streamed(self) -> None:
        """A stream has the value in its result."""
        stage = wanted(final(**GIVEN))
        with stage.agent.stream("do it", output=Weather) as stream:
            kinds = [event.kind for event in stream]
        assert stream.result.output == SUNNY
        assert "tool_execution_start" not in kinds
        assert kinds.count("tool_result_committed") == 1
        assert_laws(stage)

    def test_it_is_no_tool(self) -> None:
        """`final_answer` passes no gate, starts nothing, and counts as no call."""
        asked: list[str] = []
        gate = Hooks(
            before_tool=lambda use: note(asked, use.name), after_tool=lambda use, result: note(asked, use.name)
        )
        stage = wanted(final(**GIVEN), extensions=[gate], limits=Limits(max_tool_calls=0))
        result = ask(stage)
        assert (result.output, result.metrics.tool_calls, asked) == (SUNNY, 0, [])
        assert stage.transcript.started == frozenset()
        assert_laws(stage)

    def test_what_cannot_be_asked_for(self) -> None:
        """What nothing can describe is refused at once, and so is a tool of the user's that has the name."""

        def final_answer() -> str:
            """The user's own."""
            return ""

        stage = wanted(say("x"))
        for output in (object(), "Weather", 5, SUNNY):
            with pytest.raises(InvalidArgument, match="output"):
                stage.agent.run("do it", output=output)
        assert stage.messages == []
        assert_laws(stage)
        taken = wanted(tools=[final_answer])
        with pytest.raises(InvalidArgument, match="final_answer"):
            taken.agent.run("do it", output=Weather)
        assert taken.messages == []
        native = wanted(call("final_answer"), say(JSON), tools=[final_answer], native=True)
        assert ask(native).output == SUNNY
        assert_laws(native)


class TestNoValue:
    """The run ends without a value."""

    def test_reading_it_raises_the_error_of_the_run(self) -> None:
        """A run that did not complete has no output: reading it raises what the run ended with."""
        stage = wanted([TextDelta("Hm"), Stall()])
        result = stage.agent.run("do it", output=Weather, check=False, timeout=0.01)
        with pytest.raises(Exception, match="deadline") as raised:
            result.output  # noqa: B018  # the property raises
        assert raised.value.code == "deadline_exceeded"  # type: ignore[attr-defined]
        assert_laws(stage)

    def test_stopped_before_it(self) -> None:
        """A run that an extension stopped is complete and has no value: reading it is a matter of state."""
        stage = wanted(call("look"), extensions=[Hooks(should_stop=lambda view: "enough")])
        result = ask(stage)
        assert (result.status, result.stopped_by) == (RunStatus.COMPLETED, "enough")
        with pytest.raises(InvalidState, match="enough"):
            result.output  # noqa: B018  # the property raises
        assert_laws(stage)

    def test_stopped_after_it(self) -> None:
        """A run that is stopped in the turn that gave the value has it."""
        stage = wanted(final(**GIVEN), extensions=[Hooks(should_stop=lambda view: "enough")])
        assert ask(stage).output == SUNNY
        assert_laws(stage)

    def test_without_output(self) -> None:
        """A run that was asked for no value has None."""
        stage = wanted(say("Hi."))
        assert stage.run().output is None
        assert_laws(stage)

    @pytest.mark.parametrize("native", [True, False], ids=["native", "final_answer"])
    def test_limited(self, native: bool) -> None:
        """A run that is limited has no value, even where its last answer looks like one: it is not what was asked."""
        stage = wanted(call("look"), say(JSON), native=native, limits=Limits(max_turns=1, wrap_up=True))
        result = ask(stage)
        assert (result.status, result.text) == (RunStatus.LIMITED, JSON)
        with pytest.raises(Exception, match="max_turns"):
            result.output  # noqa: B018  # the property raises
        assert_laws(stage)


def test_the_types_of_messages() -> None:
    """The answer of a run that gave its value by a call is that call; its result says that it was taken."""
    stage = wanted(say("Here it is. ", usage=Usage(1, 2)) + final(**GIVEN))
    result = ask(stage)
    assert (result.text, result.usage.total_tokens) == ("Here it is. ", 3)
    assert [type(message) for message in result.new_messages] == [UserMessage, AssistantMessage, ToolMessage]
    assert stage.results[0].result.metadata == {"final_answer": True}
    assert_laws(stage)
