"""From Anthropic's events to neutral ones: what no recording and no wire case shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import AnthropicMessages, Quirks
from gotato_gateway._anthropic_stream import MessagesDecoder
from gotato_gateway._dialect import Hearing
from gotato_py import (
    ConnectionFailed,
    ContextOverflow,
    Done,
    InvalidRequest,
    ModelError,
    ModelProtocolError,
    Overloaded,
    RateLimited,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    Usage,
    UsageUpdate,
)

from .answers import ask, local
from .anthropic_stream import ORIGIN, START, STOP, begin, call, decoded, end, events, more, over, text
from .server import Reply, Server


def test_a_whole_answer() -> None:
    """Thinking, text and a call come as they are said; the call and the one Done come last."""
    thought = [
        begin(0, "thinking", thinking="", signature=""),
        more(0, "thinking_delta", thinking="h"),
        more(0, "signature_delta", signature="s"),
    ]
    answer = decoded(START, *thought, over(0), *text("Hi", 1), *call('{"a"', ":1}", index=2), end("tool_use"), STOP)
    assert answer.events == [
        ReasoningDelta("h"),
        ReasoningDone("s", ORIGIN),
        TextDelta("Hi"),
        ToolCallDelta(0, "f", ""),
        ToolCallDelta(0, "", '{"a"'),
        ToolCallDelta(0, "", ":1}"),
        ToolCallReady(ToolCall("toolu_1", "f", '{"a":1}')),
        Done(StopReason.TOOL_CALLS, Usage(9, 5), "msg_1", "claude"),
    ]


def test_deltas_are_given_on_at_once() -> None:
    """Each piece of text, thinking or arguments is an event of its own, at the moment it comes."""
    decoder = MessagesDecoder(Hearing(Quirks(), ORIGIN))
    for said, expected in (
        (START, []),
        (begin(0, "text", text=""), []),
        (more(0, "text_delta", text="a"), [TextDelta("a")]),
        (more(0, "text_delta", text=""), []),
        (over(0), []),
        (begin(1, "tool_use", id="i", name="f", input={}), [ToolCallDelta(0, "f", "")]),
        (more(1, "input_json_delta", partial_json="{"), [ToolCallDelta(0, "", "{")]),
    ):
        assert decoder.feed(json.dumps(said)) == expected


def test_tools_of_the_server_are_no_calls_of_ours() -> None:
    """Their blocks, deltas and results are skipped; the text around them and our own calls are kept and counted."""
    server_side = [
        begin(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        more(1, "input_json_delta", partial_json='{"query": "x"}'),
        over(1),
        begin(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"type": "web_search_result"}]),
        over(2),
    ]
    answer = decoded(START, *text("a", 0), *server_side, *text("b", 3), *call("{}", index=4), end("tool_use"), STOP)
    assert answer.text == "ab"
    assert answer.calls == [ToolCall("toolu_1", "f", "{}")]
    assert {event.index for event in answer.events if isinstance(event, ToolCallDelta)} == {0}


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "ping"},
        {"type": "never_seen", "index": 0},
        {},
        [],
        begin(7, "never_seen", text="no"),
        more(7, "text_delta"),
        more(0, "citations_delta", citation={"cited_text": "no"}),
        more(0, "never_seen_delta", text=None),
        over(99),
        begin(None, "never_seen"),
        {"type": "message_delta"},
        {"type": "content_block_start", "index": 9},
        {"type": "message_start", "message": None},
    ],
)
def test_what_nobody_knows_does_no_harm(odd: object) -> None:
    """Unknown events, blocks and deltas are skipped, wherever they stand."""
    start, *rest = text("Hi")
    answer = decoded(START, odd, start, odd, *rest, odd, end(), STOP)
    assert answer.error is None
    assert answer.text == "Hi"
    assert answer.done.stop_reason == "end_turn"


def test_blocks_that_interleave() -> None:
    """A block is known by its index, so the pieces of several may be mixed."""
    first = [begin(0, "tool_use", id="a", name="f", input={}), more(0, "input_json_delta", partial_json='{"x":')]
    second = call('{"y":2}', index=1, call_id="b", name="g")
    answer = decoded(START, *first, *second, more(0, "input_json_delta", partial_json="1}"), over(0), end("tool_use"))
    assert answer.calls == [ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}')]


def test_a_server_that_forgets_the_start_of_a_block() -> None:
    """Text and thinking say by their deltas what they are; such a block is closed like any other."""
    answer = decoded(
        START, more(0, "thinking_delta", thinking="h"), over(0), more(1, "text_delta", text="x"), end(), STOP
    )
    assert answer.events[:3] == [ReasoningDelta("h"), ReasoningDone("", ORIGIN), TextDelta("x")]


@pytest.mark.parametrize(
    ("pieces", "given_input", "expected"),
    [
        ((), {}, "{}"),
        (("",), {}, "{}"),
        (("null",), {}, "{}"),
        ((), {"a": 1}, '{"a":1}'),
        (('{"b":2}',), {"a": 1}, '{"b":2}'),
        (('"{\\"a\\":1}"',), {}, '{"a":1}'),
        (("not json",), {}, "not json"),
        ((), '{"a":1}', '{"a":1}'),
        ((), None, "{}"),
    ],
)
def test_arguments(pieces: tuple[str, ...], given_input: object, expected: str) -> None:
    """Arguments are as the model sent them, but for seeds and double encoding."""
    start = begin(0, "tool_use", id="i", name="f", input=given_input)
    deltas = [more(0, "input_json_delta", partial_json=piece) for piece in pieces]
    assert decoded(START, start, *deltas, over(0), end("tool_use")).calls == [ToolCall("i", "f", expected)]


@pytest.mark.parametrize("word", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_arguments_that_were_cut_stay_as_they_came(word: str) -> None:
    """Half of the arguments is nothing to repair; the end says that the answer was cut."""
    answer = decoded(START, *call('{"a":', "", index=0)[:-1], end(word))
    assert [each.arguments for each in answer.calls] == ['{"a":']
    assert answer.done.stop_reason == ("content_filter" if word == "refusal" else "max_tokens")


def test_an_id_that_is_missing() -> None:
    """A call without an id gets one, different from any other."""
    answer = decoded(START, *call("{}", call_id="", index=0), *call("{}", call_id="", index=1), end("tool_use"))
    first, second = answer.calls
    assert first.id != second.id
    assert all((first.id, second.id))


@pytest.mark.parametrize(
    ("word", "said", "reason"),
    [
        ("end_turn", call("{}"), "tool_calls"),
        ("tool_use", text("x"), "end_turn"),
        ("stop_sequence", text("x"), "stop_sequence"),
        ("pause_turn", call("{}"), "pause"),
        ("compaction", text("x"), "pause"),
        ("guardrail_intervened", call("{}"), "content_filter"),
        ("content_filtered", text("x"), "content_filter"),
        ("never_seen", text("x"), "end_turn"),
        (None, text("x"), "end_turn"),
    ],
)
def test_words_for_the_end(word: str | None, said: list[dict[str, Any]], reason: str) -> None:
    """The end says what there is to do: calls make it `tool_calls`, unless it was cut, refused or paused."""
    assert decoded(START, *said, end(word), STOP).done.stop_reason == reason


def test_a_full_window_without_a_word_is_an_overflow() -> None:
    """Where the window was full before anything was said, the request was too large."""
    assert isinstance(decoded(START, end("model_context_window_exceeded"), STOP).error, ContextOverflow)


@pytest.mark.parametrize(
    "said", [[START], [START, *text("x")], [], [START, *text("x"), end(None)], [START, begin(0, "text", text="x")]]
)
def test_a_stream_that_is_cut_off(said: list[Any]) -> None:
    """Neither a stop reason nor `message_stop`: the connection failed, whatever had come."""
    answer = decoded(*said)
    assert isinstance(answer.error, ConnectionFailed)
    assert not any(isinstance(event, Done) for event in answer.events)


def test_ends_that_are_left_out() -> None:
    """A stop reason alone, `message_stop` alone, or a proxy's `[DONE]` end an answer, and open blocks with it."""
    half = text("x")[:-1]
    for last in ([end()], [STOP], ["[DONE]"]):
        assert decoded(START, *half, *last).text == "x"
    open_thought = [begin(0, "thinking", thinking="h", signature=""), more(0, "signature_delta", signature="s")]
    assert decoded(START, *open_thought, end()).events[1] == ReasoningDone("s", ORIGIN)


def test_what_is_no_json() -> None:
    """An event that is no JSON is the server's fault; an error event that is none is an error all the same."""
    assert isinstance(decoded(START, "{").error, ModelProtocolError)
    decoder = MessagesDecoder(Hearing(Quirks(), ORIGIN, refuse=lambda said: Overloaded(str(said))))
    with pytest.raises(Overloaded, match="upstream"):
        decoder.feed("upstream died", "error")


def test_halves_of_a_character() -> None:
    """A character whose halves are in two pieces comes out whole; a half alone is U+FFFD."""
    pieces = [
        more(0, "text_delta", text="\ud83d"),
        more(0, "text_delta", text="\ude48"),
        more(0, "text_delta", text="\ud83d"),
    ]
    assert decoded(START, begin(0, "text", text=""), *pieces, over(0), end()).text == "\U0001f648\ufffd"
    thought = [more(0, "thinking_delta", thinking="\ud83d"), more(0, "thinking_delta", thinking="\ude48")]
    assert decoded(START, begin(0, "thinking"), *thought, over(0), end()).reasoning == "\U0001f648"
    split = call('{"a":"\ud83d', '\ude48"}')
    assert decoded(START, *split, end("tool_use")).calls[0].arguments == '{"a":"\U0001f648"}'


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ({"input_tokens": 10}, {"output_tokens": 3}, Usage(10, 3)),
        ({"input_tokens": 10, "output_tokens": 1}, {"input_tokens": 90, "output_tokens": 3}, Usage(90, 3)),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7},
            {"output_tokens": 3},
            Usage(22, 3, 5, 7),
        ),
        ({"cache_read_input_tokens": 5}, {"cache_read_input_tokens": 0, "input_tokens": 2}, Usage(7, 0, 5)),
        ({}, {"output_tokens": 8, "output_tokens_details": {"thinking_tokens": 6}}, Usage(0, 8, 0, 0, 6)),
        ({}, {"output_tokens": 8, "output_tokens_details": {"thinking_tokens": 60}}, Usage(0, 8, 0, 0, 8)),
        ({"input_tokens": -1, "output_tokens": "9"}, {"cache_read_input_tokens": None}, None),
        ({}, {}, None),
    ],
)
def test_usage(first: dict[str, object], last: dict[str, object], expected: Usage | None) -> None:
    """Input includes what the cache gave and took; the last count that is one holds."""
    start = {"type": "message_start", "message": {"usage": first}}
    finish = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}
    assert decoded(start, *text("x"), finish).done.usage == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, Overloaded),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, RateLimited),
        ({"type": "error", "error": {"type": "not_found_error", "message": "x"}}, InvalidRequest),
        (None, ConnectionFailed),
    ],
)
def test_usage_is_told_even_when_the_answer_fails(last: object, expected: type[ModelError]) -> None:
    """Tokens that were counted before an error or a cut are reported before it."""
    with Server(Reply(events(*[each for each in (START, *text("x"), last) if each]))) as server:
        answer = ask(local(server.url, AnthropicMessages))
    assert type(answer.error) is expected
    assert answer.events[-1] == UsageUpdate(Usage(9, 1))


members = st.sampled_from(
    ["type", "index", "delta", "content_block", "message", "usage", "text", "input", "stop_reason", "signature", "id"]
)
kinds = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"),
        *("message_stop", "text", "thinking", "redacted_thinking", "tool_use", "text_delta", "input_json_delta"),
    ]
)
garbage = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | kinds | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(members, inner, max_size=5),
    max_leaves=12,
)


@given(st.lists(garbage, max_size=8))
def test_garbage_is_an_answer_or_a_typed_error(said: list[object]) -> None:
    """Whatever members have whatever type, the decoder gives events and one Done, or a typed error."""
    answer = decoded(*said)
    dones = [event for event in answer.events if isinstance(event, Done)]
    assert len(dones) == (0 if answer.error else 1)
    assert answer.error is not None or isinstance(answer.events[-1], Done)
