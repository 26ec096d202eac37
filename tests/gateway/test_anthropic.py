"""The adapter for Anthropic: what it sends along, how it is made by name, and what the headers tell."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import Any

import pytest

from gotato_gateway import AnthropicMessages, Quirks, connect
from gotato_gateway._retry_after import rate_limits, retry_after
from gotato_py import Agent, InvalidArgument, ModelOptions, ModelRequest, RateLimits, Usage, UserMessage

from .answers import ask, local
from .anthropic_stream import HELLO, START, call, end, events, text
from .server import EVENT_STREAM, Received, Reply, Server

KEY = "sk-ant-api03-Abc123Def456Ghi789"
PROMPT = "My grandmother's recipe for potato soup, which nobody may ever read"
NOW = 1767607200.0  # 2026-01-05T10:00:00Z


def received(**options: Any) -> Received:
    """The request of an adapter as it arrives."""
    with Server(Reply(HELLO)) as server:
        assert ask(local(server.url, AnthropicMessages, **options)).text == "Hello"
    return server.received[0]


def test_a_request_has_key_version_and_place() -> None:
    """The key is in its own header, without a prefix; the version is said; the path stands behind the base URL."""
    request = received(api_key=KEY)
    assert request.path == "/v1/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.json["stream"] is True


def test_the_callers_headers_win() -> None:
    """A token, another version or a beta of the caller's own is what is sent."""
    own = {"Authorization": "Bearer t0ken", "Anthropic-Version": "2026-10-21", "anthropic-beta": "mine"}
    headers = received(api_key=KEY, headers=own).headers
    assert (headers.get("x-api-key"), headers["authorization"]) == (None, "Bearer t0ken")
    assert (headers["anthropic-version"], headers["anthropic-beta"]) == ("2026-10-21", "mine")


def test_headers_of_the_quirks_are_joined_with_the_callers() -> None:
    """A header that both the caller and the quirks have holds both values."""
    quirks = Quirks(extra_headers={"anthropic-beta": "theirs", "x-more": "1"})
    headers = received(headers={"Anthropic-Beta": "mine"}, quirks=quirks).headers
    assert (headers["anthropic-beta"], headers["x-more"]) == ("mine, theirs", "1")


def test_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` makes the adapter, with the key from its variable; without one it says which."""
    with pytest.raises(InvalidArgument, match="ANTHROPIC_API_KEY"):
        connect("anthropic:claude-sonnet-4-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    model = connect("anthropic:claude-sonnet-4-5")
    assert isinstance(model, AnthropicMessages)
    assert model.name == "anthropic:claude-sonnet-4-5"
    assert model.capabilities == {"images", "response_schema"}
    assert AnthropicMessages("claude-opus-4-1").capabilities == {"images"}
    assert AnthropicMessages("m", base_url="http://api.anthropic.com")._auth == {}


def test_rate_limits_come_first() -> None:
    """What the headers say about limits is the first event."""
    headers = {
        **EVENT_STREAM,
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
    }
    with Server(Reply(HELLO, headers=headers)) as server:
        first = ask(local(server.url, AnthropicMessages)).events[0]
    assert first == RateLimits(limit_requests=50, remaining_requests=49)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"tokens-limit": "80000", "tokens-remaining": "1000"}, RateLimits(limit_tokens=80000, remaining_tokens=1000)),
        ({"input-tokens-limit": "40000", "output-tokens-limit": "8000"}, RateLimits(limit_tokens=40000)),
        ({"tokens-limit": "9", "input-tokens-limit": "5"}, RateLimits(limit_tokens=9)),
        ({"requests-reset": "2026-01-05T10:00:30Z"}, RateLimits(reset_requests_s=30.0)),
        ({"requests-reset": "2026-01-05T12:00:30+02:00"}, RateLimits(reset_requests_s=30.0)),
        ({"requests-reset": "2026-01-05T10:00:30"}, RateLimits(reset_requests_s=30.0)),
        ({"tokens-reset": "2026-01-05T09:00:00Z"}, RateLimits(reset_tokens_s=0.0)),
        ({"requests-limit": "many", "requests-reset": "soon"}, None),
        ({}, None),
    ],
)
def test_rate_limits_in_headers(headers: dict[str, str], expected: RateLimits | None) -> None:
    """Counts are numbers, resets are moments; a moment that has passed is now, and nonsense is nothing."""
    named = {f"anthropic-ratelimit-{name}": value for name, value in headers.items()}
    assert rate_limits(named, NOW) == expected


def test_the_reset_of_a_used_up_limit_is_the_time_to_wait() -> None:
    """Without Retry-After, the limits of which nothing remains say when to come again; the last of them counts."""
    limits = {
        "anthropic-ratelimit-requests-remaining": "5",
        "anthropic-ratelimit-requests-reset": "2026-01-05T11:00:00Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-05T10:00:07Z",
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-01-05T10:00:05Z",
    }
    assert retry_after(limits, NOW) == 7.0
    assert retry_after({**limits, "retry-after": "3"}, NOW) == 3.0


@pytest.mark.parametrize("status", [200, 400, 401, 529])
def test_no_error_holds_the_key_or_the_prompt(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a server quotes, neither message, traceback, pickle nor log of the error shows it."""
    caplog.set_level(logging.DEBUG)
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": f"{KEY} asked: {PROMPT}"}}
    pieces = events(START, said) if status == 200 else [json.dumps(said).encode()]
    with Server(Reply(pieces, status)) as server:
        model = local(server.url, AnthropicMessages, api_key=KEY)
        error = ask(model, ModelRequest(PROMPT, (UserMessage(PROMPT),))).error
    assert error is not None
    shown = "".join(traceback.format_exception(error)) + repr(error) + caplog.text + repr(model)
    shown += repr(pickle.loads(pickle.dumps(error)))
    for piece in (KEY, KEY[:12], KEY[-8:], "grandmother", "potato soup"):
        assert piece not in shown


def test_an_agent_calls_a_tool_and_goes_on() -> None:
    """The whole loop: thinking and call go back with the result, and the answer is the second one."""
    thought = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    first = events(
        START,
        {"type": "content_block_start", "index": 0, "content_block": thought[0]},
        {"type": "content_block_stop", "index": 0},
        *call('{"city": "Oslo"}', index=1, name="weather"),
        end("tool_use"),
    )
    replies = [Reply(first), Reply(events(START, *text("Sunny."), end()))]

    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Sunny in {city}"

    with Server(lambda received: replies[min(len(server.received), 2) - 1]) as server:
        model = local(server.url, AnthropicMessages, model="claude-sonnet-4-5")
        result = Agent(model, tools=[weather], model_options=ModelOptions(reasoning_effort="low")).run("Oslo?")
    assert result.text == "Sunny."
    assert result.usage == Usage(18, 10)
    before, after = (received.json for received in server.received)
    assert after["thinking"] == before["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    marked = {"cache_control": {"type": "ephemeral"}}
    assert after["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                *thought,
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}, **marked},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "Sunny in Oslo"}],
                }
            ],
        },
    ]
