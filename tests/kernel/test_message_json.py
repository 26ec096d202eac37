"""The JSON form of messages, the most permanent format here."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from gotato_py.message_json import (
    call_from_dict,
    call_to_dict,
    message_from_dict,
    message_to_dict,
    part_from_dict,
    part_to_dict,
    result_from_dict,
    result_to_dict,
    usage_from_dict,
    usage_to_dict,
)

from ..effort import costly
from . import strategies as sts


def everything(held: Any) -> Any:
    """All fields of a value, deeply, those that take no part in == too."""
    if isinstance(held, tuple | list):
        return [everything(each) for each in held]
    names = getattr(type(held), "_value_fields", None)
    if names is None:
        return held if not isinstance(held, float | bool) else repr(held)
    return type(held).__name__, {name: everything(getattr(held, name)) for name in names}


@given(sts.messages)
def test_round_trip_is_exact(message: Message) -> None:
    """A message comes back with every field as it was, through real JSON text."""
    text = json.dumps(message_to_dict(message), allow_nan=False, ensure_ascii=False)
    again = message_from_dict(json.loads(text.encode("utf-8")))
    assert again == message
    assert everything(again) == everything(message)


@given(sts.messages)
def test_the_form_is_stable(message: Message) -> None:
    """What is read and written again is the same data, in the same order."""
    data = message_to_dict(message)
    assert json.dumps(message_to_dict(message_from_dict(data))) == json.dumps(data)


@costly(2)
@given(st.data())
def test_pieces_round_trip(data: st.DataObject) -> None:
    """Parts, calls, results and usage have the same two ways as messages."""
    part, call = data.draw(sts.parts), data.draw(sts.calls)
    result, usage = data.draw(sts.results), data.draw(sts.usages)
    assert everything(part_from_dict(part_to_dict(part))) == everything(part)
    assert everything(call_from_dict(call_to_dict(call))) == everything(call)
    assert everything(result_from_dict(result_to_dict(result))) == everything(result)
    assert everything(usage_from_dict(usage_to_dict(usage))) == everything(usage)


def test_the_documented_example() -> None:
    """The form in the contract is the form that is written."""
    message = AssistantMessage(
        "…",
        [ToolCall("c1", "weather", '{"city":"Oslo"}')],
        usage=Usage(12, 5),
        stop_reason="tool_calls",
        model="m",
        id="m-1",
    )
    assert json.dumps(message_to_dict(message), ensure_ascii=False) == (
        '{"role": "assistant", "id": "m-1", "parts": [{"kind": "text", "text": "…"}], "tool_calls": [{"id": "c1", '
        '"name": "weather", "arguments": "{\\"city\\":\\"Oslo\\"}"}], "usage": {"input_tokens": 12, "output_tokens": '
        '5}, "stop_reason": "tool_calls", "model": "m"}'
    )


def test_a_tool_message() -> None:
    """A tool message holds its result as an object of its own."""
    result = ToolResult("c1", "failed", "out", "ValueError: no", "m-1:0", {"took": 1})
    assert message_to_dict(ToolMessage(result, id="m-2")) == {
        "role": "tool",
        "id": "m-2",
        "result": {
            "call_id": "c1",
            "status": "failed",
            "parts": [{"kind": "text", "text": "out"}],
            "error": "ValueError: no",
            "key": "m-1:0",
            "metadata": {"took": 1},
        },
    }


def test_fields_at_their_default_are_left_out() -> None:
    """Empty messages and parts are written with what they need and nothing else."""
    assert message_to_dict(AssistantMessage()) == {"role": "assistant"}
    assert message_to_dict(UserMessage(())) == {"role": "user", "parts": []}
    assert message_to_dict(ToolMessage(ToolResult("", "ok"))) == {
        "role": "tool",
        "result": {"call_id": "", "status": "ok"},
    }
    assert part_to_dict(ReasoningPart()) == {"kind": "reasoning"}
    assert part_to_dict(ImagePart(url="u")) == {"kind": "image", "url": "u"}
    assert call_to_dict(ToolCall("", "")) == {"id": "", "name": ""}
    assert usage_to_dict(Usage()) == {}


def test_bytes_are_base64_text() -> None:
    """Bytes are written as standard base64 and read strictly."""
    data = bytes(range(256))
    assert part_to_dict(FilePart(data))["data"] == base64.b64encode(data).decode()
    for bad in ("****", "YQ", "YQ==\n", "ä", 5, ["YQ=="]):
        with pytest.raises(InvalidArgument, match=r"^parts\[0\]\.data must be base64 text"):
            message_from_dict({"role": "user", "parts": [{"kind": "audio", "data": bad}]})


def test_unknown_keys_are_kept_at_every_level() -> None:
    """Keys of a later release are in `extra` and are written back, wherever they stand."""
    new: dict[str, Any] = {"later": {"deep": [1, None]}}
    data = {
        "role": "assistant",
        "parts": [{"kind": "text", "text": "a", **new}, {"kind": "json", "value": 1, **new}],
        "tool_calls": [{"id": "c", "name": "n", "role": "x", **new}],
        "usage": {"input_tokens": 1, "kind": "y", **new},
        "kind": "z",
        "extra": 1,
        **new,
    }
    message = message_from_dict(data)
    assert isinstance(message, AssistantMessage)
    assert message.extra == {"kind": "z", "extra": 1, **new}
    assert message.parts[0].extra == new
    assert message_to_dict(message) == data
    tool = {"role": "tool", "result": {"call_id": "c", "status": "ok", **new}, **new}
    assert message_to_dict(message_from_dict(tool)) == tool


def test_usage_that_is_only_extra_is_kept() -> None:
    """Extra keys of a usage survive although they take no part in ==."""
    data = {"role": "assistant", "usage": {"audio_tokens": 3}}
    assert message_to_dict(message_from_dict(data)) == data


BAD: list[tuple[dict[Any, Any], str]] = [
    ({}, "role is missing"),
    ({"role": "system"}, "role is unknown"),
    ({"role": ["user"]}, "role is unknown"),
    ({"role": "user"}, "parts is missing"),
    ({"role": "user", "parts": "text"}, "parts must be a JSON array"),
    ({"role": "user", "parts": None}, "parts must be a JSON array"),
    ({"role": "user", "parts": {}}, "parts must be a JSON array"),
    ({"role": "user", "parts": ["a"]}, r"parts\[0\] must be a JSON object"),
    ({"role": "user", "parts": [{"kind": "text", "text": ""}, {"text": "a"}]}, r"parts\[1\]\.kind is missing"),
    ({"role": "user", "parts": [{"kind": "video"}]}, r"parts\[0\]\.kind is unknown"),
    ({"role": "user", "parts": [{"kind": []}]}, r"parts\[0\]\.kind is unknown"),
    ({"role": "user", "parts": [{"kind": "text"}]}, r"parts\[0\]\.text is missing"),
    ({"role": "user", "parts": [{"kind": "text", "text": 5}]}, r"parts\[0\]\.text must be a str"),
    ({"role": "user", "parts": [{"kind": "reasoning", "redacted": 1}]}, r"parts\[0\]\.redacted must be a bool"),
    ({"role": "user", "parts": [{"kind": "image"}]}, r"parts\[0\]: ImagePart takes data or url"),
    ({"role": "user", "parts": [{"kind": "json", "value": math.nan}]}, r"parts\[0\]\.value must be plain"),
    ({"role": "user", "parts": [], "id": 5}, "id must be a str"),
    ({"role": "user", "parts": [], "metadata": []}, "metadata must be a JSON object"),
    ({"role": "user", "parts": [], "metadata": {"a": [math.inf]}}, r"metadata\.a\[0\] must be JSON data"),
    ({"role": "user", "parts": [], 5: 5}, "message must have keys of type str"),
    ({"role": "user", "parts": [], "new": object()}, "new must be JSON data"),
    ({"role": "assistant", "stop_reason": "bored"}, "stop_reason must be one of"),
    ({"role": "assistant", "stop_reason": []}, "stop_reason must be one of"),
    ({"role": "assistant", "usage": []}, "usage must be a JSON object"),
    ({"role": "assistant", "usage": {"input_tokens": -1}}, r"usage\.input_tokens must be an int"),
    ({"role": "assistant", "usage": {"input_tokens": True}}, r"usage\.input_tokens must be an int"),
    ({"role": "assistant", "tool_calls": [{"id": "a"}]}, r"tool_calls\[0\]\.name is missing"),
    ({"role": "assistant", "tool_calls": [{"id": "a", "name": "b", "arguments": {}}]}, r"tool_calls\[0\]\.arguments"),
    ({"role": "tool"}, "result is missing"),
    ({"role": "tool", "result": None}, "result must be a JSON object"),
    ({"role": "tool", "result": {"call_id": "", "status": "fine"}}, r"result\.status must be one of"),
    ({"role": "tool", "result": {"call_id": "", "status": "ok", "parts": [1]}}, r"result\.parts\[0\] must be"),
]


@pytest.mark.parametrize(("data", "said"), BAD)
def test_bad_data_is_a_clear_error(data: dict[Any, Any], said: str) -> None:
    """Unknown roles and kinds, missing keys and wrong types are errors that name the path."""
    with pytest.raises(InvalidArgument, match=f"^{said}"):
        message_from_dict(data)


@given(
    st.recursive(
        st.none() | st.integers() | st.sampled_from(["user", "assistant", "tool", "text", "json", "ok", "x"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "kind", "parts", "text", "value", "result", "usage", "status", "call_id", "id"]
                ),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_no_data_raises_anything_else(data: Any) -> None:
    """Whatever the data, the answer is a message or an InvalidArgument."""
    try:
        made = message_from_dict(data)
    except InvalidArgument:
        return
    assert message_from_dict(message_to_dict(made)) == made


class Colour(StrEnum):
    """A str that is not plain."""

    RED = "red"


class Level(IntEnum):
    """An int that is not plain."""

    LOW = 1


def test_metadata_becomes_plain() -> None:
    """Mappings, tuples, enums and lone surrogates in metadata are written in JSON's own types."""
    held = {"a": MappingProxyType({"b": (1, Colour.RED)}), "c": Level.LOW, "d": "x\ud800", "e": 1.5}
    data = message_to_dict(UserMessage("u", metadata=held))
    assert data["metadata"] == {"a": {"b": [1, "red"]}, "c": 1, "d": "x\ufffd", "e": 1.5}
    assert [type(each) for each in data["metadata"].values()] == [dict, int, str, float]
    assert type(data["metadata"]["a"]["b"][1]) is str


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"a": {"b": [object()]}}, r"metadata\.a\.b\[0\] must be JSON data"),
        ({"a": b"x"}, r"metadata\.a must be JSON data"),
        ({"a": {1}}, r"metadata\.a must be JSON data"),
        ({"a": math.nan}, r"metadata\.a must be JSON data, which knows no NaN"),
        ({"a": {1: 2}}, r"metadata\.a must be JSON data, whose keys are str"),
        ({"a": LOOP}, r"metadata is nested too deeply"),
        ({"a": 1 << 20_000}, r"metadata\.a must be JSON data, and this int is too long"),
    ],
)
def test_metadata_that_is_no_json_is_a_clear_error(held: Mapping[str, Any], said: str) -> None:
    """What JSON cannot say is refused when it is written, by its path."""
    with pytest.raises(InvalidArgument, match=f"^{said}"):
        message_to_dict(UserMessage("u", metadata=held))
    with pytest.raises(InvalidArgument, match=f"^result.{said}"):
        message_to_dict(ToolMessage(ToolResult("", "ok", metadata=held)))
    with pytest.raises(InvalidArgument, match=f"^tool_calls.0..{said}"):
        message_to_dict(AssistantMessage("", [ToolCall("", "", extra={"metadata": held})]))


def test_what_is_written_is_a_copy() -> None:
    """Changing the data changes neither the message nor what is written next."""
    message = UserMessage(JSONPart({"a": [1]}), metadata={"m": [1]})
    data = message_to_dict(message)
    data["parts"][0]["value"]["a"].append(2)
    data["metadata"]["m"].append(2)
    assert message_to_dict(message)["parts"][0]["value"] == {"a": [1]}
    assert message.metadata == {"m": [1]}


def test_what_is_read_is_a_copy() -> None:
    """Changing the data after reading it does not change the message."""
    data: dict[str, Any] = {"role": "user", "parts": [], "metadata": {"m": [1]}, "x": [1]}
    message = message_from_dict(data)
    data["metadata"]["m"].append(2)
    data["x"].append(2)
    assert (message.metadata, message.extra) == ({"m": [1]}, {"x": [1]})


def test_no_message_is_refused_by_name() -> None:
    """What is no message, no part or no object is an InvalidArgument."""
    wrong: Any = "text"
    for call in (message_to_dict, message_from_dict, part_to_dict, part_from_dict, usage_from_dict, result_from_dict):
        with pytest.raises(InvalidArgument, match="not str"):
            call(wrong)


def test_lone_surrogates_never_enter() -> None:
    """Text is made well-formed when the value is made: split pairs are joined, lone halves become U+FFFD."""
    assert TextPart("a\ud83d\ude00b").text == "a\U0001f600b"
    assert TextPart("\ude00\ud83d").text == "\ufffd\ufffd"
    assert TextPart("x\ud83dyä").text == "x\ufffdyä"
    assert ToolCall("\ud800", "n").id == "\ufffd"
    assert json.dumps(message_to_dict(UserMessage("\ud800")), ensure_ascii=False).encode()
