"""What an answer or a run cost, in US dollars, by the price list of the package `genai-prices` (the extra "prices").

    pip install gotato-py[prices]

The prices are those of the installed version of that package; they change, and discounts are not known to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from types import ModuleType
from typing import Any

from gotato_py import AssistantMessage, InvalidArgument, NotSupported, RunResult, Usage

from ._providers import PROVIDERS

_THEIR_NAMES: Mapping[str, str] = {
    "openai-responses": "openai",
    "gemini": "google",
    "moonshot": "moonshotai",
    "xai": "x-ai",
}
"""What the price list calls a service, where its name here is another."""


def cost_of(what: RunResult[Any] | AssistantMessage | Usage, *, model: str = "") -> Decimal | None:  # Any: its output
    """What a run, one answer or some tokens cost, in US dollars.

    `model` is "provider:model" or a model's name alone; it replaces what the answers say. Each answer of a run is
    priced at the model that gave it. What the run used beyond its answers (attempts that were taken back, tools that
    charged it with a sub-agent's tokens) is priced at the model of the last answer. None where a price is not known.
    Raises `NotSupported` without the package.
    """
    if not isinstance(model, str):
        raise InvalidArgument(f"cost_of: model must be a str, not {type(model).__name__}")
    if isinstance(what, Usage):
        return _price(what, model)
    if isinstance(what, AssistantMessage):
        return _price(what.usage, model or what.model)
    if not isinstance(what, RunResult):
        raise InvalidArgument(f"cost_of: takes a RunResult, an AssistantMessage or a Usage, not {type(what).__name__}")
    answers = [message for message in what.new_messages if isinstance(message, AssistantMessage)]
    shares = [(answer.usage, model or answer.model) for answer in answers]
    rest = what.usage
    for answer in answers:
        rest = _without(rest, answer.usage)
    prices = [_price(usage, named) for usage, named in [*shares, (rest, shares[-1][1] if shares else model)]]
    known = [price for price in prices if price is not None]
    return sum(known, Decimal(0)) if len(known) == len(prices) else None


def _price(usage: Usage, model: str) -> Decimal | None:
    listed = _price_list()
    provider, name = _split(model)
    if usage.total_tokens == 0:
        return Decimal(0)
    if not name:
        return None
    counted = listed.Usage(
        input_tokens=max(usage.input_tokens, usage.cache_read_tokens + usage.cache_write_tokens),
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        price: Decimal = listed.calc_price(counted, model_ref=name, provider_id=provider).total_price
    except LookupError:
        return None
    return price


def _without(usage: Usage, less: Usage) -> Usage:
    return Usage(
        max(0, usage.input_tokens - less.input_tokens),
        max(0, usage.output_tokens - less.output_tokens),
        max(0, usage.cache_read_tokens - less.cache_read_tokens),
        max(0, usage.cache_write_tokens - less.cache_write_tokens),
    )


def _split(model: str) -> tuple[str | None, str]:
    """The price list's name of the service, if there is one, and the model. Its own services may be named as well."""
    provider, colon, name = model.strip().partition(":")
    if not colon:
        return None, provider
    provider = provider.lower()
    if provider in PROVIDERS or provider in _THEIR_NAMES or provider in _ALSO:
        return _THEIR_NAMES.get(provider, provider), name.strip()
    return None, model.strip()


_ALSO = {"anthropic", "azure", "aws", "google", "openai"}


def _price_list() -> ModuleType:
    try:
        return import_module("genai_prices")
    except ImportError:
        raise NotSupported("prices need the package genai-prices: pip install gotato-py[prices]") from None
