"""Messages, parts, calls and results: what goes in, and what can be asked."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    AudioPart,
    Done,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
)

from . import strategies as sts


@given(sts.messages)
def test_messages_are_values(message: Message) -> None:
    """Any message is hashable, and equals its copies."""
    for again in (pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)):
        assert again == message
        assert hash(again) == hash(message)
        assert (again.id, again.metadata, again.extra) == (message.id, message.metadata, message.extra)


@given(st.lists(sts.parts, max_size=3))
def test_parts_go_in_as_any_sequence(parts: list[Any]) -> None:
    """A list, a tuple and, where there is one, a single part make the same message; a tuple is kept."""
    message = UserMessage(parts)
    assert message == UserMessage(tuple(parts))
    assert type(message.parts) is tuple
    if len(parts) == 1:
        assert UserMessage(parts[0]) == message


@given(sts.clean_text, sts.clean_text)
def test_text_goes_in_as_a_str(one: str, two: str) -> None:
    """A str is a text part, alone or among others, and `.text` joins the text parts."""
    assert UserMessage(one).parts == (TextPart(one),)
    message = AssistantMessage([one, ReasoningPart("r"), TextPart(two)])
    assert message.text == one + two
    assert UserMessage(one).text == one
    assert UserMessage(()).text == ""


@pytest.mark.parametrize("bad", [5, None, b"x", {"a": 1}, object(), {"x"}, iter("x")])
def test_bad_parts_are_refused(bad: Any) -> None:
    """What is no str, part or sequence is refused by the argument's name, and so is a wrong item by its index."""
    with pytest.raises(InvalidArgument, match=r"^UserMessage\.parts must be a str, a part or a sequence of parts, not"):
        UserMessage(bad)
    with pytest.raises(InvalidArgument, match=r"^AssistantMessage\.parts\[1\] must be a part, not"):
        AssistantMessage(["x", bad])


def test_bad_calls_are_refused() -> None:
    """`tool_calls` takes calls alone."""
    bad: Any
    for bad in (5, "x", ToolCall("a", "b"), None, {ToolCall("a", "b")}):
        with pytest.raises(InvalidArgument, match=r"^AssistantMessage\.tool_calls must be a sequence of ToolCall"):
            AssistantMessage("", bad)
    bad = [ToolCall("a", "b"), "x"]
    with pytest.raises(InvalidArgument, match=r"^AssistantMessage\.tool_calls\[1\] must be a ToolCall, not str"):
        AssistantMessage("", bad)


def test_roles() -> None:
    """Each message knows its role."""
    assert UserMessage("").role == "user"
    assert AssistantMessage().role == "assistant"
    assert ToolMessage(ToolResult("", "ok")).role == "tool"


def test_identity_and_notes_take_no_part_in_equality() -> None:
    """`id`, `metadata` and `extra` do not decide whether messages are equal; everything else does."""
    plain = UserMessage("u")
    assert UserMessage("u", id="m-1", metadata={"a": 1}, extra={"b": 2}) == plain
    assert UserMessage("v") != plain
    others: list[object] = [AssistantMessage("u"), "u", None]
    assert plain not in others
    assert ToolResult("c", "ok", metadata={"a": 1}) == ToolResult("c", "ok")
    assert AssistantMessage("u", usage=Usage(1)) != AssistantMessage("u")


@given(sts.metadata.filter(lambda held: held.keys().isdisjoint({"kind", "text"})))  # TextPart's own keys
def test_metadata_is_read_only(held: dict[str, Any]) -> None:
    """Metadata and extra are copies that nobody can change."""
    known = dict(held)
    for message in (UserMessage("u", metadata=held), ToolResult("c", "ok", metadata=held), TextPart("t", extra=held)):
        kept: Any = message.extra if isinstance(message, TextPart) else message.metadata
        with pytest.raises(TypeError, match="read-only"):
            kept["another"] = 1
        assert kept == known
    held["new"] = 1
    assert "new" not in UserMessage("u", metadata=known).metadata


@pytest.mark.parametrize("bad", [5, None, [("a", 1)], {1: 2}, "ab"])
def test_metadata_is_a_mapping_with_str_keys(bad: Any) -> None:
    """Anything else is refused by the argument's name."""
    with pytest.raises(InvalidArgument, match=r"^UserMessage\.metadata must be a mapping with str keys"):
        UserMessage("u", metadata=bad)
    with pytest.raises(InvalidArgument, match=r"^Usage\.extra must be a mapping with str keys"):
        Usage(extra=bad)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda extra: UserMessage("u", extra=extra), "role"),
        (lambda extra: AssistantMessage(extra=extra), "usage"),
        (lambda extra: TextPart("t", extra=extra), "kind"),
        (lambda extra: JSONPart(1, extra=extra), "value"),
        (lambda extra: ToolCall("a", "b", extra=extra), "arguments"),
        (lambda extra: ToolResult("a", "ok", extra=extra), "status"),
        (lambda extra: Usage(extra=extra), "input_tokens"),
    ],
)
def test_extra_holds_unknown_keys_only(make: Any, key: str) -> None:
    """A key that the JSON form has already would be lost in `extra`, so it is refused."""
    with pytest.raises(InvalidArgument, match=rf"\.extra must hold no key that the value has itself: {key}$"):
        make({key: 1, "free": 2})
    assert make({"free": 2, "extra": 3}).extra == {"free": 2, "extra": 3}


@pytest.mark.parametrize("kind", [ImagePart, FilePart])
def test_a_picture_or_a_file_has_one_source(kind: Any) -> None:
    """Data or url, exactly one of them."""
    assert kind(b"x").url is None
    assert kind(url="u").data is None
    for given_sources in ({}, {"data": b"x", "url": "u"}):
        with pytest.raises(InvalidArgument, match=f"^{kind.__name__} takes data or url, exactly one of them$"):
            kind(**given_sources)
    assert AudioPart(b"").data == b""


@given(sts.json_data)
def test_a_json_part_has_its_own_copy(data: Any) -> None:
    """The value is kept in plain types, apart from what it was made of, and hashes as it compares."""
    part = JSONPart(data)
    assert part.value == data
    assert part == JSONPart(copy.deepcopy(data))
    assert hash(part) == hash(JSONPart(copy.deepcopy(data)))
    if isinstance(data, list | dict):
        assert part.value is not data


def test_a_json_part_takes_what_json_can_say() -> None:
    """Tuples become lists and lone surrogates U+FFFD; what cannot be written is refused."""
    given_value: dict[str, Any] = {"a": (1, 2), "b": "\ud800", "c": StopReason.PAUSE}
    assert JSONPart(given_value).value == {"a": [1, 2], "b": "\ufffd", "c": "pause"}
    assert hash(JSONPart(1)) == hash(JSONPart(1.0)) == hash(JSONPart(True))
    loop: list[Any] = []
    loop.append(loop)
    for bad in (math.nan, [math.inf], {1, 2}, b"x", object(), loop, 10**5000):
        with pytest.raises(InvalidArgument, match=r"^JSONPart\.value must be plain, finite JSON data"):
            JSONPart(bad)


@pytest.mark.parametrize(
    ("status", "executed"),
    [
        ("ok", True),
        ("failed", True),
        ("not_run", False),
        ("blocked", False),
        ("cancelled", None),
        ("timed_out", None),
        ("pending", None),
    ],
)
def test_a_status_says_whether_the_tool_ran(status: str, executed: bool | None) -> None:
    """`executed` follows from the status: yes, no, or nobody knows."""
    result = ToolResult("c", status)
    assert result.executed is executed
    assert result.status is ToolResultStatus(status)


def test_the_text_of_a_result_says_which_it_is() -> None:
    """Where the tool gave no answer, the words tell the model whether a retry is safe."""
    said = {status: ToolResult("c", status, error="why").text for status in ToolResultStatus}
    assert said[ToolResultStatus.OK] == ""
    assert "ran and failed" in said[ToolResultStatus.FAILED]
    for status in (ToolResultStatus.NOT_RUN, ToolResultStatus.BLOCKED):
        assert "not run" in said[status]
    for status in (ToolResultStatus.CANCELLED, ToolResultStatus.TIMED_OUT):
        assert "effect is unknown" in said[status]
    assert "goes on elsewhere" in said[ToolResultStatus.PENDING]
    assert all(text.endswith("why") for status, text in said.items() if status != "ok")
    message = ToolMessage(ToolResult("c", "failed", "its own words", error="why"))
    assert (message.text, message.parts) == ("its own words", (TextPart("its own words"),))


def test_enums_equal_their_text() -> None:
    """A member equals its value, and a value goes in for it; another word is refused with the list of words."""
    assert [reason.value for reason in StopReason] == list(StopReason)
    assert AssistantMessage("", stop_reason="max_tokens").truncated
    assert not AssistantMessage("", stop_reason=StopReason.END_TURN).truncated
    bad: Any
    for bad in ("bored", 5, None, ["end_turn"], "MAX_TOKENS"):
        with pytest.raises(InvalidArgument, match=r"^AssistantMessage\.stop_reason must be one of end_turn, "):
            AssistantMessage(stop_reason=bad)
    assert Done(stop_reason="max_tokens") == Done(StopReason.MAX_TOKENS)
    assert {reason.name.lower() for reason in StopReason} == {reason.value for reason in StopReason}


@pytest.mark.parametrize(
    ("given", "said"),
    [("bored", "none, not 'bored'"), ("tell nobody", "none, not a str of 11 characters"), (5, "none, not int")],
)
def test_a_wrong_word_is_named(given: Any, said: str) -> None:
    """A word that is no member is named in the error; any other text may be a prompt, and only its length is told."""
    with pytest.raises(InvalidArgument) as caught:
        Done(stop_reason=given)
    assert str(caught.value).endswith(said)


@given(sts.usages, sts.usages)
def test_usage_adds(one: Usage, two: Usage) -> None:
    """Usage adds field by field, and the total is input and output: cached and reasoning are within."""
    both = one + two
    assert both == two + one
    assert both.total_tokens == one.total_tokens + two.total_tokens == both.input_tokens + both.output_tokens
    assert both.cache_read_tokens == one.cache_read_tokens + two.cache_read_tokens
    assert one + Usage() == one
    five: Any = 5
    with pytest.raises(TypeError):
        _ = one + five


@pytest.mark.parametrize("bad", [-1, 1.5, True, "1", None])
def test_usage_counts(bad: Any) -> None:
    """Counts are ints of at least 0."""
    with pytest.raises(InvalidArgument, match=r"^Usage\.output_tokens must be an int of at least 0$"):
        Usage(0, bad)


def test_text_fields_hold_plain_text() -> None:
    """A member of an enum, or any other kind of str, is kept as the plain text that it equals."""
    part = TextPart(StopReason.PAUSE)
    assert type(part.text) is str
    assert part.text == "pause"
