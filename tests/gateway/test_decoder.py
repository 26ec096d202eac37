"""From chunks to events: what no recording and no wire case shows."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gotato_gateway import Quirks
from gotato_gateway._dialect import Hearing
from gotato_gateway._openai_stream import ChatDecoder
from gotato_gateway._sse import SSEReader
from gotato_gateway._think_tags import ThinkTags
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    Done,
    ModelEvent,
    ModelProtocolError,
    Overloaded,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    Usage,
    UsageUpdate,
)

from ..effort import costly
from .answers import Answer, ask, local
from .chunks import decoded, delta, entry
from .recordings import COPIED, Recording
from .server import Reply, Server, chunk, sse


@pytest.mark.parametrize("recording", COPIED, ids=str)
@costly(8)
@example(places=None)
@given(places=st.lists(st.integers(0, 100_000), max_size=30))
def test_chunk_borders_change_nothing(recording: Recording, places: list[int] | None) -> None:
    """A recorded body, cut anywhere, down to single bytes, gives the same answer in every dialect."""
    body, expect = recording.body, recording.expect
    cuts = range(len(body)) if places is None else [place % (len(body) + 1) for place in places]
    borders = [0, *sorted(cuts), len(body)]
    reader, decoder = SSEReader(), recording.decoder()
    events: list[ModelEvent] = []
    for piece in [*(body[a:b] for a, b in pairwise(borders)), None]:
        for found in reader.finish() if piece is None else reader.feed(piece):
            events += decoder.feed(found.data, found.event)
    answer = Answer([*events, *decoder.finish()])
    assert expect is not None
    assert answer.text == expect["text"]
    assert recording.same_reasoning(answer.reasoning)
    assert [call.arguments for call in answer.calls] == [call["arguments"] for call in expect["tool_calls"]]


def test_reasoning_is_closed_before_anything_else() -> None:
    """A block of reasoning ends before text, before a call and before the end, with its origin."""
    answer = decoded(
        delta(reasoning="a"),
        delta(content="x"),
        delta(reasoning="b"),
        entry("{}", call_id="i", name="f"),
        delta("stop", reasoning="c"),
    )
    kinds = [type(event) for event in answer.events if not isinstance(event, ToolCallDelta)]
    block = [ReasoningDelta, ReasoningDone]
    assert kinds == [*block, TextDelta, *block, *block, ToolCallReady, Done]
    assert {event.origin for event in answer.events if isinstance(event, ReasoningDone)} == {"openai-chat:m"}


def test_signed_reasoning_keeps_its_details() -> None:
    """Where details go back to the server, they are joined by index and kept in the signature."""
    quirks = quirks_for("https://openrouter.ai/api/v1", "m")
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    answer = decoded(
        delta(reasoning="a", reasoning_details=[text | {"text": "a"}]),
        delta(reasoning="b", reasoning_details=[text | {"text": "b", "signature": ""}]),
        delta(reasoning_details=[text | {"signature": "s"}]),
        delta("stop", content="x"),
        quirks=quirks,
    )
    (done,) = [event for event in answer.events if isinstance(event, ReasoningDone)]
    assert json.loads(done.signature) == [text | {"text": "ab", "signature": "s"}]
    assert not done.redacted


def test_encrypted_reasoning_is_redacted() -> None:
    """An encrypted block without words is a ReasoningDone of its own, to be sent back."""
    quirks = quirks_for("https://openrouter.ai/api/v1", "m")
    sealed = {"type": "reasoning.encrypted", "data": "zzz", "index": 0}
    answer = decoded(delta(reasoning_details=[sealed]), delta("stop", content="x"), quirks=quirks)
    assert answer.events[0] == ReasoningDone(
        json.dumps([sealed], separators=(",", ":")), "openai-chat:m", redacted=True
    )
    assert answer.text == "x"


@pytest.mark.parametrize("failing", [{"error": {"message": "x"}}, None, chunk(finish="error")])
def test_usage_is_told_even_when_the_answer_fails(failing: object) -> None:
    """Tokens that were counted before an error, a cut or a word of failure are reported before it."""
    used = chunk("x", usage={"prompt_tokens": 5, "completion_tokens": 1})
    with Server(Reply(sse(*[each for each in (used, failing) if each], done=False))) as server:
        answer = ask(local(server.url))
    assert answer.error is not None
    assert answer.events[-1] == UsageUpdate(Usage(5, 1))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": None, "completion_tokens": "3"}, None),
        ({"prompt_tokens": 3.0, "completion_tokens": True}, Usage(3)),
        ({"prompt_tokens": -1, "completion_tokens": 2}, Usage(0, 2)),
        ({"input_tokens": 4, "output_tokens": 2, "cache_read_input_tokens": 10}, Usage(14, 2, 10)),
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 9}},
            Usage(1, 2, reasoning_tokens=2),
        ),
    ],
)
def test_strange_usage(usage: object, expected: Usage | None) -> None:
    """Usage of the wrong types, or with parts larger than the whole, gives counts that fit together."""
    assert decoded(chunk("x", "stop", usage=usage)).done.usage == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"total_tokens": 623}, Usage(20, 603, reasoning_tokens=405)),
        ({"total_tokens": 218}, Usage(20, 198)),
        ({"total_tokens": 1}, Usage(20, 198)),
        (
            {"total_tokens": 623, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(20, 198, reasoning_tokens=5),
        ),
        ({"total_tokens": 238, "prompt_tokens_details": {"cached_tokens": 20}}, Usage(20, 198, 20)),
    ],
)
def test_thoughts_in_the_total_alone(told: dict[str, object], expected: Usage) -> None:
    """Gateways to Gemini leave its thoughts out of the output, but not out of the total: output they are."""
    usage = {"prompt_tokens": 20, "completion_tokens": 198, **told}
    assert decoded(chunk("x", "stop", usage=usage)).done.usage == expected


@pytest.mark.parametrize("word", ["guardrail_intervened", "content_filtered"])
def test_an_answer_that_bedrock_filtered(word: str) -> None:
    """What Bedrock calls a filtered answer is one, behind gateways that hand its words on: no call of it runs."""
    answer = decoded(entry("{", call_id="a", name="f"), chunk(finish=word))
    assert (answer.done.stop_reason, answer.calls[0].arguments) == (StopReason.CONTENT_FILTER, "{")


def test_facts_of_the_answer() -> None:
    """The first id and the last model are the answer's."""
    done = decoded(
        {"id": "a", "model": "m1", "choices": []},
        {"id": "b", "model": "m2", "choices": []},
        chunk("x", "stop") | {"id": "c", "model": None},
    ).done
    assert (done.response_id, done.model) == ("a", "m2")


def test_an_event_named_error_is_one() -> None:
    """An event called error is an error whatever its data looks like."""
    decoder = ChatDecoder(Hearing(Quirks(), "o"))
    with pytest.raises(Overloaded):
        list(decoder.feed('{"message": "x"}', "error"))


def test_data_that_is_no_json_is_a_protocol_error() -> None:
    """Broken JSON is reported without being quoted."""
    answer = decoded("{secret")
    assert isinstance(answer.error, ModelProtocolError)
    assert "secret" not in str(answer.error)


@pytest.mark.parametrize(
    "said",
    [
        "null",
        "1",
        '"ping"',
        "[]",
        "{}",
        '{"choices": null}',
        '{"choices": [null]}',
        '{"choices": [{"delta": null}]}',
        '{"choices": [{"delta": {"content": 1, "tool_calls": [null, 1], "function_call": []}}]}',
        '{"choices": [{"index": 1, "delta": {"content": "other"}}]}',
    ],
)
def test_strange_chunks_are_passed_over(said: str) -> None:
    """Chunks of unexpected shape, and those of further choices, add nothing and break nothing."""
    assert decoded(said, chunk("x", "stop")).text == "x"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "content",
                    "tool_calls",
                    "function",
                    "arguments",
                    "name",
                    "id",
                    "index",
                    "error",
                    "usage",
                    "finish_reason",
                    "reasoning_details",
                    "type",
                    "text",
                    "x_groq",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(chunks=st.lists(json_values, max_size=4), tags=st.booleans())
def test_no_json_breaks_the_decoder(chunks: list[Any], tags: bool) -> None:
    """Whatever a server sends, the answer ends in one Done or in a typed error."""
    answer = decoded(*chunks, quirks=Quirks(think_tags=tags, reasoning_replay="reasoning_details"))
    assert answer.error is not None or answer.done.stop_reason


def test_half_a_character_waits_for_its_other_half() -> None:
    """A character that two deltas share is whole; one that never comes is U+FFFD."""
    high, low = (
        '{"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}',
        '{"choices":[{"index":0,"delta":{"content":"\\ude48b"}}]}',
    )
    assert decoded(high, low).text == "a\U0001f648b"
    assert decoded(high).text == "a\ufffd"


@given(data=st.data())
@pytest.mark.parametrize(
    ("said", "reasoning", "text"),
    [
        ("<think>\nhm</think>\n\nyes", "hm", "yes"),
        ("  <think>a<b</think>", "a<b", ""),
        ("no <think>x</think>", "", "no <think>x</think>"),
        ("<thin", "", "<thin"),
        ("<think>never closed", "never closed", ""),
        ("<think></think>x</think>", "", "x</think>"),
        ("", "", ""),
    ],
)
def test_think_tags(said: str, reasoning: str, text: str, data: st.DataObject) -> None:
    """Only a leading block is reasoning, however the tags are cut."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=6)))
    tags = ThinkTags()
    pieces = [piece for a, b in pairwise([0, *cuts, len(said)]) for piece in tags.feed(said[a:b])]
    pieces += tags.finish()
    assert "".join(piece.text for piece in pieces if piece.reasoning) == reasoning
    assert "".join(piece.text for piece in pieces if not piece.reasoning) == text


def test_think_tags_in_an_answer() -> None:
    """With the quirk, a leading block in the text is reasoning that is closed before the text."""
    answer = decoded(
        chunk("<think>h"), chunk("m</th"), chunk("ink>yes"), chunk(finish="stop"), quirks=Quirks(think_tags=True)
    )
    assert (answer.reasoning, answer.text) == ("hm", "yes")
    assert [type(event) for event in answer.events if not isinstance(event, ReasoningDelta)] == [
        ReasoningDone,
        TextDelta,
        Done,
    ]
    tagged = chunk("<think>hm</think>yes"), chunk(finish="stop")
    assert decoded(*tagged).text == "<think>hm</think>yes"
    assert decoded(*tagged, quirks=quirks_for("https://api.groq.com/openai/v1", "qwen/qwen3-32b")).text == "yes"


@pytest.mark.parametrize("behind", [{"delta": {}}, {"delta": None}, {}, {"delta": {"content": ""}}])
def test_a_message_behind_its_deltas_is_not_said_again(behind: dict[str, Any]) -> None:
    """A stream that ends with the whole message has said it by its deltas already."""
    whole = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    answer = decoded(chunk("Hel"), chunk("lo"), {"choices": [{**whole, **behind}]})
    assert (answer.text, answer.done.stop_reason) == ("Hello", StopReason.END_TURN)
    assert decoded({"choices": [whole]}).text == "Hello"
    assert decoded(delta(role="assistant"), {"choices": [{**whole, "delta": {}}]}).text == "Hello"


def test_a_call_in_both_forms_is_one_call() -> None:
    """A server that says each call as `tool_calls` and as the deprecated `function_call` made one call, not two."""
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    both = {
        "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
        "function_call": function,
    }
    pieces = [
        {"choices": [{"index": 0, "delta": both}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    decoder = ChatDecoder(Hearing(Quirks(), "openai-chat:m"))
    events = [event for piece in pieces for event in decoder.feed(json.dumps(piece), "")]
    calls = Answer([*events, *decoder.feed("[DONE]", ""), *decoder.finish()]).calls
    assert [(call.id, call.arguments) for call in calls] == [("c1", function["arguments"])]
