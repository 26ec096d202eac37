"""When a provider wants to be asked again, and what is left of its limits: headers, bodies and texts.

Forms: Retry-After in seconds or as a date (RFC 9110, 10.2.3), `retry-after-ms` (Azure and OpenAI), `x-ratelimit-*`
(OpenAI's and Groq's documentation on rate limits; durations like "1m2.5s"), google.rpc.RetryInfo in a body, and "try
again in 4.77s" in a message (Groq).
"""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping

from gotato_py import RateLimits

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_SAID = re.compile(
    r"(?:try again|retry)(?: after| in)\s+((?:\d+(?:\.\d+)?\s*(?:ms|[smhd])(?![a-z]))+|\d+(?:\.\d+)?(?= ?second))",
    re.IGNORECASE,
)


def duration(said: str) -> float | None:
    """Seconds from "12", "1.5", "250ms" or "1m2.5s"; None for anything else, negative or not finite."""
    said = said.strip().lower()
    if _DURATION.fullmatch(said):
        return sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(said))
    try:
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
    asked = headers.get("retry-after", "")
    seconds = duration(asked)
    if seconds is None and asked:
        seconds = _until(asked, now)
    if seconds is None:
        seconds = _exhausted(headers, now)
    if seconds is None:
        seconds = duration(delay)
    if seconds is None and (found := _SAID.search(said)):
        seconds = duration(found[1].replace(" ", ""))
    return seconds


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _exhausted(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset among the limits of which nothing remains; the others do not hold this request up."""
    waits: list[float] = []
    for suffix in ("", "-requests", "-tokens"):
        if headers.get(f"x-ratelimit-remaining{suffix}", "").strip() == "0":
            wait = duration(headers.get(f"x-ratelimit-reset{suffix}", ""))
            if wait is not None:
                waits.append(_relative(wait, now))
    return max(waits, default=None)


def _relative(reset: float, now: float) -> float:
    """A reset may also be a Unix time, in seconds or (OpenRouter) in milliseconds."""
    if reset > 1e11:
        reset /= 1000
    return max(0.0, reset - now) if reset > 1e8 else reset


def rate_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:
    """What the headers tell about the limits, or None if they tell nothing."""
    facts = {
        f"{what}_{of}": _whole(headers.get(f"x-ratelimit-{what}-{of}", ""))
        for what in ("limit", "remaining")
        for of in ("requests", "tokens")
    }
    resets = {of: duration(headers.get(f"x-ratelimit-reset-{of}", "")) for of in ("requests", "tokens")}
    if all(fact is None for fact in facts.values()) and all(reset is None for reset in resets.values()):
        return None
    requests, tokens = (None if reset is None else _relative(reset, now) for reset in resets.values())
    return RateLimits(**facts, reset_requests_s=requests, reset_tokens_s=tokens)


def _whole(said: str) -> int | None:
    number = duration(said)
    return None if number is None else int(number)
