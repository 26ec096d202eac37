"""The wire cases beside the project: bytes in, neutral outcome. They are skipped where the folder is absent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gotato_gateway import Adapter, OpenAIChat
from gotato_py import (
    AuthenticationFailed,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    ModelProtocolError,
    ModelRequest,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    UserMessage,
)

from .answers import Answer, ask, expected_events, in_case_notation, local, tools
from .server import Reply, Server

Case = dict[str, Any]

ERRORS: Mapping[str, type[ModelError]] = {
    "auth": AuthenticationFailed,
    "billing": QuotaExhausted,
    "rate_limit": RateLimited,
    "overloaded": Overloaded,
    "server_error": Overloaded,
    "network": ConnectionFailed,
    "timeout": ConnectionFailed,
    "stream_truncated": ConnectionFailed,
    "context_overflow": ContextOverflow,
    "request_too_large": InvalidRequest,
    "invalid_request": InvalidRequest,
    "not_found": InvalidRequest,
    "content_filter": ContentFiltered,
    "model_output_invalid": ModelProtocolError,
}
"""The cases' categories in the contract's classes."""

EVERYWHERE = ("any", "all")
"""Dialects of variants that apply to all."""


def load(shared: Path, number: str) -> Case:
    """A case by its number."""
    (path,) = (shared / "cases" / "gateway").glob(f"{number}-*.json")
    case: Case = json.loads(path.read_text("utf-8"))
    return case


def variants(case: Case, dialect: str = "openai-chat") -> Iterator[tuple[str, Case, Case]]:
    """Name, input and expectation of each variant of this dialect; of the case itself where it has none.

    A variant that names no dialect counts as this one: see that the case is one of its own.
    """
    given, expect = case["input"], case["expect"]
    for variant in given.get("variants", [given | {"name": case["id"]}]):
        if variant.get("dialect", dialect) in (dialect, *EVERYWHERE):
            name = variant["name"]
            each = expect.get("each", {})
            yield name, variant, each.get(name) or each.get(name.split("-")[0]) or expect.get("all_others") or expect


def pieces_in(variant: Case) -> list[bytes]:
    """The network chunks of a stream."""
    if "stream_chunks_b64" in variant:
        return [base64.b64decode(piece) for piece in variant["stream_chunks_b64"]]
    return [piece.encode() for piece in variant["stream_chunks"]]


def reply_in(variant: Case, **how: Any) -> Reply:
    """What the server of a variant answers."""
    if "stream_chunks" in variant or "stream_chunks_b64" in variant:
        return Reply(pieces_in(variant), **how)
    http = variant["http"]
    body = http["body"].encode()
    return Reply([body] if body else [], http["status"], http["headers"], "length", **how)


def answer_to(variant: Case, case: Case, adapter: type[Adapter] = OpenAIChat, **how: Any) -> Answer:
    """What an adapter makes of a variant."""
    names = [tool["name"] for tool in case["input"].get("tools", ())]
    with Server(reply_in(variant, **how)) as server:
        return ask(local(server.url, adapter), request_with(*names))


def request_with(*names: str) -> ModelRequest:
    """A request that declares tools of these names."""
    return ModelRequest(messages=(UserMessage("hi"),), tools=tools(*names))


def check_events(answer: Answer, expect: Case, name: str) -> None:
    """The events, and the error at the end if one is expected."""
    events = expect["events"]
    found = in_case_notation(answer)
    wanted = expected_events(events)
    for ours, theirs in zip(found, wanted, strict=False):
        if str(theirs.get("id", "")).startswith("<generated"):
            assert ours["id"], name
            theirs["id"] = ours["id"]
    assert found == wanted, name
    if events and events[-1]["type"] == "error":
        check_error(answer.error, events[-1], name)
    else:
        assert answer.error is None, name


def check_error(error: ModelError | None, expect: Case, name: str) -> None:
    """Class, retry and the facts that the case names."""
    assert type(error) is ERRORS[expect["category"]], (name, error)
    assert error is not None
    assert error.retryable is expect["retryable"], name
    if "retry_after_s" in expect:
        wanted = expect["retry_after_s"]
        assert (error.retry_after is None) if wanted is None else abs((error.retry_after or 0) - wanted) < 0.01, name
    if "message_contains" in expect:
        assert expect["message_contains"] in str(error), (name, str(error))
    if "request_id" in expect:
        assert error.request_id == expect["request_id"], name
    if "code" in expect:
        assert error.status == expect["code"], name
