"""How an answer in the responses dialect ends: well, cut off, or with an error of one kind or another."""

from __future__ import annotations

import json
import pickle

import pytest

from gotato_gateway import OpenAIResponses
from gotato_py import (
    ConnectionFailed,
    ContentFiltered,
    InvalidRequest,
    ModelError,
    ModelProtocolError,
    ModelRequest,
    Overloaded,
    RateLimited,
    TextDelta,
    Usage,
    UsageUpdate,
    UserMessage,
)

from .answers import ask, local
from .responses_events import Event, decoded, end, new_decoder, served, text
from .server import Reply, Server, sse


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", Overloaded),
        ("rate_limit_exceeded", RateLimited),
        ("invalid_prompt", ContentFiltered),
        ("image_parse_error", InvalidRequest),
        ("vector_store_timeout", Overloaded),
        ("something_new", Overloaded),
    ],
)
def test_a_failed_response_is_a_typed_error(code: str, kind: type[ModelError]) -> None:
    """`response.failed` and error events are errors of their kind; tokens that were counted are told before."""
    error = {"code": code, "message": "It broke."}
    failed = end("failed", error=error, usage={"input_tokens": 5, "output_tokens": 1})
    answer = served(text("x"), failed)
    assert (type(answer.error), answer.text) == (kind, "x")
    assert "It broke." in str(answer.error)
    assert answer.events[-1] == UsageUpdate(Usage(5, 1))
    named = (
        {"type": "error", **error, "param": None},
        *({"type": each, "error": error} for each in ("error", "response.error")),
    )
    for event in (*named, {"error": error}):
        answer = served(text("x"), event)
        assert type(answer.error) is kind
        assert "It broke." in str(answer.error)


@pytest.mark.parametrize("last", [end("failed"), end("cancelled"), {"type": "response.failed"}])
def test_a_failure_without_a_reason_may_pass(last: Event) -> None:
    """A response that failed and does not say why is Overloaded."""
    assert type(served(last).error) is Overloaded


def test_an_event_named_error_is_one() -> None:
    """An event called error is an error whatever its data looks like."""
    decoder = new_decoder()
    with pytest.raises(Overloaded):
        decoder.feed('{"message": "x"}', "error")


def test_an_event_without_a_type_is_called_by_its_name() -> None:
    """Where the data has no type, the name of the event says what it is."""
    decoder = new_decoder()
    assert decoder.feed('{"delta": "x"}', "response.output_text.delta") == [TextDelta("x")]


def test_only_the_last_event_makes_an_answer() -> None:
    """A body that ends without one was cut off, also behind a `[DONE]`; what comes after the last changes nothing."""
    assert type(decoded(text("x")).error) is ConnectionFailed
    assert type(decoded(text("x"), "[DONE]").error) is ConnectionFailed
    decoder = new_decoder()
    for each, complete in (("[DONE]", False), (json.dumps(end()), True)):
        decoder.feed(each)
        assert decoder.complete is complete
        assert decoder.ended
    answer = decoded(text("x"), end(), end("failed"), "[DONE]")
    assert (answer.text, answer.done.stop_reason) == ("x", "end_turn")


def test_a_completed_event_that_is_none_is_taken_at_its_word() -> None:
    """The status of the response counts, not the name of the event that brings it."""
    last = end() | {"response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}
    assert decoded(text("x"), last).done.stop_reason == "max_tokens"
    unfinished = {"type": "response.incomplete", "response": {"status": "in_progress"}}
    assert decoded(text("x"), unfinished).done.stop_reason == "max_tokens"


def test_data_that_is_no_json_is_a_protocol_error() -> None:
    """Broken JSON is reported without being quoted."""
    answer = decoded("{secret")
    assert isinstance(answer.error, ModelProtocolError)
    assert "secret" not in str(answer.error)


def test_a_response_in_one_piece() -> None:
    """A server that does not stream sends the response itself; one that it is still working on is no answer."""
    output = [
        {"type": "reasoning", "id": "rs", "summary": [{"text": "hm"}], "encrypted_content": "E"},
        {"type": "message", "id": "msg", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    whole = {"id": "resp_1", "object": "response", "status": "completed", "error": None, "output": output}
    for status in ("completed", "queued"):
        with Server(Reply([json.dumps(whole | {"status": status}).encode()], framing="length")) as server:
            answer = ask(local(server.url, OpenAIResponses))
        if status == "completed":
            assert (answer.reasoning, answer.text, answer.done.stop_reason) == ("hm", "x", "tool_calls")
            assert [call.id for call in answer.calls] == ["c"]
        else:
            assert answer.error is not None


def test_an_error_holds_neither_key_nor_prompt() -> None:
    """What a failed response quotes of the request is left out, in the error and in its pickle."""
    prompt, key = "the secret of the soup is nutmeg and patience", "sk-test-0123456789"
    failed = end("failed", error={"code": "invalid_prompt", "message": f"Flagged: '{prompt}' with key {key}."})
    with Server(Reply(sse(failed, done=False))) as server:
        error = ask(local(server.url, OpenAIResponses), ModelRequest(messages=(UserMessage(prompt),))).error
    assert type(error) is ContentFiltered
    told = f"{error!r} {error} {error.details} {pickle.dumps(error)!r}"
    assert "nutmeg" not in told
    assert key not in told
    assert type(pickle.loads(pickle.dumps(error))) is ContentFiltered
