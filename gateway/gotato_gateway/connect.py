"""A model from one word: "provider:model", or a name that a configuration gives it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gotato_py import InvalidArgument, ModelOptions, Scope

from ._config_values import quirks_value
from ._default_options import with_options
from ._endpoint import checked_base_url
from ._keys import checked_key, key_from_environment
from ._named import NamedModel
from ._providers import PROVIDERS, Provider, is_known
from .adapter import Adapter
from .anthropic_messages import AnthropicMessages
from .config import Config, ModelConfig, load_config
from .failover import Failover
from .gemini import Gemini
from .model_list import ModelInfo
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .quirks import quirks_for

_ADAPTERS: Mapping[str, type[Adapter]] = {
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
}
_OPTIONS = ("api_key", "base_url", "headers", "connect_timeout", "idle_timeout", "session", "quirks")


def connect(
    model: str, *, base_url: str | None = None, config: Config | None = None, **options: Any
) -> NamedModel:  # Any: the options of an adapter
    """The model named by "provider:model" ("openai:gpt-5", "anthropic:claude-sonnet-4-5", "ollama:qwen3"), or by a name
    without a colon that `config` has; left out, that is `load_config()`.

    `base_url` replaces the provider's own; `options` are those of the adapter that speaks its dialect; both win over
    what is configured. A key left out comes from the provider's usual variable; where the provider needs one and there
    is none, that is `InvalidArgument`, and so is an empty key. With a `base_url` of your own either means that no
    credential is sent. "ollama:…" and "lmstudio:…" say what runs at that `base_url`; of others it may be a proxy's.
    """
    if base_url is not None:
        options["base_url"] = base_url
    if isinstance(model, str) and model.strip() and ":" not in model:
        return _configured(model.strip(), load_config() if config is None else config, options)
    return _adapter(model, options)


def list_models(provider: str, *, scope: Scope | None = None, **options: Any) -> list[ModelInfo]:
    """The models that a provider has ("openai", "ollama"), as `Adapter.list_models` tells them.

    `options` are those of an adapter: `api_key`, `base_url`, …
    """
    if not isinstance(provider, str) or ":" in provider:
        raise InvalidArgument(f"list_models: provider must be one of {', '.join(PROVIDERS)}")
    return _adapter(f"{provider}:-", options).list_models(scope)


def _adapter(model: object, options: Mapping[str, Any]) -> Adapter:
    """The adapter for "provider:model"."""
    provider, name = _named(model)
    _check_options(options)
    given, key = options.get("base_url"), options.get("api_key")
    base_url = None if given is None else checked_base_url("connect", given)
    if base_url is None and provider.key_variable and isinstance(key, str) and not key.strip():
        text = f"api_key is empty; pass a key for {provider.name}, or base_url for a server that takes none"
        raise InvalidArgument(f"connect: {text}")
    if key is None and (base_url is None or not is_known(base_url)):
        key = key_from_environment("connect", provider)
        if base_url is None and provider.key_variable and not key:
            raise InvalidArgument(f"connect: no api_key for {provider.name}; pass one or set {provider.key_variable}")
    settings: dict[str, Any] = {
        **options,
        "api_key": key,
        "base_url": provider.base_url if base_url is None else base_url,
    }
    if not provider.key_variable and settings.get("quirks") is None:  # what runs there is known, wherever it runs
        settings["quirks"] = quirks_for(provider.base_url, name)
    return _ADAPTERS[provider.dialect](name, **settings)


def _check_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in ModelOptions.__match_args__:
            text = f"{name} is asked for in each request: Agent(…, model_options=ModelOptions({name}=…))"
            raise InvalidArgument(f"connect: {text}")
        if name not in _OPTIONS:
            raise InvalidArgument(f"connect: there is no option {name!r}; the options are {', '.join(_OPTIONS)}")


def _named(model: object) -> tuple[Provider, str]:
    word, colon, name = model.partition(":") if isinstance(model, str) else ("", "", "")
    word, name = word.strip().lower(), name.strip()
    known = ", ".join(PROVIDERS)
    if not colon or not word or not name:
        text = f'; behind "{word}:" the name of the model is missing' if word in PROVIDERS else ""
        raise InvalidArgument(f'connect: model must be "provider:model"{text}; known providers: {known}')
    provider = PROVIDERS.get(word)
    if provider is None:
        raise InvalidArgument(
            f"connect: no provider {word!r}; known providers: {known}; or use OpenAIChat with base_url"
        )
    return provider, name


def _configured(name: str, config: Config, options: Mapping[str, Any]) -> NamedModel:
    entry = config.models.get(name)
    if entry is None:
        where = "there is no configuration file" if config.path is None else f"{config.path} has no [models.{name}]"
        raise InvalidArgument(
            f'connect: {name!r} is neither "provider:model" nor configured ({where}); '
            f"known providers: {', '.join(PROVIDERS)}"
        )
    if entry.failover and options:
        raise InvalidArgument(f"connect: {name!r} is a group of models, which takes no {' and no '.join(options)}")
    if entry.failover:
        targets = [connect(each, config=config) for each in entry.failover]
        return with_options(Failover(targets, name=name), entry.options)
    try:
        settings = {**_settings(entry), **options}
        model = _adapter(entry.model, settings)
        if entry.quirks and "quirks" not in options:
            settings["quirks"] = replace(model.quirks, **quirks_value(entry.quirks))
            model = _adapter(entry.model, settings)
        return with_options(model, entry.options)
    except InvalidArgument as error:
        raise InvalidArgument(f"{entry.where}: {error}") from None


def _settings(entry: ModelConfig) -> dict[str, Any]:
    """The adapter's arguments that a table gives; quirks are not among them, since they add to those of the server."""
    settings: dict[str, Any] = {
        "base_url": entry.base_url,
        "api_key": checked_key(f"the variable {held}", _variable(held)) if (held := entry.api_key_env) else None,
        "headers": {**entry.headers, **{name: _variable(where) for name, where in entry.header_variables.items()}},
        "connect_timeout": entry.connect_timeout,
        "idle_timeout": entry.idle_timeout,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise InvalidArgument(f"the variable {name} is not set")
    return value
