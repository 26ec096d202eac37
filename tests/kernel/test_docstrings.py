"""Docstrings of the three styles: the description, and each parameter's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py._docstrings import parse_docstring

GOOGLE = """Sums up.

    More: of it.

    Args:
        first (int): The first
            number.
        second: Another one: with a colon.
        **rest (dict(str, int)): Others.

    Returns:
        int: The sum.

    Example:
        >>> add(1, 2)
    """
NUMPY = """
    Sums up.

    More: of it.

    Parameters
    ----------
    first : int
        The first
        number.
    second
        Another one: with a colon.
    a, b : int, optional
        Two.
    **rest
        Others.

    Returns
    -------
    int
        The sum.
    """
REST = """Sums up.

    More: of it.

    :param int first: The first
        number.
    :param second: Another one: with a colon.
    :type second: int
    :param rest: Others.
    :returns: The sum.
    :raises ValueError: never
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST])
def test_styles(text: str) -> None:
    """Google, NumPy and reST docstrings give the same description and the same parameters."""
    description, parameters = parse_docstring(text)
    assert description == "Sums up.\n\nMore: of it."
    assert parameters["first"] == "The first number."
    assert parameters["second"] == "Another one: with a colon."
    assert parameters["rest"] == "Others."
    assert parameters.get("a", "Two.") == parameters.get("b", "Two.") == "Two."


def test_plain_text() -> None:
    """Text without sections is the description, whatever it holds; one line is taken as it is."""
    assert parse_docstring("") == ("", {})
    assert parse_docstring(" One line. ") == ("One line.", {})
    assert parse_docstring(":param a: only this") == ("", {"a": "only this"})
    assert parse_docstring("Note:\nnot indented, so it is text.") == ("Note:\nnot indented, so it is text.", {})
    assert parse_docstring("Use it.\n\nArgs:\n") == ("Use it.\n\nArgs:", {})
    assert parse_docstring("Use it.\n\nArgs:\n    a: one\n\nAnd text after.") == (
        "Use it.\n\nAnd text after.",
        {"a": "one"},
    )
    assert parse_docstring("Use it.\n\nArgs:\n    what a mess\n") == ("Use it.", {})
    assert parse_docstring("Use it.\n\nArgs:\n    a:\n") == ("Use it.", {})
    assert parse_docstring("Use it.\n:param: nameless\n:other: x") == ("Use it.", {})
    assert parse_docstring("Use it.\n\nArgs:\n    a: one\n:param b: two") == ("Use it.", {"a": "one", "b": "two"})


def test_attributes_of_classes() -> None:
    """The attributes of a class are its fields."""
    assert parse_docstring("A box.\n\nAttributes:\n    side: how long")[1] == {"side": "how long"}


@given(st.text(alphabet="Args: \n\t-:paramx()*,Returns") | st.text())
def test_any_text_can_be_read(text: str) -> None:
    """No docstring raises, and every description is text of it."""
    description, parameters = parse_docstring(text)
    assert all(parameters.values())
    assert len(description) <= len(text.expandtabs())
