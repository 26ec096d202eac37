"""Tool calls, put together from deltas as servers really send them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gotato_py import StopReason, ToolCallDelta

from .chunks import decoded, entry
from .server import chunk


def arguments_of(*fragments: object, finish: str = "tool_calls") -> list[str]:
    """The arguments of the calls that these fragments of one call make."""
    first, *rest = fragments
    chunks = [entry(first, call_id="a", name="f"), *(entry(each) for each in rest), chunk(finish=finish)]
    return [call.arguments for call in decoded(*chunks).calls]


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        (("{}", '{"a":', "1}"), '{"a":1}'),
        (("null", '{"a":1}'), '{"a":1}'),
        (("", "{", "}"), "{}"),
        (("{}",), "{}"),
        (("null",), "{}"),
        (({"a": 1},), '{"a":1}'),
        (({}, {"a": "é"}), '{"a":"é"}'),
        (('"{\\"a\\":1}"',), '{"a":1}'),
        (('"\\"{}\\""',), '"\\"{}\\""'),
        (('"text"',), '"text"'),
        (('{"a": 1}  ',), '{"a": 1}  '),
        (('{"a": "\ud83d', '\ude48"}'), '{"a": "\U0001f648"}'),
    ],
)
def test_arguments_are_as_sent(fragments: tuple[object, ...], expected: str) -> None:
    """Seeds are dropped, objects written as JSON, one layer of encoding taken off; all else stays as it came."""
    assert arguments_of(*fragments) == [expected]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_cut_call_stays_cut(finish: str) -> None:
    """After a cut the arguments are neither completed nor emptied."""
    assert arguments_of('{"a": "b', finish=finish) == ['{"a": "b']
    assert arguments_of("", finish=finish) == [""]


def test_deltas_of_calls_join_to_their_arguments() -> None:
    """The fragments of each position are the arguments; the name comes with the first."""
    answer = decoded(
        entry('{"a":', call_id="x", name="f", index=4),
        entry("1}", index=4),
        entry("{", call_id="y", name="g", index=7),
        entry("}", index=7),
        chunk(finish="tool_calls"),
    )
    deltas = [event for event in answer.events if isinstance(event, ToolCallDelta)]
    assert [(each.index, each.name, each.fragment) for each in deltas] == [
        (0, "f", '{"a":'),
        (0, "", "1}"),
        (1, "g", "{"),
        (1, "", "}"),
    ]
    assert [call.arguments for call in answer.calls] == ['{"a":1}', "{}"]


@pytest.mark.parametrize(
    ("chunks", "names"),
    [
        ([entry("{}", index=None, name="f"), entry("{}", index=None, name="g")], ["f", "g"]),
        ([entry("", index=None, name="f"), entry("", index=None, name="g")], ["f", "g"]),
        ([entry('{"a":1}', name="f"), entry('{"a":2}', name="f")], ["f", "f"]),
        ([entry("", index=None, call_id="a", name="f"), entry("", index=None, call_id="b", name="f")], ["f", "f"]),
        ([entry("{a", index=None, call_id="a", name="f"), entry("{}", index=None, call_id="b", name="f")], ["f", "f"]),
        ([entry("", call_id="a", name="f"), entry("", call_id="b", name="g")], ["f", "g"]),
        ([entry("", call_id="a", name="f"), entry("{", call_id="b", name="f"), entry("}")], ["f"]),
        ([entry("{", call_id="a", name="f"), entry("}", call_id="a", name="f")], ["f"]),
        ([entry("", name="get_"), entry("", name="weather"), entry("{}")], ["get_weather"]),
        ([entry("{}", call_id="a", name="f"), entry("{}", index="1", call_id="b", name="g")], ["f", "g"]),
        (
            [entry("{}", index=[1], call_id="a", name="f"), entry(None, index={"x": 1}, call_id="b", name="g")],
            ["f", "g"],
        ),
    ],
)
def test_where_a_call_begins(chunks: list[Any], names: list[str]) -> None:
    """Entries without index or id, or with repeated ones, make as many calls as were meant."""
    assert [call.name for call in decoded(*chunks, chunk(finish="tool_calls")).calls] == names


def test_ids_that_are_made_up_differ() -> None:
    """Calls that come without an id get one each."""
    answer = decoded(entry("{}", index=0, name="f"), entry("{}", index=1, name="g"), chunk(finish="tool_calls"))
    assert len({call.id for call in answer.calls} - {""}) == 2


def test_tool_calls_without_any_is_an_end() -> None:
    """The word `tool_calls` without a call is a normal end: there is nothing to run."""
    assert decoded(chunk("x", "tool_calls")).done.stop_reason is StopReason.END_TURN


def test_a_name_in_every_fragment_costs_no_more() -> None:
    """A server that repeats the name with fragments that look like an end does not make the whole be parsed each time.

    Twenty thousand of them are a second of work; parsed each time they would be a minute.
    """
    fragment = ', {"a": "' + "x" * 40 + '"}'
    many = [entry(fragment, name="f")] * 20_000
    began = time.process_time()
    (call,) = decoded(entry('{"list": [0', call_id="a", name="f"), *many, entry("]}"), chunk(finish="tool_calls")).calls
    assert time.process_time() - began < 10
    assert len(call.arguments) == len(fragment) * 20_000 + 13
