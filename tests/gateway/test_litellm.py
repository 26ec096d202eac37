"""A LiteLLM proxy answers all adapters, and what they ask reaches the provider behind it (`make litellm`)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gotato_gateway import Adapter, AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from gotato_py import (
    Agent,
    AssistantMessage,
    AuthenticationFailed,
    ContextOverflow,
    ImagePart,
    InvalidRequest,
    Message,
    ModelError,
    ModelOptions,
    ModelRequest,
    Overloaded,
    RateLimited,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    tool,
)

from .answers import ask, tools
from .chunks import delta, entry
from .litellm_proxy import LOST, MOCK, MOCKED, Proxy, running
from .server import Reply, sse
from .transcripts import PNG, transcripts

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="LiteLLM is not installed: make litellm"),
    pytest.mark.timeout(600),  # the proxy takes long to start
]

ALL = (OpenAIChat, OpenAIResponses, AnthropicMessages, Gemini)
each_adapter = pytest.mark.parametrize("kind", ALL)

COUNTS = {
    "prompt_tokens": 20,
    "completion_tokens": 7,
    "total_tokens": 27,
    "prompt_tokens_details": {"cached_tokens": 5},
}
USAGE = {"id": "c1", "model": "m", "choices": [], "usage": COUNTS}
CALLS = sse(
    delta(role="assistant", content=""),
    delta(reasoning_content="hm"),
    delta(content="Let me "),
    delta(content="look."),
    entry('{"ci', call_id="call_a", name="weather"),
    entry('ty":"Oslo"}'),
    entry('{"a":1,', index=1, call_id="call_b", name="add"),
    entry('"b":2}', index=1),
    delta("tool_calls"),
    USAGE,
)
WORDS = sse(delta(role="assistant", content="Sunny"), delta(content=" and 3."), delta("stop"), USAGE)


def closing(pieces: list[bytes]) -> Reply:
    """An answer after which the connection is closed, so that none is left when a test is over."""
    return Reply(pieces, then="close")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The proxy, for all tests here."""
    with running(tmp_path_factory.mktemp("litellm")) as proxy:
        yield proxy


@pytest.fixture
def proxy(started: Proxy) -> Proxy:
    """The proxy, with a provider behind it that answers in words."""
    started.behave = lambda received: closing(WORDS)
    started.asked()
    return started


@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicMessages, Gemini])
def test_a_mock_answers(proxy: Proxy, kind: type[Adapter]) -> None:
    """The proxy's own mock, streamed in two of the dialects and whole in Anthropic's, is an answer with its counts."""
    answer = ask(proxy.adapter(kind, MOCKED))
    assert (answer.error, answer.text) == (None, MOCK)
    assert answer.done.usage is not None
    assert answer.done.usage.output_tokens > 0


def test_a_mock_in_the_responses_dialect(proxy: Proxy) -> None:
    """LiteLLM 1.108 fails at streaming its own mock there, and says so inside a 200: that is an error of the server."""
    answer = ask(proxy.adapter(OpenAIResponses, MOCKED))
    assert answer.text == MOCK or isinstance(answer.error, Overloaded)


@pytest.mark.parametrize("kind", [OpenAIChat, AnthropicMessages, Gemini])
def test_a_mock_fails(proxy: Proxy, kind: type[Adapter]) -> None:
    """What the proxy raises by itself is the typed error that it stands for."""
    failed = {name: type(ask(proxy.adapter(kind, name)).error) for name in LOST}
    assert failed == {"overflow": ContextOverflow, "limited": RateLimited}


@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"{city}: sunny"


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@each_adapter
def test_an_agent_works_through_the_proxy(proxy: Proxy, kind: type[Adapter]) -> None:
    """Two calls in one answer are streamed and run, and their results get to the provider beside their calls."""
    proxy.behave = lambda received: closing(WORDS if "tool_call_id" in received.body.decode() else CALLS)
    agent = Agent(proxy.adapter(kind), tools=[weather, add], instructions="Be brief.")
    result = agent.run("hi")
    assert result.text == "Sunny and 3."
    assert (result.usage.input_tokens, result.usage.output_tokens) == (40, 14)
    answer = agent.transcript.messages[1]
    assert isinstance(answer, AssistantMessage)
    assert answer.text == "Let me look."
    assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == [
        ("weather", {"city": "Oslo"}),
        ("add", {"a": 1, "b": 2}),
    ]
    if kind is not Gemini:  # the proxy gives its thoughts and the counts of its cache in the other dialects only
        assert [part.text for part in answer.parts if isinstance(part, ReasoningPart)] == ["hm"]
        assert result.usage.cache_read_tokens == 10
    first, second = proxy.asked()
    assert [each["function"]["name"] for each in first["tools"]] == ["add", "weather"]
    system, user, calls, *results = second["messages"]
    assert (words(system), words(user), words(calls)) == ("Be brief.", "hi", "Let me look.")
    assert [each["tool_call_id"] for each in results] == [call["id"] for call in calls["tool_calls"]]
    assert [words(each) for each in results] == ["Oslo: sunny", "3"]


def words(message: dict[str, Any]) -> str:
    """The texts of a message that reached the provider; of Gemini's results, which are objects, what is in them."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    if message["role"] == "tool" and text.startswith('{"'):
        (text,) = json.loads(text).values()
    return text


@each_adapter
def test_a_rich_history_reaches_the_provider(proxy: Proxy, kind: type[Adapter]) -> None:
    """Pictures, calls with odd ids and names, a result with a picture and one that failed all get there.

    But for two things that the proxy does itself: it passes over Gemini's pictures, since it knows only the spelling
    `inline_data`, and it makes up the ids of Gemini's calls from their names.
    """
    calls = (ToolCall("odd id!", "look.up", '{"a": 1}'), ToolCall("odd id!", "look.up", "{}"))
    foreign = ReasoningPart("secret thought", "sealed", "nobody:else")
    history = (
        UserMessage((TextPart("see"), ImagePart(PNG + b"x"))),
        AssistantMessage((foreign, TextPart("ok")), calls, id="a"),
        ToolMessage(ToolResult("odd id!", "ok", (TextPart("one"), ImagePart(PNG + b"y")), key="a:0")),
        ToolMessage(ToolResult("odd id!", "failed", error="boom", key="a:1")),
        UserMessage("go on"),
    )
    assert ask(proxy.adapter(kind), ModelRequest("sys", history, tools("look.up"))).error is None
    (body,) = proxy.asked()
    messages, sent = body["messages"], json.dumps(body)
    assert [words(each) for each in messages[:3]] == ["sys", "see", "ok"]
    results = [each for each in messages if each["role"] == "tool"]
    assert words(results[0]) == "one"
    assert words(results[1]).endswith("boom")
    assert words(messages[-1]).endswith("go on")
    assert "secret" not in sent
    if kind is not Gemini:
        assert sent.count("data:image/png;base64,") == 2
        ids = [call["id"] for call in messages[2]["tool_calls"]]
        assert ids == [each["tool_call_id"] for each in results]
        assert len(set(ids)) == 2


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@each_adapter
def test_options_reach_the_provider(proxy: Proxy, kind: type[Adapter]) -> None:
    """What a dialect can say of sampling, length, ends, calls and the answer's form is what the provider is told."""
    given: dict[str, Any] = {"stop": ("END",), "response_schema": SCHEMA}
    if kind is OpenAIResponses:  # it has no stop
        del given["stop"]
    if kind is AnthropicMessages:  # a model that is no Claude takes no schema
        del given["response_schema"]
    options = ModelOptions(temperature=1.0, top_p=0.9, max_tokens=77, tool_choice="required", **given)
    request = ModelRequest("", (UserMessage("hi"),), tools("f"), options)
    assert ask(proxy.adapter(kind), request).error is None
    (body,) = proxy.asked()
    assert body.items() >= {"temperature": 1.0, "top_p": 0.9, "max_tokens": 77, "tool_choice": "required"}.items()
    assert body.get("stop") == (["END"] if "stop" in given else None)
    if "response_schema" in given:
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA


def refused(status: int, message: str, **more: str) -> Reply:
    """A refusal of the provider."""
    body = json.dumps({"error": {"message": message, **more}}).encode()
    headers = {"Content-Type": "application/json", "Retry-After": "7"}
    return Reply([body], status, headers, "length", then="close")


REFUSALS: dict[str, tuple[Reply, type[ModelError]]] = {
    "limited": (refused(429, "slow down", type="rate_limit_error"), RateLimited),
    "overflow": (refused(400, "over the maximum context length", code="context_length_exceeded"), ContextOverflow),
    "key": (refused(401, "Incorrect API key provided", code="invalid_api_key"), AuthenticationFailed),
    "request": (refused(400, "bad thing", type="invalid_request_error"), InvalidRequest),
    "model": (refused(404, "no such model", code="model_not_found"), InvalidRequest),
    "broken": (refused(500, "oops"), Overloaded),
    "page": (Reply([b"<html>bad gateway</html>"], 502, {"Content-Type": "text/html"}, then="close"), Overloaded),
    "cut": (Reply(WORDS[:2], then="cut"), Overloaded),
    "late": (closing([*WORDS[:2], *sse({"error": {"message": "no more", "code": 503}}, done=False)]), Overloaded),
}


@each_adapter
@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_provider_refuses_is_typed(proxy: Proxy, kind: type[Adapter], name: str) -> None:
    """A refusal, a broken answer and an error in the middle of one are what they are, through the proxy as well."""
    reply, expected = REFUSALS[name]
    proxy.behave = lambda received: reply
    error = ask(proxy.adapter(kind)).error
    assert type(error) is expected
    assert len(proxy.asked()) == 1
    if name == "limited" and kind is OpenAIChat:  # the other dialects' errors come without the provider's headers
        assert isinstance(error, RateLimited)
        assert error.retry_after == 7.0


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses, AnthropicMessages])
def test_the_proxy_lists_its_models(proxy: Proxy, kind: type[Adapter]) -> None:
    """It does so in OpenAI's form, whoever asks; not in Gemini's."""
    assert {"behind", MOCKED} <= {model.id for model in proxy.adapter(kind).list_models()}


@each_adapter
def test_any_history_passes(proxy: Proxy, kind: type[Adapter]) -> None:
    """A transcript of any content is understood by the proxy, and each call gets to the provider with its result."""
    reasoning = st.builds(ReasoningPart, st.just("hm"), st.sampled_from(["", "s"]), st.just("openai-chat:other"))
    adapter = proxy.adapter(kind)

    @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(transcripts(reasoning, max_turns=2))
    def passes(history: list[Message]) -> None:
        proxy.asked()
        answer = ask(adapter, ModelRequest("s", history, tools("find", "add")))
        assume(not (isinstance(answer.error, InvalidRequest) and answer.error.status is None))  # refused by ourselves
        assert (answer.error, answer.text) == (None, "Sunny and 3.")
        (body,) = proxy.asked()
        called = [call["id"] for each in body["messages"] for call in each.get("tool_calls") or ()]
        assert called == [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]

    passes()
