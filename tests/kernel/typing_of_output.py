"""What type checkers infer of an output; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypedDict, TypeVar, assert_type

from gotato_py import Agent, RunResult, RunStream

T = TypeVar("T")


@dataclass
class Weather:
    """A dataclass."""

    city: str


@dataclass
class Page(Generic[T]):
    """A generic class."""

    items: list[T]


class Movie(TypedDict):
    """A TypedDict."""

    title: str


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: int


class Unit(Enum):
    """An enum."""

    C = "celsius"


def classes(agent: Agent) -> None:
    """A class gives a value of it."""
    assert_type(agent.run("?", output=Weather), RunResult[Weather])
    assert_type(agent.run("?", output=Weather).output, Weather)
    assert_type(agent.run("?", output=Movie).output, Movie)
    assert_type(agent.run("?", output=Pair).output, Pair)
    assert_type(agent.run("?", output=Unit).output, Unit)
    assert_type(agent.run("?", output=bool).output, bool)
    assert_type(agent.run("?", output=int).output, int)
    assert_type(agent.run("?", output=str).output, str)
    assert_type(agent.run("?", output=date).output, date)
    assert_type(agent.run("?", output=type(None)).output, None)


def generics(agent: Agent) -> None:
    """A container or a generic class gives a value with its types inside."""
    assert_type(agent.run("?", output=list[str]).output, list[str])
    assert_type(agent.run("?", output=list[Weather]).output, list[Weather])
    assert_type(agent.run("?", output=dict[str, int]).output, dict[str, int])
    assert_type(agent.run("?", output=tuple[int, str]).output, tuple[int, str])
    assert_type(agent.run("?", output=set[Unit]).output, set[Unit])
    assert_type(agent.run("?", output=Page[int]).output, Page[int])


def schemas(agent: Agent, schema: Mapping[str, object], plain: dict[str, Any]) -> None:
    """A JSON Schema gives whatever JSON it describes."""
    assert_type(agent.run("?", output={"type": "object"}), RunResult[Any])
    assert_type(agent.run("?", output={"type": "object"}).output, Any)
    assert_type(agent.run("?", output=schema).output, Any)
    assert_type(agent.run("?", output=plain).output, Any)


def forms_of_typing(agent: Agent, unknown: object) -> None:
    """What is a type to the reader and none to a type checker gives Any."""
    assert_type(agent.run("?", output=Literal["a", "b"]), RunResult[Any])
    assert_type(agent.run("?", output=Weather | Movie).output, Any)
    assert_type(agent.run("?", output=Weather | None).output, Any)
    assert_type(agent.run("?", output=Optional[int]).output, Any)  # noqa: UP045  # the old form is what is tested
    assert_type(agent.run("?", output=Annotated[int, "how many"]).output, Any)
    assert_type(agent.run("?", output=unknown).output, Any)
    assert_type(agent.stream("?", output=Weather | None), RunStream[Any])


def nothing(agent: Agent) -> None:
    """Without an output there is None."""
    assert_type(agent.run("?").output, None)
    assert_type(agent.run("?", output=None).output, None)
    assert_type(agent.run(), RunResult[None])


def streams(agent: Agent) -> None:
    """A stream is typed as the run would be."""
    assert_type(agent.stream("?", output=Weather), RunStream[Weather])
    assert_type(agent.stream("?", output=Weather).result.output, Weather)
    assert_type(agent.stream("?", output=list[str]).result.output, list[str])
    assert_type(agent.stream("?", output=Page[int]).result.output, Page[int])
    assert_type(agent.stream("?", output={"type": "object"}).result.output, Any)
    assert_type(agent.stream("?").result.output, None)
    assert_type(agent.stream("?", output=None).result, RunResult[None])


def passed_on(agent: Agent, kind: type[T]) -> T:
    """A function that is generic in the output passes its type on."""
    return agent.run("?", output=kind).output


def with_other_arguments(agent: Agent) -> None:
    """What else is passed does not matter to the type of the output."""
    assert_type(agent.run("?", output=Weather, timeout=1.0, check=False).output, Weather)
    assert_type(agent.run(output=Weather, deps=object()).output, Weather)
    assert_type(agent.run(answers={}, output=Weather).output, Weather)
    assert_type(passed_on(agent, Weather), Weather)
