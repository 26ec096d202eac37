"""The JSON form of records: calls that wait, compactions, finished runs."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Approve,
    Compaction,
    Deny,
    InvalidArgument,
    RunRecord,
    TextPart,
    Usage,
    UserMessage,
    WaitingCall,
    record_from_dict,
    record_to_dict,
)
from gotato_py.record_json import Record

from . import strategies as sts
from .test_message_json import everything

numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
decisions = st.none() | st.builds(Approve) | st.builds(Deny, sts.raw_text)
waiting_calls = st.builds(
    WaitingCall,
    sts.raw_text,
    sts.raw_text,
    sts.raw_text,
    sts.metadata,
    sts.raw_text,
    st.none() | numbers,
    decisions,
)
compactions = st.builds(
    Compaction,
    sts.user_messages,
    sts.raw_text,
    reason=sts.raw_text,
    tokens_before=st.integers(0, 10**9),
    tokens_after=st.integers(0, 10**9),
    usage=sts.usages,
    metadata=sts.metadata,
)
run_records = st.builds(
    RunRecord,
    *[sts.raw_text] * 4,
    numbers,
    numbers,
    *[st.integers(0, 10**6)] * 2,
    sts.usages,
)
records: st.SearchStrategy[Record] = st.one_of(waiting_calls, compactions, run_records)

RUN = RunRecord("r-1", "a-1", "completed", "", 1.5, 0.25, 2, 1, Usage(3, 4))
WRITTEN_RUN = {
    "kind": "run_record",
    "run_id": "r-1",
    "agent": "a-1",
    "status": "completed",
    "error": "",
    "started_at": 1.5,
    "elapsed_s": 0.25,
    "turns": 2,
    "tool_calls": 1,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


@given(records)
def test_round_trip_is_exact(record: Record) -> None:
    """A record comes back with every field as it was, through real JSON text."""
    text = json.dumps(record_to_dict(record), allow_nan=False, ensure_ascii=False)
    again = record_from_dict(json.loads(text.encode("utf-8")))
    assert again == record
    assert everything(again) == everything(record)


@given(records)
def test_the_form_is_stable(record: Record) -> None:
    """What is read and written again is the same data, in the same order."""
    data = record_to_dict(record)
    assert json.dumps(record_to_dict(record_from_dict(data))) == json.dumps(data)


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (WaitingCall("m-1:0"), {"kind": "waiting_call", "key": "m-1:0"}),
        (
            WaitingCall("m-1:0", "c1", "pay", {"sum": 5}, "Pay 5?", 60.0, Approve()),
            {
                "kind": "waiting_call",
                "key": "m-1:0",
                "call_id": "c1",
                "name": "pay",
                "arguments": {"sum": 5},
                "question": "Pay 5?",
                "expires_at": 60.0,
                "decision": "approve",
            },
        ),
        (WaitingCall("k", decision=Deny()), {"kind": "waiting_call", "key": "k", "decision": "deny"}),
        (
            WaitingCall("k", decision=Deny("too much")),
            {"kind": "waiting_call", "key": "k", "decision": "deny", "reason": "too much"},
        ),
        (
            Compaction(UserMessage("so far"), "m-9"),
            {
                "kind": "compaction",
                "summary": {"role": "user", "parts": [{"kind": "text", "text": "so far"}]},
                "through": "m-9",
            },
        ),
        (RUN, WRITTEN_RUN),
    ],
)
def test_the_form_is_what_the_documents_say(record: Record, written: dict[str, object]) -> None:
    """The kind comes first, and fields at their default are left out."""
    assert record_to_dict(record) == written
    assert next(iter(record_to_dict(record))) == "kind"
    assert record_from_dict(written) == record


def test_unknown_keys_stay_where_there_is_a_place_for_them() -> None:
    """Messages and usages keep what this release does not know; records have no place for it and ignore it."""
    data = {
        "kind": "compaction",
        "summary": {"role": "user", "parts": [{"kind": "text", "text": "s", "tone": "dry"}], "mood": 1},
        "through": "m-9",
        "usage": {"input_tokens": 1, "thinking": 2},
        "novelty": [1, 2],
    }
    read = record_from_dict(data)
    assert isinstance(read, Compaction)
    assert read.summary.extra == {"mood": 1}
    assert isinstance(read.summary.parts[0], TextPart)
    assert read.summary.parts[0].extra == {"tone": "dry"}
    assert read.usage.extra == {"thinking": 2}
    assert record_to_dict(read) == {key: kept for key, kept in data.items() if key != "novelty"}
    assert record_from_dict({**WRITTEN_RUN, "novelty": object()}) == RUN
    assert record_from_dict({"kind": "waiting_call", "key": "k", "novelty": 1}) == WaitingCall("k")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (5, r"^record must be a JSON object \(a dict\), not int$"),
        ({}, r"^kind is missing; it has to be one of waiting_call, compaction, run_record$"),
        ({"kind": "waiting"}, r"^kind is unknown; it has to be one of waiting_call"),
        ({"kind": ["waiting_call"]}, r"^kind is unknown"),
        ({"kind": "waiting_call"}, r"^key is missing$"),
        ({"kind": "waiting_call", "key": 5}, r"^key must be a str, not int$"),
        ({"kind": "waiting_call", "key": "k", "arguments": []}, r"^arguments must be a JSON object"),
        ({"kind": "waiting_call", "key": "k", "arguments": {"a": {1}}}, r"^arguments\.a must be JSON data"),
        ({"kind": "waiting_call", "key": "k", "expires_at": math.nan}, r"^expires_at must be JSON data.*NaN"),
        ({"kind": "waiting_call", "key": "k", "decision": "maybe"}, r"^decision is unknown; .* approve, deny$"),
        ({"kind": "waiting_call", "key": "k", "decision": "deny", "reason": 5}, r"^reason must be a str, not int$"),
        ({"kind": "compaction", "through": "m"}, r"^summary is missing$"),
        ({"kind": "compaction", "through": "m", "summary": []}, r"^summary must be a JSON object"),
        ({"kind": "compaction", "through": "m", "summary": {"role": "boss"}}, r"^summary\.role is unknown"),
        ({"kind": "compaction", "through": "m", "summary": {3: 4, "role": "user"}}, r"^summary must have keys"),
        (
            {"kind": "compaction", "through": "m", "summary": {"role": "assistant", "parts": []}},
            r"^summary must be a UserMessage, not AssistantMessage$",
        ),
        (
            {"kind": "compaction", "through": "m", "summary": {"role": "user", "parts": [{"kind": "smell"}]}},
            r"^summary\.parts\[0\]\.kind is unknown",
        ),
        ({**WRITTEN_RUN, "usage": {"input_tokens": -1}}, r"^usage\.input_tokens must be an int of at least 0"),
        ({**WRITTEN_RUN, "turns": "2"}, r"^turns must be an int, not str$"),
        ({key: kept for key, kept in WRITTEN_RUN.items() if key != "usage"}, r"^usage is missing$"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(data: Any, said: str) -> None:
    """An unknown kind, a missing key or a wrong type is an InvalidArgument that begins with the path."""
    with pytest.raises(InvalidArgument, match=said):
        record_from_dict(data)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (UserMessage("hi"), r"^record must be a WaitingCall, a Compaction or a RunRecord, not UserMessage"),
        (WaitingCall("k", arguments={"a": [object()]}), r"^arguments\.a\[0\] must be JSON data"),
        (WaitingCall("k", expires_at=math.inf), r"^expires_at must be JSON data, which knows no NaN"),
        (Compaction(UserMessage("s", metadata={"a": object()}), "m"), r"^summary\.metadata\.a must be JSON data"),
        (Compaction(UserMessage("s"), "m", metadata={"a": object()}), r"^metadata\.a must be JSON data"),
    ],
)
def test_what_json_cannot_say_is_refused(record: Any, said: str) -> None:
    """A value without a JSON form is an InvalidArgument that names its path."""
    with pytest.raises(InvalidArgument, match=said):
        record_to_dict(record)


def test_a_decision_is_one_of_two_values() -> None:
    """Nothing but Approve, Deny and None can be the decision of a call."""
    bad: Any
    for bad in (True, "approve", Approve):
        with pytest.raises(InvalidArgument, match=r"^WaitingCall\.decision must be an Approve or a Deny or None"):
            WaitingCall("k", decision=bad)
