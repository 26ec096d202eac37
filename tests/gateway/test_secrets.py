"""Keys are found, checked, sent to the right host only, and never shown; neither is the prompt."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import OpenAIChat, connect
from gotato_gateway._scrub import LONGEST, scrub
from gotato_py import InvalidArgument, ModelError, ModelRequest, UserMessage

from .answers import ask, local
from .dialects import CARRIERS, STREAMS, credentials, with_key
from .recordings import ADAPTERS
from .server import HELLO, Reply, Server, refusing_port

KEY = "sk-proj-Abc123Def456Ghi789"
PROMPT = "My grandmother's recipe for potato soup, which nobody may ever read"


each_dialect = pytest.mark.parametrize("dialect", ADAPTERS)


def key_sent(**options: Any) -> str | None:
    """The credential that arrives at a server that is not known."""
    return sent("openai-chat", **options).get("authorization")


def sent(dialect: str, **options: Any) -> dict[str, str]:
    """The headers with a credential that an adapter sends to a server that is not known."""
    with Server(Reply(STREAMS[dialect]("Hello"))) as server:
        assert ask(ADAPTERS[dialect]("m", base_url=server.url, **options)).text == "Hello"
    return credentials(server.received[0])


def test_a_key_comes_from_the_variable_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key left out is the host's own; one that is not known, a proxy say, gets OpenAI's."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    OpenAIChat("gpt-5")
    assert key_sent() == f"Bearer {KEY}"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert key_sent() is None
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    with pytest.raises(InvalidArgument, match="OPENAI_API_KEY"):
        OpenAIChat("gpt-5")
    assert connect("groq:llama").name == "groq:llama"


def test_a_proxy_gets_the_key_from_connect_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` with a base_url of its own takes the key from the environment as the adapter does."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(Reply(HELLO)) as server:
        model = connect("openai:m", base_url=server.url)
        assert isinstance(model, OpenAIChat)
        ask(model)
    assert server.received[0].headers.get("authorization") == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "http://API.OpenAI.com/v1",
        "http://api.groq.com/openai/v1",
        "https://api.openai.com:8443/v1",
        "http://api.moonshot.cn/v1",
    ],
)
def test_a_known_host_gets_its_key_over_tls_only(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a known host under another scheme or port no key is sent, neither its own nor OpenAI's."""
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY", "MOONSHOT_API_KEY"):
        monkeypatch.setenv(name, KEY)
    assert OpenAIChat("m", base_url=url)._auth == {}


@each_dialect
def test_its_own_service_gets_no_key_without_tls(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's key goes to a dialect's own service in the clear."""
    home = ADAPTERS[dialect]._dialect.home
    monkeypatch.setenv(home.key_variable or "", KEY)
    at_home = ADAPTERS[dialect]("m", base_url=home.base_url)._auth
    assert {name.lower(): value for name, value in at_home.items()} == with_key(dialect, KEY)
    assert ADAPTERS[dialect]("m", base_url=home.base_url.replace("https:", "http:"))._auth == {}


@pytest.mark.parametrize(("name", "value"), [("headers", 5), ("headers", ["a"]), ("session", 5), ("session", {})])
def test_what_cannot_be_sent_with_is_refused_by_name(name: str, value: object) -> None:
    """Headers that are no mapping and a session that is none are InvalidArgument when the adapter is built."""
    options: dict[str, Any] = {name: value}
    with pytest.raises(InvalidArgument, match=f"OpenAIChat: {name} must be"):
        local("http://127.0.0.1:9/v1", **options)


@each_dialect
def test_an_empty_key_needs_a_base_url(dialect: str) -> None:
    """An empty key is an error without base_url, and no credential with one."""
    with pytest.raises(InvalidArgument, match="api_key is empty"):
        ADAPTERS[dialect]("m", api_key=" ")
    assert sent(dialect, api_key="") == {}


@each_dialect
def test_white_space_around_a_key_is_removed(dialect: str) -> None:
    """A key copied with a line break works, in the dialect's own header and in no other."""
    assert sent(dialect, api_key=f" {KEY}\n") == with_key(dialect, KEY)


@each_dialect
@pytest.mark.parametrize("stray", ["\x00", "\n", " ", "é", "\u200b", "\x7f"])
def test_a_stray_character_is_refused_without_showing_the_key(dialect: str, stray: str) -> None:
    """A key with any other character is refused by name, and not printed."""
    with pytest.raises(InvalidArgument, match=f"{ADAPTERS[dialect].__name__}: api_key .* at place 9") as caught:
        ADAPTERS[dialect]("m", api_key=f"sk-proj-{stray}Abc123")
    assert "Abc123" not in str(caught.value)
    assert "sk-proj" not in str(caught.value)


@each_dialect
def test_a_stray_character_in_a_variable_names_the_variable(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says where the bad key came from."""
    variable = ADAPTERS[dialect]._dialect.home.key_variable
    assert variable is not None
    monkeypatch.setenv(variable, "sk é")
    with pytest.raises(InvalidArgument, match=variable):
        ADAPTERS[dialect]("m")


@each_dialect
def test_the_callers_own_credential_goes_first(dialect: str) -> None:
    """A header of the caller's in place of the key is sent alone: in the dialect's own, or as Authorization."""
    name, _ = CARRIERS[dialect]
    assert sent(dialect, api_key=KEY, headers={name.title(): "mine"}) == {name: "mine"}
    assert sent(dialect, api_key=KEY, headers={"authorization": "Token mine"}) == {"authorization": "Token mine"}


def test_headers_are_checked_and_sent() -> None:
    """The caller's headers arrive; a line break in one is refused without its value."""
    assert key_sent(api_key=KEY, headers={"authorization": "Token mine"}) == "Token mine"
    with pytest.raises(InvalidArgument, match="X-Secret") as caught:
        local("http://127.0.0.1:9/v1", headers={"X-Secret": "abc\r\nX: y"})
    assert "abc" not in str(caught.value)
    for headers in ({"a b": "x"}, {"a": 1}, {"a": "\u20ac"}):
        with pytest.raises(InvalidArgument):
            local("http://127.0.0.1:9/v1", headers=headers)


@each_dialect
def test_nothing_shows_the_key(dialect: str) -> None:
    """repr, str and pickle hold no key, no password and no query."""
    model = ADAPTERS[dialect]("m", api_key=KEY, base_url="https://user:hunter22@h.example:99/v1?token=abcdef")
    assert repr(model) == f"{ADAPTERS[dialect].__name__}('m', base_url='https://h.example:99/v1')"
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds an API key"):
            make(model)


REFUSALS = [
    f"Incorrect API key provided: {KEY}.",
    f"Incorrect API key provided: {KEY[:10]}***************{KEY[-4:]}.",
    f"bad key {KEY[:12]}... and …{KEY[-6:]}",
    f"Bearer {KEY[3:]} is unknown; you asked: {PROMPT}",
    f'Invalid value: "{PROMPT[:24]}" in messages[0]',
    f"cannot handle '{PROMPT.split()[1]}'",
    f"echo {PROMPT[10:40]} echo",
]


@each_dialect
@pytest.mark.parametrize("said", REFUSALS)
@pytest.mark.parametrize("status", [200, 400, 401])
def test_no_error_holds_the_key_or_the_prompt(
    dialect: str, said: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a server quotes, neither message, traceback, pickle nor log of the error shows it."""
    caplog.set_level(logging.DEBUG)
    reply = Reply([json.dumps({"error": {"message": said, "code": "x"}}).encode()], status)
    with Server(reply) as server:
        model = local(server.url, ADAPTERS[dialect], api_key=KEY)
        error = ask(model, ModelRequest(PROMPT, (UserMessage(PROMPT),))).error
    assert error is not None
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(pickle.dumps(error)) + caplog.text
    for piece in (KEY, KEY[:10], KEY[-4:], KEY[3:], "grandmother", "potato soup", PROMPT[10:40], PROMPT[:24]):
        assert piece not in shown
    assert isinstance(error, ModelError)


@each_dialect
def test_a_connection_error_holds_no_secret(dialect: str) -> None:
    """An error of the network knows neither the headers nor the URL's secrets, in its causes either."""
    with refusing_port() as port:
        url = f"http://u:hunter22@127.0.0.1:{port}/v1?key=abcdef99"
        model = ADAPTERS[dialect]("m", api_key=KEY, base_url=url, headers={"X-Key": "zzzzzz"})
        error = ask(model).error
    assert error is not None
    chain: list[BaseException] = []
    each: BaseException | None = error
    while each is not None:
        chain.append(each)
        each = each.__cause__ or each.__context__
    assert [type(each) for each in chain][1:] == [ConnectionRefusedError]
    shown = "".join(traceback.format_exception(error)) + repr(pickle.dumps(error))
    for secret in (KEY, "hunter22", "abcdef99", "zzzzzz"):
        assert secret not in shown


def test_useful_words_survive() -> None:
    """What is neither secret nor quoted is kept, on one line."""
    said = "Unknown parameter: 'strict'.\n See the docs."
    assert scrub(said, [KEY], ["a strict regime"]) == "Unknown parameter: '[…]'. See the docs."
    assert scrub(said, [KEY], [PROMPT]) == "Unknown parameter: 'strict'. See the docs."
    assert len(scrub("x " * 5000)) == LONGEST


secret_texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60)


@given(key=secret_texts, before=st.text(max_size=40), after=st.text(max_size=40))
def test_a_key_never_survives(key: str, before: str, after: str) -> None:
    """Wherever a key stands in a text, no six characters of it in a row are left."""
    cleaned = scrub(f"{before}{key}{after}", [key]).replace("[key]", "\x00")
    assert key not in cleaned


@given(
    prompt=st.text(min_size=23, max_size=200),
    start=st.integers(0, 100),
    size=st.integers(23, 100),
    around=st.text(max_size=30),
)
def test_a_quoted_run_never_survives(prompt: str, start: int, size: int, around: str) -> None:
    """A run of 23 characters or more of the prompt is not repeated."""
    line = " ".join(prompt.split())
    run = line[start : start + size]
    if len(run.strip()) >= 23:
        assert run.strip() not in scrub(f"{around} {run.strip()} {around}", (), [line])


def test_a_provider_by_name_has_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` sends the named provider's key, also to a proxy, and none for one that needs none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-0000")
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    sent: list[str | None] = []
    for model in ("groq:m", "ollama:m"):
        with Server(Reply(HELLO)) as server:
            ask(connect(model, base_url=server.url))
        sent.append(server.received[0].headers.get("authorization"))
    assert sent == [f"Bearer {KEY}", None]
