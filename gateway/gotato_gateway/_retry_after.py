"""When a provider wants to be asked again, and what is left of its limits: headers, bodies and texts.

Forms: Retry-After in seconds or as a date (RFC 9110, 10.2.3), also as `llm_provider-retry-after` (what a LiteLLM proxy
was told by the provider behind it), `retry-after-ms` (Azure and OpenAI), `x-ratelimit-*` (OpenAI's and Groq's
documentation on rate limits; durations like "1m2.5s"; Cerebras and Mistral put a time behind the name),
`anthropic-ratelimit-*` (Anthropic's; times of day as RFC 3339 has them), google.rpc.RetryInfo in a body, and "try again
in 4.77s" (Groq) or "please wait 45 seconds" (GitHub) in a message.
"""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from gotato_py import RateLimits

_REQUESTS = ("requests", "requests-minute", "req-minute", "requests-hour", "requests-day")
_TOKENS = ("tokens", "tokens-minute", "tokens-hour", "tokens-day")
"""What is limited, as OpenAI names it, then as Cerebras and Mistral do, with its time; the shortest counts."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_SHORT = {"millisecond": "ms", "sec": "s", "second": "s", "min": "m", "minute": "m", "hour": "h", "day": "d"}
_IN_WORDS = rf"(\d+(?:\.\d+)?)\s*({'|'.join([*_UNITS, *_SHORT])})s?(?![a-z])"
_SAID_STEP = re.compile(_IN_WORDS, re.IGNORECASE)
_SAID = re.compile(rf"(?:(?:try again|retry)(?: after| in)|please wait)\s+((?:{_IN_WORDS}[, ]*)+)", re.IGNORECASE)


def duration(said: str) -> float | None:
    """Seconds from "12", "1.5", "250ms" or "1m2.5s"; None for anything else, negative or not finite."""
    said = said.strip().lower()
    try:
        if _DURATION.fullmatch(said):
            seconds = sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(said))
        else:
            seconds = float(said)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def retry_after(headers: Mapping[str, str], now: float, said: str = "", delay: str = "") -> float | None:
    """Seconds to wait, as asked for by the headers, else by the body's `delay`, else by its message.

    `now` is Unix time: a date is compared with it, and one in the past means at once.
    """
    milliseconds = duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after") or headers.get("llm_provider-retry-after", "")
    seconds = duration(asked)
    if seconds is None and asked:
        seconds = _until(asked, now)
    if seconds is None:
        seconds = _exhausted(headers, now)
    if seconds is None:
        seconds = duration(delay)
    if seconds is None and (found := _SAID.search(said)):
        seconds = _in_words(found[1])
    return seconds


def _in_words(said: str) -> float | None:
    """Seconds from "4.77s" or "1 minute, 5 seconds"."""
    steps = ((float(number), word.lower()) for number, word in _SAID_STEP.findall(said))
    seconds = sum(number * _UNITS[word if word in _UNITS else _SHORT[word]] for number, word in steps)
    return seconds if math.isfinite(seconds) else None


def _until(date: str, now: float) -> float | None:
    try:
        return _seconds_until(email.utils.parsedate_to_datetime(date), now)
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds_until(moment: datetime, now: float) -> float:
    """One without an offset is UTC, as every date of HTTP is."""
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)


def _exhausted(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset among the limits of which nothing remains; the others do not hold this request up."""
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    for suffix in ("", *(f"-{name}" for name in (*_REQUESTS, *_TOKENS))):
        if headers.get(f"x-ratelimit-remaining{suffix}", "").strip() == "0":
            wait = duration(headers.get(f"x-ratelimit-reset{suffix}", ""))
            if wait is not None:
                yield _relative(wait, now)
    for limit in ("requests", "tokens", "input-tokens", "output-tokens"):
        if headers.get(f"anthropic-ratelimit-{limit}-remaining", "").strip() == "0":
            wait = _until_moment(headers.get(f"anthropic-ratelimit-{limit}-reset", ""), now)
            if wait is not None:
                yield wait


def _until_moment(moment: str, now: float) -> float | None:
    """Seconds until a moment as RFC 3339 writes it."""
    try:
        return _seconds_until(datetime.fromisoformat(moment.strip()), now)
    except (ValueError, OverflowError):
        return None


def _relative(reset: float, now: float) -> float:
    """A reset may also be a Unix time, in seconds or (OpenRouter) in milliseconds."""
    if reset > 1e11:
        reset /= 1000
    return max(0.0, reset - now) if reset > 1e8 else reset


def rate_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """What the headers tell about the limits, or None if they tell nothing."""
    found = [_usual_limit(headers, names, now) for names in (_REQUESTS, _TOKENS)]
    if not any(map(_told, found)):
        # Anthropic's "tokens" are those of the limit that is nearest; where it is missing, the input is what is short.
        found = [_anthropic_limit(headers, names, now) for names in (("requests",), ("tokens", "input-tokens"))]
    if not any(map(_told, found)):
        return None
    (limit_requests, remaining_requests, reset_requests), (limit_tokens, remaining_tokens, reset_tokens) = found
    return RateLimits(limit_requests, remaining_requests, reset_requests, limit_tokens, remaining_tokens, reset_tokens)


_Limit = tuple[int | None, int | None, float | None]


def _told(limit: _Limit) -> bool:
    return any(fact is not None for fact in limit)


def _first_told(limits: Iterable[_Limit]) -> _Limit:
    return next(filter(_told, limits), (None, None, None))


def _usual_limit(headers: Mapping[str, str], names: tuple[str, ...], now: float) -> _Limit:
    def limit(name: str) -> _Limit:
        most, remaining = (_whole(headers.get(f"x-ratelimit-{what}-{name}", "")) for what in ("limit", "remaining"))
        reset = duration(headers.get(f"x-ratelimit-reset-{name}", ""))
        return most, remaining, None if reset is None else _relative(reset, now)

    return _first_told(map(limit, names))


def _anthropic_limit(headers: Mapping[str, str], names: tuple[str, ...], now: float) -> _Limit:
    def limit(name: str) -> _Limit:
        said = {what: headers.get(f"anthropic-ratelimit-{name}-{what}", "") for what in ("limit", "remaining", "reset")}
        return _whole(said["limit"]), _whole(said["remaining"]), _until_moment(said["reset"], now)

    return _first_told(map(limit, names))


def _whole(said: str) -> int | None:
    number = duration(said)
    return None if number is None else int(number)
