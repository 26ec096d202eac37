"""Wire cases 49 to 61: refusals in every form, as typed errors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gotato_py import Clock, ConnectionFailed, ContentFiltered, ModelError, Scope, SystemClock

from .answers import ask, local
from .cases import Case, answer_to, check_error, check_events, load, variants
from .server import Reply, Server, refusing_port


class FixedTime:
    """A clock that says one time of day; its durations are real."""

    def __init__(self, now: str) -> None:
        self._now = datetime.fromisoformat(now).astimezone(UTC).timestamp()
        self._clock: Clock = SystemClock()

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wait(self, scope: Scope, seconds: float) -> bool:
        return self._clock.wait(scope, seconds)


def error_for(variant: Case, **options: Any) -> ModelError:
    """The error that an adapter raises for a refusal."""
    with Server(_reply(variant)) as server:
        answer = ask(local(server.url, **options), scope=Scope(clock=FixedTime("2026-01-05T10:00:00+00:00")))
    assert answer.error is not None
    assert answer.events == []
    return answer.error


def _reply(variant: Case) -> Reply:
    http = variant["http"]
    return Reply([http["body"].encode()], http["status"], http["headers"], "length")


def test_49_retry_after_in_all_forms(shared: Path) -> None:
    """Seconds, dates, milliseconds, reset headers and words all say how long to wait; nonsense says nothing."""
    for name, variant, expect in variants(load(shared, "49")):
        if name.startswith("g-"):
            # The case has two flags, "may work later" and "repeat by itself". The contract has one, which the kernel
            # acts on, so a server that says "do not retry" makes the error one that is not retried.
            expect = expect | {"retryable": expect["auto_retry"]}
        check_error(error_for(variant), expect, name)


def test_50_delay_in_the_body(shared: Path) -> None:
    """The delay that Google puts into the body counts, and makes the same words a rate limit instead of money."""
    for name, variant, expect in variants({**load(shared, "50"), "dialect": "any"}):
        check_error(error_for(variant), expect, name)


def test_52_context_overflow_in_every_dialect(shared: Path) -> None:
    """An overflow is recognised in every server's words, and nothing else is taken for one."""
    for name, variant, expect in variants(load(shared, "52")):
        check_error(error_for(variant), expect, name)


def test_52_an_overflow_tells_the_sizes(shared: Path) -> None:
    """Where the message has both, the limit and the size of the request are facts of the error."""
    found = {name: error_for(variant).details for name, variant, _ in variants(load(shared, "52"))}
    sizes = {name: (d.get("limit_tokens"), d.get("requested_tokens")) for name, d in found.items()}
    assert sizes["openai-chat"] == (128000, 204308)
    assert sizes["anthropic"] == sizes["litellm-wrapped"] == (200000, 213462)
    assert sizes["llama.cpp"] == sizes["llama.cpp-behind-fastapi"] == (8192, 9412)
    assert sizes["gemini"] == (1048575, 1196265)
    assert sizes["xai"] == (131072, 537812)
    assert sizes["anthropic-max_tokens-part"] == (200000, 190000)
    assert sizes["openai-responses"] == sizes["cerebras-no-body"] == (None, None)


def test_53_money_in_three_shapes(shared: Path) -> None:
    """Money is recognised as 400, 402 and 429, and a real rate limit is not taken for it."""
    for name, variant, expect in variants(load(shared, "53")):
        check_error(error_for(variant), expect, name)


def test_56_http_200_with_a_json_body(shared: Path) -> None:
    """A 200 without a stream is what its body says: an error, a whole completion, nothing, or somebody else's page."""
    case = load(shared, "56")
    for name, variant, expect in variants(case):
        if "events" in expect:
            check_events(answer_to(variant, case), expect, name)
        else:
            check_error(error_for(variant), expect, name)


def test_58_error_body_shapes(shared: Path) -> None:
    """Strings, lists, nulls and JSON inside JSON are all read, and never crash the reader."""
    for name, variant, expect in variants(load(shared, "58")):
        check_error(error_for(variant), expect, name)


def test_59_azure_content_filter(shared: Path) -> None:
    """A prompt that the provider filtered is ContentFiltered, and says which filter it was."""
    case = load(shared, "59")
    error = error_for(case["input"])
    assert type(error) is ContentFiltered
    assert (error.status, error.request_id, error.retryable) == (400, "a-1", False)
    assert error.details["filtered"] == ("violence",)


@pytest.mark.parametrize(
    ("then", "status", "said"),
    [("reset", 0, "before it answered"), ("cut", 0, "before it answered"), ("cut", 200, "in the middle")],
)
def test_61_lost_before_the_first_event(then: str, status: int, said: str) -> None:
    """A connection that is reset or closed before the headers, or right after them, is ConnectionFailed."""
    with Server(Reply(status=status, then=then)) as server:  # type: ignore[arg-type]  # one of Then
        answer = ask(local(server.url))
    assert type(answer.error) is ConnectionFailed
    assert answer.error.retryable
    assert said in str(answer.error)


@pytest.mark.parametrize("variant", ["c", "d", "e"])
def test_61_lost_in_mid_stream(shared: Path, variant: str) -> None:
    """A stream that is reset, cut or silent gives what came, then a ConnectionFailed that may be retried."""
    case = load(shared, "61")
    given = next(each for each in case["input"]["variants"] if each["name"].startswith(variant))
    then = {"c": "reset", "d": "cut", "e": "stall"}[variant]
    reply = Reply([piece.encode() for piece in given["stream_chunks"]], gap=0.05, then=then)  # type: ignore[arg-type]
    with Server(reply) as server:
        # As much patience as all that comes needs on a machine that stalls.
        answer = ask(local(server.url, idle_timeout=2.0))
    check_events(answer, case["expect"]["each"][variant], given["name"])


def test_61_no_headers_in_time() -> None:
    """A server that accepts and says nothing for `idle_timeout` is ConnectionFailed."""
    with Server(Reply(status=0, then="stall")) as server:
        answer = ask(local(server.url, idle_timeout=0.3))
    assert type(answer.error) is ConnectionFailed
    assert answer.error.retryable
    assert "in time" in str(answer.error)


def test_61_wrong_host() -> None:
    """A name that does not resolve is ConnectionFailed."""
    answer = ask(local("http://nowhere.invalid/v1"))
    assert type(answer.error) is ConnectionFailed
    assert answer.error.retryable
    assert "nowhere.invalid" in str(answer.error)


def test_61_refused() -> None:
    """A port where nobody listens is ConnectionFailed, with the system's error as its cause."""
    with refusing_port() as port:
        answer = ask(local(f"http://127.0.0.1:{port}/v1"))
    assert type(answer.error) is ConnectionFailed
    assert isinstance(answer.error.cause, ConnectionRefusedError)
    assert "refused" in str(answer.error)
