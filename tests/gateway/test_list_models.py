"""`list_models`: what each dialect tells, page by page, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

import pytest

from gotato_gateway import Adapter, AnthropicMessages, Gemini, ModelInfo, OpenAIChat, OpenAIResponses, list_models
from gotato_gateway._dialect import Dialect
from gotato_gateway._openai_request import chat_body
from gotato_gateway._openai_stream import ChatDecoder
from gotato_gateway._providers import OPENAI
from gotato_py import (
    AuthenticationFailed,
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    InvalidArgument,
    InvalidRequest,
    ModelError,
    NotSupported,
    Overloaded,
    RateLimited,
    Scope,
)

from .answers import local
from .server import Received, Reply, Server

KEY = "sk-test-0123456789"


def said(answer: object, status: int = 200, **headers: str) -> Reply:
    """An answer in JSON."""
    body = json.dumps(answer).encode()
    return Reply([body], status, {"Content-Type": "application/json", **headers}, "length")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"object": "list", "data": [{"id": "gpt-5"}, {"id": "o3"}]}, [ModelInfo("gpt-5"), ModelInfo("o3")]),
        ({"data": []}, []),
        # OpenRouter, Groq, Mistral, vLLM, llama.cpp, Together's bare array
        (
            {"data": [{"id": "a/b", "context_length": 1000, "top_provider": {"max_completion_tokens": 200}}]},
            [ModelInfo("a/b", 1000, 200)],
        ),
        (
            {"data": [{"id": "x", "context_window": 131072, "max_completion_tokens": 32768}]},
            [ModelInfo("x", 131072, 32768)],
        ),
        ({"data": [{"id": "x", "max_context_length": 32768}]}, [ModelInfo("x", 32768)]),
        ({"data": [{"id": "x", "max_model_len": 4096}]}, [ModelInfo("x", 4096)]),
        ({"models": [{"name": "x"}], "data": [{"id": "x", "meta": {"n_ctx_train": 8192}}]}, [ModelInfo("x", 8192)]),
        ([{"id": "x", "context_length": 1000}], [ModelInfo("x", 1000)]),
        # what nobody can use
        ({"data": [{"id": ""}, {"id": None}, {"id": 3}, {}, "x", None, {"id": "x"}]}, [ModelInfo("x")]),
        ({"data": [{"id": "x", "context_length": 0, "max_completion_tokens": "many"}]}, [ModelInfo("x")]),
        ({"data": [{"id": "x", "context_length": None, "top_provider": None, "meta": []}]}, [ModelInfo("x")]),
        ({"data": [{"id": "x"}, {"id": "x"}]}, [ModelInfo("x")]),
    ],
)
@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_openai_lists(adapter: type[Adapter], answer: object, expected: list[ModelInfo]) -> None:
    """The list of OpenAI and of the servers that are like it, with the limits that they add."""
    with Server(said(answer)) as server:
        assert local(server.url, adapter).list_models() == expected
    (received,) = server.received
    assert (received.path, received.body) == ("/v1/models", b"")
    assert received.headers["authorization"] == f"Bearer {KEY}"


def test_anthropic_lists_page_by_page() -> None:
    """Each page asks for what comes behind the last, with the version header and the key."""
    pages: Mapping[str, object] = {
        "": {
            "data": [{"type": "model", "id": "claude-b", "max_input_tokens": 200_000, "max_tokens": 64_000}],
            "has_more": True,
            "last_id": "claude b&",
        },
        "claude b&": {"data": [{"id": "claude-a", "display_name": "A"}], "has_more": False, "last_id": "claude-a"},
    }

    def behave(received: Received) -> Reply:
        asked = parse_qs(urlsplit(received.path).query)
        assert asked["limit"] == ["1000"]
        return said(pages[asked.get("after_id", [""])[0]])

    with Server(behave) as server:
        found = local(server.url.removesuffix("/v1"), AnthropicMessages).list_models()
    assert found == [ModelInfo("claude-b", 200_000, 64_000), ModelInfo("claude-a")]
    assert {urlsplit(received.path).path for received in server.received} == {"/v1/models"}
    assert {received.headers["x-api-key"] for received in server.received} == {KEY}
    assert {received.headers["anthropic-version"] for received in server.received} == {"2023-06-01"}
    assert server.connections == 1


def test_gemini_lists_page_by_page() -> None:
    """Names lose their "models/", and the key is in a header."""
    pages: Mapping[str, object] = {
        "": {
            "models": [{"name": "models/gemini-2.5-pro", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}],
            "nextPageToken": "t/1",
        },
        "t/1": {},
    }

    def behave(received: Received) -> Reply:
        return said(pages[parse_qs(urlsplit(received.path).query).get("pageToken", [""])[0]])

    with Server(behave) as server:
        found = local(server.url.removesuffix("/v1"), Gemini).list_models()
    assert found == [ModelInfo("gemini-2.5-pro", 1048576, 65536)]
    assert {urlsplit(received.path).path for received in server.received} == {"/v1beta/models"}
    assert all(KEY not in received.path for received in server.received)


@pytest.mark.parametrize(
    "answer", [{"data": [{"id": "x"}], "has_more": True}, {"data": [], "has_more": True, "last_id": "x"}]
)
def test_pages_without_end_end(answer: object) -> None:
    """A server that has always more, or the same page again, does not hold the caller."""
    with Server(said(answer)) as server:
        local(server.url.removesuffix("/v1"), AnthropicMessages).list_models()
    assert len(server.received) <= 2


def test_a_server_that_makes_up_pages_is_given_up() -> None:
    """No provider has a hundred pages."""
    numbers = iter(range(10_000))

    def behave(received: Received) -> Reply:
        return said({"models": [{"name": "x"}], "nextPageToken": str(next(numbers))})

    with Server(behave) as server:
        assert local(server.url.removesuffix("/v1"), Gemini).list_models() == [ModelInfo("x")]
    assert len(server.received) == 100


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (said({"error": {"message": f"wrong key {KEY}"}}, 401), AuthenticationFailed),
        (said({"error": {"message": "slow down"}}, 429, **{"Retry-After": "7"}), RateLimited),
        (said({"detail": "Not Found"}, 404), InvalidRequest),
        (said({}, 503), Overloaded),
        (said({"error": {"message": "rate limit", "code": "rate_limit_exceeded"}}), RateLimited),
        (said("hello"), Overloaded),
        (said({"data": "none"}), Overloaded),
        (Reply([b"<html>sign in</html>"]), Overloaded),
        (Reply([b"not json"]), Overloaded),
        (Reply([], 302, {"Location": "http://127.0.0.1:9/"}, "length"), InvalidRequest),
        (Reply([b'{"data": ['], then="cut"), ConnectionFailed),
    ],
)
def test_failures_are_typed(reply: Reply, kind: type[ModelError]) -> None:
    """What can fail is told as `stream` tells it, and the key is in no message."""
    with Server(reply) as server, pytest.raises(kind) as caught:
        local(server.url).list_models()
    assert KEY not in str(caught.value)
    assert caught.value.provider
    if kind is RateLimited and caught.value.status == 429:
        assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("adapter", [AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses])
def test_what_is_no_list_is_a_failure(adapter: type[Adapter]) -> None:
    """An object of another kind is not taken for an empty list."""
    with Server(said({"status": "fine"})) as server, pytest.raises(ModelError):
        local(server.url, adapter).list_models()


def test_an_ended_scope_sends_nothing() -> None:
    """A scope that has ended is raised, and nothing is sent."""
    scope = Scope()
    scope.cancel()
    with Server(said({"data": []})) as server, pytest.raises(Cancelled):
        local(server.url).list_models(scope)
    assert server.connections == 0


def test_the_deadline_ends_it() -> None:
    """A server that is silent is left when the time has passed."""
    with Server(Reply([b'{"data": ['], then="stall")) as server, pytest.raises(DeadlineExceeded):
        local(server.url).list_models(Scope(timeout=0.05))


def test_a_dialect_without_a_list_says_so() -> None:
    """An adapter whose dialect cannot list raises `NotSupported`."""

    class Bare(Adapter):
        """A dialect of the tests."""

        _dialect = Dialect("bare", OPENAI, path=lambda model: "x", body=chat_body, decoder=ChatDecoder)

    with pytest.raises(NotSupported, match="Bare"):
        local("http://127.0.0.1:9/v1", Bare).list_models()


def test_a_provider_is_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`list_models("openai")` needs no model's name; what is no provider's name is refused."""
    with Server(said({"data": [{"id": "gpt-5"}]})) as server:
        assert list_models("openai", base_url=server.url, api_key="k") == [ModelInfo("gpt-5")]
    for wrong in ("openai:gpt-5", "nobody", "", None):
        with pytest.raises(InvalidArgument, match="groq"):
            list_models(wrong)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match="OPENAI_API_KEY"):
        list_models("openai")
