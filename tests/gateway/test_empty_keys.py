"""A key that is empty: refused where a provider needs one, no credential where the caller names the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_gateway import connect, list_models
from gotato_gateway._providers import KEY_VARIABLES, PROVIDERS
from gotato_py import InvalidArgument

EMPTY = ("", " ", "\n", "\t \r\n")
KEYED = [name for name, provider in PROVIDERS.items() if provider.key_variable]
LOCAL = [name for name, provider in PROVIDERS.items() if not provider.key_variable]
ELSEWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True, params=[False, True], ids=["no variable", "a variable"])
def variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable has a key, or all of them have: an empty key that was passed is not replaced by one."""
    for name in KEY_VARIABLES:
        if request.param:
            monkeypatch.setenv(name, "from-a-variable")
        else:
            monkeypatch.delenv(name, raising=False)


def credential(model: object) -> object:
    """The header that an adapter sends its key in."""
    return model._auth  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", EMPTY)
@pytest.mark.parametrize("provider", KEYED)
def test_an_empty_key_is_refused(provider: str, key: str) -> None:
    """Where the provider needs a key, an empty one is `InvalidArgument` that says so."""
    with pytest.raises(InvalidArgument, match=r"^connect: api_key is empty; pass a key for .*, or base_url"):
        connect(f"{provider}:m", api_key=key)
    with pytest.raises(InvalidArgument, match="api_key is empty"):
        list_models(provider, api_key=key)


@pytest.mark.parametrize("key", EMPTY)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_with_a_base_url_no_credential_is_sent(provider: str, key: str) -> None:
    """With a `base_url` of the caller's, also that of the provider, an empty key means none."""
    for base_url in (ELSEWHERE, PROVIDERS[provider].base_url):
        assert credential(connect(f"{provider}:m", base_url=base_url, api_key=key)) == {}


@pytest.mark.parametrize("key", EMPTY)
@pytest.mark.parametrize("provider", LOCAL)
def test_a_provider_without_keys_takes_an_empty_one(provider: str, key: str) -> None:
    """A server of one's own machine needs no key, and an empty one says the same."""
    assert credential(connect(f"{provider}:m", api_key=key)) == {}


@pytest.mark.parametrize("key", EMPTY)
def test_a_configured_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """An empty key for a configured model is refused by its table's name, unless that has a `base_url` or one is
    passed."""
    file = tmp_path / "config.toml"
    file.write_text(
        f'[models.plain]\nmodel = "openai:m"\n[models.house]\nmodel = "openai:m"\nbase_url = "{ELSEWHERE}"\n'
    )
    monkeypatch.setenv("GOTATO_CONFIG", str(file))
    with pytest.raises(InvalidArgument, match=r"\[models\.plain\]: connect: api_key is empty"):
        connect("plain", api_key=key)
    assert credential(connect("plain", api_key=key, base_url=ELSEWHERE)) == {}
    assert credential(connect("house", api_key=key)) == {}


@pytest.mark.parametrize("key", EMPTY)
def test_a_variable_that_is_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A configured variable that holds nothing is refused, with and without a `base_url`: it was to hold the key."""
    file = tmp_path / "config.toml"
    file.write_text(
        '[models.plain]\nmodel = "openai:m"\napi_key_env = "HOUSE_KEY"\n'
        f'[models.house]\nmodel = "openai:m"\napi_key_env = "HOUSE_KEY"\nbase_url = "{ELSEWHERE}"\n'
    )
    monkeypatch.setenv("GOTATO_CONFIG", str(file))
    monkeypatch.setenv("HOUSE_KEY", key)
    for name in ("plain", "house"):
        with pytest.raises(InvalidArgument, match="HOUSE_KEY is not set"):
            connect(name)
