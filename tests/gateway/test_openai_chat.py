"""The adapter as users see it: what it is made from, what it says of itself, and how `connect` finds it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from gotato_gateway import OpenAIChat, Quirks, connect
from gotato_gateway._providers import PROVIDERS
from gotato_gateway._retry_after import duration, rate_limits, retry_after
from gotato_py import InvalidArgument, Model, RateLimits

from .answers import ask, local
from .server import EVENT_STREAM, HELLO, Reply, Server


@pytest.mark.parametrize("model", ["", " ", None, 3])
def test_a_model_needs_a_name(model: object) -> None:
    """A blank name is refused."""
    with pytest.raises(InvalidArgument, match="model"):
        OpenAIChat(model, api_key="k")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    "url", ["", "api.openai.com/v1", "ftp://x/v1", "http://", "http://a b/v1", "http://[x", "http://h:99999", 3]
)
def test_a_base_url_is_checked(url: object) -> None:
    """What no request can be sent to is refused when the adapter is made."""
    with pytest.raises(InvalidArgument, match="base_url"):
        OpenAIChat("m", base_url=url)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), None, "1", True])
@pytest.mark.parametrize("name", ["connect_timeout", "idle_timeout"])
def test_timeouts_are_checked(name: str, seconds: object) -> None:
    """A time to wait is a number of seconds above 0."""
    with pytest.raises(InvalidArgument, match=name):
        OpenAIChat("m", base_url="http://127.0.0.1:9/v1", **{name: seconds})  # type: ignore[arg-type]  # on purpose


def test_what_an_adapter_says_of_itself() -> None:
    """Name, capabilities and quirks follow the host; a proxy is called by its own."""
    model = OpenAIChat("deepseek-chat", api_key="k", base_url="https://api.deepseek.com/v1")
    assert model.name == "deepseek:deepseek-chat"
    assert model.capabilities == frozenset()
    assert OpenAIChat("gpt-5", api_key="k").capabilities == {"images", "response_schema"}
    assert local("http://llm.internal:8000/v1").name == "llm.internal:8000:m"
    assert local("http://127.0.0.1:9/v1", quirks=Quirks(images=False)).capabilities == {"response_schema"}
    with pytest.raises(InvalidArgument, match="quirks"):
        local("http://127.0.0.1:9/v1", quirks={"images": False})


def test_an_adapter_is_a_model() -> None:
    """An adapter, also one of `connect`, goes wherever a Model is asked for."""
    models: list[Model] = [OpenAIChat("m", api_key="k"), connect("ollama:m")]
    assert [getattr(model, "name", "") for model in models] == ["openai:m", "ollama:m"]


def test_quirks_are_values() -> None:
    """Quirks compare, hash, travel between processes and are changed by making new ones."""
    quirks = Quirks(extra_body={"a": 1})
    assert pickle.loads(pickle.dumps(quirks)) == quirks == replace(Quirks(), extra_body={"a": 1})
    assert hash(quirks) == hash(Quirks())
    with pytest.raises(AttributeError):
        quirks.images = False  # type: ignore[misc]  # on purpose


def test_connect_knows_its_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each provider is found by its name, with its base URL and its variable."""
    for provider in PROVIDERS.values():
        if provider.key_variable:
            monkeypatch.delenv(provider.key_variable, raising=False)
            with pytest.raises(InvalidArgument, match=provider.key_variable):
                connect(f"{provider.name}:m")
            monkeypatch.setenv(provider.key_variable, "k")
        model = connect(f" {provider.name.upper()} : some/model:free ")
        service = "openai" if provider.name == "openai-responses" else provider.name  # one service, two dialects
        assert model.name == f"{service}:some/model:free"
        assert provider.base_url in repr(model)


def test_connect_takes_the_adapters_options() -> None:
    """A base URL and a key go to the adapter; with a base URL no key is needed."""
    with Server(Reply(HELLO)) as server:
        assert ask(connect("openai:m", base_url=server.url)).text == "Hello"
        assert ask(connect("openai:m", base_url=server.url, api_key="k")).text == "Hello"
    assert [received.headers.get("authorization") for received in server.received] == [None, "Bearer k"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-5", "provider:model"),
        ("openai:", 'behind "openai:" the name of the model is missing'),
        ("OpenAI: ", 'behind "openai:" the name of the model is missing'),
        ("nobody:", "provider:model"),
        (":x", "provider:model"),
        (3, "provider:model"),
        ("nobody:x", "no provider"),
    ],
)
def test_connect_says_what_it_knows(model: object, said: str) -> None:
    """An unknown word is an error that lists the known ones."""
    with pytest.raises(InvalidArgument, match=said) as caught:
        connect(model)  # type: ignore[arg-type]  # on purpose
    assert "groq" in str(caught.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [("temperature", r"model_options=ModelOptions\(temperature="), ("temprature", "no option 'temprature'.*api_key")],
)
def test_connect_says_what_its_options_are(option: str, said: str) -> None:
    """An option of the requests is sent to the agent, an unknown one is told with the known ones."""
    with pytest.raises(InvalidArgument, match=said):
        connect("ollama:m", **{option: 1})  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_local_server_under_all_its_names(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of this machine is `localhost`: what is known of a server there holds, and it gets nobody's key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    model = OpenAIChat("qwen3", base_url=f"http://{host}:11434/v1")
    known = Quirks(think_tags=True, schema_with_tools=False, priced=False)
    assert (model.name, model.quirks, model._auth) == ("ollama:qwen3", known, {})
    assert OpenAIChat("m", base_url=f"http://{host}:1234/v1").quirks.think_tags


def test_a_local_server_on_another_machine() -> None:
    """Who says `ollama:` says what runs there, wherever that is; of other services a base URL may be a proxy's."""
    there = connect("ollama:qwen3", base_url="http://gpu.example:11434/v1")
    proxied = connect("groq:qwen3", base_url="http://gpu.example:11434/v1")
    assert isinstance(there, OpenAIChat)
    assert isinstance(proxied, OpenAIChat)
    assert there.quirks == OpenAIChat("qwen3", base_url="http://localhost:11434/v1").quirks
    assert proxied.quirks == Quirks()


def test_rate_limits_come_first() -> None:
    """What the headers say about limits is the first event; without such headers there is none."""
    headers = {
        **EVENT_STREAM,
        "X-RateLimit-Limit-Requests": "60",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    with Server(Reply(HELLO, headers=headers)) as server:
        first = ask(local(server.url)).events[0]
    assert first == RateLimits(limit_requests=60, remaining_tokens=149984, reset_tokens_s=360.0)
    assert rate_limits({"content-type": "x"}, 0.0) is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("12", 12),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("1m2.5s", 62.5),
        ("1h", 3600),
        ("2d", 172800),
        ("", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("1m2", None),
    ],
)
def test_durations(said: str, seconds: float | None) -> None:
    """Durations are read in every form that providers use, and nothing else is."""
    assert duration(said) == seconds


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        (
            {
                "x-ratelimit-limit-requests-day": "14400",
                "x-ratelimit-remaining-requests-day": "14399",
                "x-ratelimit-reset-requests-day": "33011.38",
                "x-ratelimit-limit-tokens-minute": "60000",
                "x-ratelimit-remaining-tokens-minute": "0",
                "x-ratelimit-reset-tokens-minute": "11.38",
            },
            RateLimits(14400, 14399, 33011.38, 60000, 0, 11.38),
        ),
        (
            {
                "x-ratelimit-limit-req-minute": "720",
                "x-ratelimit-remaining-req-minute": "717",
                "x-ratelimit-remaining-tokens-minute": "4999911",
                "x-ratelimit-remaining-tokens-month": "1",
            },
            RateLimits(limit_requests=720, remaining_requests=717, remaining_tokens=4999911),
        ),
    ],
    ids=["cerebras", "mistral"],
)
def test_limits_that_say_for_how_long(headers: dict[str, str], limits: RateLimits) -> None:
    """Where the names of the limits have a time in them, they are told as others are, and waited for."""
    assert rate_limits(headers, 0.0) == limits
    assert retry_after(headers, 0.0) == (11.38 if limits.remaining_tokens == 0 else None)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 4.77s.", 4.77),
        ("Please try again in 1m2.5s.", 62.5),
        ("Please retry after 26 seconds.", 26),
        ("try again in 5 minutes", 300),
        ("Try again in 1 hour, 2 min", 3720),
        ("Please wait 45 seconds before retrying.", 45),
        ("retry in 300ms", 0.3),
        ("try again in 3 days", 259200),
        ("try again in 3 dollars", None),
        ("try again in 3", None),
        (f"try again in {'9' * 400} s", None),
    ],
)
def test_a_message_says_when_to_ask_again(said: str, seconds: float | None) -> None:
    """A time in the words of a message counts, whatever its unit, where nothing else says one."""
    assert retry_after({}, 0.0, said) == (None if seconds is None else pytest.approx(seconds))
    assert retry_after({"retry-after": "7"}, 0.0, said) == 7


def test_a_proxy_says_when_its_provider_wants_to_be_asked_again() -> None:
    """LiteLLM hands its provider's Retry-After on under a name of its own; one of the proxy itself goes before it."""
    behind = {"llm_provider-retry-after": "7"}
    assert retry_after(behind, 0.0) == 7.0
    assert retry_after({**behind, "retry-after": "3"}, 0.0) == 3.0
