"""The arguments of a call from the text that a model sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py.arguments import MAX_DEPTH, parse_arguments
from gotato_py.violations import SchemaViolation

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("text", ["", " \n\t", "null", " null ", "{}", "{ }"])
def test_nothing_means_no_arguments(text: str) -> None:
    """Empty text, white space and null mean no arguments."""
    assert parse_arguments(text) == {}


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_reads_every_object(value: dict[str, Any]) -> None:
    """Every JSON object is read as it is, escaped or not."""
    assert parse_arguments(json.dumps(value)) == value
    assert parse_arguments(json.dumps(value, ensure_ascii=False)) == value


@given(st.text() | st.text(alphabet='{}[]",:\\u0d8 1-.eEN'))
def test_any_text_is_an_answer(text: str) -> None:
    """No text raises: it is an object that UTF-8 can say, or a violation."""
    read = parse_arguments(text)
    if isinstance(read, SchemaViolation):
        assert read.path == "$"
        assert read.expected == "a JSON object"
    else:
        json.dumps(read, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":', "not valid JSON (Expecting value at character 5)"),
        ('{"a": 1} x', "not valid JSON (Extra data"),
        ("[1]", "an array of 1 items"),
        ('"x"', "a string of 1 character"),
        ("5", "5"),
        ('{"a": NaN}', "NaN, which is no JSON"),
        ('{"a": -Infinity}', "-Infinity, which is no JSON"),
        ('{"a": 1e999}', "a number too large for a float"),
        ('{"a": ' + "9" * 5000 + "}", "an integer of too many digits"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", f"nested more than {MAX_DEPTH} deep"),
        ('{"a":' * 5000 + "1" + "}" * 5000, f"nested more than {MAX_DEPTH} deep"),
        ("[" * 100_000, f"nested more than {MAX_DEPTH} deep"),
    ],
)
def test_says_why_it_is_no_object(text: str, said: str) -> None:
    """What is no JSON object is told in words, numbers that Python cannot hold and endless nesting too."""
    read = parse_arguments(text)
    assert isinstance(read, SchemaViolation)
    assert said in read.got


def test_brackets_in_text_are_no_nesting() -> None:
    """Only brackets outside strings count as nesting, up to the limit itself."""
    assert parse_arguments(json.dumps({"a": "[" * 1000 + '"' + "{" * 1000})) != {}
    deep = '{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    assert isinstance(parse_arguments(deep), dict)
    wide = '{"a":[' + ",".join(["[]"] * 1000) + "]}"
    assert isinstance(parse_arguments(wide), dict)


def test_last_of_equal_names_wins() -> None:
    """Of equal names the last wins."""
    assert parse_arguments('{"a": 1, "a": 2}') == {"a": 2}


def test_lone_surrogates_are_replaced() -> None:
    """A lone surrogate becomes U+FFFD in values, names and raw text; a pair is its character."""
    assert parse_arguments('{"\\ud800": ["\\uDC00x", 1, {"a": "\\ud83d\\ude00"}]}') == {
        "\ufffd": ["\ufffdx", 1, {"a": "😀"}]
    }
    assert parse_arguments('{"a": "\ud800"}') == {"a": "\ufffd"}
    assert parse_arguments('{"a": "\\u0041"}') == {"a": "A"}
