"""Options of a request in the responses dialect, and where it goes: what no wire case covers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gotato_gateway import OpenAIResponses, Quirks, connect
from gotato_gateway._responses_request import responses_body
from gotato_gateway.quirks import quirks_for
from gotato_py import Agent, InvalidRequest, ModelOptions, ModelRequest, ToolSpec, UserMessage

from .answers import ask, local
from .responses_events import added, done, end, text
from .server import Reply, Server, sse


def optioned(quirks: Quirks | None = None, **options: Any) -> Any:
    """The body of a request with these options and two tools, for OpenAI unless `quirks` say otherwise."""
    tools = (ToolSpec("f"), ToolSpec("g.h", "Does it."))
    request = ModelRequest(messages=(UserMessage("x"),), tools=tools, options=ModelOptions(**options))
    quirks = quirks or quirks_for("https://api.openai.com/v1", "gpt-5")
    return json.loads(responses_body("gpt-5", request, quirks, "openai-responses:gpt"))


def test_every_request_is_stateless() -> None:
    """Nothing is stored, nothing stored is referred to, and what is thought is asked for."""
    assert optioned().items() >= {"store": False, "stream": True, "include": ["reasoning.encrypted_content"]}.items()
    assert optioned().keys() == {"model", "input", "stream", "store", "include", "tools"}


def test_options_in_the_dialect() -> None:
    """Every option has its member, and none that was not given is sent."""
    body = optioned(temperature=0.5, top_p=0.9, max_tokens=70, metadata={"k": 1}, parallel_tool_calls=False)
    expected = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 70, "metadata": {"k": "1"}}
    assert body.items() >= {**expected, "parallel_tool_calls": False}.items()
    asked = optioned(reasoning_effort="high", reasoning_summary="auto")["reasoning"]
    assert asked == {"effort": "high", "summary": "auto"}
    assert optioned(reasoning_summary="detailed")["reasoning"] == {"summary": "detailed"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stop": ("a",)}, "stop"),
        ({"reasoning_budget": 100}, "reasoning_budget"),
        ({"tool_choice": "nobody"}, "tool_choice"),
        ({"metadata": {"k": "v" * 513}}, "value of entry 1 has 513"),
        ({"metadata": {"k" * 65: "v"}}, "key of entry 1 has 65"),
        ({"metadata": {str(number): "v" for number in range(17)}}, "16 entries, not 17"),
        ({"response_schema": {"minimum": float("nan")}}, "JSON"),
    ],
)
def test_an_option_that_cannot_be_said_is_refused(options: dict[str, Any], said: str) -> None:
    """What would change the answer, its price or be refused by the server is InvalidRequest before it is sent."""
    with pytest.raises(InvalidRequest, match=said) as caught:
        optioned(**options)
    assert "vvv" not in str(caught.value)


def test_metadata_that_fits_is_sent_where_it_is_taken() -> None:
    """The longest values that the dialect takes are sent, but nothing to a server that takes none."""
    assert optioned(metadata={"k" * 64: "v" * 512})["metadata"] == {"k" * 64: "v" * 512}
    assert len(optioned(metadata={str(number): "v" for number in range(16)})["metadata"]) == 16
    assert "metadata" not in optioned(Quirks(metadata=False), metadata={"k": "v" * 600})


def test_openrouter_takes_a_budget() -> None:
    """OpenRouter has a place for a budget in this dialect too, and takes it instead of an effort."""
    quirks = quirks_for("https://openrouter.ai/api/v1", "openai/gpt-5")
    assert optioned(quirks, reasoning_budget=100)["reasoning"] == {"max_tokens": 100}
    assert optioned(quirks, reasoning_budget=100, reasoning_effort="low")["reasoning"] == {"max_tokens": 100}


def test_tools_are_flat_and_not_strict() -> None:
    """A tool has no object around it, and says that it is not strict, since the dialect takes it to be so."""
    tools = optioned()["tools"]
    parameters = {"properties": {}, "type": "object"}
    assert tools[0] == {"type": "function", "name": "f", "parameters": parameters, "strict": False}
    assert tools[1]["description"] == "Does it."
    assert optioned(tool_choice="f")["tool_choice"] == {"type": "function", "name": "f"}
    assert optioned(tool_choice="required")["tool_choice"] == "required"


def test_response_schema() -> None:
    """A schema becomes `text.format`, held to strictly where schema and server allow; some servers take none."""
    closed = {"type": "object", "title": "My Answer", "properties": {}, "required": [], "additionalProperties": False}
    asked = optioned(response_schema=closed)["text"]
    assert asked == {"format": {"type": "json_schema", "name": "My_Answer", "schema": closed, "strict": True}}
    loose = optioned(response_schema={"type": "object"})["text"]["format"]
    assert loose == {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}
    assert "strict" not in optioned(Quirks(), response_schema=closed)["text"]["format"]
    with pytest.raises(InvalidRequest, match="response_schema"):
        optioned(Quirks(response_schema=False), response_schema=closed)


def test_extra_body_is_added_last() -> None:
    """Members that only one server knows come from the quirks."""
    assert optioned(Quirks(extra_body={"store": True}))["store"] is True


def test_the_request_goes_to_responses_with_the_key() -> None:
    """The operation is found behind the base URL; `connect` finds the adapter by its word."""
    end = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
    with Server(Reply(sse(end, done=False))) as server:
        model = connect("openai-responses:gpt-5", base_url=server.url, api_key="sk-test-0123456789")
        assert isinstance(model, OpenAIResponses)
        assert ask(model).done.response_id == "resp_1"
        ask(local(f"{server.url}/?api-version=v1", OpenAIResponses))
    assert [received.path for received in server.received] == ["/v1/responses", "/v1/responses?api-version=v1"]
    assert server.received[0].headers["authorization"] == "Bearer sk-test-0123456789"
    assert OpenAIResponses("gpt-5", api_key="k").name == "openai:gpt-5"


def test_an_agent_goes_on_from_what_was_thought() -> None:
    """In a run with a tool, the second request holds the first answer as it came, sealed reasoning before its item."""
    first = [
        done("reasoning", 0, summary=[], encrypted_content="A"),
        added("message", 1, phase="commentary"),
        text("Let me look.", 1),
        done("reasoning", 2, summary=[], encrypted_content="B"),
        done("function_call", 3, call_id="call_1", name="look", arguments="{}"),
        end(),
    ]
    answers = [Reply(sse(*events, done=False)) for events in (first, [text("Found."), end()])]
    with Server(lambda received: answers.pop(0)) as server:
        agent = Agent(local(server.url, OpenAIResponses, model="gpt-5"), tools=[look])
        assert agent.run("Where is it?").text == "Found."
    assert [item.get("encrypted_content") or item for item in server.received[1].json["input"]] == [
        {"role": "user", "content": "Where is it?"},
        "A",
        {"role": "assistant", "content": "Let me look.", "phase": "commentary"},
        "B",
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "here"},
    ]


def look() -> str:
    """Looks for it."""
    return "here"
