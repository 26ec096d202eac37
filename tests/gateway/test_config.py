"""Models from a TOML file: what `connect` makes of them, where the file is looked for, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import AnthropicMessages, Config, Quirks, connect, load_config
from gotato_gateway._config_values import quirks_value
from gotato_gateway._default_options import with_options
from gotato_gateway.config import ModelConfig
from gotato_py import Agent, InvalidArgument, ModelOptions, ModelRequest, NotFound, UserMessage
from gotato_testkit import ScriptedModel, say

from .answers import HI, ask
from .server import HELLO, Reply, Server

SECRET = "gsk_0123456789abcdef"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the configuration that GOTATO_CONFIG names; nothing else of the machine is found."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "GOTATO_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def written(text: str) -> Path:
        path = tmp_path / "work" / "gotato.toml"
        path.write_text(text, "utf-8")
        monkeypatch.setenv("GOTATO_CONFIG", str(path))
        return path

    return written


def test_a_configured_model_is_made_as_it_is_written(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, key, headers, timeouts, quirks and options of a table are those of the model."""
    monkeypatch.setenv("HOUSE_KEY", f" {SECRET} ")
    monkeypatch.setenv("HOUSE_PASS", "open sesame")
    with Server(Reply(HELLO)) as server:
        write(f"""
            [models.house]
            model = "openai:qwen3"
            base_url = "{server.url}"
            api_key_env = "HOUSE_KEY"
            headers = {{ X-Team = "search", X-Pass-Key = {{ env = "HOUSE_PASS" }} }}
            connect_timeout = 5
            idle_timeout = 60.0
            quirks = {{ max_tokens_field = "max_new", extra_body = {{ seed = 7 }} }}
            [models.house.options]
            max_tokens = 200
            temperature = 0.5
            stop = ["END"]
            metadata = {{ team = "search", run = "x" }}
        """)
        options = ModelOptions(temperature=1.0, metadata={"run": "y"})
        model = connect("house")
        assert ask(model, ModelRequest("", HI.messages, options=options)).text == "Hello"
        assert model.name == f"127.0.0.1:{server.port}:qwen3"
    (received,) = server.received
    assert received.headers["authorization"] == f"Bearer {SECRET}"
    assert (received.headers["x-team"], received.headers["x-pass-key"]) == ("search", "open sesame")
    body = received.json
    assert (body["model"], body["max_new"], body["temperature"], body["seed"]) == ("qwen3", 200, 1.0, 7)
    assert (body["stop"], body["metadata"]) == (["END"], {"team": "search", "run": "y"})
    assert "response_schema" in model.capabilities
    assert SECRET not in repr(model)


def test_a_model_without_options_is_the_adapter(write: Write) -> None:
    """Nothing stands between where nothing is added, and quirks are added to those of the server."""
    write('[models.a]\nmodel = "anthropic:claude-x"\nbase_url = "http://127.0.0.1:9"\nquirks = { images = false }')
    model = connect(" a ")
    assert isinstance(model, AnthropicMessages)
    plain = AnthropicMessages("claude-x", base_url="http://127.0.0.1:9").quirks
    assert (model.quirks.images, plain.images) == (False, True)
    assert model.quirks.thinking_types == plain.thinking_types


def test_what_is_passed_wins(write: Write) -> None:
    """Arguments of `connect` go before the file."""
    write('[models.a]\nmodel = "openai:m"\nbase_url = "http://127.0.0.1:9/v1"\nquirks = { images = false }')
    with Server(Reply(HELLO)) as server:
        model = connect("a", base_url=server.url, api_key="k", quirks=Quirks())
        assert ask(model).text == "Hello"
    assert "images" in model.capabilities
    assert server.received[0].headers["authorization"] == "Bearer k"


def test_a_group_is_a_failover(write: Write) -> None:
    """The names of a group, configured or not, are its targets; its own options go to all."""
    with Server(Reply((), 503, {}, "length")) as broken, Server(Reply(HELLO)) as working:
        write(f"""
            [models.first]
            model = "openai:a"
            base_url = "{broken.url}"
            [models.second]
            model = "openai:b"
            base_url = "{working.url}"
            [models.safe]
            failover = ["first", "inner", "ollama:never"]
            options = {{ max_tokens = 9 }}
            [models.inner]
            failover = ["second"]
        """)
        result = Agent(connect("safe")).run("hi")
        assert result.message is not None
        assert (result.text, result.message.model) == ("Hello", f"127.0.0.1:{working.port}:m")
    assert working.received[0].json["max_tokens"] == 9
    assert (len(broken.received), connect("safe").name) == (1, "safe")


def test_a_provider_and_model_need_no_file(write: Write) -> None:
    """A word with a colon is never looked up, so that a broken file is in nobody's way."""
    write("= broken")
    assert connect("ollama:m").name == "ollama:m"


def test_where_a_file_is_looked_for(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument goes before GOTATO_CONFIG, that before the user's own; no file of the current folder is read."""

    def at(*parts: str) -> Path:
        path = tmp_path.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'[models."{parts[0]}"]\nmodel = "ollama:m"', "utf-8")
        return path

    assert load_config() == Config()
    at("home", ".config", "gotato", "config.toml")
    assert list(load_config().models) == ["home"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert load_config() == Config()
    at("xdg", "gotato", "config.toml")
    assert list(load_config().models) == ["xdg"]
    at("work", "gotato.toml")
    assert list(load_config().models) == ["xdg"]
    monkeypatch.setenv("GOTATO_CONFIG", str(at("variable")))
    assert list(load_config().models) == ["variable"]
    argument = at("argument")
    found = load_config(argument)
    assert (list(found.models), found.path) == (["argument"], argument)
    assert connect("argument", config=found).name == "ollama:m"


def test_a_file_that_was_named_has_to_be_there(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file is an error where somebody named it, also in the variable; so is one that cannot be read."""
    with pytest.raises(NotFound, match=r"nowhere\.toml"):
        load_config(tmp_path / "nowhere.toml")
    monkeypatch.setenv("GOTATO_CONFIG", str(tmp_path / "nowhere.toml"))
    with pytest.raises(NotFound, match=r"nowhere\.toml"):
        connect("fast")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_config(tmp_path)


def test_an_unknown_name_says_what_there_is(write: Write) -> None:
    """A name that is not configured is told with the file, and with the providers."""
    with pytest.raises(InvalidArgument, match=r"no configuration file.*groq"):
        connect("fast")
    path = write('[models.slow]\nmodel = "ollama:m"')
    with pytest.raises(InvalidArgument, match=r"has no \[models\.fast\]") as caught:
        connect("fast")
    assert str(path.name) in str(caught.value)


MODEL = '[models.a]\nmodel = "ollama:m"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("= broken", ["no TOML", "line 1"]),
        ("[model.a]", ["unknown key 'model'", "models"]),
        ("models = 3", ["models must be tables"]),
        ("[models]\na = 3", ["[models.a]", "table"]),
        ('[models."a:b"]\nmodel = "ollama:m"', ["[models.a:b]", 'no ":"']),
        ('[models." "]\nmodel = "ollama:m"', ["blank"]),
        ("[models.a]", ["[models.a]", 'model = "provider:model" is missing']),
        ('[models.a]\nmodel = "m"', ["[models.a]", 'model must be "provider:model"']),
        ("[models.a]\nmodel = 3", ["[models.a]", "model must be a string"]),
        (MODEL + "modle = 3", ["[models.a]", "unknown key 'modle'", "base_url"]),
        (MODEL + 'base_url = "nowhere"', ["[models.a]", "base_url"]),
        (MODEL + "connect_timeout = 0", ["[models.a]: connect_timeout", "above 0"]),
        (MODEL + 'idle_timeout = "1"', ["[models.a]: idle_timeout", "above 0"]),
        (MODEL + "headers = 3", ["[models.a]", "headers must be a table"]),
        (MODEL + "headers = { X-A = 3 }", ["[models.a]", "header X-A"]),
        (MODEL + 'headers = { "X A" = "a" }', ["[models.a]", "name"]),
        (MODEL + 'headers = { X-A = { var = "A" } }', ["[models.a]", "X-A", "env"]),
        (MODEL + 'headers = { X-A = { env = "a b" } }', ["[models.a]", "X-A", "variable"]),
        (MODEL + "quirks = 3", ["[models.a]: quirks", "table"]),
        (MODEL + "quirks = { think_tag = true }", ["quirks: unknown key 'think_tag'", "think_tags"]),
        (MODEL + "quirks = { think_tags = 1 }", ["quirks: think_tags must be true or false"]),
        (MODEL + 'quirks = { system_role = "boss" }', ["system_role must be one of", '"developer"']),
        (MODEL + "quirks = { max_tokens_field = 3 }", ["max_tokens_field must be a string"]),
        (MODEL + "quirks = { extra_body = 3 }", ["extra_body must be a table"]),
        (MODEL + 'quirks = { efforts = "low" }', ["efforts must be a list of strings"]),
        (MODEL + "quirks = { efforts = [1] }", ["efforts must be a list of strings"]),
        (MODEL + 'options = { max_tokens = "many" }', ["[models.a]: options", "max_tokens"]),
        (MODEL + "options = { tokens = 3 }", ["options: unknown key 'tokens'", "max_tokens"]),
        (MODEL + "options = 3", ["options must be a table"]),
        (MODEL + 'api_key_env = "my key"', ["[models.a]: api_key_env", "variable"]),
        (MODEL + "api_key_env = 3", ["[models.a]: api_key_env", "variable"]),
        ("[models.a]\nfailover = []", ["[models.a]", "failover must be a list of names"]),
        ('[models.a]\nfailover = "b"', ["[models.a]", "failover must be a list of names"]),
        ("[models.a]\nfailover = [3]", ["[models.a]", "failover must be a list of names"]),
        ('[models.a]\nfailover = ["b"]', ["[models.a]", "no model 'b' is configured"]),
        ('[models.a]\nfailover = ["a"]', ["[models.a]", "a → a", "circle"]),
        ('[models.a]\nfailover = ["b"]\n[models.b]\nfailover = ["c", "a"]\n[models.c]\nmodel = "ollama:m"', ["circle"]),
        (MODEL + 'failover = ["ollama:m"]', ["[models.a]", "model goes with one model, not with failover"]),
        ('[models.a]\nfailover = ["ollama:m"]\nnames = 3', ["[models.a]", "unknown key 'names'"]),
    ],
)
def test_what_is_written_wrong_is_named(write: Write, text: str, words: list[str]) -> None:
    """The error names the file, the table and the key."""
    write(text)
    with pytest.raises(InvalidArgument) as caught:
        load_config()
    assert [word for word in ["gotato.toml", *words] if word not in str(caught.value)] == []


def test_text_that_is_no_utf8_is_named(write: Write) -> None:
    """A file in another encoding says so."""
    write("").write_bytes(b"[models.\xff]")
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        load_config()


@pytest.mark.parametrize(
    "text",
    [
        f'api_key = "{SECRET}"',
        f'apikey = "{SECRET}"',
        f'key = "{SECRET}"',
        f'token = "{SECRET}"',
        f'password = "{SECRET}"',
        f'client_secret = "{SECRET}"',
        f'api_key_env = "{SECRET}"',
        f'headers = {{ Authorization = "Bearer {SECRET}" }}',
        f'headers = {{ x-api-key = "{SECRET}" }}',
        f'headers = {{ X-A = {{ env = "{SECRET}" }} }}',
        f'headers = {{ X-A = {{ value = "{SECRET}" }} }}',
        f'headers = {{ X-A = "{SECRET}\\u0007" }}',
        f'base_url = "https://user:{SECRET}@example.org/v1"',
        f'base_url = "https://example.org/v1?api_key={SECRET}"',
        f'base_url = "{SECRET}"',
        f'options = {{ api_key = "{SECRET}" }}',
        f'options = {{ max_tokens = "{SECRET}" }}',
        f'quirks = {{ system_role = "{SECRET}" }}',
        f'connect_timeout = "{SECRET}"',
    ],
)
def test_a_key_in_the_file_is_refused_and_never_shown(write: Write, text: str) -> None:
    """Keys come from variables only; an error about one that stands in the file does not hold it."""
    write(MODEL + text)
    with pytest.raises(InvalidArgument) as caught:
        load_config()
    assert SECRET not in f"{caught.value}{caught.value!r}{caught.value.__context__}"
    assert "[models.a]" in str(caught.value)


def test_a_variable_that_is_not_set_is_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error tells the table and the variable, of a key and of a header; so does one with a stray character."""
    write(f'{MODEL}api_key_env = "HOUSE_KEY"\n[models.b]\nmodel = "openai:m"\n')
    monkeypatch.delenv("HOUSE_KEY", raising=False)
    with pytest.raises(InvalidArgument, match=r"\[models\.a\].*HOUSE_KEY is not set"):
        connect("a")
    monkeypatch.setenv("HOUSE_KEY", SECRET + "\u2026")
    with pytest.raises(InvalidArgument, match=r"\[models\.a\].*HOUSE_KEY") as caught:
        connect("a")
    assert SECRET not in str(caught.value)
    with pytest.raises(InvalidArgument, match=r"\[models\.b\].*OPENAI_API_KEY"):
        connect("b")
    write(MODEL + 'headers = { X-A = { env = "HOUSE_PASS" } }')
    with pytest.raises(InvalidArgument, match=r"\[models\.a\].*HOUSE_PASS is not set"):
        connect("a")


def test_a_group_takes_no_arguments(write: Write) -> None:
    """What belongs to one model cannot be given to several."""
    write('[models.a]\nfailover = ["ollama:m"]')
    with pytest.raises(InvalidArgument, match=r"'a'.*no base_url"):
        connect("a", base_url="http://127.0.0.1:9/v1")


def test_an_unknown_provider_is_told_with_the_table(write: Write) -> None:
    """A provider that nobody knows is an error of its table."""
    write('[models.a]\nmodel = "nobody:m"')
    with pytest.raises(InvalidArgument, match=r"\[models\.a\].*no provider 'nobody'"):
        connect("a")


def test_a_value_shows_no_header() -> None:
    """The values of headers are not part of a table's repr."""
    assert "search" not in repr(ModelConfig(name="a", headers={"X-Team": "search"}))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0, 2),
            "max_tokens": st.integers(1, 9),
            "stop": st.lists(st.text(), max_size=2).map(tuple),
            "reasoning_effort": st.sampled_from(["low", "high"]),
        },
    ),
    st.fixed_dictionaries({}, optional={"temperature": st.floats(0, 2), "top_p": st.floats(0, 1)}),
)
def test_configured_options_fill_what_a_request_leaves_open(own: dict[str, Any], asked: dict[str, Any]) -> None:
    """For every pair: the request's options win, the configured ones fill, and nothing else changes."""
    inner = ScriptedModel([say("Hello")], name="a", capabilities={"images"})
    model = with_options(inner, ModelOptions(**own))
    request = ModelRequest("s", (UserMessage("hi"),), options=ModelOptions(**asked))
    assert ask(model, request).text == "Hello"
    (seen,) = inner.requests
    assert seen == ModelRequest("s", request.messages, options=ModelOptions(**{**own, **asked}))
    assert (model.name, model.capabilities) == ("a", frozenset({"images"}))
    assert (model is inner) == (ModelOptions(**own) == ModelOptions())


def test_lists_become_tuples() -> None:
    """Quirks of a file hash and compare like others."""
    assert quirks_value({"efforts": ["low"], "images": True}) == {"efforts": ("low",), "images": True}
