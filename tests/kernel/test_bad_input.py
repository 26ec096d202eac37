"""Bad input and misuse at every public door of the kernel: an error that names the argument, and nothing changed."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import pytest

import gotato_py as kernel
import gotato_testkit as kit
from gotato_py import (
    Agent,
    AgentClosed,
    AssistantMessage,
    Busy,
    Compaction,
    GotatoError,
    Hooks,
    InvalidArgument,
    Limits,
    MemoryTranscript,
    ModelRequest,
    NotSupported,
    RetryPolicy,
    Scope,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    assemble_request,
    check_messages,
    collect,
    compile_schema,
    message_from_dict,
    message_to_dict,
    tool,
)

USER = UserMessage("hi")
MODEL = kit.ScriptedModel([])


def plain() -> str:
    """A tool."""
    return "plain"


VALID: dict[str, tuple[Any, ...]] = {
    "Agent": (MODEL,),
    "Accept": (),
    "Allow": (),
    "Approve": (),
    "Ask": ("Pay?",),
    "AssistantMessage": ("hi",),
    "AudioPart": (b"data",),
    "Block": ("no",),
    "Compaction": (USER, "m1"),
    "Deny": (),
    "Done": (),
    "FilePart": (b"data",),
    "FunctionTool": (plain,),
    "Hooks": (),
    "ImagePart": (b"data",),
    "JSONPart": (1,),
    "Limits": (),
    "MemoryTranscript": (),
    "ModelContext": (),
    "ModelOptions": (),
    "ModelRequest": (),
    "Pending": ("handle",),
    "Problem": (0, 1, "text"),
    "RateLimits": (),
    "ReasoningDelta": ("text",),
    "ReasoningDone": (),
    "ReasoningPart": (),
    "Reject": ("no",),
    "RetryPolicy": (),
    "RunMetrics": (),
    "RunRecord": ("run", "agent", "completed", "", 0.0, 0.0, 1, 0, Usage()),
    "Scope": (),
    "TextDelta": ("text",),
    "TextPart": ("text",),
    "ToolCall": ("id", "name"),
    "ToolCallDelta": (0,),
    "ToolCallReady": (ToolCall("id", "name"),),
    "ToolContext": (),
    "ToolMessage": (ToolResult("id", "ok"),),
    "ToolResult": ("id", "ok"),
    "ToolSpec": ("name",),
    "TurnView": ("system", (), MemoryTranscript()),
    "Usage": (),
    "UsageUpdate": (Usage(),),
    "UserMessage": ("hi",),
    "WaitingCall": ("key",),
}
"""Everything that users build, with arguments that are enough."""
MADE_BY_THE_KERNEL = {
    "AbandonedCall", "ErrorInfo", "EventStream", "MessageView", "RunHold", "RunResult", "RunStream", "SchemaViolation",
    "SystemClock", "TurnResult",
}  # fmt: skip
WRONG = (object(), -1, float("nan"), 10**400, True, b"bytes", "\ud800", [object()], {1: object()}, object)
CHANGING = {"Agent", "FunctionTool", "MemoryTranscript", "Scope", "ToolContext"}
"""What is no value."""


def constructors() -> Iterator[tuple[str, str]]:
    """Every parameter of everything in VALID."""
    for name, given in VALID.items():
        kinds = inspect.signature(getattr(kernel, name)).parameters.values()
        assert len(given) <= len(kinds)
        yield from ((name, each.name) for each in kinds if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL))


def with_wrong(name: str, parameter: str, value: object) -> tuple[list[Any], dict[str, Any]]:
    """The valid arguments, one of them replaced or added."""
    given, named = list(VALID[name]), {}
    names = list(inspect.signature(getattr(kernel, name)).parameters)
    if parameter in names[: len(given)]:
        given[names.index(parameter)] = value
    else:
        named[parameter] = value
    return given, named


def test_every_public_class_is_tried() -> None:
    """Every public class that users build is among those tried here."""
    found = set()
    for name in kernel.__all__:
        kind = getattr(kernel, name)
        if not isinstance(kind, type) or issubclass(kind, BaseException | Enum | kernel.AgentStart.__base__):
            continue
        if not getattr(kind, "_is_protocol", False):
            found.add(name)
    assert found - MADE_BY_THE_KERNEL == set(VALID)


@pytest.mark.parametrize(("name", "parameter"), list(constructors()))
def test_a_constructor_takes_its_argument_or_names_it(name: str, parameter: str) -> None:
    """Whatever an argument is, it is accepted, or refused by an InvalidArgument that names it; no other error comes."""
    build: Callable[..., object] = getattr(kernel, name)
    build(*VALID[name])
    for value in WRONG:
        given, named = with_wrong(name, parameter, value)
        refused = ""
        try:
            build(*given, **named)
        except (InvalidArgument, NotSupported) as error:
            refused = str(error)
        except TypeError:
            assert (name, parameter) == ("Agent", "ids"), "a callable is only known to be wrong when it is called"
        assert not refused or parameter in refused, f"{parameter}={value!r}: {refused}"


@pytest.mark.parametrize("name", sorted(set(VALID) - CHANGING))
def test_a_value_cannot_be_changed(name: str) -> None:
    """What users build is frozen: no field can be set, deleted or added."""
    value = getattr(kernel, name)(*VALID[name])
    for attribute in (*type(value).__match_args__, "something_new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, attribute, None)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": object()}),
    ("model", {"model": kit.ScriptedModel}),
    ("instructions", {"instructions": 5}),
    ("tools", {"tools": "add"}),
    ("tools", {"tools": [object()]}),
    ("tools", {"tools": [plain, plain]}),
    ("transcript", {"transcript": object()}),
    ("context_builder", {"context_builder": object()}),
    ("extensions", {"extensions": Hooks(observe=print)}),
    ("extensions", {"extensions": [Hooks()]}),
    ("extensions", {"extensions": [object()]}),
    ("limits", {"limits": {"max_turns": 1}}),
    ("model_options", {"model_options": {"temperature": 1}}),
    ("retry", {"retry": 3}),
    ("schema_compiler", {"schema_compiler": "strict"}),
    ("interrupts", {"interrupts": [ValueError("an instance")]}),
    ("interrupts", {"interrupts": KeyboardInterrupt}),
    ("interrupts", {"interrupts": [int]}),
    ("name", {"name": None}),
    ("clock", {"clock": object()}),
    ("ids", {"ids": "sequential"}),
]


@pytest.mark.parametrize(("argument", "given"), REFUSED)
def test_an_agent_names_the_argument_that_it_refuses(argument: str, given: dict[str, Any]) -> None:
    """A bad argument of Agent is refused when the agent is built, by name."""
    arguments: dict[str, Any] = {"model": MODEL, **given}
    with pytest.raises((InvalidArgument, NotSupported), match=argument) as caught:
        Agent(**arguments)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


@pytest.mark.parametrize("limit", [name for name in Limits.__match_args__ if name != "wrap_up"])
def test_a_limit_is_none_or_at_least_zero(limit: str) -> None:
    """None and 0 are legal for every limit, a negative one is not."""
    limits: Any = Limits
    for legal in (None, 0):
        assert getattr(limits(**{limit: legal}), limit) == legal
    with pytest.raises(InvalidArgument, match=limit):
        limits(**{limit: -1})


RUNS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("message", (5,), {}),
    ("message", ("",), {}),
    ("message", ([],), {}),
    ("message", (" \n",), {}),
    ("message", ([TextPart("a"), 5],), {}),
    ("message", (AssistantMessage("I am the model"),), {}),
    ("message", (ToolMessage(ToolResult("c", "ok")),), {}),
    ("message", ("x" * 101,), {}),
    ("timeout", ("hi",), {"timeout": -1}),
    ("timeout", ("hi",), {"timeout": "1"}),
    ("timeout", ("hi",), {"timeout": float("nan")}),
    ("scope", ("hi",), {"scope": 5}),
    ("answers", ("hi",), {"answers": {}}),
    ("answers", (), {"answers": {"k": True}}),
    ("output", ("hi",), {"output": "int"}),
    ("message", (), {}),
]


@pytest.mark.parametrize("method", ["run", "stream"])
@pytest.mark.parametrize(("argument", "given", "named"), RUNS)
def test_a_run_refuses_bad_arguments_and_commits_nothing(
    method: str, argument: str, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """A bad argument of run or stream raises at once, naming it; no event, no message, no request comes of it."""
    told: list[object] = []
    model = kit.ScriptedModel([kit.say("fine")])
    agent = Agent(model, limits=Limits(max_message_bytes=100), extensions=[Hooks(observe=told.append)])

    def attempt() -> None:
        got = getattr(agent, method)(*given, **named)
        next(got)  # a stream looks at the transcript only when it begins

    with pytest.raises((InvalidArgument, NotSupported), match=argument):
        attempt()
    assert (len(agent.transcript.messages), told, model.requests, agent.status) == (0, [], [], "idle")
    assert agent.run("now").text == "fine"


@pytest.mark.parametrize("check", [True, False])
def test_misuse_raises_whatever_check_says(check: bool) -> None:
    """`check=False` makes outcomes values; misuse raises all the same."""
    agent = Agent(kit.ScriptedModel([kit.say("fine")]))
    with pytest.raises(InvalidArgument, match="empty"):
        agent.run(check=check)
    agent.run("hi")
    with pytest.raises(InvalidArgument, match="message"):
        agent.run(check=check)
    agent.close()
    with pytest.raises(AgentClosed):
        agent.run("hi", check=check)
    assert [each.text for each in agent.transcript.messages] == ["hi", "fine"]


def test_a_run_from_inside_is_busy() -> None:
    """A run started by the agent's own tool, model or observer is refused, and nothing of it is kept."""
    refused: list[str] = []

    def again(*_: object) -> None:
        for attempt in (lambda: agent.run("again"), lambda: next(agent.stream("again")), agent.run):
            with pytest.raises(Busy) as caught:
                attempt()
            refused.append(caught.value.run_id)

    def reenter() -> str:
        again()
        return "refused"

    steps = [[kit.Do(again), *kit.call("reenter")], kit.say("fine")]
    agent = Agent(kit.ScriptedModel(steps), tools=[reenter], extensions=[Hooks(observe=again)])
    result = agent.run("hi")
    assert set(refused) == {result.run_id}
    assert [each.text for each in agent.transcript.messages] == ["hi", "", "refused", "fine"]


def test_a_closed_agent_refuses_every_run() -> None:
    """After close, run and stream raise AgentClosed, cancel does nothing, and closing again is no error."""
    agent = Agent(kit.ScriptedModel([kit.say("fine")]))
    waiting = agent.stream("before")
    with agent:
        pass
    agent.close()
    for attempt in (lambda: agent.run("x"), lambda: agent.stream("x"), lambda: next(waiting)):
        with pytest.raises(AgentClosed):
            attempt()
    assert (agent.cancel(), agent.status, len(agent.transcript.messages)) == (False, "closed", 0)


def test_a_cancel_of_nothing_is_false() -> None:
    """`cancel` on an idle agent returns False, and the next run is not touched by it."""
    agent = Agent(kit.ScriptedModel([kit.say("fine")]))
    assert agent.cancel("too early") is False
    assert agent.run("hi").ok


def test_a_transcript_with_a_broken_history_is_not_sent() -> None:
    """A history that breaks the rules is refused before anything is committed or asked."""
    model = kit.ScriptedModel([])
    transcript = MemoryTranscript([USER, ToolMessage(ToolResult("c", "ok"))])
    agent = Agent(model, transcript=transcript)
    with pytest.raises(GotatoError):
        agent.run("hi")
    assert (len(transcript.messages), model.requests, agent.status) == (2, [], "idle")


FUNCTIONS: list[tuple[str, Callable[[], object]]] = [
    ("model", lambda: collect(object(), ModelRequest())),  # type: ignore[arg-type]  # wrong on purpose, as all of these
    ("request", lambda: collect(MODEL, "hi")),  # type: ignore[arg-type]
    ("scope", lambda: collect(MODEL, ModelRequest(messages=[USER]), 5)),  # type: ignore[arg-type]
    ("retry", lambda: collect(MODEL, ModelRequest(messages=[USER]), retry=3)),  # type: ignore[arg-type]
    ("context", lambda: assemble_request("hi")),  # type: ignore[arg-type]
    ("role", lambda: message_from_dict({"role": "system", "parts": []})),
    ("message", lambda: message_from_dict([])),  # type: ignore[arg-type]
    ("message", lambda: message_to_dict("hi")),  # type: ignore[arg-type]
    ("Schema", lambda: compile_schema(5)),  # type: ignore[arg-type]
    ("type", lambda: compile_schema({"type": "strnig"})),
    ("if", lambda: compile_schema({"if": {}})),
    ("timeout", lambda: Scope(-1)),
    ("timeout", lambda: Scope().child(-1)),
    ("max_attempts", lambda: RetryPolicy(max_attempts=0)),
    ("through", lambda: MemoryTranscript([USER]).replace(Compaction(UserMessage("all"), "nowhere"))),
    ("append", lambda: MemoryTranscript().append("hi")),  # type: ignore[type-var]
    ("messages", lambda: MemoryTranscript(["hi"])),  # type: ignore[list-item]
    ("name", lambda: ToolSpec("")),
    ("name", lambda: tool(name=5)(plain)),  # type: ignore[call-overload]
    ("timeout", lambda: tool(timeout=-1)(plain)),
    ("effect", lambda: tool(effect="harmless")(plain)),
]


@pytest.mark.parametrize(("argument", "attempt"), FUNCTIONS)
def test_a_function_names_the_argument_that_it_refuses(argument: str, attempt: Callable[[], object]) -> None:
    """Every public function refuses a bad argument with an InvalidArgument that names it."""
    with pytest.raises(InvalidArgument, match=argument):
        attempt()


def test_check_messages_tells_of_what_is_no_message() -> None:
    """`check_messages` never raises for a bad history of messages, it lists what is wrong."""
    found = check_messages([ToolMessage(ToolResult("c", "ok")), AssistantMessage("", [ToolCall("c", "t")])])
    assert [(problem.index, problem.rule) for problem in found] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("point", ["before_tol", "after_run"])
def test_a_point_that_is_not_there_is_refused_by_name(point: str) -> None:
    """A misspelled point is an error and never ignored."""
    with pytest.raises(TypeError, match=point):
        Agent(MODEL, extensions=[Hooks(**{point: print})])  # type: ignore[arg-type]


def test_a_redelivered_message_costs_nothing() -> None:
    """A message with the id of one that has its answer already is answered without a model call (design, section 7)."""
    model = kit.ScriptedModel([kit.say("fine")])
    agent = Agent(model)
    first = agent.run(UserMessage("hi", id="task-1"))
    again = agent.run(UserMessage("hi", id="task-1"))
    assert (again.status, again.text, again.new_messages) == (first.status, first.text, ())
    assert (len(model.requests), len(agent.transcript.messages)) == (1, 2)
