"""A refusal, by HTTP status or inside a stream, as a typed `ModelError`: one function for all dialects.

The status alone decides little: money comes as 400, 402, 403 or 429, an overflow as 400 or 413, a wrong key as 400 too.
So the codes in the body come first, then a few phrases, then the status. The phrases are those of the providers'
documentation and of their servers (OpenAI, Anthropic, Google, Groq, Mistral, xAI, DeepSeek, DashScope, Moonshot, Azure,
OpenRouter, Together, vLLM, llama.cpp, LiteLLM).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gotato_py import (
    AuthenticationFailed,
    ContentFiltered,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    ModelProtocolError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
)

from ._error_body import ErrorFacts
from ._retry_after import retry_after
from ._scrub import scrub

_OVERFLOW_CODES = {
    *("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"),
    *("model_context_window_exceeded", "3051", "1261"),
}
_OVERFLOW = re.compile(
    r"maximum context length|context (window|size|limit|length)|prompt is too long|prompt length is|input token count"
    r"|reduce the length of the (messages|prompt|input)|range of input length|input is too long"
    r"|maximum model length|model token limit|`inputs` must have",
    re.IGNORECASE,
)
_OVERFLOW_WITH_ANSWER = "`inputs` tokens + `max_new_tokens` must be"
"""Together and TGI add the limit of the answer, and say that it is the parameter that is wrong."""

_MONEY_CODES = {
    *("insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active", "payment_required"),
    *("insufficient_balance", "insufficient_credits", "enforced_spend_limit_reached", "exceeded_current_quota_error"),
    *("arrearage", "allocationquota.freetieronly", "budget_exceeded", "1113"),
}
_MONEY = re.compile(
    r"credit balance|insufficient (balance|credit|fund|quota)|(out of|not enough|more|n't have any) credits"
    r"|credits are depleted|spend(ing)? (cap|limit)|api usage limits|key limit exceeded"
    r"|payment (is )?(required|overdue)|billing hard limit",
    re.IGNORECASE,
)
_MONEY_UNLESS_DELAYED = re.compile(r"exceeded your current quota", re.IGNORECASE)
"""OpenAI's word for money, and Gemini's for the limit of a minute as well, which comes with a time to wait."""

_FILTER_CODES = {
    *("content_filter", "content_filtered", "content_policy_violation", "responsibleaipolicyviolation"),
    *("data_inspection_failed", "datainspectionfailed", "moderation_blocked", "1301", "invalid_prompt", "bio_policy"),
    *("cyber_policy", "misalignment_policy_violation", "image_content_policy_violation"),
}
_OWN_OUTPUT_CODES = {"tool_use_failed", "json_validate_failed", "output_parse_failed", "failed_generation"}
_KEY_CODES = {
    *("invalid_api_key", "api_key_invalid", "invalidapikey", "authentication_error", "unauthenticated"),
    *("permission_denied", "permission_error"),
}
_KEY = re.compile(
    r"(invalid|incorrect) api.?key|api.?key not valid|no auth credentials|missing api.?key", re.IGNORECASE
)
_RATE_CODES = {
    *("rate_limit_exceeded", "rate_limit_error", "too_many_requests", "throttling", "resource_exhausted"),
    *("429", "1302", "1305"),
}
_REQUEST_CODES = {
    *("invalid_request_error", "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url"),
    *("image_too_large", "image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large"),
    *("unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found"),
    *("data_residency_mismatch", "not_found_error", "request_too_large"),
}
"""Codes for a fault of the request, where no status says so: inside a stream ("The response object", OpenAI; "Errors",
Anthropic)."""

_NO_SUCH_PATH = re.compile(r"unexpected endpoint or method", re.IGNORECASE)
"""LM Studio says so with status 200."""

_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
_AGAIN = {408, 409, 423, 424, 425, 498, 499}
"""Refusals of the moment, which the providers' own clients repeat too; 498 is Groq's missing capacity."""

Refusal = type[ModelError]
Refuse = Callable[[object], ModelError]
"""Makes the error of what a server said instead of an answer: its bytes, or an error object."""


class Origin(NamedTuple):
    """Who refused, and what must not get into the message: the secrets of the request and its texts."""

    provider: str
    secrets: tuple[str, ...] = ()
    texts: Callable[[], Iterable[str]] = tuple


def refusal(status: int, headers: Mapping[str, str], facts: ErrorFacts, origin: Origin, now: float) -> ModelError:
    """The error for a refusal. `status` 200 stands for one inside a stream; one that the body names replaces it."""
    if status == 200:
        status = facts.status or (404 if _NO_SUCH_PATH.search(facts.message) else 200)
    wait = retry_after(headers, now, facts.message, facts.delay)
    if wait is None:
        wait = retry_after(facts.headers, now)
    kind = _kind(status, facts, wait)
    hopeless = headers.get("x-should-retry", "").strip().lower() == "false" or (facts.html and status == 200)
    return kind(
        _message(status, facts, origin),
        retryable=False if hopeless else None,
        retry_after=wait,
        status=status,
        provider=origin.provider,
        request_id=scrub(_request_id(headers) or facts.request_id, origin.secrets),
        details=_details(kind, facts, origin),
    )


def _kind(status: int, facts: ErrorFacts, wait: float | None) -> Refusal:
    codes, said = facts.codes, facts.message
    if 300 <= status < 400:
        return InvalidRequest
    if status == 402 or codes & _MONEY_CODES or _MONEY.search(said):
        return QuotaExhausted
    if wait is None and (
        _MONEY_UNLESS_DELAYED.search(said) or any("perday" in quota.lower() for quota in facts.quotas)
    ):
        return QuotaExhausted
    if codes & _OWN_OUTPUT_CODES:
        return ModelProtocolError
    if codes & _FILTER_CODES or "content management policy" in said:
        return ContentFiltered
    if _TOO_LARGE.search(said) and codes & (_RATE_CODES | {"tokens"}):
        return InvalidRequest  # larger than a limit per minute: waiting does not help
    if status == 429:
        return RateLimited
    if _overflows(status, facts):
        return ContextOverflow
    if status in (401, 403, 407) or (codes & _KEY_CODES and status < 500) or (status == 400 and _KEY.search(said)):
        return AuthenticationFailed
    return _by_status(status, codes)


def _by_status(status: int, codes: set[str]) -> Refusal:
    if status >= 500 or status in _AGAIN:
        return Overloaded
    if codes & _RATE_CODES:
        return RateLimited
    if codes & _REQUEST_CODES:
        return InvalidRequest
    return InvalidRequest if status >= 400 else Overloaded


def _overflows(status: int, facts: ErrorFacts) -> bool:
    if facts.codes & _OVERFLOW_CODES:
        return True
    if status == 413 and not facts.message and not facts.html:
        return True  # Cerebras says no more than that
    if _OVERFLOW_WITH_ANSWER in facts.message:
        return True
    return status < 500 and "max_tokens" not in facts.param and bool(_OVERFLOW.search(facts.message))


def _message(status: int, facts: ErrorFacts, origin: Origin) -> str:
    said = scrub(facts.message, origin.secrets, origin.texts())
    if status == 200 and not facts.html and not said and not facts.codes:
        return f"{origin.provider} sent something that is neither an answer nor an error: check base_url"
    who = f"{origin.provider} answered {status}"
    if status == 200 and not facts.html:
        who = f"{origin.provider} reported an error in its answer"
    if 300 <= status < 400:
        return f"{who}, a redirect, which is not followed since it would take the key along: check base_url"
    if facts.html:
        return f"{who} with an HTML page, so something else than the API answered: check base_url and proxies"
    if status == 407:
        return f"{who}, which is a proxy's word for a missing name or password: check the proxy settings"
    hint = "; check the name of the model, and that base_url is what the official SDK takes" if status == 404 else ""
    return (f"{who}: {said}" if said else f"{who} and did not say why") + hint


def _request_id(headers: Mapping[str, str]) -> str:
    names = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
    return next((headers[name] for name in names if headers.get(name)), "")


def _details(kind: Refusal, facts: ErrorFacts, origin: Origin) -> dict[str, object]:
    """The codes as the provider wrote them, and the facts that a caller can act on."""
    details: dict[str, object] = {}
    secrets = [*origin.secrets, *(secret.lower() for secret in origin.secrets)]  # codes are in small letters
    codes = sorted(
        scrub(code, secrets, origin.texts()) for code in facts.codes if re.fullmatch(r"[\w.:/ -]{1,64}", code)
    )
    if codes:
        details["codes"] = tuple(codes)
    if facts.param and re.fullmatch(r"[\w.\[\]-]{1,64}", facts.param):
        details["param"] = scrub(facts.param, secrets)
    if facts.filtered:
        named = [name for name in facts.filtered[:10] if re.fullmatch(r"[\w-]{1,64}", name)]
        details["filtered"] = tuple(scrub(name, secrets) for name in named)
    if kind is ContextOverflow:
        details.update(_sizes(facts.message))
    return details


_LIMIT = re.compile(
    r"(?:maximum (?:context|prompt|model) length (?:is|of)|>|context size \(|tokens allowed \(|model with|must be <="
    r"|token limit:) ?(\d{3,})",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?:resulted in|requested(?: about)?:?|too long:|request \(|token count \(|contains|prompt \(length|Given:)"
    r" ?(\d{3,})"
    r"|(\d{3,}) ?\+ ?\d+ ?>",
    re.IGNORECASE,
)


def _sizes(said: str) -> dict[str, object]:
    limit, asked = _LIMIT.search(said), _ASKED.search(said)
    if limit is None or asked is None:
        return {}
    return {"limit_tokens": int(limit[1]), "requested_tokens": int(asked[1] or asked[2])}
