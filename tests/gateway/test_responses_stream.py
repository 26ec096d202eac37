"""From the events of the responses dialect to neutral ones: what no recording and no wire case shows."""

from __future__ import annotations

import json

import pytest

from gotato_py import Done, ReasoningDelta, ReasoningDone, TextDelta, ToolCallDelta, Usage

from .responses_events import ORIGIN, Event, added, decoded, done, end, event, new_decoder, text


def test_text_and_reasoning_come_at_once() -> None:
    """Each delta is given on with the event that brought it."""
    decoder = new_decoder()
    thought = event("reasoning_summary_text.delta", summary_index=0, delta="hm")
    assert decoder.feed(json.dumps(thought)) == [ReasoningDelta("hm")]
    assert decoder.feed(json.dumps(text("a", 1))) == [ReasoningDone("", ORIGIN), TextDelta("a")]
    arguments = event("function_call_arguments.delta", 2, delta="{")
    assert decoder.feed(json.dumps(arguments)) == [ToolCallDelta(0, "", "{")]


def test_parts_of_reasoning_are_joined_by_a_blank_line() -> None:
    """Parts of a summary, and reasoning shown as it is, are paragraphs; an empty part adds none."""
    answer = decoded(
        added("reasoning"),
        event("reasoning_summary_text.delta", summary_index=0, delta="one"),
        event("reasoning_summary_text.delta", summary_index=1, delta=""),
        event("reasoning_summary_text.delta", summary_index=2, delta="two"),
        event("reasoning_text.delta", content_index=0, delta="three"),
        done("reasoning", summary=[], encrypted_content="E"),
        end(),
    )
    assert answer.reasoning == "one\n\ntwo\n\nthree"


def test_a_signature_says_what_followed() -> None:
    """Sealed reasoning remembers the item behind it: a message with its phase, a call with its place, or another."""
    answer = decoded(
        added("reasoning", 0),
        done("reasoning", 0, summary=[], encrypted_content="A"),
        added("message", 1, phase="commentary"),
        text("x", 1),
        added("function_call", 2, name="f", call_id="c0"),
        done("reasoning", 3, summary=[], encrypted_content="B"),
        added("function_call", 4, name="f", call_id="c1"),
        done("reasoning", 5, summary=[], encrypted_content="C"),
        done("web_search_call", 6),
        done("reasoning", 7, summary=[], encrypted_content="D"),
        end(),
    )
    closed = [each for each in answer.events if isinstance(each, ReasoningDone)]
    sealed = [json.loads(each.signature) for each in closed]
    assert [(each["encrypted_content"], each["next"]) for each in sealed] == [
        ("A", "message"),
        ("B", "function_call"),
        ("C", "web_search_call"),
        ("D", ""),
    ]
    assert (sealed[0]["phase"], sealed[1]["call"], sealed[1]["id"]) == ("commentary", 1, "item_3")
    assert all(each.redacted for each in closed)
    assert [call.id for call in answer.calls] == ["c0", "c1"]


def test_reasoning_counts_as_its_last_event_has_it() -> None:
    """What was sealed when an item began is not what is sealed at its end; one without an end has no signature."""
    begun = added("reasoning", encrypted_content="half")
    shown = event("reasoning_summary_text.delta", summary_index=0, delta="hm")
    whole = decoded(begun, shown, done("reasoning", summary=[{"text": "hm"}], encrypted_content="whole"), end())
    (closed,) = [each for each in whole.events if isinstance(each, ReasoningDone)]
    assert json.loads(closed.signature)["encrypted_content"] == "whole"
    assert not closed.redacted
    assert decoded(begun, shown, end()).events[1] == ReasoningDone("", ORIGIN)


def test_reasoning_without_words_or_seal_is_nothing() -> None:
    """An empty reasoning item leaves no part behind."""
    assert [type(each) for each in decoded(done("reasoning", summary=[]), text("x", 1), end()).events] == [
        TextDelta,
        Done,
    ]


def test_text_among_open_reasoning_does_not_mix_with_it() -> None:
    """Where a server's items overlap, text is no reasoning, and what was sealed is still kept."""
    answer = decoded(
        added("reasoning", 0),
        event("reasoning_summary_text.delta", 0, summary_index=0, delta="a"),
        added("message", 1),
        text("x", 1),
        event("reasoning_summary_text.delta", 0, summary_index=0, delta="b"),
        done("reasoning", 0, summary=[{"text": "ab"}], encrypted_content="E"),
        done("reasoning", 0, summary=[{"text": "ab"}], encrypted_content="E"),
        end(),
    )
    assert (answer.reasoning, answer.text) == ("ab", "x")
    signatures = [each.signature for each in answer.events if isinstance(each, ReasoningDone)]
    assert [bool(each) for each in signatures] == [False, True]


def test_text_behind_complete_reasoning_may_be_of_an_earlier_item() -> None:
    """Reasoning that still waits for its follower is closed once, before whatever text comes."""
    for members, signed in (({"encrypted_content": "E"}, [False, True]), ({}, [False])):
        answer = decoded(
            added("message", 0),
            event("reasoning_summary_text.delta", 1, summary_index=0, delta="a"),
            done("reasoning", 1, summary=[{"text": "a"}], **members),
            text("x", 0),
            end(),
        )
        assert (answer.reasoning, answer.text) == ("a", "x")
        assert [bool(each.signature) for each in answer.events if isinstance(each, ReasoningDone)] == signed


def test_calls_have_their_own_ids() -> None:
    """A call's id is its call_id, never that of its item; one of ours where a server gives none."""
    answer = decoded(
        done("function_call", 0, call_id="call_A", name="f", arguments="{}"),
        done("function_call", 1, name="f", arguments='{"a": 1}'),
        end(),
    )
    assert answer.calls[0].id == "call_A"
    assert answer.calls[1].id.startswith("call_")
    assert answer.calls[1].id != "item_1"
    assert answer.done.stop_reason == "tool_calls"


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        ([event("function_call_arguments.delta", delta=each) for each in ('{"a":', "1}")], '{"a":1}'),
        ([event("function_call_arguments.done", arguments='{"a":1}')], '{"a":1}'),
        ([done("function_call", arguments='{"a":1}', name="f")], '{"a":1}'),
        ([done("function_call", arguments={"a": 1}, name="f")], '{"a":1}'),
        ([done("function_call", arguments='"{\\"a\\":1}"', name="f")], '{"a":1}'),
        ([done("function_call", arguments="", name="f")], "{}"),
        ([event("function_call_arguments.delta", delta="{}"), done("function_call", arguments='{"a":1}')], '{"a":1}'),
        ([], "{}"),
    ],
)  # fmt: skip
def test_arguments_come_in_pieces_or_whole(events: list[Event], arguments: str) -> None:
    """Arguments are found wherever a server sends them, and the last event that has them whole decides."""
    answer = decoded(added("function_call", call_id="c", name="f"), *events, end())
    assert [call.arguments for call in answer.calls] == [arguments]
    deltas = [each for each in answer.events if isinstance(each, ToolCallDelta)]
    assert deltas[0] == ToolCallDelta(0, "f", "")
    assert [each.name for each in deltas[1:]] == [""] * len(deltas[1:])


def test_arguments_that_were_cut_off_stay_as_they_came() -> None:
    """After an incomplete answer nothing is made of the half of a call, not even an empty object of nothing."""
    halves = event("function_call_arguments.delta", delta='{"a": tr')
    answer = decoded(
        added("function_call", call_id="c", name="f"), halves, end("incomplete", incomplete_details={"reason": "x"})
    )
    assert [call.arguments for call in answer.calls] == ['{"a": tr']
    assert answer.done.stop_reason == "max_tokens"


def test_ids_that_change_in_every_event_are_no_new_items() -> None:
    """Where a proxy makes up an id for each event, the place of the item says which one it is."""
    events: list[Event] = [
        added("function_call", 1, call_id="c", name="f"),
        event("function_call_arguments.delta", 1, delta='{"a"') | {"item_id": "x1"},
        event("function_call_arguments.delta", 1, delta=":1}") | {"item_id": "x2"},
        done("function_call", 1, call_id="c", name="f", arguments='{"a":1}'),
    ]
    events[3]["item"]["id"] = "x3"
    answer = decoded(added("message", 0), text("a"), text("b") | {"item_id": "y"}, *events, end())
    assert (answer.text, [call.arguments for call in answer.calls]) == ("ab", ['{"a":1}'])


def test_a_call_whose_item_has_no_id_is_one_call() -> None:
    """Without an id and a place, the call_id says that what was announced and what is whole are the same."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    told = [{"type": f"response.output_item.{kind}", "item": item} for kind in ("added", "done")]
    assert [call.id for call in decoded(*told, end()).calls] == ["c"]


def test_what_came_as_deltas_is_not_said_twice() -> None:
    """The events that hold a text whole add nothing to its deltas, and stand in for them where there were none."""
    content = [{"type": "output_text", "text": "ab"}, {"type": "refusal", "refusal": "no"}, {"type": "new"}, None]
    whole = event("output_text.done", content_index=0, text="ab")
    item = done("message", content=content[:1])
    output = [{"type": "message", "id": "item_0", "content": content[:1]}]
    for events in ([text("a"), text("b")], [whole], [item], []):
        assert decoded(*events, whole, item, end(output=output)).text == "ab"
        assert decoded(*events, end(output=output)).text == "ab"
    refused = decoded(event("refusal.done", content_index=0, refusal="no"), end())
    assert (refused.text, refused.done.stop_reason) == ("no", "content_filter")
    assert decoded(done("message", content=content), end()).text == "abno"
    thought = done("reasoning", summary=[{"text": "x"}], content=[{"text": "y"}])
    assert decoded(thought, end()).reasoning == "x\n\ny"


def test_what_only_the_last_event_has_is_not_lost() -> None:
    """Where a server streams texts alone, or announces what it then leaves out, the rest is in its last event."""
    message = {"type": "message", "id": "item_0", "content": [{"type": "output_text", "text": "ab"}]}
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a":1}'}
    for events in ([text("a"), text("b")], [added("message")], [added("message", 4) | {"item": {"type": "message"}}]):
        answer = decoded(*events, end(output=[message, call]))
        assert answer.text == "ab"
        assert [each.arguments for each in answer.calls] == ['{"a":1}']


def test_half_a_character_waits_for_its_other_half() -> None:
    """A character that two deltas share is whole; one that never comes is U+FFFD."""
    high, low = text("a\ud83d"), text("\ude48b")
    assert decoded(high, low, end()).text == "a\U0001f648b"
    assert decoded(high, end()).text == "a\ufffd"
    thoughts = [event("reasoning_text.delta", content_index=0, delta=each) for each in ("\ud83d", "\ude48", "\ud83d")]
    assert decoded(*thoughts, end()).reasoning == "\U0001f648\ufffd"


def test_other_items_and_events_are_passed_over() -> None:
    """Tools of the server, other kinds of calls and new events add nothing."""
    answer = decoded(
        added("mcp_call", name="f", arguments="{}"),
        event("mcp_call_arguments.delta", delta="{}"),
        event("mcp_call.failed", error="no"),
        done("custom_tool_call", 1, call_id="c", name="f", input="x"),
        event("output_text.annotation.added", 2, annotation={}),
        event("audio.delta", 2, delta="x"),
        {"type": "response.rate_limits.updated"},
        {"type": "keepalive", "sequence_number": 3},
        {"type": "response.output_item.added", "output_index": 4, "item": None},
        text("x", 2),
        end(),
    )
    assert (answer.text, answer.calls, answer.done.stop_reason) == ("x", [], "end_turn")


def test_facts_of_the_answer() -> None:
    """Id, model and usage are those of the response; cached and reasoning tokens are parts of the counts."""
    usage = {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 4},
        "output_tokens": 16,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 46,
    }
    created = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "usage": None}}
    finished = decoded(created, text("x"), end(usage=usage)).done
    assert (finished.response_id, finished.model) == ("resp_1", "m1")
    assert finished.usage == Usage(30, 16, 10, 4, 12)
    assert decoded(text("x"), end()).done.usage is None


def test_what_was_learned_first_stays() -> None:
    """An event that leaves out a name, an id, a phase or arguments takes nothing away."""
    created = {"type": "response.created", "response": {"id": "resp_0"}}
    answer = decoded(
        created,
        added("message", 0, phase="commentary"),
        done("message", 0, content=[]),
        done("reasoning", 1, summary=[], encrypted_content="E"),
        added("message", 2, phase="final_answer"),
        added("function_call", 3, name="f", call_id="c"),
        event("function_call_arguments.done", 3, arguments='{"a":1}'),
        done("function_call", 3, arguments=""),
        end(),
    )
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [("c", "f", '{"a":1}')]
    assert [each.fragment for each in answer.events if isinstance(each, ToolCallDelta)] == ["", '{"a":1}']
    assert answer.done.response_id == "resp_0"


def test_a_refusal_stays_one_whatever_follows() -> None:
    """Text behind a refusal does not undo it, and a refusal is not said twice."""
    refusal = event("refusal.delta", content_index=0, delta="no")
    answer = decoded(refusal, event("refusal.done", content_index=0, refusal="no"), text("x"), end())
    assert (answer.text, answer.done.stop_reason) == ("nox", "content_filter")


def test_a_call_ends_open_reasoning() -> None:
    """Reasoning that is still open is closed before the first piece of a call; no piece holds half a character."""
    thought = event("reasoning_text.delta", 0, content_index=0, delta="hm")
    answer = decoded(thought, event("function_call_arguments.delta", 1, delta='"\ud83d"'), end())
    assert answer.events[:3] == [ReasoningDelta("hm"), ReasoningDone("", ORIGIN), ToolCallDelta(0, "", '"\ufffd"')]


def test_overlapping_reasoning_keeps_its_own_seals() -> None:
    """Of two reasoning items under way at once, each is closed with its own seal and follower."""
    answer = decoded(
        event("reasoning_text.delta", 0, content_index=0, delta="a"),
        event("reasoning_text.delta", 1, content_index=0, delta="b"),
        done("reasoning", 1, summary=[], encrypted_content="B"),
        done("reasoning", 0, summary=[], encrypted_content="A"),
        event("reasoning_text.delta", 0, content_index=0, delta="late"),
        text("x", 2),
        end(),
    )
    closed = [
        json.loads(each.signature) for each in answer.events if isinstance(each, ReasoningDone) and each.signature
    ]
    assert [(each["encrypted_content"], each["next"]) for each in closed] == [("A", "reasoning"), ("B", "message")]
    assert (answer.reasoning, answer.text) == ("ab", "x")
    assert [type(each) for each in answer.events[1:4]] == [ReasoningDone, ReasoningDelta, ReasoningDone]
