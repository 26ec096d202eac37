"""The tools that come with the command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_cli._tools import DEMO_TOOLS, calculate, weather
from gotato_py import ToolContext, ToolEffect, ToolError


def computed(expression: str) -> str:
    """What the calculator says, behind its equals sign."""
    said = calculate.execute(ToolContext("calculate", {"expression": expression}))
    assert isinstance(said, str)
    return said.rpartition(" = ")[2]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 * 23", "391"),
        ("-(3 + 4) * +2.5", "-17.5"),
        ("2^10", "1024"),
        ("7 // 2 - 7 % 4", "0"),
        ("6 × 7 ÷ 2", "21"),
        ("0.1 + 0.2", "0.3"),
        ("10 / 5 = ?", "2"),
        ("2 ** -1", "0.5"),
    ],
)
def test_arithmetic_is_computed(expression: str, value: str) -> None:
    """Numbers, the usual operators and parentheses, in the notations that people use."""
    assert computed(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "two + two",
        "__import__('os')",
        "(1).real",
        "3(4)",
        "1 2",
        "2 +",
        "007",
        "1 / 0",
        "9 ** 9 ** 9",
        "2.5 ** 4000",
        "(-1) ** 0.5",
        "(" * 150 + "1" + ")" * 49,
        "1" * 201,
        "9" * 150 + "*" + "9" * 49 + "** 9",
        "9 ** 1000 * 9 ** 1000",
        "9.9 ** 300 * 9.9 ** 300",
        "1, 2",
        "1 if 2 else 3",
        "1 < 2",
    ],
)
def test_everything_else_is_refused(expression: str) -> None:
    """What is no arithmetic, has no value or would grow too large is a `ToolError`, at once."""
    with pytest.raises(ToolError):
        computed(expression)


@given(st.text(alphabet="0123456789.+-*/%() ", max_size=40))
def test_no_expression_does_harm(expression: str) -> None:
    """Any expression gives a bounded value or a `ToolError`, and nothing else."""
    try:
        assert len(computed(expression)) <= 1300
    except ToolError:
        pass


def test_the_weather_is_a_table() -> None:
    """A known city, in any case, has its weather; an unknown one is told which are known."""
    assert weather.execute(ToolContext("weather", {"city": " oslo "})) == "Oslo: 8 °C, sunny"
    with pytest.raises(ToolError, match="known are Bergen"):
        weather.execute(ToolContext("weather", {"city": "Mordor"}))


def test_the_tools_only_read() -> None:
    """Neither changes anything, and they say so."""
    assert [tool.spec.effect for tool in DEMO_TOOLS] == [ToolEffect.READ] * 2
