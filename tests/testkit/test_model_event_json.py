"""Model events as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from gotato_py import (
    Done,
    InvalidArgument,
    ModelEvent,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Usage,
    UsageUpdate,
)
from gotato_testkit import model_event_from_dict, model_event_to_dict, say
from gotato_testkit import strategies as gst


@given(gst.model_events())
def test_every_event_comes_back_as_it_was(event: ModelEvent) -> None:
    """What is written is JSON, and read again it is the same event, of the same type."""
    again = model_event_from_dict(json.loads(json.dumps(model_event_to_dict(event), allow_nan=False)))
    assert (type(again), again) == (type(event), event)


def test_the_format_is_short_and_plain() -> None:
    """One object an event; what has its default is left out."""
    assert [model_event_to_dict(event) for event in say("Hi.", usage=Usage(3, 2), model="family-1")] == [
        {"kind": "text_delta", "text": "Hi."},
        {
            "kind": "done",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 2},
            "model": "family-1",
        },
    ]
    call = ToolCall("c1", "weather", '{"city":"Oslo"}')
    assert model_event_to_dict(ToolCallReady(call)) == {
        "kind": "tool_call_ready",
        "call": {"id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
    }
    assert model_event_to_dict(ReasoningDone()) == {"kind": "reasoning_done"}
    assert model_event_to_dict(UsageUpdate(Usage())) == {"kind": "usage_update", "usage": {}}
    assert type(model_event_to_dict(Done(StopReason.PAUSE))["stop_reason"]) is str


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "kind is missing or unknown; it has to be one of text_delta"),
        ({"kind": "shout"}, "kind is missing or unknown"),
        ({"kind": "text_delta"}, "text_delta: text is missing"),
        ({"kind": "text_delta", "text": 5}, "text must be a str"),
        ({"kind": "tool_call_ready", "call": {"id": "c1"}}, "name"),
        ({"kind": "done", "stop_reason": "tired"}, "stop_reason must be one of"),
        ({"kind": "done", "stop_reason": "end_turn", "usage": {"input_tokens": -1}}, "input_tokens"),
        (["done"], "must be a JSON object, not list"),
    ],
)
def test_what_is_no_event_is_refused(data: object, said: str) -> None:
    """A missing key, an unknown kind and a wrong value are named."""
    with pytest.raises(InvalidArgument, match=said):
        model_event_from_dict(data)  # type: ignore[arg-type]  # that is what is tested


def test_unknown_keys_are_ignored() -> None:
    """A key of a later release does no harm."""
    assert model_event_from_dict({"kind": "text_delta", "text": "a", "mood": "gay"}) == TextDelta("a")
    with pytest.raises(InvalidArgument, match="must be a ModelEvent, not str"):
        model_event_to_dict("text")  # type: ignore[arg-type]  # that is what is tested
