"""Refusals and lost connections that no wire case covers, as typed errors."""

from __future__ import annotations

import json
import time

import pytest
import requests

from gotato_gateway._error_body import read_error_body
from gotato_gateway._errors import Origin, refusal
from gotato_py import ConnectionFailed, ContextOverflow, InvalidRequest, QuotaExhausted, RateLimited

from .answers import ask, local
from .recordings import ADAPTERS
from .server import EVENT_STREAM, Reply, Server, refusing_port, unanswered_port


def test_no_connection_in_time() -> None:
    """A host that does not answer the connect within `connect_timeout` is ConnectionFailed."""
    with unanswered_port() as port:
        started = time.monotonic()
        answer = ask(local(f"http://127.0.0.1:{port}/v1", connect_timeout=0.2))
        assert 0.19 < time.monotonic() - started < 10
    assert type(answer.error) is ConnectionFailed
    assert "within 0.2 s" in str(answer.error)


def test_a_request_larger_than_a_limit_per_minute_is_invalid() -> None:
    """A request that no waiting can make fit is InvalidRequest, though the server calls it a rate limit."""
    said = (
        b'{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000",'
        b'"type":"tokens","code":"rate_limit_exceeded"}}'
    )
    for status in (413, 429):
        error = refusal(status, {}, read_error_body(said), Origin("groq"), 0.0)
        assert (error.code, error.retryable) == ("invalid_request", False)


def test_output_that_the_provider_refuses_is_a_protocol_error() -> None:
    """Groq's refusal of the model's own call may be retried: the next answer can be another."""
    said = b'{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<x>"}}'
    error = refusal(400, {}, read_error_body(said), Origin("groq"), 0.0)
    assert (error.code, error.retryable) == ("model_protocol_failure", True)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "authentication_failed"),
        (408, "overloaded"),
        (409, "overloaded"),
        (502, "overloaded"),
        (529, "overloaded"),
        (404, "invalid_request"),
        (422, "invalid_request"),
        (401, "authentication_failed"),
    ],
)
def test_a_status_alone_decides_where_nothing_else_does(status: int, code: str) -> None:
    """A refusal without a body is classified by its status."""
    assert refusal(status, {}, read_error_body(b""), Origin("p"), 0.0).code == code


def test_an_html_page_of_a_proxy_is_named() -> None:
    """A 502 page of a proxy is Overloaded, and its HTML is not in the message."""
    error = refusal(502, {}, read_error_body(b"<html>secret page</html>"), Origin("p"), 0.0)
    assert (error.code, error.retryable) == ("overloaded", True)
    assert "HTML" in str(error)
    assert "secret page" not in str(error)


def test_an_endless_error_body_is_not_read_to_its_end() -> None:
    """Of a refusal's body only the beginning is read."""
    with Server(Reply((b"x" * 8192 for _ in range(10_000)), 500, EVENT_STREAM)) as server:
        answer = ask(local(server.url))
    assert answer.error is not None
    assert answer.error.status == 500


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"[1]",
        b'{"error":[[[[[[["x"]]]]]]]}',
        b"\xff\xfe",
        b'{"error":{"message":{"a":1}}}',
        b"[" * 100_000,
    ],
)
def test_no_body_breaks_the_reader(body: bytes) -> None:
    """Whatever a body is, reading it gives an error of the status."""
    assert refusal(500, {}, read_error_body(body), Origin("p"), 0.0).code == "overloaded"


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (
            b'{"error": {"message": "proxy: {\\"error\\": {\\"message\\": \\"prompt is too long\\"}}. Group=x"}}',
            "context_overflow",
            "prompt is too long",
        ),
        (
            b'data: {"error": {"message": "no credits", "code": "insufficient_quota"}}\n\n',
            "quota_exhausted",
            "no credits",
        ),
        (
            b'{"error": {"message": "Provider error", "metadata": {"raw": "{\\"message\\": \\"too cold\\"}"}}}',
            "invalid_request",
            "too cold",
        ),
        (b'{"error": {"message": "flagged", "metadata": {"reasons": ["x"]}}}', "content_filtered", "flagged"),
        (b'{"errors": [{"message": "first"}, {"message": "second"}]}', "invalid_request", "first"),
        (
            b'{"message": "odd {thing", "details": {"error_code": "enforced_spend_limit_reached"}}',
            "quota_exhausted",
            "odd",
        ),
        (b"plain words", "invalid_request", "plain words"),
        (b"{broken", "invalid_request", "{broken"),
        (b"", "invalid_request", "did not say why"),
    ],
)
def test_what_a_body_says_is_found(body: bytes, code: str, said: str) -> None:
    """The innermost message and the codes are found behind proxies, in lists, in streams and in plain text."""
    error = refusal(400, {}, read_error_body(body), Origin("p"), 0.0)
    assert error.code == code
    assert said in str(error)


def test_unusable_proxy_settings_are_no_bad_luck() -> None:
    """A proxy that no request can be sent to is InvalidRequest, and its URL with its password is not shown."""
    with requests.Session() as session:
        session.proxies = {"http": "http://user:hunter22@[broken"}
        error = ask(local("http://127.0.0.1:9/v1", session=session)).error
    assert type(error) is InvalidRequest
    assert "hunter22" not in str(error)


def test_a_proxy_that_is_not_there_may_come_back() -> None:
    """A proxy that refuses the connection is ConnectionFailed, and is named as the proxy."""
    with refusing_port() as port, requests.Session() as session:
        session.proxies = {"http": f"http://127.0.0.1:{port}"}
        error = ask(local("http://api.example.test/v1", session=session)).error
    assert type(error) is ConnectionFailed
    assert error.retryable
    assert "proxy" in str(error)


@pytest.mark.parametrize(
    ("message", "param", "sizes"),
    [
        ("The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure", "", True),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 40000 `inputs` tokens",
            "max_tokens",
            True,
        ),
        ("Input validation error: `inputs` must have less than 32768 tokens. Given: 40000", "", False),
        ("Invalid request: Your request exceeded model token limit: 32768 (requested: 40000)", "", True),
    ],
    ids=["vllm", "together", "tgi", "moonshot"],
)
def test_an_overflow_in_the_words_of_a_server(message: str, param: str, sizes: bool) -> None:
    """Each server's own words for a request that is too long are ContextOverflow, with the sizes that they tell."""
    body = json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param}})
    error = refusal(400, {}, read_error_body(body.encode()), Origin("p"), 0.0)
    assert type(error) is ContextOverflow
    told = error.details.get("limit_tokens"), error.details.get("requested_tokens")
    assert told == ((32768, 40000) if sizes else (None, None))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, "Your newly created team doesn't have any credits yet. You can purchase credits on https://x"),
        (429, {"code": 429, "message": "Your prepayment credits are depleted.", "status": "RESOURCE_EXHAUSTED"}),
        (403, {"message": "The free tier of the model has been exhausted.", "code": "AllocationQuota.FreeTierOnly"}),
        (400, {"message": "Budget has been exceeded!", "type": "budget_exceeded", "code": "400"}),
    ],
    ids=["xai", "gemini", "dashscope", "litellm"],
)
def test_money_in_the_words_of_a_server(status: int, error: object) -> None:
    """An empty account is QuotaExhausted, whatever the status makes it look like."""
    found = refusal(status, {}, read_error_body(json.dumps({"error": error}).encode()), Origin("p"), 0.0)
    assert type(found) is QuotaExhausted
    assert not found.retryable


def test_headers_that_a_body_repeats() -> None:
    """OpenRouter tells its own limits in the body: the reset of one that is used up is when to ask again."""
    told = {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000030000"}
    body = {"error": {"message": "Rate limit exceeded", "code": 429, "metadata": {"headers": told}}}
    facts = read_error_body(json.dumps(body).encode())
    error = refusal(429, {}, facts, Origin("p"), 1_700_000_000.0)
    assert (type(error), error.retry_after) == (RateLimited, 30.0)
    assert refusal(429, {"retry-after": "2"}, facts, Origin("p"), 1_700_000_000.0).retry_after == 2.0


@pytest.mark.parametrize("dialect", ADAPTERS)
@pytest.mark.parametrize(
    "data",
    [
        "prompt is too long",
        '{"type": "server_error", "message": "prompt is too long"}',
        '{"error": "prompt is too long"}',
    ],
    ids=["words", "typed", "wrapped"],
)
def test_an_event_named_error_is_one(dialect: str, data: str) -> None:
    """In every dialect an event of that name is an error, whatever its data looks like."""
    with Server(Reply([f"event: error\ndata: {data}\n\n".encode()])) as server:
        assert type(ask(local(server.url, ADAPTERS[dialect])).error) is ContextOverflow


def test_an_error_in_a_field_of_its_own() -> None:
    """llama.cpp of 2025 writes an error of its stream behind `error:`, which is no field: it is heard all the same."""
    error = {"code": 400, "message": "the request exceeds the available context size", "type": "server_error"}
    with Server(Reply([b"error: " + json.dumps(error).encode() + b"\n\n", b"data: [DONE]\n\n"])) as server:
        assert type(ask(local(server.url)).error) is ContextOverflow
