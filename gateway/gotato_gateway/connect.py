"""A model from one word: "provider:model"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import InvalidArgument

from ._keys import key_from_environment
from ._providers import PROVIDERS, is_known
from .adapter import Adapter
from .openai_chat import OpenAIChat

_ADAPTERS: Mapping[str, type[Adapter]] = {"openai-chat": OpenAIChat}
_LATER = ("anthropic", "gemini", "openai-responses")


def connect(model: str, *, base_url: str | None = None, **options: Any) -> Adapter:
    """The model named by "provider:model" ("openai:gpt-5", "anthropic:claude-sonnet-4-5", "ollama:qwen3").

    `base_url` replaces the provider's own; `options` are those of the adapter that speaks its dialect. A key left out
    comes from the provider's usual variable; where the provider needs one and there is none, that is `InvalidArgument`.
    """
    word, colon, name = model.partition(":") if isinstance(model, str) else ("", "", "")
    word, name = word.strip().lower(), name.strip()
    known = ", ".join(PROVIDERS)
    if not colon or not word or not name:
        raise InvalidArgument(f'connect: model must be "provider:model"; known providers: {known}')
    if word in _LATER:
        raise InvalidArgument(f"connect: the dialect of {word} is not supported yet; known providers: {known}")
    provider = PROVIDERS.get(word)
    if provider is None:
        raise InvalidArgument(
            f"connect: no provider {word!r}; known providers: {known}; or use OpenAIChat with base_url"
        )
    if options.get("api_key") is None and (base_url is None or not is_known(base_url)):
        options["api_key"] = key_from_environment("connect", provider)
        if base_url is None and provider.key_variable and not options["api_key"]:
            raise InvalidArgument(f"connect: no api_key for {word}; pass one or set {provider.key_variable}")
    return _ADAPTERS[provider.dialect](name, base_url=base_url or provider.base_url, **options)
