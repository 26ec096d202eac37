"""Finding out what an error body says, in any of the shapes that servers send.

The shapes: `{"error": {...}}` (OpenAI, Anthropic, Gemini), the same in an array (Gemini's compatible endpoint),
`{"error": "text"}` (Ollama, xAI), `{"object": "error", "message": …}` (vLLM, Mistral), `{"detail": "text" | [...]}`
(FastAPI), `{"code": …, "message": …}` (DashScope), `{"base_resp": {"status_msg": …}}` (MiniMax), any of these as JSON
text inside another's message (LiteLLM, proxies), plain text, HTML, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ._json import Object, is_array, is_object, items, obj, parse_beginning, parse_lenient, text

_CODES = ("code", "type", "status", "reason", "error_code", "error_type")
_DEPTH = 4


@dataclass(slots=True)
class ErrorFacts:
    """What a body says: the innermost message, every code-like word in it, an HTTP status that it names.

    `headers` are those that it repeats, their names in small letters.
    """

    message: str = ""
    codes: set[str] = field(default_factory=set[str])
    status: int | None = None
    param: str = ""
    request_id: str = ""
    delay: str = ""
    quotas: list[str] = field(default_factory=list[str])
    filtered: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    html: bool = False


def read_error_body(body: bytes) -> ErrorFacts:
    """The facts in a body. Never raises."""
    said = body.decode("utf-8", "replace").strip()
    facts = ErrorFacts()
    if said[:1] == "<":
        facts.html = True
    elif said[:1] in ("{", "["):
        try:
            _collect(parse_lenient(said), facts, 0)
        except ValueError:
            facts.message = said
    else:
        _collect(said, facts, 0)
    return facts


def read_error_object(value: object) -> ErrorFacts:
    """The facts in an error that is parsed already."""
    facts = ErrorFacts()
    _collect(value, facts, 0)
    return facts


def _collect(value: object, facts: ErrorFacts, depth: int) -> None:
    if depth > _DEPTH:
        return
    if isinstance(value, str):
        _collect_text(value, facts, depth)
    elif is_array(value):
        _collect_list(items(value), facts, depth)
    elif is_object(value):
        _collect_object(obj(value), facts, depth)


def _collect_text(said: str, facts: ErrorFacts, depth: int) -> None:
    """A message; where it holds JSON (alone, or behind a proxy's own words), what that says counts."""
    start = said.find("{")
    if start >= 0:
        try:
            inner = obj(parse_beginning(said[start:]))
        except ValueError:
            inner = {}
        if inner:
            before = facts.message
            facts.message = ""
            _collect_object(inner, facts, depth + 1)
            if facts.message:
                return
            facts.message = before
    if said.strip():
        facts.message = said.strip()


def _collect_list(elements: list[object], facts: ErrorFacts, depth: int) -> None:
    """FastAPI's validation errors become one line; of other arrays, the first element speaks."""
    lines = [
        f"{'.'.join(map(str, items(each.get('loc'))))}: {text(each.get('msg'))}"
        for each in map(obj, elements)
        if each.get("msg")
    ]
    if lines:
        facts.message = "; ".join(lines)
    elif elements:
        _collect(elements[0], facts, depth + 1)


def _collect_object(said: Object, facts: ErrorFacts, depth: int) -> None:
    _collect_facts(said, facts)
    for key in ("detail", "msg", "message", "status_msg"):
        if isinstance(said.get(key), str | list):
            _collect(said[key], facts, depth + 1)
    for key in ("errors", "error", "innererror", "base_resp"):
        if said.get(key):
            _collect(said[key], facts, depth + 1)
    details = said.get("details")
    if is_object(details):
        _collect_facts(obj(details), facts)
    for each in map(obj, items(details)):
        _collect_google_detail(each, facts)
    metadata = obj(said.get("metadata"))  # OpenRouter: what the provider behind it said, its own limits
    if metadata.get("raw"):
        _collect(metadata["raw"], facts, depth + 1)
    facts.headers.update((name.lower(), text(value)) for name, value in obj(metadata.get("headers")).items())
    if metadata.get("flagged_input") or metadata.get("reasons"):
        facts.codes.add("content_filter")


def _collect_facts(said: Object, facts: ErrorFacts) -> None:
    for key in _CODES:
        value = said.get(key)
        if isinstance(value, str):
            facts.codes.add(value.lower())
        if isinstance(value, int) and not isinstance(value, bool):
            facts.codes.add(str(value))
    facts.status = _status(said.get("code")) or _status(said.get("status")) or facts.status
    facts.param = text(said.get("param")) or facts.param
    facts.request_id = text(said.get("request_id")) or facts.request_id
    if "failed_generation" in said:
        facts.codes.add("failed_generation")
    for name, verdict in obj(said.get("content_filter_result")).items():
        if obj(verdict).get("filtered") is True:
            facts.filtered.append(name)


def _collect_google_detail(detail: Object, facts: ErrorFacts) -> None:
    """google.rpc.ErrorInfo, RetryInfo and QuotaFailure (googleapis' error_details.proto)."""
    if text(detail.get("reason")):
        facts.codes.add(text(detail["reason"]).lower())
    facts.delay = text(detail.get("retryDelay")) or facts.delay
    facts.quotas += list(_quota_ids(detail))


def _quota_ids(detail: Object) -> Iterator[str]:
    for violation in map(obj, items(detail.get("violations"))):
        yield text(violation.get("quotaId"))


def _status(code: object) -> int | None:
    if isinstance(code, str) and code.isdecimal():
        code = int(code[:6])
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else None
