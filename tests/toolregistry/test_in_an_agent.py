"""The registry and the full compiler where they belong: in an agent."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_py import Agent, ErrorCode, InvalidArgument, RunStatus, ToolMessage, ToolResultStatus, ToolSource
from gotato_testkit import Do, FakeTool, ScriptedModel, call, outline, say
from gotato_toolregistry import Registry, jsonschema_compiler


def offered(model: ScriptedModel) -> list[list[str]]:
    """The names of the tools in each request, in order."""
    return [[spec.name for spec in request.tools] for request in model.requests]


def results(agent: Agent) -> list[tuple[ToolResultStatus, str]]:
    """What became of the calls, in order."""
    messages = [message for message in agent.transcript.messages if isinstance(message, ToolMessage)]
    return [(message.result.status, message.text) for message in messages]


def test_an_agent_gets_the_active_tools() -> None:
    """The model is offered what is active, by name, beside the agent's own tools, and can call all of it."""
    registry = Registry([FakeTool("c", "from c"), FakeTool("a", "from a")])
    registry.register(FakeTool("b"), active=False)
    source: ToolSource = registry
    model = ScriptedModel([call("c") + call("own"), say("Done.")])
    agent = Agent(model, tools=[FakeTool("own", "mine"), source])
    assert agent.run("Go.").ok
    assert offered(model) == [["a", "c", "own"]] * 2
    assert results(agent) == [(ToolResultStatus.OK, "from c"), (ToolResultStatus.OK, "mine")]


def test_a_change_reaches_the_next_turn() -> None:
    """A tool that changes the registry changes the next turn: the turn that it is called in keeps its set."""
    registry = Registry()

    def change() -> str:
        registry.activate("new")
        registry.deactivate("old")
        return "changed"

    registry.register(FakeTool("change", Do(change)))
    registry.register(FakeTool("old", "old works"))
    registry.register(FakeTool("new", "new works"), active=False)
    model = ScriptedModel([call("change") + call("old") + call("new"), call("old") + call("new"), say("Done.")])
    agent = Agent(model, tools=[registry])
    assert agent.run("Go.").ok
    assert offered(model) == [["change", "old"], ["change", "new"], ["change", "new"]]
    assert [status for status, _ in results(agent)] == ["ok", "ok", "not_run", "not_run", "ok"]


def test_a_tool_may_take_itself_out() -> None:
    """A tool that is unregistered while it runs ends its work; the next turn does not have it."""
    registry = Registry()
    registry.register(FakeTool("once", Do(lambda: registry.unregister("once").spec.name)))
    model = ScriptedModel([call("once"), call("once"), say("Done.")])
    agent = Agent(model, tools=[registry])
    assert agent.run("Go.").ok
    assert offered(model) == [["once"], [], []]
    assert [status for status, _ in results(agent)] == ["ok", "not_run"]


def test_agents_share_a_registry() -> None:
    """One registry serves any number of agents; a tool that is registered is there for all of them."""
    registry = Registry()
    models = [ScriptedModel([say("One."), say("Two.")]) for _ in range(2)]
    agents = [Agent(model, tools=[registry]) for model in models]
    assert [agent.run("Go.").text for agent in agents] == ["One.", "One."]
    registry.register(FakeTool("late"))
    assert [agent.run("Go on.").text for agent in agents] == ["Two.", "Two."]
    assert [offered(model) for model in models] == [[[], ["late"]]] * 2


def test_two_of_one_name_in_one_agent() -> None:
    """A name that another tool of the agent has fails the run, and says which; the registry can cure it."""
    registry = Registry([FakeTool("same")])
    agent = Agent(ScriptedModel([say("Hi.")]), tools=[FakeTool("same"), registry])
    result = agent.run("Go.", check=False)
    assert result.status is RunStatus.FAILED
    assert result.error is not None
    assert "'same'" in str(result.error)
    registry.deactivate("same")
    assert agent.run().text == "Hi."


CHOICE: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"enum": ["all", "one"]}, "name": {"type": "string"}},
    "if": {"properties": {"kind": {"const": "one"}}},
    "then": {"required": ["name"]},
}


def test_the_full_draft_in_an_agent() -> None:
    """With the full compiler an agent takes any schema of the draft, and tells the model what does not fit."""
    find = FakeTool("find", "found", schema=CHOICE)
    with pytest.raises(InvalidArgument, match="keyword 'if'"):
        Agent(ScriptedModel([]), tools=[find])
    model = ScriptedModel([call("find", kind="one"), call("find", kind="one", name="x"), say("Done.")])
    agent = Agent(model, tools=[Registry([find])], schema_compiler=jsonschema_compiler)
    assert agent.run("Go.").ok
    assert [status for status, _ in results(agent)] == ["not_run", "ok"]
    assert "$.name: missing, and it is required" in outline(agent.transcript.messages)[2]
    assert [dict(use.arguments) for use in find.uses] == [{"kind": "one", "name": "x"}]


def test_typed_functions_with_the_full_compiler() -> None:
    """A function's own schema works with it, and its arguments arrive converted."""
    seen: list[object] = []

    def add(items: set[int], factor: float = 1) -> str:
        "Adds."
        seen.append((items, factor))
        return "added"

    model = ScriptedModel(
        [call("add", items=[1, 2]), call("add", items=[1, 1]), call("add", items=[True]), say("Done.")]
    )
    agent = Agent(model, tools=[add], schema_compiler=jsonschema_compiler)
    assert agent.run("Go.").ok
    assert [status for status, _ in results(agent)] == ["ok", "not_run", "not_run"]
    assert seen == [({1, 2}, 1)]


@pytest.mark.parametrize("broken", [{"type": "int"}, {"$ref": "https://x.example/y"}, {"if": 1}])
def test_a_broken_schema_is_refused_when_the_agent_is_built(broken: dict[str, Any]) -> None:
    """A broken schema does not wait for the first call."""
    find = FakeTool("find", schema={"type": "object", "properties": {"a": broken}})
    with pytest.raises(InvalidArgument, match="JSON Schema at #/properties/a/") as caught:
        Agent(ScriptedModel([]), tools=[find], schema_compiler=jsonschema_compiler)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
