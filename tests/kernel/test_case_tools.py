"""Cases of what tools do: they raise, and they return things that no message can hold, or too much of it."""

from __future__ import annotations

import gc
import json
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from gotato_py import (
    FilePart,
    Limits,
    RunStatus,
    TextPart,
    ToolContext,
    ToolEffect,
    ToolError,
    ToolExecutionEnd,
    ToolResultStatus,
    ToolSpec,
    message_from_dict,
    message_to_dict,
)
from gotato_testkit import call, say

from .laws import assert_laws
from .stage import Stage


class Odd:
    """A tool that does what it is given to do."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.spec = ToolSpec("odd", "Does something odd.", effect=ToolEffect.WRITE_LOCAL)
        self._act = act

    def execute(self, use: ToolContext[object]) -> object:
        """Does it."""
        return self._act()


def raising(error: BaseException) -> Callable[[], object]:
    """A function that raises the error."""

    def act() -> object:
        raise error

    return act


def played(act: Callable[[], object], **options: Any) -> Stage:
    """A stage on which the tool was called once and the model then answered."""
    stage = Stage(call("odd"), say("I see."), tools=[Odd(act)], **options)
    result = stage.run()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "I see."), result
    return stage


class Unprintable(Exception):  # what matters is that it cannot be printed
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class TestC17TheToolRaises:
    """The tool raises, or returns what it should have raised."""

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (ValueError("no such row"), "ValueError: no such row"),
            (Unprintable(), "Unprintable"),
            (ToolError("the table is empty; try another"), "the table is empty; try another"),
            (KeyError(), "KeyError"),
            (SystemExit(3), "SystemExit: 3"),
            (CancelledError(), "CancelledError"),
            (GeneratorExit(), "GeneratorExit"),
            (MemoryError(), "MemoryError"),
            (StopIteration("no more"), "StopIteration: no more"),
            (TimeoutError("read"), "TimeoutError: read"),
        ],
        ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else "",
    )
    def test_c17_is_told_to_the_model(self, error: BaseException, told: str) -> None:
        """Whatever a tool raises is a failed result in its own words, the event names its type, and the run goes on."""
        stage = played(raising(error))
        (message,) = stage.results
        assert (message.result.status, message.result.error) == (ToolResultStatus.FAILED, told)
        assert told in message.text
        assert "Traceback" not in message.text
        (end,) = (event for event in stage.events if isinstance(event, ToolExecutionEnd))
        assert (end.status, end.executed, end.exception) == (ToolResultStatus.FAILED, True, type(error).__name__)
        assert_laws(stage)

    def test_c17_returns_an_exception(self) -> None:
        """A returned exception is a failed result too, not its repr."""
        stage = played(lambda: ValueError("no such row"))
        assert stage.statuses == [ToolResultStatus.FAILED]
        assert "ValueError: no such row" in stage.results[0].text
        assert "ValueError(" not in stage.results[0].text
        assert_laws(stage)

    def test_c17_raises_for_one_call_of_three(self) -> None:
        """A tool that raises does not keep the calls behind it from running."""

        def half(n: int) -> int:
            """Half of an even number."""
            if n % 2:
                raise ValueError(f"{n} is odd")
            return n // 2

        stage = Stage(call("half", n=2) + call("half", n=3) + call("half", n=4), say("1 and 2."), tools=[half])
        assert stage.run().text == "1 and 2."
        assert [status.value for status in stage.statuses] == ["ok", "failed", "ok"]
        assert_laws(stage)

    def test_c17_the_exception_is_not_kept(self) -> None:
        """A cancelled tool is cancelled only where the run is: one that raises on its own account has failed."""

        def own(use: ToolContext[object]) -> None:
            """Cancels a scope of its own."""
            scope = use.scope.child()
            scope.cancel("enough")
            scope.check()

        stage = Stage(call("own"), say("I see."), tools=[own])
        assert stage.run().text == "I see."
        assert stage.statuses == [ToolResultStatus.FAILED]
        assert_laws(stage)


@dataclass
class Point:
    """A plain dataclass."""

    x: int
    y: float


def counting() -> Iterator[int]:
    """A generator that fails the test if anything iterates it."""
    raise AssertionError("it was iterated")
    yield 1


async def waiting() -> str:
    """A coroutine that nobody awaits."""
    return "late"


def cycle() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


class TestC19OddReturnValues:
    """The tool returns something that is not text."""

    @pytest.mark.parametrize(
        ("returned", "text"),
        [
            (None, ""),
            ("", ""),
            (False, "false"),
            (0, "0"),
            (1.5, "1.5"),
            (float("nan"), "null"),
            ([1, float("inf")], "[1, null]"),
            ({3, 1, 2}, "[1, 2, 3]"),
            (datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), "2024-05-06T07:08:09+00:00"),
            ({"when": datetime(2024, 5, 6, tzinfo=UTC)}, '{"when": "2024-05-06T00:00:00+00:00"}'),
            (Point(1, 2.5), '{"x": 1, "y": 2.5}'),
            ({1: "a"}, '{"1": "a"}'),
            ("\ud800", "\ufffd"),
            (["a\udfffb"], '["a\ufffdb"]'),
            ("Ω".encode(), "Ω"),
            ((), "[]"),
        ],
    )
    def test_c19_that_json_can_say(self, returned: object, text: str) -> None:
        """It is converted at the boundary, the same each time, and the transcript can be written and read exactly."""
        stage = played(lambda: returned)
        (message,) = stage.results
        assert message.result.status is ToolResultStatus.OK
        same = json.loads(message.text) == json.loads(text) if text[:1] in {"[", "{"} else message.text == text
        assert same, message.text
        assert_exact(stage)
        assert_laws(stage)

    def test_c19_bytes_that_are_no_text(self) -> None:
        """Bytes that are no UTF-8 become a file part."""
        stage = played(lambda: b"\xff\x00")
        (message,) = stage.results
        (part,) = message.parts
        assert isinstance(part, FilePart)
        assert part.data == b"\xff\x00"
        assert message.result.status is ToolResultStatus.OK
        assert_exact(stage)
        assert_laws(stage)

    @pytest.mark.parametrize(
        ("make", "named"),
        [
            (lambda: {1: "a", "1": "b"}, "dict"),
            (cycle, "list"),
            (object, "object"),
            (counting, "generator"),
            (lambda: iter([1, 2]), "list_iterator"),
            (waiting, "coroutine"),
        ],
    )
    def test_c19_that_nothing_can_say(self, make: Callable[[], object], named: str) -> None:
        """It is a failed result that names the type and says that the tool did run; nothing iterates or awaits it."""
        stage = played(make)
        gc.collect()  # a coroutine left open would warn here, and warnings are errors
        (message,) = stage.results
        assert (message.result.status, message.result.executed) == (ToolResultStatus.FAILED, True)
        assert named in message.text
        assert "did run" in message.text
        assert " at 0x" not in message.text
        assert_exact(stage)
        assert_laws(stage)


def assert_exact(stage: Stage) -> None:
    """Every message survives being written as strict JSON and read again."""
    for message in stage.messages:
        text = json.dumps(message_to_dict(message), allow_nan=False)
        text.encode("utf-8")
        assert message_from_dict(json.loads(text)) == message


class TestC20AHugeResult:
    """The tool returns more than a result may hold."""

    LIMIT = 1000

    def test_c20_fifty_megabytes(self) -> None:
        """The model gets head and tail within the limit, cut between characters, and a line saying what is missing."""
        huge = "начало" + "й" * 25_000_000 + "конец"
        stage = played(lambda: huge)
        (message,) = stage.results
        assert message.result.status is ToolResultStatus.OK
        assert len(message.text.encode()) <= Limits().max_tool_result_bytes + 200  # type: ignore[operator]  # has one
        assert message.text.startswith("начало")
        assert message.text.endswith("конец")
        lines = message.text.splitlines()
        assert len(lines) == 3
        assert any(character.isdigit() for character in lines[1])
        assert "\ufffd" not in message.text
        assert_laws(stage)

    @pytest.mark.parametrize("unit", ["x", "é", "字", "🥔"])
    def test_c20_characters_stay_whole(self, unit: str) -> None:
        """Wherever the limit falls, no character is cut in two."""
        for extra in range(5):
            text = "a" * extra + unit * self.LIMIT
            stage = played(lambda text=text: text, limits=Limits(max_tool_result_bytes=self.LIMIT))  # type: ignore[misc]
            told = stage.results[0].text
            assert len(told.encode()) <= self.LIMIT + 200
            assert set(told.splitlines()[0]) <= {"a", unit}
            assert set(told.splitlines()[-1]) <= {unit}
            assert_exact(stage)
            assert_laws(stage)

    def test_c20_ten_thousand_parts(self) -> None:
        """Many parts are bounded together, as one text would be."""
        stage = played(lambda: [TextPart("x" * 1000)] * 10_001)
        size = sum(len(part.text) for part in stage.results[0].parts if isinstance(part, TextPart))
        assert size <= Limits().max_tool_result_bytes + 200  # type: ignore[operator]  # has one
        assert_laws(stage)

    def test_c20_what_fits_is_left_alone(self) -> None:
        """A result of exactly the limit is not touched."""
        stage = played(lambda: "x" * self.LIMIT, limits=Limits(max_tool_result_bytes=self.LIMIT))
        assert stage.results[0].text == "x" * self.LIMIT
        assert_laws(stage)

    def test_c20_a_huge_error(self) -> None:
        """What a tool raises is bounded like what it returns."""
        stage = played(raising(ToolError("x" * 50_000)), limits=Limits(max_tool_result_bytes=self.LIMIT))
        (message,) = stage.results
        assert message.result.status is ToolResultStatus.FAILED
        assert len(message.text) <= self.LIMIT + 200
        assert len(message.result.error) <= self.LIMIT + 200
        assert_laws(stage)
