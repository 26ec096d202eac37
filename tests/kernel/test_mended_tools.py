"""Faults of tool calls that were found once: what is counted, kept, refused and told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    InvalidArgument,
    InvalidState,
    Limits,
    MemoryTranscript,
    Message,
    RunStatus,
    StoreFailure,
    TextPart,
    ToolCall,
    ToolCallReady,
    ToolContext,
    ToolEffect,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolMessage,
    ToolResult,
    tool,
)
from gotato_testkit import EventRecorder, FakeTool, ScriptedModel, Step, call, outline, say

M = TypeVar("M", bound=Message)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def only_result(agent: Agent) -> ToolResult:
    """The result of the one call that the agent's model made."""
    (found,) = [each.result for each in agent.transcript.messages if isinstance(each, ToolMessage)]
    return found


@dataclass
class Even:
    """An even number; another one is refused."""

    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("odd")


class TestRepeatedCalls:
    """Calls that are refused go in circles like any others."""

    @pytest.mark.parametrize(
        "step",
        [
            pytest.param(call("nobody"), id="unknown tool"),
            pytest.param(call("add", a="x", b=1), id="arguments that do not fit"),
            pytest.param([ToolCallReady(ToolCall("c", "add", "{")), *call("add", a=1)[-1:]], id="bad JSON"),
        ],
    )
    def test_refused_calls_count(self, step: Step) -> None:
        """The third of two admitted ends the run by `max_repeated_calls`, and the second is told a warning."""
        model = ScriptedModel([step] * 9)
        result = Agent(model, tools=[add], limits=Limits(max_repeated_calls=2)).run("go", check=False)
        assert (result.status, len(model.requests)) == (RunStatus.LIMITED, 3)
        assert getattr(result.error, "limit", "") == "max_repeated_calls"
        results = [each for each in result.new_messages if isinstance(each, ToolMessage)]
        assert {each.result.status.value for each in results} == {"not_run"}
        assert ["2 times" in each.text for each in results] == [False, True, False]

    def test_the_name_of_an_unknown_tool_is_cut(self) -> None:
        """A name as long as a prompt is not repeated whole in the error."""
        model = ScriptedModel([call("n" * 5000)] * 3)
        result = Agent(model, limits=Limits(max_repeated_calls=1)).run("go", check=False)
        assert len(str(result.error)) < 300


class TestResultsOfATool:
    """What a tool returns, and what becomes of it."""

    def test_a_failed_result_keeps_its_parts(self) -> None:
        """A tool that returns a failed ToolResult has its parts told behind the words of the outcome."""
        given = ToolResult("", "failed", (TextPart("row 7 is locked"),), error="could not write")
        agent = Agent(ScriptedModel([call("write"), say("ok")]), tools=[FakeTool("write", given)])
        agent.run("go")
        result = only_result(agent)
        assert (result.status.value, result.error) == ("failed", "could not write")
        assert result.text.startswith("The tool ran and failed: could not write")
        assert result.parts[1:] == (TextPart("row 7 is locked"),)

    def test_rejected_arguments_inside_a_tool(self) -> None:
        """A tool that calls another one with arguments which that one rejects did run: `failed`, not `not_run`."""

        @tool
        def inner(even: Even) -> int:
            """Takes an even number."""
            return even.n

        @tool
        def outer(use: ToolContext[None]) -> int:
            """Calls the other tool."""
            return inner.execute(ToolContext(arguments={"even": {"n": 3}}))

        agent = Agent(ScriptedModel([call("outer"), say("ok")]), tools=[outer])
        agent.run("go")
        result = only_result(agent)
        assert (result.status.value, result.executed) == ("failed", True)

    def test_rejected_arguments_of_the_call_itself(self) -> None:
        """A constructor that refuses the call's own arguments means that the tool never started."""

        def half(even: Even) -> int:
            """Halves."""
            return even.n // 2

        events = EventRecorder()
        agent = Agent(ScriptedModel([call("half", even={"n": 3}), say("ok")]), tools=[half], extensions=[events])
        agent.run("go")
        assert only_result(agent).status.value == "not_run"
        assert "tool_execution_start" not in events.kinds


class SoftTimeLimit(Exception):
    """As Celery's: an Exception that a signal handler raises anywhere."""


@dataclass
class Slow:
    """An argument in whose constructor the signal comes."""

    n: int

    def __post_init__(self) -> None:
        raise SoftTimeLimit


def take(slow: Slow) -> str:
    """Takes it."""
    return "taken"


def test_an_interrupt_in_the_constructor_of_an_argument() -> None:
    """It ends the run, closed, and comes out unchanged: it is no rejection of the arguments."""
    events = EventRecorder()
    model = ScriptedModel([call("take", slow={"n": 1})])
    agent = Agent(model, tools=[take], interrupts=(SoftTimeLimit,), extensions=[events])
    with pytest.raises(SoftTimeLimit):
        agent.run("go", check=False)
    assert [told.status for told in events.of(AgentEnd)] == [RunStatus.CANCELLED]
    assert (only_result(agent).status.value, agent.status) == ("not_run", "idle")


class FailsOnce(MemoryTranscript):
    """A transcript of which one commit fails."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def append(self, message: M) -> M:
        """Fails at the chosen commit."""
        self.left -= 1
        if not self.left:
            raise StoreFailure("the disk is full")
        return super().append(message)


def test_a_result_whose_commit_failed_is_kept() -> None:
    """What the tool really answered is committed by the closing, not replaced by "effect unknown"."""
    transcript, lookup = FailsOnce(at=3), FakeTool("lookup", "found")
    agent = Agent(ScriptedModel([call("lookup"), say("ok")]), tools=[lookup], transcript=transcript)
    result = agent.run("go", check=False)
    assert (result.status, result.error and result.error.code) == (RunStatus.FAILED, "store_failure")
    assert outline(transcript.messages)[-1] == "tool lookup: ok found"
    assert agent.run().text == "ok"
    assert len(lookup.uses) == 1


def refuse(schema: Mapping[str, object]) -> Callable[[object], None]:
    """A schema compiler that raises."""
    raise KeyError("type")


class TestSchemas:
    """Schemas and compilers that cannot do are refused when the agent is built."""

    @pytest.mark.parametrize("kind", ["string", "array", ["string", "null"]])
    def test_arguments_are_an_object(self, kind: object) -> None:
        """An input_schema that describes something else is InvalidArgument naming tool and field."""
        with pytest.raises(InvalidArgument, match="input_schema of odd"):
            Agent(ScriptedModel([]), tools=[FakeTool("odd", schema={"type": kind})])

    @pytest.mark.parametrize(
        ("compiler", "said"), [(refuse, "raised KeyError"), (lambda schema: None, "a validator, not NoneType")]
    )
    def test_a_compiler_that_fails(self, compiler: Any, said: str) -> None:
        """One that raises, or returns what cannot be called, is InvalidArgument naming the compiler and the tool."""
        with pytest.raises(InvalidArgument, match=r"tool 'add': .*schema_compiler") as caught:
            Agent(ScriptedModel([]), tools=[add], schema_compiler=compiler)
        assert said in str(caught.value)

    def test_a_compiler_that_refuses(self) -> None:
        """What it says of a schema is told with the name of the tool; another error of ours stays as it is."""

        def refusing(schema: object) -> Any:
            raise InvalidArgument("no such keyword")

        def closing(schema: object) -> Any:
            raise InvalidState("closed")

        with pytest.raises(InvalidArgument, match=r"^tool 'add': no such keyword$"):
            Agent(ScriptedModel([]), tools=[add], schema_compiler=refusing)
        with pytest.raises(InvalidState, match=r"^closed$"):
            Agent(ScriptedModel([]), tools=[add], schema_compiler=closing)

    def test_a_ceiling_that_is_none(self) -> None:
        """`ToolEffect.within` refuses a word that it does not know."""
        with pytest.raises(InvalidArgument, match="ceiling"):
            ToolEffect.READ.within("zz")


def test_events_tell_the_call() -> None:
    """`tool_execution_start` has the arguments, and `tool_execution_end` the call's id too."""
    events = EventRecorder()
    Agent(ScriptedModel([call("add", a=1, b=2), say("3")]), tools=[add], extensions=[events]).run("go")
    (start,), (end,) = events.of(ToolExecutionStart), events.of(ToolExecutionEnd)
    assert (start.call_id, start.arguments, start.to_dict()["arguments"]) == ("call_1", *[{"a": 1, "b": 2}] * 2)
    assert (end.call_id, end.key, end.to_dict()["call_id"]) == ("call_1", start.key, "call_1")


class TimeIsUp(Exception):
    """What a task queue raises in the middle of anything."""


@dataclass
class Interrupting:
    """A class whose constructor is interrupted."""

    a: int

    def __post_init__(self) -> None:
        raise TimeIsUp


def test_an_interrupt_in_an_alternative_is_not_lost() -> None:
    """An interrupt in the constructor of one alternative ends the run, also where another alternative would fit."""

    def pay(what: Interrupting | dict[str, int]) -> str:
        return str(what)

    agent = Agent(ScriptedModel([call("pay", what={"a": 1}), say("done")]), tools=[pay], interrupts=[TimeIsUp])
    with pytest.raises(TimeIsUp):
        agent.run("go")
    assert agent.status == "idle"
