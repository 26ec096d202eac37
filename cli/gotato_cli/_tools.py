"""The tools that come with the command: small, harmless, and the same answer every time."""

from __future__ import annotations

import ast
import math
import re

from gotato_py import ToolError, tool

_WEATHER = {
    "Bergen": "9 °C, rain",
    "Berlin": "14 °C, cloudy",
    "Lima": "19 °C, fog",
    "London": "12 °C, drizzle",
    "Madrid": "24 °C, sunny",
    "Nairobi": "22 °C, partly cloudy",
    "New York": "17 °C, windy",
    "Oslo": "8 °C, sunny",
    "Paris": "15 °C, light rain",
    "Rome": "23 °C, sunny",
    "Sydney": "20 °C, clear",
    "Tokyo": "18 °C, cloudy",
}
_SIGNS = str.maketrans({"×": "*", "÷": "/", "\N{MINUS SIGN}": "-", "^": "**"})
_ARITHMETIC = re.compile(r"[\d.\s()+\-*/%]{1,200}", re.ASCII)
_MOST_BITS = 4096


@tool(effect="read")
def weather(city: str) -> str:
    """The weather in a city, from a fixed table.

    Args:
        city: The city's name, such as "Oslo".
    """
    found = next((known for known in _WEATHER if known.casefold() == city.strip().casefold()), None)
    if found is None:
        raise ToolError(f"no weather for {city!r}; known are {', '.join(_WEATHER)}")
    return f"{found}: {_WEATHER[found]}"


@tool(effect="read")
def calculate(expression: str) -> str:
    """The value of an arithmetic expression.

    Args:
        expression: Numbers with + - * / // % ** and parentheses, such as "17 * 23".
    """
    given = expression.strip(" =?")
    code = given.translate(_SIGNS)
    if not _ARITHMETIC.fullmatch(code):
        raise ToolError("the expression may hold numbers, + - * / // % ** and parentheses, at most 200 characters")
    try:
        value = _value(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"{given!r} is no arithmetic expression") from None
    except ArithmeticError as error:
        raise ToolError(f"{given!r} has no value: {error.args[-1]}") from None
    return f"{given} = {value if isinstance(value, int) else f'{value:.12g}'}"


def _value(node: ast.AST) -> int | float:
    """The value of a node; walks the tree, runs nothing."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return _bounded(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _bounded(_binary(op, _value(left), _value(right)))
        case _:
            raise SyntaxError("not arithmetic")


def _binary(op: ast.operator, left: int | float, right: int | float) -> int | float | complex:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.FloorDiv():
            return left // right
        case ast.Mod():
            return left % right
        case _:  # ast.Pow: the characters that are let through can make no other
            if isinstance(left, int) and abs(right) * left.bit_length() > _MOST_BITS:
                raise OverflowError("the number would be too long")
            power: int | float | complex = left**right
            return power


def _bounded(number: int | float | complex) -> int | float:
    if isinstance(number, complex):
        raise ArithmeticError("the root of a negative number")
    if isinstance(number, int) and number.bit_length() > _MOST_BITS:
        raise OverflowError("the number is too long")
    if isinstance(number, float) and not math.isfinite(number):
        raise OverflowError("the number is too large")
    return number


DEMO_TOOLS = (weather, calculate)
