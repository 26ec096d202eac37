"""The Gemini adapter as users see it: where it asks, with which key, and what refusals become."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from pathlib import Path

import pytest

from gotato_gateway import Gemini, Quirks, connect
from gotato_py import (
    ConnectionFailed,
    ContentFiltered,
    InvalidArgument,
    InvalidRequest,
    ModelError,
    Overloaded,
    RateLimited,
    Usage,
)

from .answers import Answer, ask, local
from .cases import check_error, load, variants
from .server import Reply, Server, pieces_of, refusing_port, sse
from .test_cases_errors import error_for
from .test_gemini_stream import chunk

KEY = "AIzaTESTKEY-0000000000000000000000000000"
HELLO = sse(chunk({"text": "Hello"}, finish="STOP"), done=False)
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-flash", "/v1/v1beta/models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "/v1/v1beta/models/gemini-2.5-flash"),
        ("vendor/some:free", "/v1/v1beta/models/vendor/some:free"),
        ("tunedModels/mine", "/v1/v1beta/tunedModels/mine"),
        ("publishers/google/models/gemini-2.5-flash", "/v1/v1beta1/publishers/google/models/gemini-2.5-flash"),
        ("a?key=b#c d", "/v1/v1beta/models/a%3Fkey%3Db%23c%20d"),
    ],
)
def test_where_a_model_is_asked(model: str, path: str) -> None:
    """A name and a resource name lead to the same place, over SSE, with the key in a header and in no URL."""
    with Server(Reply(HELLO)) as server:
        assert ask(local(server.url, Gemini, model=model, api_key=KEY)).text == "Hello"
    (received,) = server.received
    assert received.path == f"{path}:streamGenerateContent?alt=sse"
    assert received.headers["x-goog-api-key"] == KEY
    assert "authorization" not in received.headers


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """GOOGLE_API_KEY goes before GEMINI_API_KEY, as in the official SDK; a proxy gets it too, and none is an error."""
    with pytest.raises(InvalidArgument, match="GOOGLE_API_KEY"):
        Gemini("gemini-2.5-flash")
    with pytest.raises(InvalidArgument, match="GOOGLE_API_KEY"):
        connect("gemini:gemini-2.5-flash")
    monkeypatch.setenv("GEMINI_API_KEY", "second")
    with Server(Reply(HELLO)) as server:
        ask(Gemini("m", base_url=server.url))
        monkeypatch.setenv("GOOGLE_API_KEY", "first")
        ask(connect("gemini:m", base_url=server.url))
    assert [received.headers["x-goog-api-key"] for received in server.received] == ["second", "first"]


def test_what_it_says_of_itself() -> None:
    """Its name; and no schema beside tools for models that take one only without."""
    model = connect("gemini:gemini-3-pro-preview", api_key=KEY)
    assert isinstance(model, Gemini)
    assert model.name == "gemini:gemini-3-pro-preview"
    assert model.capabilities == {"images", "response_schema"}
    assert Gemini("gemini-2.5-pro", api_key=KEY).capabilities == {"images"}
    assert KEY not in repr(model)


@pytest.mark.parametrize(
    ("model", "new"),
    [
        ("gemini-2.5-pro", False),
        ("gemini-1.5-flash", False),
        ("models/gemini-3-pro-preview", True),
        ("google/gemini-3.1-flash", True),
        ("gemini-10-pro", True),
        ("gemini-flash-lite-latest", True),
        ("gemma-3", False),
        ("m", False),
    ],
)
def test_quirks_follow_the_generation(model: str, new: bool) -> None:
    """What a generation of models takes is known from the model's name, at any host."""
    quirks = local("http://127.0.0.1:9", Gemini, model=model).quirks
    assert (quirks.thinking == "level") is quirks.result_media is bool(quirks.call_signature) is new
    assert local("http://127.0.0.1:9", Gemini, model=model, quirks=Quirks()).quirks == Quirks()


def whole(*answers: object) -> Answer:
    """What comes of a body that is one JSON array or, of one answer, an object."""
    body = json.dumps(answers[0] if len(answers) == 1 else answers).encode()
    with Server(Reply(pieces_of(body, 1), headers=JSON)) as server:
        return ask(local(server.url, Gemini))


def test_an_answer_without_sse() -> None:
    """One JSON body and an array of chunks, which the API sends without `alt=sse`, are answers too."""
    counted = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}}
    assert whole(chunk({"text": "Hello"}, finish="STOP")).text == "Hello"
    answer = whole(chunk({"text": "Hel"}), chunk({"text": "lo"}, finish="STOP"), counted)
    assert (answer.text, answer.done.usage) == ("Hello", Usage(3, 1))


def test_an_array_that_is_no_answer() -> None:
    """An error in an array is one of its kind, also behind text; an empty or cut array is no answer."""
    error = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    assert type(whole(error, error).error) is Overloaded
    late = whole(chunk({"text": "Hel"}), error)
    assert (late.text, type(late.error)) == ("Hel", Overloaded)
    assert type(whole([]).error) is Overloaded
    assert type(whole(chunk({"text": "Hel"}), chunk({"text": "p"})).error) is ConnectionFailed
    assert type(whole(chunk({"text": "a"}), {"other": 1}).error) is Overloaded


def test_50_delay_in_the_body(shared: Path) -> None:
    """The delay in the body counts, also in an array, and makes the same words a rate limit instead of money."""
    for name, variant, expect in variants(load(shared, "50"), "gemini"):
        check_error(error_for(variant, adapter=Gemini), expect, name)


@pytest.mark.parametrize("number", ["49", "52", "58"])
def test_refusals_are_the_same_in_every_dialect(shared: Path, number: str) -> None:
    """Status, headers and body decide, not the adapter that asked."""
    for name, variant, expect in variants(load(shared, number)):
        wanted = expect | {"retryable": expect["auto_retry"]} if name.startswith("g-") and number == "49" else expect
        check_error(error_for(variant, adapter=Gemini), wanted, name)


@pytest.mark.parametrize("event", ["", "event: error\n"])
def test_an_error_in_the_stream(event: str) -> None:
    """An error object among the events is an error of its kind, with the delay that it names."""
    error = {
        "error": {
            "code": 429,
            "message": "slow down",
            "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}],
        }
    }
    pieces = [*sse(chunk({"text": "Hel"}), done=False), f"{event}data: {json.dumps(error)}\n\n".encode()]
    with Server(Reply(pieces)) as server:
        answer = ask(local(server.url, Gemini))
    assert answer.text == "Hel"
    assert type(answer.error) is RateLimited
    assert answer.error.retry_after == 7.5


def test_an_error_that_is_no_event() -> None:
    """Google ends a stream that it gives up with the bare JSON of its error: that is it, not a lost connection."""
    error = {"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}}
    with Server(Reply([*sse(chunk({"text": "Hel"}), done=False), json.dumps(error, indent=2).encode()])) as server:
        answer = ask(local(server.url, Gemini))
    assert answer.text == "Hel"
    assert type(answer.error) is Overloaded
    assert "overloaded" in str(answer.error)


def test_a_filtered_request_is_an_error() -> None:
    """Where the refusal is an HTTP error, it is ContentFiltered or what its status says."""
    body = {"error": {"code": 400, "message": "blocked by moderation", "status": "content_filter"}}
    with Server(Reply([json.dumps(body).encode()], 400, JSON, "length")) as server:
        assert type(ask(local(server.url, Gemini)).error) is ContentFiltered


def test_77_the_key_is_nowhere_but_in_its_header(shared: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No error, cause, log record or pickle holds the key, whether nobody listens or the server refuses."""
    caplog.set_level(logging.DEBUG)
    case = load(shared, "77")
    key, http = case["input"]["api_key"], case["input"]["variants"][1]["http"]
    errors: list[ModelError] = []
    with Server(Reply([http["body"].encode()], http["status"], http["headers"], "length")) as server:
        errors.append(_error(server.url, key))
    with refusing_port() as port:
        errors.append(_error(f"http://127.0.0.1:{port}/v1", key))
    assert [type(error) for error in errors] == [InvalidRequest, ConnectionFailed]
    assert server.received[0].headers["x-goog-api-key"] == key
    assert key not in server.received[0].path
    for error in errors:
        told = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)
        assert key not in told + caplog.text
        assert key.encode() not in pickle.dumps(error)
        assert type(pickle.loads(pickle.dumps(error))) is type(error)


def _error(url: str, key: str) -> ModelError:
    error = ask(local(url, Gemini, api_key=key)).error
    assert error is not None
    return error


def test_77_a_key_that_the_server_echoes_is_scrubbed() -> None:
    """Google quotes a wrong key; the message goes on without it."""
    body = json.dumps({"error": {"code": 400, "message": f"API key not valid: {KEY}", "status": "INVALID_ARGUMENT"}})
    with Server(Reply([body.encode()], 400, JSON, "length")) as server:
        error = _error(server.url, KEY)
    assert "API key not valid" in str(error)
    assert KEY not in str(error)


def test_79_a_redirect_is_not_followed(shared: Path) -> None:
    """The key goes to no other host."""
    http = load(shared, "79")["input"]["http"]
    with Server(Reply((), http["status"], http["headers"], "length")) as server:
        error = _error(server.url, KEY)
    assert type(error) is InvalidRequest
    assert "redirect" in str(error)
    assert len(server.received) == 1


def test_80_a_netrc_does_not_replace_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its header nor another one comes from a `.netrc`."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Server(Reply(HELLO)) as server:
        ask(local(server.url, Gemini, api_key=KEY))
    assert server.received[0].headers["x-goog-api-key"] == KEY
    assert "authorization" not in server.received[0].headers
