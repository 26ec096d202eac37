"""The suite for tools: ours keep it, and each of its tests is the one that a certain broken tool fails."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar
from unittest import SkipTest

import pytest

from gotato_py import Pending, Tool, ToolContext, ToolSpec, Validator, tool
from gotato_testkit import FakeTool, FaultPlan, FaultyTool, Stall
from gotato_testkit.contracts import ToolContract
from gotato_testkit.contracts._suite import Ended

from .suites import assert_breaks

T = TypeVar("T")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array"}}, "required": ["city"]}


class TestFakeTool(ToolContract):
    """The fake tool keeps the promises of a tool."""

    def make(self) -> Tool:
        return FakeTool("find", {"row": 7})


class TestFunctionTool(ToolContract):
    """So does a function, with arguments that are converted."""

    def make(self) -> Tool:
        @tool
        def weather(city: str, days: list[int] | None = None, use: ToolContext[object] | None = None) -> str:
            """The weather in a city."""
            return f"Sunny in {city} on {days}"

        return weather

    def arguments(self) -> Mapping[str, object]:
        return {"city": "Oslo", "days": [1, 2]}


class TestFaultyTool(ToolContract):
    """So does a tool whose faults are yet to come."""

    def make(self) -> Tool:
        return FaultyTool(FakeTool("find"), FaultPlan())


class TestPendingTool(ToolContract):
    """So does a tool whose work goes on elsewhere."""

    def make(self) -> Tool:
        return FakeTool("order", Pending("ticket-7"))


# tools that are broken, each in its own way


class Good:
    """A tool that keeps every promise; subclasses break one each."""

    spec: Any = ToolSpec("find", "Finds.", SCHEMA)

    def execute(self, use: ToolContext[object]) -> Any:
        return "found"


class NoSpec(Good):
    """Has a name for a spec."""

    spec = "find"


class BadName(Good):
    """Has a name with a space in it."""

    spec = ToolSpec("find it", input_schema=SCHEMA)


class UnknownKeyword(Good):
    """Has a keyword that the kernel does not know."""

    spec = ToolSpec("find", input_schema={"type": "object", "patternProperties": {}})


class ListForArguments(Good):
    """Wants a list."""

    spec = ToolSpec("find", input_schema={"type": "array"})


class OtherArguments(Good):
    """Wants what it is not given."""

    spec = ToolSpec("find", input_schema={"type": "object", "required": ["country"]})


class ChangesItsSpec(Good):
    """Becomes another tool."""

    def execute(self, use: ToolContext[object]) -> Any:
        self.spec = ToolSpec("find", "Finds again.", SCHEMA)
        return "found"


class ReturnsAGenerator(Good):
    """Returns what is not there yet."""

    def execute(self, use: ToolContext[object]) -> Any:
        return (each for each in "found")


class Raises(Good):
    """Fails with arguments that it should take."""

    def execute(self, use: ToolContext[object]) -> Any:
        raise KeyError("row")


class ChangesItsArguments(Good):
    """Empties a list that it was given."""

    def execute(self, use: ToolContext[object]) -> Any:
        days: Any = use.arguments["days"]
        days.clear()
        return "found"


class AssignsToItsArguments(Good):
    """Sets one of its arguments."""

    def execute(self, use: ToolContext[object]) -> Any:
        given: Any = use.arguments
        given["city"] = "Bergen"
        return "found"


def plain(city: str) -> str:
    """A function that is no tool by itself."""
    return city


class Asynchronous(Good):
    """Wants to be awaited."""

    async def execute(self, use: ToolContext[object]) -> Any:
        return "found"


class AsynchronousStream(Good):
    """Wants to be iterated asynchronously."""

    async def execute(self, use: ToolContext[object]) -> AsyncIterator[str]:
        yield "found"


class Deaf(Good):
    """It waits for `release` alone, if the call is `like`, and says before that it `hangs`."""

    release, hangs = threading.Event(), threading.Event()

    def __init__(self, like: Callable[[ToolContext[object]], bool]) -> None:
        self.like = like

    def execute(self, use: ToolContext[object]) -> Any:
        if self.like(use):
            self.hangs.set()
            self.release.wait()
        return "found"


class Suite(ToolContract):
    """The suite for one of the tools above."""

    patience = 30.0
    """Nothing of it runs out, however slow the machine is."""
    pause = 0.0

    def __init__(self, made: Callable[[], Any]) -> None:
        self.made = made

    def make(self) -> Tool:
        made: Tool = self.made()
        return made

    def arguments(self) -> Mapping[str, object]:
        return {"city": "Oslo", "days": [1, 2]}


class Impatient(Suite):
    """Its patience is short, and begins when the call has ended, or hangs: who does not hang is not hurried."""

    patience = 0.2
    is_cancelled = False
    """Whether the call is to be cancelled while it runs."""

    def bounded(self, call: Callable[[], T], *, meanwhile: Callable[[], object] | None = None) -> Ended[T]:
        self.is_cancelled = meanwhile is not None
        Deaf.hangs.clear()

        def noted() -> T:
            try:
                return call()
            finally:
                Deaf.hangs.set()  # no more of it is to be waited for

        def until_then() -> None:
            if meanwhile is not None:
                meanwhile()
            Deaf.hangs.wait()

        return super().bounded(noted, meanwhile=until_then)


def hears_no_cancel() -> Impatient:
    """The suite for a tool that hangs if it is cancelled while it runs, and only then."""

    def is_cancelled(use: ToolContext[object]) -> bool:
        return suite.is_cancelled and use.scope.wait(60) and use.scope.reason == "while it runs"

    suite = Impatient(lambda: Deaf(is_cancelled))
    return suite


BREACHES: list[tuple[Callable[[], Any], list[str]]] = [
    (Good, []),
    (BadName, ["its_spec_can_be_used"]),
    (OtherArguments, ["its_arguments_fit_its_schema"]),
    (ChangesItsSpec, ["its_spec_stays_the_same"]),
    (ReturnsAGenerator, ["a_call_has_a_result"]),
    (Raises, ["a_call_has_a_result"]),
    (ChangesItsArguments, ["its_arguments_are_left_as_they_were"]),
    (AssignsToItsArguments, ["its_arguments_are_left_as_they_were"]),
    (Asynchronous, ["nothing_is_asynchronous"]),
    (AsynchronousStream, ["nothing_is_asynchronous"]),
    (NoSpec, ["its_spec_can_be_used"]),
    (lambda: plain, ["its_spec_can_be_used"]),
    (lambda: Good, ["its_spec_can_be_used"]),
]


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(("made", "expected"), BREACHES, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(made: Callable[[], Any], expected: list[str]) -> None:
    """A tool that breaks one promise fails the test of that promise, and no other but what follows from it."""
    assert_breaks(Suite(made), *expected)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (NoSpec, "NoSpec.spec is a str, not a ToolSpec"),
        (UnknownKeyword, "an input_schema that cannot be checked"),
        (ListForArguments, "does not describe an object"),
        (type("Idle", (), {"spec": Good.spec}), "Idle has no method execute"),
        (lambda: plain, "the function plain; wrap it with @tool"),
        (lambda: Good, "the class Good itself"),
    ],
)
def test_a_spec_that_cannot_be_used_is_told_of(made: Callable[[], Any], said: str) -> None:
    """What no agent would take is said in words."""
    with pytest.raises(AssertionError, match=said):
        Suite(made).test_its_spec_can_be_used()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Raises, "with arguments(), it raised KeyError\n  to do: mend it; or override arguments()"),
        (ReturnsAGenerator, "the tool did run\n  to do: return one of these"),
    ],
)
def test_a_call_without_a_result_is_told_of(made: Callable[[], Any], said: str) -> None:
    """A tool that raises is told to be mended, one that returns what nobody can read to return something else."""
    with pytest.raises(AssertionError, match=re.escape(said)):
        Suite(made).test_a_call_has_a_result()


def test_arguments_that_were_to_be_changed_are_told_of() -> None:
    """A tool that sets an argument is told that it may not, though the arguments are as they were."""
    with pytest.raises(AssertionError, match="it tried to change them, and it raised TypeError"):
        Suite(AssignsToItsArguments).test_its_arguments_are_left_as_they_were()


def test_another_compiler_may_take_the_schema() -> None:
    """`compile` is what the agent's `schema_compiler` would be."""

    class Full(Suite):
        def compile(self, schema: Mapping[str, object]) -> Validator:
            return lambda value: None

    Full(UnknownKeyword).test_its_spec_can_be_used()
    with pytest.raises(SkipTest, match="not judged: an input_schema that cannot be checked"):
        Suite(UnknownKeyword).test_its_arguments_fit_its_schema()


@pytest.mark.parametrize(
    ("make", "test"),
    [
        (
            lambda: Impatient(lambda: Deaf(lambda use: use.scope.reason == "before the call")),
            "a_scope_that_has_ended_ends_the_call",
        ),
        (hears_no_cancel, "a_cancel_ends_the_call"),
        (lambda: Impatient(lambda: Deaf(lambda use: True)), "a_call_returns"),
    ],
)
def test_a_call_that_does_not_end_is_told_of(make: Callable[[], Impatient], test: str) -> None:
    """A call that hears no end of its scope, or never returns, is given up after `patience`."""
    Deaf.release.clear()
    try:
        with pytest.raises(AssertionError, match=r"no end within 0\.2 s"):
            getattr(make(), f"test_{test}")()
    finally:
        Deaf.release.set()


def test_a_call_that_ends_late_fails_nothing_else() -> None:
    """A tool that hears no cancel keeps its other promises."""
    Deaf.release.clear()
    try:
        assert_breaks(hears_no_cancel(), "a_cancel_ends_the_call")
    finally:
        Deaf.release.set()


def test_a_tool_that_blocks_may_do_so_until_its_scope_ends() -> None:
    """A stall that ends with the scope keeps the promise."""
    suite = Suite(lambda: FakeTool("find", Stall()))
    suite.test_a_scope_that_has_ended_ends_the_call()
    suite.test_a_cancel_ends_the_call()


def test_the_suite_asks_for_make() -> None:
    """Without `make` the suite says what is missing, and by default it calls without arguments."""
    with pytest.raises(NotImplementedError, match="needs make"):
        ToolContract().test_a_call_returns()
    assert (ToolContract().arguments(), ToolContract().deps()) == ({}, None)
