"""Gemini's decoder: wire cases 29, 37 and 44 and their siblings, without and with a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import Gemini, Quirks
from gotato_gateway._dialect import Hearing
from gotato_gateway._gemini_stream import GeminiDecoder
from gotato_py import (
    AuthenticationFailed,
    ConnectionFailed,
    InvalidRequest,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageUpdate,
)

from .answers import Answer, ask, gather, in_case_notation, local
from .cases import answer_to, check_events, load, variants
from .server import Reply, Server, sse

ORIGIN = "gemini:gemini"


def heard(*chunks: object) -> Answer:
    """What these chunks mean; strings go in as they are."""
    decoder = GeminiDecoder(Hearing(Quirks(), ORIGIN, "gemini"))

    def events() -> Iterator[ModelEvent]:
        for each in chunks:
            yield from decoder.feed(each if isinstance(each, str) else json.dumps(each))
        yield from decoder.finish()

    return gather(events())


def chunk(*parts: object, finish: str | None = None, **more: object) -> dict[str, Any]:
    """A chunk with these parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


def call(name: str = "f", **members: object) -> dict[str, Any]:
    """A part that calls a function."""
    return {"functionCall": {"name": name, **members}}


def test_29_a_malformed_call_may_be_tried_again(shared: Path) -> None:
    """A finish word for a call that could not be read is a retryable error that names it; its tokens are told."""
    case = load(shared, "29")
    answer = answer_to(case["input"], case, Gemini)
    check_events(answer, case["expect"], "29")
    assert isinstance(answer.error, ModelProtocolError)
    assert "MALFORMED_FUNCTION_CALL" in str(answer.error)
    assert "default_api" not in str(answer.error)
    assert answer.events == [UsageUpdate(Usage(50))]


def test_37_thoughts_are_counted_beside_candidates(shared: Path) -> None:
    """Thoughts are added to the output, and a cached count that came once stays."""
    case = load(shared, "37")
    (name, variant, expect), *_ = [each for each in variants(case, "gemini") if each[1].get("dialect") == "gemini"]
    check_events(answer_to(variant, case, Gemini), expect, name)


def test_44_signatures_on_every_kind_of_part(shared: Path) -> None:
    """A signature on text or on an empty part is no thought and hides no text; one on a call is the call's."""
    case = load(shared, "44")
    answer = answer_to(case["input"], case, Gemini)
    wanted = [event for event in case["expect"]["events"] if event["type"] not in ("usage", "done")]
    for ours in in_case_notation(answer):
        if ours["type"] == "tool_call":
            signature = next(each.signature for each in answer.calls if each.id == ours["id"])
            expected = wanted.pop(0)
            assert (ours["name"], ours["arguments"]) == (expected["name"], expected["arguments"])
            assert signature == expected.get("signature", "")
        elif ours["type"] != "reasoning_done" or ours["signature"] is None:
            assert not wanted or ours == wanted.pop(0)
    assert not wanted
    signed = [event for event in answer.events if isinstance(event, ReasoningDone) and event.signature]
    assert [(event.signature, event.redacted) for event in signed] == [("U0lHMQ==", False), ("U0lHMw==", True)]
    assert answer.done.stop_reason is StopReason.TOOL_CALLS
    assert answer.done.usage == Usage(9, 11, 0, 0, 4)
    assert len({each.id for each in answer.calls}) == 2


def test_a_signature_on_a_thought_ends_it() -> None:
    """It is the thought's own, also where it comes in a piece without words."""
    answer = heard(
        chunk({"text": "a", "thought": True, "thoughtSignature": "QQ=="}),
        chunk({"text": "b", "thought": True}),
        chunk({"text": "", "thought": True, "thoughtSignature": "Qg=="}, finish="STOP"),
    )
    done = [event for event in answer.events if isinstance(event, ReasoningDone)]
    assert done == [ReasoningDone("QQ==", ORIGIN), ReasoningDone("Qg==", ORIGIN)]
    assert answer.reasoning == "ab"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", StopReason.END_TURN),
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("RECITATION", StopReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", StopReason.CONTENT_FILTER),
    ],
)
def test_finish_words(word: str, reason: StopReason) -> None:
    """Each finish word has its meaning; a call changes that of a natural end only."""
    assert heard(chunk({"text": "x"}, finish=word)).done.stop_reason is reason
    called = heard(chunk(call(), finish=word)).done.stop_reason
    assert called is (StopReason.TOOL_CALLS if reason is StopReason.END_TURN else reason)


@pytest.mark.parametrize(
    ("word", "kind", "retryable"),
    [
        ("UNEXPECTED_TOOL_CALL", ModelProtocolError, True),
        ("MALFORMED_RESPONSE", ModelProtocolError, True),
        ("OTHER", ModelProtocolError, True),
        ("MISSING_THOUGHT_SIGNATURE", InvalidRequest, False),
        ("PUP_LIMITED_DISABLED", AuthenticationFailed, False),
    ],
)
def test_finish_words_that_are_failures(word: str, kind: type[ModelError], retryable: bool) -> None:
    """An answer that was given up is an error, also after text."""
    answer = heard(chunk({"text": "x"}, finish=word))
    assert type(answer.error) is kind
    assert answer.error is not None
    assert answer.error.retryable is retryable
    assert word in str(answer.error)


def test_an_unknown_finish_word_is_an_end_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A word that nobody knows yet ends the answer, once with a warning."""
    with Server(Reply(sse(chunk({"text": "x"}, finish="BRAND_NEW"), done=False))) as server:
        adapter = local(server.url, Gemini)
        assert ask(adapter).done.stop_reason is StopReason.END_TURN
        ask(adapter)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_blocked_prompt_is_a_filtered_answer() -> None:
    """A 200 whose prompt was blocked has no candidates and is Done, not an error."""
    answer = heard({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}})
    assert answer.events == [answer.done]
    assert (answer.done.stop_reason, answer.done.usage) == (StopReason.CONTENT_FILTER, Usage(5))


@pytest.mark.parametrize(
    "chunks", [(), (chunk({"text": "x"}),), ({"usageMetadata": {"promptTokenCount": 1}},), ("{}",)]
)
def test_a_stream_without_a_finish_word_was_cut_off(chunks: tuple[object, ...]) -> None:
    """The end of the body alone ends no answer."""
    answer = heard(*chunks)
    assert type(answer.error) is ConnectionFailed
    assert answer.error.retryable


def test_a_finish_word_with_every_chunk_ends_nothing() -> None:
    """Older models say STOP all along; what follows still counts."""
    answer = heard(chunk({"text": "a"}, finish="STOP"), chunk({"text": "b"}, finish="STOP"))
    assert answer.text == "ab"


def test_text_comes_at_once_and_calls_when_they_are_there() -> None:
    """Every piece gives its events before the next is read."""
    decoder = GeminiDecoder(Hearing(Quirks(), ORIGIN))
    assert decoder.feed(json.dumps(chunk({"text": "a"}))) == [TextDelta("a")]
    assert decoder.feed(json.dumps(chunk(call(args={"b": 1, "c": "ü"}))))[0] == ToolCallDelta(
        0, "f", '{"b": 1, "c": "ü"}'
    )


def test_what_the_server_did_by_itself_is_no_call() -> None:
    """Code, searches, grounding and media of the answer are skipped; a signed part is kept whole for the way back."""
    searched = {"toolCall": {"toolType": "SEARCH", "id": "t"}, "thoughtSignature": "QQ=="}
    answer = heard(
        chunk({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
        chunk({"inlineData": {"mimeType": "image/png", "data": ""}}, {"brandNew": 1}, searched, 5),
        {"candidates": [{"groundingMetadata": {"x": 1}, "finishReason": "STOP"}]},
    )
    (kept, done) = answer.events
    assert isinstance(kept, ReasoningDone)
    assert json.loads(kept.signature) == searched
    assert kept.redacted
    assert done is answer.done
    assert answer.calls == []


def test_calls_in_odd_forms() -> None:
    """Arguments may be missing or a text, ids blank or there; NaN is given on as it came, for the kernel to refuse."""
    odd = [call(), call(args=None, id=""), call(args={}, id="x"), call(args=[1]), call(args='{"a": 1}'), call(args="")]
    answer = heard(chunk(*odd), chunk(finish="STOP"))
    assert [each.arguments for each in answer.calls] == ["{}", "{}", "{}", "[1]", '{"a": 1}', "{}"]
    assert answer.calls[2].id == "x"
    assert all(each.id for each in answer.calls)
    assert all(each.origin == "" for each in answer.calls)
    nan = heard(
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":NaN}}}]},"finishReason":"STOP"}]}'
    )
    assert nan.calls[0].arguments == '{"a": NaN}'


def test_only_the_first_candidate_counts() -> None:
    """Others were not asked for."""
    other = {"content": {"parts": [{"text": "no"}]}, "index": 1, "finishReason": "STOP"}
    first = chunk({"text": "yes"}, finish="STOP")
    assert heard({"candidates": [other, *first["candidates"]]}).text == "yes"


def test_counts_are_snapshots() -> None:
    """The last of each count stands, prompts of server-side tools are input, and nonsense counts nothing."""
    answer = heard(
        chunk(usageMetadata={"promptTokenCount": 169, "candidatesTokenCount": 3, "cachedContentTokenCount": 500}),
        chunk(usageMetadata={"promptTokenCount": 79, "toolUsePromptTokenCount": 11, "thoughtsTokenCount": "x"}),
        chunk(usageMetadata=None, finish="STOP"),
    )
    assert answer.done.usage == Usage(90, 3, 90)
    assert heard(chunk(finish="STOP")).done.usage is None


def test_done_names_the_answer_and_the_model() -> None:
    """`Done` has the id and the version of the model that really answered."""
    done = heard(chunk(finish="STOP", responseId="r1", modelVersion="gemini-2.5-flash-001")).done
    assert (done.response_id, done.model) == ("r1", "gemini-2.5-flash-001")


def test_a_proxys_last_event_is_no_chunk() -> None:
    """`[DONE]`, which Google does not send, ends the answer."""
    assert heard(chunk({"text": "x"}, finish="STOP"), "[DONE]").text == "x"


@pytest.mark.parametrize("data", ["no json", "[" * 20000])
def test_what_is_no_json_is_a_protocol_error(data: str) -> None:
    """An event that cannot be read is an error that may be retried."""
    assert type(heard(data).error) is ModelProtocolError


MEMBERS = [
    *("candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args", "id"),
    *("finishReason", "usageMetadata", "promptTokenCount", "promptFeedback", "blockReason", "index"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=25,
)


@given(st.lists(JSON | st.builds(chunk, JSON, finish=st.none() | st.just("STOP")), max_size=4))
def test_nothing_that_a_server_sends_breaks_the_decoder(chunks: list[Any]) -> None:
    """Any JSON gives events or a typed error, with one Done at most, and that last."""
    answer = heard(*map(json.dumps, chunks))
    kinds = [type(event).__name__ for event in answer.events]
    assert kinds.count("Done") == (1 if answer.error is None else 0)
    assert "Done" not in kinds[:-1]
