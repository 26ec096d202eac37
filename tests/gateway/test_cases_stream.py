"""Wire cases 01 to 40 and 55: what servers do to the stream and to the calls in it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import Adapter
from gotato_py import AssistantMessage, ModelRequest, ToolCall, ToolMessage, ToolResult, UserMessage

from .answers import ask, local
from .cases import answer_to, check_events, load, variants
from .server import HELLO, Reply, Server


def run_case(shared: Path, number: str, **how: Any) -> None:
    """Every variant of a case gives the events that it expects."""
    case = load(shared, number)
    for name, variant, expect in variants(case):
        check_events(answer_to(variant, case, **how), expect, name)


def test_01_nel_byte_without_charset(shared: Path) -> None:
    """A byte 0x85 inside a character neither ends a line nor is read as Latin-1."""
    run_case(shared, "01")


def test_02_unicode_line_separators(shared: Path) -> None:
    """U+2028, U+2029 and U+0085 inside a JSON string are text, not ends of lines."""
    run_case(shared, "02")


def test_04_utf8_split_inside_a_character(shared: Path) -> None:
    """A character that two network chunks share comes out whole."""
    run_case(shared, "04")


def test_05_lenient_fields(shared: Path) -> None:
    """A BOM, `data:` without a space, unknown fields and empty events do no harm."""
    run_case(shared, "05")


def test_07_multiline_data(shared: Path) -> None:
    """Several data lines of one event are one JSON text."""
    run_case(shared, "07")


def test_10_tool_index_missing(shared: Path) -> None:
    """Without an index, a new id with a name starts a call, and an entry with neither continues the last."""
    run_case(shared, "10")


def test_11_tool_index_always_zero(shared: Path) -> None:
    """Three calls that all have index 0 stay three calls."""
    run_case(shared, "11")


def test_13_tool_id_empty_in_later_chunks(shared: Path) -> None:
    """An empty id or name means the same as before."""
    run_case(shared, "13")


def test_14_tool_id_changes_on_the_same_index(shared: Path) -> None:
    """A call whose chunks have different ids is one call and keeps the first."""
    run_case(shared, "14")


def test_16_no_arguments_are_an_empty_object(shared: Path) -> None:
    """Arguments that are empty or absent are `{}` after a normal end."""
    case = load(shared, "16")
    for name, variant, expect in variants(case):
        if name != "c-anthropic":
            check_events(answer_to(variant, case), expect, name)


def test_19_arguments_cut_off(shared: Path) -> None:
    """Arguments that were cut off are given out as they came, and never repaired."""
    run_case(shared, "19")


def test_20_nan_and_infinity(shared: Path) -> None:
    """Arguments with NaN are no JSON, and the turn can still be sent back."""
    run_case(shared, "20")
    call = ToolCall("call_1", "set_level", '{"db": NaN, "max": Infinity}')
    result = ToolMessage(ToolResult("call_1", "not_run", error="no JSON"))
    with Server(Reply(HELLO)) as server:
        ask(local(server.url), ModelRequest(messages=(UserMessage("x"), AssistantMessage((), (call,)), result)))
    assert server.received[0].json["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_22_interleaved_sparse_indices(shared: Path) -> None:
    """Indices are keys: they may have gaps and interleave, with text between."""
    run_case(shared, "22")


def test_23_legacy_function_call(shared: Path) -> None:
    """The deprecated `function_call` is a call with an id that is made up."""
    run_case(shared, "23")


def test_25_stop_although_tools_were_called(shared: Path) -> None:
    """A natural end with calls is `tool_calls`, whatever word the server says."""
    run_case(shared, "25")


def test_26_which_end_signal_counts(shared: Path) -> None:
    """A finish word or `[DONE]` ends an answer; an end of the body with neither is an error."""
    run_case(shared, "26", framing="close")


def test_28_unknown_finish_words(shared: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unknown word ends the answer normally and is logged once; the window's word without output is an overflow."""
    case = load(shared, "28")
    for name, variant, expect in variants(case):
        check_events(answer_to(variant, case), expect, name)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "vendor_new_reason" in caplog.text


def test_an_unknown_finish_word_is_logged_once_by_an_adapter(shared: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An adapter that meets the same unknown word again is silent."""
    _, variant, _ = list(variants(load(shared, "28")))[1]
    with Server(Reply([piece.encode() for piece in variant["stream_chunks"]])) as server:
        adapter: Adapter = local(server.url)
        assert ask(adapter).text == ask(adapter).text == "Hi"
    assert len(caplog.records) == 1


def test_32_refusal(shared: Path) -> None:
    """A refusal is shown as text, and the stop reason says so."""
    case = load(shared, "32")
    name, variant, expect = next(variants(case))
    check_events(answer_to(variant, case), expect, name)


def test_34_usage_on_every_chunk(shared: Path) -> None:
    """Usage is a snapshot: the last counts and nothing is added up."""
    run_case(shared, "34")


def test_35_cached_tokens_by_vendor(shared: Path) -> None:
    """Cached tokens are found in every vendor's place, and are a part of the input."""
    run_case(shared, "35")


def test_37_reasoning_inside_or_beside_the_output(shared: Path) -> None:
    """Reasoning is added to the output only where the total says that it is not in it."""
    run_case(shared, "37")


def test_38_reasoning_in_two_fields(shared: Path) -> None:
    """Reasoning that comes in two fields is shown once; empty fields open nothing."""
    run_case(shared, "38")


def test_40_mistral_content_list(shared: Path) -> None:
    """Content may be a list of typed parts and a string in the same stream."""
    run_case(shared, "40")


def test_55_error_object_in_a_chunk(shared: Path) -> None:
    """An error inside a 200 stream is an error of its kind, whatever follows."""
    run_case(shared, "55")
