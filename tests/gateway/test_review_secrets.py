"""Secrets in places that are easily forgotten: codes and parameters of an error, log lines, quirks, URLs, files."""

from __future__ import annotations

import base64
import json
import logging
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from gotato_gateway import OpenAIChat, OpenAIResponses, Quirks, load_config
from gotato_py import InvalidArgument, ModelRequest, UserMessage

from .answers import ask, local
from .recordings import ADAPTERS
from .server import HELLO, Reply, Server, chunk, sse

KEY = "sk-test-SECRET-0123456789"
each_dialect = pytest.mark.parametrize("dialect", ADAPTERS)


@each_dialect
def test_no_fact_of_an_error_holds_the_key(dialect: str) -> None:
    """A server may echo the key as code, parameter, filter or request id: none of them shows it, in any case."""
    said = {"code": KEY, "type": KEY.upper(), "param": KEY, "content_filter_result": {KEY: {"filtered": True}}}
    body = json.dumps({"error": {"message": "no", **said}, "request_id": KEY}).encode()
    with Server(Reply([body], 400, {"x-request-id": KEY})) as server:
        error = ask(local(server.url, ADAPTERS[dialect], api_key=KEY)).error
    assert error is not None
    shown = f"{error!r} {error.details} {error.request_id} {pickle.dumps(error)!r}".lower()
    assert "secret-0123" not in shown


def test_no_log_line_holds_the_key_or_the_prompt(caplog: pytest.LogCaptureFixture) -> None:
    """A word that nobody knows, at the end of an answer, is told without what it quotes, and cut."""
    prompt = "my grandmother's recipe for potato soup"
    with Server(Reply(sse(chunk("Hello", f"odd {KEY} {prompt} {'x' * 999}")))) as server:
        answer = ask(local(server.url, api_key=KEY), ModelRequest(messages=(UserMessage(prompt),)))
    assert answer.text == "Hello"
    assert "unknown word 'odd [key]" in caplog.text
    assert KEY not in caplog.text
    assert "potato" not in caplog.text
    assert "x" * 41 not in caplog.text


def test_urllib3_logs_no_key(caplog: pytest.LogCaptureFixture) -> None:
    """What urllib3 logs at DEBUG is host and path: the key is in a header, in every dialect."""
    caplog.set_level(logging.DEBUG)
    for adapter in ADAPTERS.values():
        with Server(Reply(HELLO)) as server:
            ask(local(server.url, adapter, api_key=KEY))
    assert caplog.text.count("POST /v1/") == len(ADAPTERS)
    assert KEY not in caplog.text


def test_a_name_without_a_password_is_a_secret() -> None:
    """Some services take the key as the name in the URL; neither it nor what is sent of both is told again."""
    pair = base64.b64encode(b"hunter22key:").decode()
    reply = Reply([json.dumps({"error": {"message": f"who is hunter22key, or {pair}?"}}).encode()], 401)
    with Server(reply) as server:
        error = ask(OpenAIChat("m", api_key="", base_url=server.url.replace("//", "//hunter22key@"))).error
    assert server.received[0].headers["authorization"] == f"Basic {pair}"
    assert error is not None
    assert str(error).endswith("who is [key], or [key]?")


def test_headers_of_quirks_are_as_secret_as_the_callers() -> None:
    """A credential among them replaces the key, is not shown by repr, and is taken out of what a server says."""
    quirks = Quirks(extra_headers={"Authorization": "Token theirs-0123456"})
    reply = Reply([json.dumps({"error": {"message": "Token theirs-0123456 is unknown"}}).encode()], 401)
    with Server(reply) as server:
        error = ask(local(server.url, api_key=KEY, quirks=quirks)).error
    assert server.received[0].headers["authorization"] == "Token theirs-0123456"
    assert "theirs" not in f"{error} {quirks!r}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('quirks = { extra_headers = { X-Api-Key = "sk-hidden" } }', "X-Api-Key holds a secret"),
        ('quirks = { extra_body = { api_key = "sk-hidden" } }', "api_key holds a secret"),
        ('quirks = { extra_headers = { X-Team = "a\\nsk-hidden" } }', "quirks: extra_headers: the value of header"),
        ('base_url = "https://sk-hidden@llm.example.org/v1"', "base_url holds a password or a key"),
        ('base_url = "https://llm.example.org/v1?sig=sk-hidden"', "base_url holds a password or a key"),
        ('headers = { X-Pass = "sk-hidden" }', "X-Pass holds a secret"),
    ],
)
def test_a_file_holds_no_secret_anywhere(line: str, said: str, tmp_path: Path) -> None:
    """What looks like one is refused wherever it stands, and not printed."""
    file = tmp_path / "config.toml"
    file.write_text(f'[models.house]\nmodel = "openai:m"\n{line}\n')
    with pytest.raises(InvalidArgument) as caught:
        load_config(file)
    assert said in str(caught.value)
    assert "sk-hidden" not in str(caught.value)


def test_azure_gets_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of OpenAI's does not go to a customer's host at Azure, which has a variable of its own."""
    url = "https://mine.openai.azure.com/openai/v1"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    assert OpenAIChat("gpt-5", base_url=url)._auth == {}
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-0123")
    model = OpenAIChat("gpt-5", base_url=url)
    assert model._auth == {"api-key": "azure-0123"}
    assert model.name == "azure:gpt-5"
    assert replace(model.quirks, key_header="") == OpenAIChat("gpt-5").quirks
    assert OpenAIChat("gpt-5", base_url=url.replace("https", "http"))._auth == {}
    for domain in ("openai.azure.us", "cognitiveservices.azure.com", "services.ai.azure.com"):
        assert OpenAIResponses("gpt-5", base_url=f"https://mine.{domain}/openai/v1")._auth == model._auth
    token = {"Authorization": "Bearer a-token-of-entra"}
    assert OpenAIChat("gpt-5", base_url=url, headers=token)._auth == {}  # it takes one of the two


def test_a_key_in_a_header_of_its_own() -> None:
    """A quirk names the header that carries the key, as it is; in an error it is scrubbed as ever."""
    error = Reply([f'{{"error": "no such key: {KEY}"}}'.encode()], 401, {"Content-Type": "application/json"}, "length")
    with Server(error) as server:
        answer = ask(OpenAIChat("m", api_key=KEY, base_url=server.url, quirks=Quirks(key_header="X-Gate-Key")))
    (received,) = server.received
    assert received.headers["x-gate-key"] == KEY
    assert "authorization" not in received.headers
    assert KEY not in str(answer.error)
    with pytest.raises(InvalidArgument, match="key_header"):
        OpenAIChat("m", api_key=KEY, quirks=Quirks(key_header="no header"))
