"""Which models a provider has: what `list_models` returns, and how each dialect tells it.

Wire formats: OpenAI's "List models" (`GET models`, no pages; other servers add limits under names of their own),
Anthropic's "List Models" (`GET v1/models` with `after_id`), Gemini's `models.list` (`GET v1beta/models` with
`pageToken`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from ._json import Object, count, is_array, items, obj, text


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that a provider has. `id` is what its adapter takes as `model`.

    `context_tokens` is how much it reads at most, `output_tokens` how much it writes; None where the provider does not
    say.
    """

    id: str
    context_tokens: int | None = None
    output_tokens: int | None = None


class Page(NamedTuple):
    """One answer: its models, and the query that asks for those behind them, "" at the end."""

    models: list[ModelInfo]
    next_query: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """How a dialect lists models: the path behind the base URL, the first query, and what an answer says.

    `read` returns None for an answer that is no list.
    """

    path: str
    read: Callable[[object], Page | None]
    query: str = ""


_CONTEXT = ("context_length", "context_window", "max_context_length", "max_model_len")
"""OpenRouter, Together and Moonshot; Groq; Mistral; vLLM. llama.cpp tells it below `meta`."""
_OUTPUT = ("max_completion_tokens", "max_output_tokens")


def _read_openai(answer: object) -> Page | None:
    listed = answer if is_array(answer) else obj(answer).get("data")  # Together sends the bare array
    if not is_array(listed):
        return None
    return Page(list(_openai_models(items(listed))))


def _openai_models(listed: list[Object]) -> Iterator[ModelInfo]:
    for each in map(obj, listed):
        behind, meta = obj(each.get("top_provider")), obj(each.get("meta"))
        context = _first(each, _CONTEXT) or _first(meta, ("n_ctx", "n_ctx_train"))
        yield from _model(each.get("id"), context, _first(each, _OUTPUT) or _first(behind, _OUTPUT))


def _read_anthropic(answer: object) -> Page | None:
    said = obj(answer)
    if not is_array(said.get("data")):
        return None
    models = [
        model
        for each in map(obj, items(said["data"]))
        for model in _model(each.get("id"), _first(each, ("max_input_tokens",)), _first(each, ("max_tokens",)))
    ]
    last = text(said.get("last_id")) if said.get("has_more") is True else ""
    return Page(models, f"{_ANTHROPIC_QUERY}&after_id={quote(last, safe='')}" if last else "")


def _read_gemini(answer: object) -> Page | None:
    said = obj(answer)
    if not said.keys() & {"models", "nextPageToken"} and said:  # an empty page is an empty object
        return None
    models = [
        model
        for each in map(obj, items(said.get("models")))
        for model in _model(
            text(each.get("name")).removeprefix("models/"),
            _first(each, ("inputTokenLimit",)),
            _first(each, ("outputTokenLimit",)),
        )
    ]
    token = text(said.get("nextPageToken"))
    return Page(models, f"{_GEMINI_QUERY}&pageToken={quote(token, safe='')}" if token else "")


def _model(name: object, context: int | None, output: int | None) -> Iterator[ModelInfo]:
    if text(name).strip():
        yield ModelInfo(text(name), context, output)


def _first(said: Object, names: tuple[str, ...]) -> int | None:
    """The first of the members that is a number of tokens; some servers write 0 for "not known"."""
    return next((number for name in names if (number := count(said.get(name)))), None)


_ANTHROPIC_QUERY = "limit=1000"
_GEMINI_QUERY = "pageSize=1000"

OPENAI_LISTING = Listing("models", _read_openai)
ANTHROPIC_LISTING = Listing("v1/models", _read_anthropic, _ANTHROPIC_QUERY)
GEMINI_LISTING = Listing("v1beta/models", _read_gemini, _GEMINI_QUERY)
