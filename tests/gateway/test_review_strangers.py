"""What a wrong address, a proxy or a careless caller can do to an adapter: a typed error that says what to do."""

from __future__ import annotations

import threading
import time
from importlib.util import find_spec
from typing import Any

import pytest

from gotato_gateway import Gemini, OpenAIChat, Quirks, connect, list_models
from gotato_gateway._retry_after import duration, rate_limits, retry_after
from gotato_gateway._sse import SSEReader
from gotato_gateway._think_tags import Piece, ThinkTags
from gotato_py import (
    ConnectionFailed,
    InvalidArgument,
    InvalidRequest,
    ModelOptions,
    ModelRequest,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    UserMessage,
)

from .answers import ask, local
from .dialects import BEGINNINGS, STREAMS
from .recordings import ADAPTERS
from .server import HELLO, Reply, Server

each_dialect = pytest.mark.parametrize("dialect", ADAPTERS)


@each_dialect
@pytest.mark.parametrize("body", [b"[]", b"{}", b"[[]]", b'{"object":"list","data":[]}', b'{"choices":[]}'])
def test_json_that_is_no_answer(dialect: str, body: bytes) -> None:
    """An answer of something else than the API is told as that, not as an error that the provider reported."""
    with Server(Reply([body], headers={})) as server:
        error = ask(local(server.url, ADAPTERS[dialect])).error
    assert type(error) is Overloaded
    assert "neither an answer nor an error: check base_url" in str(error)


@each_dialect
@pytest.mark.parametrize("body", [b"", b"Ollama is running", b"null", b"123", b'"hi"', b'data: {"hello":1}\n\n'])
@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "", "text/<b>", "text/sk-test-0123456789"])
def test_a_body_without_an_answer(dialect: str, body: bytes, kind: str) -> None:
    """A body that says nothing, or nothing of the dialect, is told by its Content-Type, not by what it says."""
    with Server(Reply([body] if body else [], headers={"Content-Type": kind})) as server:
        error = ask(local(server.url, ADAPTERS[dialect])).error
    assert type(error) is ConnectionFailed
    assert error.status == 200
    assert "check base_url" in str(error)
    assert ("text/plain" if "plain" in kind else "text/" if "sk-" in kind else "without a Content-Type") in str(error)
    assert not any(secret in str(error) for secret in ("Ollama", "hello", "0123456789", "<b>"))


@each_dialect
@pytest.mark.parametrize("other", ADAPTERS)
def test_a_stream_of_another_dialect(dialect: str, other: str) -> None:
    """It says that the server speaks another dialect; one of the own dialect that ends too early was cut off."""
    with Server(Reply(BEGINNINGS[other]("a private word"))) as server:
        error = ask(local(server.url, ADAPTERS[dialect])).error
    assert type(error) is ConnectionFailed
    assert ("cut off" if dialect == other else "text/event-stream that holds no answer of this dialect") in str(error)
    assert "private" not in str(error)


@each_dialect
@pytest.mark.parametrize(
    "body", [b'{"choices": [{"message": {"content": "a private word', b'{"a": "private"}\n{"b": 1}']
)
def test_json_that_is_not_whole(dialect: str, body: bytes) -> None:
    """An answer in one piece that was cut off, or lines of JSON from another API, are not quoted."""
    with Server(Reply([body], headers={"Content-Type": "application/json"})) as server:
        error = ask(local(server.url, ADAPTERS[dialect])).error
    assert type(error) is ConnectionFailed
    assert "base_url" in str(error)
    assert "private" not in str(error)


def test_an_error_in_lines_of_json_keeps_its_kind() -> None:
    """What is no JSON as a whole is searched for the words of an error."""
    body = b'{"error": {"message": "your credit balance is too low"}}\n{}'
    with Server(Reply([body], headers={"Content-Type": "application/json"})) as server:
        assert type(ask(local(server.url)).error) is QuotaExhausted


def test_a_path_that_a_local_server_does_not_have() -> None:
    """LM Studio answers 200 where base_url lacks its `/v1`: that is not retried, and the error says what to check."""
    body = b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}'
    with Server(Reply([body], headers={"Content-Type": "application/json"})) as server:
        error = ask(local(server.url)).error
    assert type(error) is InvalidRequest
    assert "base_url" in str(error)


def test_an_error_in_a_status_of_its_own() -> None:
    """MiniMax tells its errors with status 200 and in members of its own."""
    body = b'{"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}'
    with Server(Reply([body], headers={"Content-Type": "application/json"})) as server:
        assert type(ask(local(server.url)).error) is QuotaExhausted


def test_a_login_page_is_no_error_of_the_provider() -> None:
    """HTML with status 200 is not asked for again, and told as what it is."""
    with Server(Reply([b"<html>sign in</html>"], headers={"Content-Type": "text/html"})) as server:
        error = ask(local(server.url)).error
    assert error is not None
    assert not error.retryable
    assert "answered 200 with an HTML page" in str(error)


def test_a_proxy_that_wants_a_login() -> None:
    """407 is a proxy's word, so it is the proxy's settings that have to be looked at."""
    with Server(Reply([b"no"], 407, {})) as server:
        assert "check the proxy settings" in str(ask(local(server.url)).error)


def test_a_proxy_whose_name_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the proxy that is blamed, not the host behind it; its password is not told."""
    monkeypatch.setenv("https_proxy", "http://user:pr0xypass@proxy.invalid:1")
    error = ask(local("https://api.example.test/v1")).error
    assert str(error) == "the proxy on the way to api.example.test refused or failed"
    assert "pr0xypass" not in repr(error.cause if error else "")


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("http://", "has no host"),
        (":8080", "has no host"),
        ("http://user:pr0xypass@:80", "has no host"),
        ("ftp://proxy.test:1", "no proxy here has"),
        ("socks5://proxy.test:1", "requests[socks]"),
    ],
)
def test_the_url_of_a_proxy_is_wrong(proxy: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told where the proxy is set; its password is not told, and trying again is no use."""
    if said == "requests[socks]" and find_spec("socks"):
        pytest.skip("the package is there")
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    for scheme in ("http", "https"):
        error = ask(local(f"{scheme}://api.example.test/v1")).error
        assert type(error) is ConnectionFailed
        assert not error.retryable
        assert said in str(error)
        assert "pr0xypass" not in f"{error}{error.cause}"


def test_no_thread_to_connect_with() -> None:
    """A system that gives no thread is a connection that failed, which may work later."""
    before = threading.stack_size()
    with Server(Reply(HELLO)) as server:
        model = local(server.url)
        threading.stack_size(2**46)  # more than there is
        try:
            error = ask(model).error
        finally:
            threading.stack_size(before)
        assert type(error) is ConnectionFailed
        assert error.retryable
        assert "thread" in str(error)
        assert not server.received
        assert ask(model).text == "Hello"


def test_certificates_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle that does not exist is a mistake of the caller's, and waiting does not mend it."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    error = ask(local("https://127.0.0.1:9/v1")).error
    assert type(error) is InvalidRequest
    assert "REQUESTS_CA_BUNDLE" in str(error)


@pytest.mark.parametrize("said", ["9" * 400 + "s", "9" * 5000, "1e400", "nan", "inf", "-1", "", " "])
def test_a_wait_without_end_is_no_wait(said: str) -> None:
    """A number that is none, or not finite, says nothing; as a limit it breaks nothing either."""
    assert duration(said) is None
    assert retry_after({"retry-after": said, "retry-after-ms": said}, 0.0, f"try again in {said}", said) is None
    names = [f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")]
    assert rate_limits(dict.fromkeys(names, said), 0.0) is None


def test_a_huge_limit_does_not_break_an_answer() -> None:
    """Headers that no number holds are passed over."""
    headers = {"x-ratelimit-limit-requests": "9" * 400 + "s", "Retry-After": "9" * 400 + "h"}
    with Server(Reply(HELLO, headers=headers)) as server:
        assert ask(local(server.url)).text == "Hello"
    with Server(Reply([], 429, headers)) as server:
        error = ask(local(server.url)).error
    assert type(error) is RateLimited
    assert error.retry_after is None


@pytest.mark.parametrize(
    "date", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_every_date_of_http_is_utc(date: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three forms of RFC 9110 mean one moment, wherever this machine is."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        wait = retry_after({"retry-after": date}, 784111777.0 - 30)
    time.tzset()
    assert wait == 30


@pytest.mark.parametrize("model", ["../../v1/files", "..", ".", "models/../x", "a/./b", "a//b", "/a", "a/"])
def test_a_model_name_stays_in_its_place(model: str) -> None:
    """A name with steps that lead elsewhere is refused, since it would ask another operation with the key."""
    with pytest.raises(InvalidArgument, match="model"):
        Gemini(model, api_key="k" * 20)


@pytest.mark.parametrize("model", ["%2e%2e/x", "a\\..\\b", "ä b", "a?x=1", "a#b", "…", "模型"])
def test_an_odd_model_name_arrives_as_it_is(model: str) -> None:
    """Every other character of a name is quoted, once."""
    with Server(Reply(STREAMS["gemini"]("Hello"))) as server:
        assert ask(local(server.url, Gemini, model=model)).text == "Hello"
    path = server.received[0].path
    assert path.startswith("/v1/v1beta/models/")
    assert path.isascii()
    assert not {"..", "#", "\\"} & set(path.split("/"))


@each_dialect
@pytest.mark.parametrize("model", ["a\ud800", "a\nb", "a\x00", "x\u2028y"])
def test_a_model_name_can_be_printed(dialect: str, model: str) -> None:
    """Control characters and half surrogates are refused when the adapter is made, not in the middle of a run."""
    with pytest.raises(InvalidArgument, match="model must be the name of a model"):
        ADAPTERS[dialect](model, api_key="k" * 20)


@pytest.mark.parametrize("url", [5, b"http://x", "", " ", "http://[::1", "http://h:99999", "ftp://h", "h/v1"])
def test_connect_checks_base_url(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an adapter refuses `connect` refuses too; an empty one is not taken for none."""
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    for make in (lambda: connect("openai:m", base_url=url), lambda: list_models("openai", base_url=url)):
        with pytest.raises(InvalidArgument, match="base_url must be"):
            make()


@each_dialect
@pytest.mark.parametrize(
    "quirks",
    [
        Quirks(extra_headers={"X": "a\nb"}),
        Quirks(extra_headers={"X": 5}),  # type: ignore[dict-item]
        Quirks(extra_headers={"X\n": "a"}),
        Quirks(extra_body=5),  # type: ignore[arg-type]
    ],
)
def test_quirks_are_checked(dialect: str, quirks: Quirks) -> None:
    """What could not be sent is refused when the adapter is made."""
    with pytest.raises(InvalidArgument, match="quirks"):
        local("http://127.0.0.1:9/v1", ADAPTERS[dialect], quirks=quirks)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("value", [float("nan"), object()])
def test_metadata_that_json_cannot_say(dialect: str, value: object) -> None:
    """It is an InvalidRequest before anything is sent, in each dialect that has metadata."""
    request = ModelRequest(messages=(UserMessage("hi"),), options=ModelOptions(metadata={"user_id": value}))
    with Server(Reply(HELLO)) as server:
        error = ask(local(server.url, ADAPTERS[dialect]), request).error
    assert type(error) is InvalidRequest
    assert not server.received


def test_a_header_may_be_latin_1() -> None:
    """Letters that HTTP allows arrive as they are; others are refused by the header's name."""
    with Server(Reply(HELLO)) as server:
        assert ask(local(server.url, headers={"X-Team": "Größe"})).text == "Hello"
    assert server.received[0].headers["x-team"] == "Größe"
    with pytest.raises(InvalidArgument, match="X-Team"):
        OpenAIChat("m", api_key="k" * 20, headers={"X-Team": "模"})


def test_white_space_alone_is_not_held_back_for_ever() -> None:
    """A model that says nothing but line breaks is heard, though a tag might still come."""
    tags = ThinkTags()
    said = [piece for _ in range(1000) for piece in tags.feed("\n")]
    assert said[0] == Piece(False, "\n" * 101)
    assert sum(len(piece.text) for piece in said) == 1000


def test_braces_without_an_error_are_not_read_again_and_again() -> None:
    """Lines that might each end a bare error object are given up together; an error after them is found."""
    reader = SSEReader()
    assert reader.feed(b'{"a":\n' + b"}\n" * 100) == []
    (event,) = reader.feed(b'{"error": {"code": 503}}\n')
    assert event.event == "error"
