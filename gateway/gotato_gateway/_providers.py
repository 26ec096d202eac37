"""The services known by name: where they are, which dialect they speak and which variable holds their key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import urlsplit


class Provider(NamedTuple):
    """A service by name. `key_variable` is "" where no key is needed; `other_variables` are looked at after it."""

    name: str
    base_url: str
    key_variable: str
    dialect: Literal["openai-chat", "openai-responses", "anthropic", "gemini"] = "openai-chat"
    other_variables: tuple[str, ...] = ()


OPENAI = Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
OPENAI_RESPONSES = Provider("openai-responses", OPENAI.base_url, OPENAI.key_variable, "openai-responses")
ANTHROPIC = Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic")
GEMINI = Provider(
    "gemini", "https://generativelanguage.googleapis.com", "GOOGLE_API_KEY", "gemini", ("GEMINI_API_KEY",)
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            OPENAI,
            OPENAI_RESPONSES,
            ANTHROPIC,
            GEMINI,
            Provider("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
            Provider("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
            Provider("deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
            Provider("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
            Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
            Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
            Provider("lmstudio", "http://localhost:1234/v1", ""),
            Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
            Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
            Provider("nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
            Provider("ollama", "http://localhost:11434/v1", ""),
            Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            Provider("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
            Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
            Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
            Provider("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
        )
    }
)
"""The services that `connect` knows, by name."""

_ALSO = {"api.moonshot.cn": "moonshot", "dashscope.aliyuncs.com": "dashscope", "api.together.ai": "together"}
_BY_PLACE = {
    # The first of two at one host names it.
    **{urlsplit(provider.base_url).netloc: provider for provider in reversed(list(PROVIDERS.values()))},
    **{host: PROVIDERS[name] for host, name in _ALSO.items()},
}


_LOOPBACK = ("127.0.0.1", "::1")
_HOSTS = {place.partition(":")[0] for place in _BY_PLACE}
_AZURE = Provider("azure", "https://openai.azure.com", "AZURE_OPENAI_API_KEY")
_AZURE_HOSTS = (".openai.azure.com", ".openai.azure.us", ".cognitiveservices.azure.com", ".services.ai.azure.com")
"""Every customer has a host of its own below one of these."""

KEY_VARIABLES: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(provider.key_variable for provider in (*PROVIDERS.values(), _AZURE) if provider.key_variable),
            *(name for provider in PROVIDERS.values() for name in provider.other_variables),
        ]
    )
)
"""The variables that keys come from, of every service known here; each once, the usual ones first."""


def is_known(base_url: str) -> bool:
    """Whether a known service is at this host, under whatever scheme and port."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    return provider_at(base_url) is not None or (host != "localhost" and host in _HOSTS) or _is_azure(host)


def _is_azure(host: str) -> bool:
    return host.endswith(_AZURE_HOSTS)


def provider_at(base_url: str) -> Provider | None:
    """The known service at exactly this host and port, if there is one."""
    parts = urlsplit(base_url)
    host = "localhost" if parts.hostname in _LOOPBACK else parts.hostname or ""
    place = f"{host}:{parts.port}" if parts.port else host
    place = place.removesuffix(":443") if parts.scheme == "https" else place
    found = _AZURE if _is_azure(place) else _BY_PLACE.get(place)
    # A key goes over TLS only, to the host that issued it.
    return found if found is not None and urlsplit(found.base_url).scheme == parts.scheme else None
