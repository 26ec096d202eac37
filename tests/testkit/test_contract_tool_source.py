"""The suite for tool sources: a plain one keeps it, and each of its tests is the one that a broken one fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from gotato_py import ToolSource, TurnView, Validator, tool
from gotato_testkit import FakeTool
from gotato_testkit.contracts import ToolSourceContract

from .suites import assert_breaks, broken_by, names_of, not_judged_by


def weather(city: str) -> str:
    """The weather in a city."""
    return city


class Good:
    """A source that keeps every promise; subclasses break one each."""

    def __init__(self) -> None:
        self.asked = count()
        self.owner = threading.get_ident()
        self.offered: tuple[Any, ...] = (FakeTool("find"), tool(weather))

    def tools(self, view: TurnView) -> Any:
        return self.offered


class TestFixedTools(ToolSourceContract):
    """A source that always offers the same keeps the promises."""

    def make(self) -> ToolSource:
        return Good()


class Generator(Good):
    """Offers what is no sequence."""

    def tools(self, view: TurnView) -> Any:
        return (each for each in self.offered)


class Raises(Good):
    """Raises whatever it is asked."""

    def tools(self, view: TurnView) -> Any:
        raise KeyError("tools")


class Nothing(Good):
    """Returns nothing, not even an empty list."""

    def tools(self, view: TurnView) -> Any:
        return None


class Empty(Good):
    """Has nothing to offer."""

    def tools(self, view: TurnView) -> Any:
        return []


class BareFunction(Good):
    """Offers a function that is no tool yet."""

    def tools(self, view: TurnView) -> Any:
        return [FakeTool("find"), weather]


class Twins(Good):
    """Offers two tools of one name."""

    def tools(self, view: TurnView) -> Any:
        return [FakeTool("find"), FakeTool("find")]


class Shuffles(Good):
    """Offers them in another order each time."""

    def tools(self, view: TurnView) -> Any:
        if threading.get_ident() != self.owner:
            return self.offered
        return self.offered[:: 1 if next(self.asked) % 2 else -1][: 2 if threading.active_count() else 0]


class BelongsToAThread(Good):
    """Refuses every thread but its own."""

    def tools(self, view: TurnView) -> Any:
        if threading.get_ident() != self.owner:
            raise RuntimeError("another thread has this source")
        return self.offered


class HidesFromThreads(Good):
    """Offers less to other threads."""

    def tools(self, view: TurnView) -> Any:
        return self.offered if threading.get_ident() == self.owner else self.offered[:1]


class Suite(ToolSourceContract):
    """The suite for one of the sources above."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made = made

    def make(self) -> ToolSource:
        made: ToolSource = self.made()
        return made


BREACHES: list[tuple[Callable[[], Any], list[str]]] = [
    (Good, []),
    (BareFunction, ["each_of_them_is_a_tool"]),
    (Raises, ["it_returns_a_sequence"]),
    (Nothing, ["it_returns_a_sequence"]),
    (Empty, []),
    (Twins, ["names_differ"]),
    (BelongsToAThread, ["threads_may_share_it"]),
    (HidesFromThreads, ["threads_may_share_it"]),
]


@pytest.mark.parametrize(("made", "expected"), BREACHES, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(made: Callable[[], Any], expected: list[str]) -> None:
    """A source that breaks one promise fails the test of that promise, and no other."""
    assert_breaks(Suite(made), *expected)


@pytest.mark.parametrize(("made", "said"), [(Raises, "it raised KeyError"), (Nothing, "a NoneType")])
def test_a_source_without_tools_is_told_of_once(made: Callable[[], Any], said: str) -> None:
    """One test tells what `tools` gave; all others are not judged."""
    suite = Suite(made)
    assert [each.found for each in broken_by(suite).values()] == [said]
    assert len(not_judged_by(suite)) == len(names_of(suite)) - 1


def test_a_source_that_offers_nothing_is_not_judged() -> None:
    """Where there is no tool, the tests about tools say that they need one."""
    assert set(not_judged_by(Suite(Empty))) == {"test_each_of_them_is_a_tool", "test_names_differ"}


def test_a_generator_is_told_of() -> None:
    """What is no sequence cannot hold for a turn."""
    with pytest.raises(AssertionError, match="found: a generator"):
        Suite(Generator).test_it_returns_a_sequence()


def test_another_order_is_told_of() -> None:
    """The same tools in another order would cost the cached prefix."""
    with pytest.raises(AssertionError, match="or in another order"):
        Suite(Shuffles).test_nothing_changes_by_itself()


def test_another_compiler_may_take_the_schemas() -> None:
    """`compile` is what the agent's `schema_compiler` would be."""

    class Odd(Good):
        def tools(self, view: TurnView) -> Any:
            return [FakeTool("find", schema={"type": "object", "patternProperties": {}})]

    class Full(Suite):
        def compile(self, schema: Mapping[str, object]) -> Validator:
            return lambda value: None

    assert_breaks(Suite(Odd), "each_of_them_is_a_tool")
    assert_breaks(Full(Odd))
    with pytest.raises(NotImplementedError, match="needs make"):
        ToolSourceContract().test_names_differ()
