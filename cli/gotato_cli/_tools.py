"""The tools that come with the command: small, harmless, and the same answer every time."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

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
_OPERATORS: dict[type[ast.AST], Callable[..., int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
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
    given = expression.strip()
    code = given.replace("×", "*").replace("÷", "/").replace("−", "-").replace("^", "**").replace("=", "").strip()
    if not _ARITHMETIC.fullmatch(code):
        raise ToolError("the expression may hold numbers, + - * / // % ** and parentheses, at most 200 characters")
    try:
        value = _value(ast.parse(code, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ToolError(f"{given!r} is no arithmetic expression") from None
    except ArithmeticError as error:
        raise ToolError(f"{given!r} has no value: {error}") from None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return f"{given.rstrip(' =')} = {value}"


def _value(node: ast.AST) -> int | float:
    """The value of a node; walks the tree, runs nothing."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return _bounded(number)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(left), _value(right)))
        case _:
            raise SyntaxError


def _power(base: int | float, exponent: int | float) -> int | float:
    if isinstance(base, int) and abs(exponent) * base.bit_length() > _MOST_BITS:
        raise OverflowError("the number would be too long")
    power: object = base**exponent
    if isinstance(power, complex):
        raise ArithmeticError("the root of a negative number")
    return _bounded(power) if isinstance(power, int | float) else math.nan


def _bounded(number: int | float) -> int | float:
    if isinstance(number, int):
        if number.bit_length() > _MOST_BITS:
            raise OverflowError("the number is too long")
    elif not math.isfinite(number):
        raise OverflowError("the number is too large")
    return number


DEMO_TOOLS = (weather, calculate)
