"""Token counts in OpenAI's two dialects, as one neutral `Usage`.

In all variants the prompt's tokens include what came from a cache. The places of that part differ:
`prompt_tokens_details.cached_tokens` (OpenAI's chat), `input_tokens_details.cached_tokens` (its responses),
`prompt_cache_hit_tokens` (DeepSeek), `cached_tokens` (Moonshot).
"""

from __future__ import annotations

from gotato_py import Usage

from ._json import count, obj


def token_usage(value: object) -> Usage | None:
    """The usage in a snapshot, or None where it holds no counts."""
    said = obj(value)
    prompt = _first(said, "prompt_tokens", "input_tokens")
    completion = _first(said, "completion_tokens", "output_tokens")
    if prompt is None and completion is None:
        return None
    prompt, completion = prompt or 0, completion or 0
    details = obj(said.get("prompt_tokens_details")) or obj(said.get("input_tokens_details"))
    thinking = obj(said.get("completion_tokens_details")) or obj(said.get("output_tokens_details"))
    read = (
        _first(details, "cached_tokens")
        or _first(said, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
        or 0
    )
    written = _first(details, "cache_write_tokens") or _first(said, "cache_creation_input_tokens") or 0
    reasoning = _first(thinking, "reasoning_tokens") or _first(said, "reasoning_tokens") or 0
    # Reports contradict each other on xAI, so the total decides whether reasoning is inside the output or beside it.
    # Gateways to Gemini count its thoughts in the total alone.
    beside = (count(said.get("total_tokens")) or 0) - prompt - completion
    if beside > 0 and (reasoning == beside or not (reasoning or read or written)):
        reasoning, completion = beside, completion + beside
    if read + written > prompt:  # a gateway that counts cached tokens beside the prompt
        prompt += read + written
    return Usage(prompt, completion, read, written, min(reasoning, completion))


def _first(said: dict[str, object], *names: str) -> int | None:
    return next((number for name in names if (number := count(said.get(name))) is not None), None)
