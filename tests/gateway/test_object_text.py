"""The text of an object that comes in pieces is known to be whole exactly when it is."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway._object_text import ObjectText

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('"\\{}[]\n é🙈', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\{}', max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text('a"\\{}', max_size=3), values, max_size=3)


def is_object(text: str) -> bool:
    """Whether this is the text of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@given(
    value=objects | values,
    ascii_only=st.booleans(),
    around=st.tuples(st.sampled_from(["", " ", "\n"]), st.sampled_from(["", " ", "}", "{}", "x"])),
    data=st.data(),
)
def test_whole_is_what_a_parser_says(
    value: object, ascii_only: bool, around: tuple[str, str], data: st.DataObject
) -> None:
    """However the text is cut, and whenever it is asked, it is whole if the pieces so far are an object."""
    written = around[0] + json.dumps(value, ensure_ascii=ascii_only) + around[1]
    cuts = data.draw(st.lists(st.integers(0, len(written)), max_size=8))
    text = ObjectText()
    for start, end in pairwise(sorted({0, *cuts, len(written)})):
        text.add(written[start:end])
        if data.draw(st.booleans()):
            assert text.whole() == is_object(written[:end])
    assert str(text) == written
    assert text.whole() == text.whole() == is_object(written)


@given(pieces=st.lists(st.text('"\\{}[]:,a1 ', max_size=4), max_size=12))
def test_any_text_at_all(pieces: list[str]) -> None:
    """Whatever the pieces are, the answer is that of a parser."""
    text = ObjectText()
    for piece in pieces:
        text.add(piece)
        assert text.whole() == is_object(str(text))
    assert bool(text) == bool(pieces)


@pytest.mark.parametrize("written", ['{"a": NaN}', '{"a": 1}}', "[1]", '"{}"', '{"a": "\\', "}{"])
def test_what_is_no_object_never_becomes_one(written: str) -> None:
    """Text that is wrong stays so, whatever follows."""
    text = ObjectText()
    text.add(written)
    assert not text.whole()
    text.add(' {"a": 1}')
    assert not text.whole()
