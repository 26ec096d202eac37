"""Real streams of real providers give what the provider's own SDK made of them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from gotato_py import ConnectionFailed, InvalidRequest, ReasoningDone

from .answers import Answer, ask, local
from .recordings import ADAPTERS, ALL, COPIED, Recording
from .server import Reply, Server


def assert_as_recorded(answer: Answer, recording: Recording) -> None:
    """The neutral events say what the SDK said; ids are compared where the provider gave some."""
    expect: dict[str, Any] | None = recording.expect
    assert answer.error is None
    assert expect is not None
    assert answer.text == expect["text"]
    assert recording.same_reasoning(answer.reasoning)
    for call, wanted in zip(answer.calls, expect["tool_calls"], strict=True):
        assert {name: getattr(call, name) for name in wanted} == wanted
    assert answer.done.stop_reason == recording.stop_reason
    usage = answer.done.usage
    assert {name: getattr(usage, name) for name in recording.usage} == recording.usage
    if "signatures_sha256_16" in expect:
        closed = [event for event in answer.events if isinstance(event, ReasoningDone)]
        hashes = [sha256(event.signature.encode()).hexdigest()[:16] for event in closed if not event.redacted]
        assert hashes == expect["signatures_sha256_16"]
        assert sum(event.redacted and bool(event.signature) for event in closed) == expect["redacted_thinking"]
    if "encrypted_reasoning" in expect:
        sealed = [event for event in answer.events if isinstance(event, ReasoningDone) and event.signature]
        assert len(sealed) == expect["encrypted_reasoning"]
    if "thought_signatures" in expect:
        ended = [event for event in answer.events if isinstance(event, ReasoningDone) and event.signature]
        signed = [call.signature for call in answer.calls if call.signature]
        assert len(ended) + len(signed) == expect["thought_signatures"]


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_a_recording_means_the_same_here(recording: Recording) -> None:
    """A recorded stream, in pieces of random sizes, gives the text, calls, usage and end that the SDK found."""
    answer = recording.replay()
    if recording.expect is not None:
        assert_as_recorded(answer, recording)
    else:
        # The provider reported an error inside the 200, after a finish word. The SDK raises, and so do we: neither the
        # word nor the [DONE] behind it makes the answer good. Its code 400 makes it a refused request.
        assert recording.facts["sdk_error"] == "APIError: Token limit reached"
        assert isinstance(answer.error, InvalidRequest)
        assert "Token limit reached" in str(answer.error)


@pytest.mark.parametrize(
    ("framing", "gzip"), [("chunked", False), ("close", False), ("length", False), ("chunked", True), ("close", True)]
)
@pytest.mark.parametrize("recording", COPIED, ids=str)
def test_the_framing_of_the_body_changes_nothing(recording: Recording, framing: str, gzip: bool) -> None:
    """The same stream chunked, delimited by the close or by its length, plain or compressed, gives the same answer."""
    assert_as_recorded(recording.replay(framing=framing, gzip=gzip), recording)


FIRST = {each.dialect: each for each in reversed(COPIED)}.values()
STRANGERS = [(each, other) for each in FIRST for other in ADAPTERS if other != each.dialect]


@pytest.mark.parametrize(("recording", "other"), STRANGERS, ids=lambda each: getattr(each, "dialect", each))
def test_no_dialect_takes_anothers_answer_for_its_own(recording: Recording, other: str) -> None:
    """A stream of another dialect, with the `[DONE]` that proxies add, is an error and never an answer of nothing."""
    with Server(Reply([recording.body, b"\n\ndata: [DONE]\n\n"])) as server:
        assert isinstance(ask(local(server.url, ADAPTERS[other])).error, ConnectionFailed)
