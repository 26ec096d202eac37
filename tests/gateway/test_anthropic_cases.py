"""The wire cases in Anthropic's dialect: its own, and its part of the shared ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gotato_gateway import AnthropicMessages
from gotato_py import (
    InvalidRequest,
    Overloaded,
    ReasoningDone,
    Scope,
    ToolCall,
)

from .answers import Answer, ask, local
from .anthropic_stream import START, end, events, text
from .cases import Case, answer_to, check_error, check_events, load, variants
from .server import Reply, Server
from .test_cases_errors import FixedTime


def own_variants(shared: Path, number: str) -> Iterator[tuple[str, Case, Case, Case]]:
    """The case and each of its variants of this dialect."""
    case = load(shared, number)
    for name, variant, expect in variants(case, "anthropic"):
        yield name, variant, expect, case


def answered(variant: Case, case: Case) -> Answer:
    """What the adapter makes of a variant."""
    return answer_to(variant, case, AnthropicMessages)


def test_16_no_arguments_are_an_empty_object(shared: Path) -> None:
    """A call without any piece of arguments has `{}`."""
    for name, variant, expect, case in own_variants(shared, "16"):
        if name == "c-anthropic":
            check_events(answered(variant, case), expect, name)


def test_17_input_in_the_start_block(shared: Path) -> None:
    """Text and input given whole in the start count; the usual `{}` there is a placeholder."""
    for name, variant, expect, case in own_variants(shared, "17"):
        check_events(answered(variant, case), expect, name)


def test_28_words_for_the_end(shared: Path) -> None:
    """A full window cuts the answer, a pause is no end, a refusal is a filter."""
    seen = 0
    for name, variant, expect, case in own_variants(shared, "28"):
        check_events(answered(variant, case), expect, name)
        seen += 1
    assert seen == 3


def test_41_omitted_and_redacted_thinking(shared: Path) -> None:
    """Each block of thinking gives its own end, also one without words; a redacted one says so."""
    for name, variant, expect, case in own_variants(shared, "41"):
        answer = answered(variant, case)
        wanted = [each.pop("redacted", False) for each in expect["events"] if each["type"] == "reasoning_done"]
        check_events(answer, expect, name)
        closed = [event for event in answer.events if isinstance(event, ReasoningDone)]
        assert [event.redacted for event in closed] == wanted
        assert {event.origin for event in closed} == {"anthropic:m"}


@pytest.mark.parametrize("number", ["52", "53"])
def test_refusals(shared: Path, number: str) -> None:
    """An overflow and a lack of money are told from everything that looks like them."""
    case = load(shared, number)
    for name, variant, expect in variants(case, "anthropic"):
        with Server(_reply(variant)) as server:
            answer = ask(local(server.url, AnthropicMessages))
        check_error(answer.error, expect, name)
        assert answer.events == []


def _reply(variant: Case) -> Reply:
    http = variant["http"]
    return Reply([http["body"].encode()], http["status"], http["headers"], "length")


def test_49_retry_after_in_all_forms(shared: Path) -> None:
    """Seconds, dates, milliseconds and words say how long to wait in this dialect too."""
    for name, variant, expect in variants(load(shared, "49"), "anthropic"):
        if name.startswith("g-"):
            expect = expect | {"retryable": expect["auto_retry"]}  # as in the other dialects: a "no" is not retried
        with Server(_reply(variant)) as server:
            scope = Scope(clock=FixedTime("2026-01-05T10:00:00+00:00"))
            check_error(ask(local(server.url, AnthropicMessages), scope=scope).error, expect, name)


def test_56_http_200_with_a_json_body(shared: Path) -> None:
    """An error, a message in one piece, nothing and a page of somebody else are told apart."""
    for name, variant, expect, _ in own_variants(shared, "56"):
        if "events" in expect:
            continue  # a completion of the other dialect
        with Server(_reply(variant)) as server:
            check_error(ask(local(server.url, AnthropicMessages)).error, expect, name)


def test_56_a_message_in_one_piece() -> None:
    """A proxy that does not stream gives the whole message, which means the same."""
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ]
    message = START["message"] | {"content": blocks, "stop_reason": "tool_use"}
    headers = {"content-type": "application/json"}
    with Server(Reply([json.dumps(message).encode()], headers=headers, framing="length")) as server:
        answer = ask(local(server.url, AnthropicMessages))
    assert (answer.reasoning, answer.text) == ("hm", "Hi")
    assert answer.calls == [ToolCall("toolu_1", "f", '{"a":1}')]
    assert answer.done.stop_reason == "tool_calls"


def test_61_lost_in_mid_stream() -> None:
    """What came before a cut is given, then a ConnectionFailed; after the stop reason nothing is lost any more."""
    for then, last, fails in (("reset", [], True), ("cut", [], True), ("cut", [end()], False)):
        said = [START, *text("Half")[:-1], *last]
        with Server(Reply(events(*said), gap=0.01, then=then)) as server:  # type: ignore[arg-type]  # one of Then
            answer = ask(local(server.url, AnthropicMessages))
        assert answer.text == "Half"
        assert (answer.error is not None) is fails
        assert answer.error is None or (answer.error.code == "connection_failed" and answer.error.retryable)


def test_62_pings_keep_the_connection() -> None:
    """A ping is no answer and no harm, and any byte starts the silence anew."""
    ping = events({"type": "ping"})
    pieces = [*events(START), *ping * 5, *events(*text("Hi"), end(), {"type": "message_stop"})]
    with Server(Reply(pieces, gap=0.25)) as server:  # 2.5 s in all
        assert ask(local(server.url, AnthropicMessages, idle_timeout=2.0)).text == "Hi"


def test_79_a_redirect_does_not_take_the_key_along(shared: Path) -> None:
    """A redirect is an error that names itself, and no second request is sent."""
    case = load(shared, "79")
    with Server(Reply(status=302, headers=case["input"]["http"]["headers"], framing="length")) as server:
        error = ask(local(server.url, AnthropicMessages)).error
    assert isinstance(error, InvalidRequest)
    assert (error.status, error.retryable) == (302, False)
    assert "redirect" in str(error)
    assert len(server.received) == 1


def test_80_netrc_does_not_replace_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `.netrc` for the host adds no credential of its own."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n", "utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Server(Reply(events(START, *text("Hi"), end()))) as server:
        ask(local(server.url, AnthropicMessages))
    headers = server.received[0].headers
    assert (headers.get("x-api-key"), headers.get("authorization")) == ("sk-test-0123456789", None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("overloaded_error", Overloaded), ("api_error", Overloaded), ("invalid_request_error", InvalidRequest)],
)
def test_an_error_inside_the_stream(kind: str, expected: type[Exception]) -> None:
    """An error event ends the answer with its own type, whatever came before."""
    said = {"type": "error", "error": {"type": kind, "message": "No luck"}, "request_id": "req_9"}
    with Server(Reply(events(START, *text("Half"), said))) as server:
        answer = ask(local(server.url, AnthropicMessages))
    assert type(answer.error) is expected
    assert answer.error is not None
    assert answer.error.request_id == "req_9"
    assert "No luck" in str(answer.error)
    assert answer.text == "Half"
