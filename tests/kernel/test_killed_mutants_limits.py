"""What no other test would notice of limits: where exactly they lie, and that each may be None."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import pytest

from gotato_py import (
    ImagePart,
    InvalidArgument,
    LimitExceeded,
    Limits,
    RunResult,
    ToolContext,
    ToolExecutionUpdate,
    Usage,
    UserMessage,
    tool,
)
from gotato_testkit import FakeTool, Step, call, say

from .laws import assert_laws
from .stage import Stage

PNG = b"\x89PNG"
NAMES = [name for name in signature(Limits).parameters if name != "wrap_up"]


@tool
def talk(use: ToolContext[object]) -> str:
    """Tells how far it is."""
    use.progress("12345")
    return "done"


def limit_of(result: RunResult[None]) -> str:
    """The limit by which a run ended, or ""."""
    return result.error.limit if isinstance(result.error, LimitExceeded) else ""


class TestWithoutLimits:
    """None is unlimited."""

    def test_all_of_them_none(self) -> None:
        """A run without any limit calls tools, tells progress, and completes."""
        none: dict[str, Any] = dict.fromkeys(NAMES, None)
        stage = Stage(call("talk"), say("Done."), tools=[talk], limits=Limits(**none))
        assert stage.run().text == "Done."
        assert "tool_execution_update" in stage.kinds
        assert_laws(stage)

    @pytest.mark.parametrize("name", NAMES)
    def test_one_of_them_none(self, name: str) -> None:
        """Each may be None where all others are near."""
        near: dict[str, Any] = {
            "max_turns": 2,
            "max_tool_calls": 1,
            "max_messages": 4,
            "max_message_bytes": 5,
            "max_transcript_bytes": 20,
            "max_total_tokens": 10,
            "max_tool_progress_updates": 1,
            "max_tool_progress_bytes": 5,
        }
        near[name] = None
        limits = Limits(**near)
        stage = Stage(call("talk"), say("Done."), tools=[talk], limits=limits)
        assert (limit_of(stage.run()), stage.history[-1]) == ("", "A Done. end_turn")
        assert [event.text for event in stage.events if isinstance(event, ToolExecutionUpdate)] == ["12345"]
        assert_laws(stage, again=False)


class TestWhereTheyLie:
    """Just reached, and just passed."""

    def test_a_message_of_just_so_many_bytes(self) -> None:
        """A message of the user's may have exactly `max_message_bytes`; one more is refused, with pictures too."""
        stage = Stage(say("Ok."), limits=Limits(max_message_bytes=len(PNG)))
        with pytest.raises(InvalidArgument, match="max_message_bytes"):
            stage.run(UserMessage([ImagePart(data=PNG + b"x", media_type="image/png")]))
        assert stage.run(UserMessage([ImagePart(data=PNG, media_type="image/png")])).text == "Ok."
        assert_laws(stage, again=False)

    @pytest.mark.parametrize(("most", "asked"), [(1, 0), (2, 1)])
    def test_messages(self, most: int, asked: int) -> None:
        """A turn begins where there is room for one message more."""
        stage = Stage(say("Done."), limits=Limits(max_messages=most))
        assert limit_of(stage.run()) == ("" if asked else "max_messages")
        assert len(stage.asked) == asked
        assert_laws(stage, again=False)

    @pytest.mark.parametrize(("most", "limit"), [(4, "max_transcript_bytes"), (5, "")])
    def test_bytes_of_the_transcript(self, most: int, limit: str) -> None:
        """A turn begins where there is room for one byte more."""
        stage = Stage(say("5"), limits=Limits(max_transcript_bytes=most))
        assert limit_of(stage.run("1234")) == limit
        assert len(stage.asked) == (0 if limit else 1)
        assert_laws(stage, again=False)

    def test_progress(self) -> None:
        """Progress of exactly the limit is told, what is over it is dropped."""

        @tool
        def further(use: ToolContext[object]) -> str:
            """Tells more than it may."""
            use.progress("12345")
            use.progress("6")
            return "done"

        stage = Stage(call("further"), say("Done."), tools=[further], limits=Limits(max_tool_progress_bytes=5))
        stage.run()
        assert [event.text for event in stage.events if isinstance(event, ToolExecutionUpdate)] == ["12345"]
        assert_laws(stage)

    def test_progress_is_counted_as_text_that_can_be_written(self) -> None:
        """Half a character, which no encoding has, is counted and told as a replacement."""

        @tool
        def half(use: ToolContext[object]) -> str:
            """Tells half a character."""
            use.progress("\ud83d")
            return "done"

        stage = Stage(call("half"), say("Done."), tools=[half])
        assert stage.run().text == "Done."
        assert stage.statuses == ["ok"]
        assert stage.kinds.count("tool_execution_update") == 1
        assert_laws(stage)


class TestWrappedUp:
    """Which limits are followed by one more request, where `wrap_up` allows it."""

    @pytest.mark.parametrize(
        ("limits", "steps"),
        [
            ({"max_turns": 1}, [call("a")]),
            ({"max_total_tokens": 5}, [say("Look. ", usage=Usage(5, 5)) + call("a")]),
            ({"max_tool_calls": 0}, [call("a")]),
            ({"max_tool_calls": 1}, [call("a") + call("a")]),
            ({"max_parallel_tools": 0}, [call("a")]),
            ({"max_repeated_calls": 0}, [call("a")]),
        ],
        ids=str,
    )
    def test_those_of_turns_tokens_and_calls(self, limits: dict[str, int], steps: Sequence[Step]) -> None:
        """The limits of turns, tokens and calls leave something to be said."""
        stage = Stage(*steps, say("So far."), tools=[FakeTool("a")], limits=Limits(**limits, wrap_up=True))
        result = stage.run()
        assert (limit_of(result), result.text) == (next(iter(limits)), "So far.")
        assert_laws(stage, again=False)

    def test_not_where_the_transcript_is_full(self) -> None:
        """Where there is no room for an answer nothing is asked."""
        stage = Stage(call("a"), tools=[FakeTool("a")], limits=Limits(max_messages=3, wrap_up=True))
        assert limit_of(stage.run()) == "max_messages"
        assert len(stage.asked) == 1
        assert_laws(stage, again=False)
