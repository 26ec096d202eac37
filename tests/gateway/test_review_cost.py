"""What a request costs to build: nothing that grows faster than the history. Counted in calls, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from gotato_py import (
    AssistantMessage,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)

from .recordings import ADAPTERS


def history(turns: int, call_id: str) -> ModelRequest:
    """So many turns, each with reasoning and a call; all ids are the same, or none is."""
    messages: list[UserMessage | AssistantMessage | ToolMessage] = []
    for number in range(turns):
        call = ToolCall(call_id.format(number), "no valid name!", '{"city": "Oslo"}')
        thought = ReasoningPart("hm", '{"id": "r"}', "anthropic:claude")
        messages.append(UserMessage("hello"))
        messages.append(AssistantMessage([thought, TextPart("ok")], [call], id=f"m{number}"))
        messages.append(ToolMessage(ToolResult(call.id, "ok", [TextPart("done")], key=f"m{number}:0")))
    return ModelRequest("be brief", (*messages, UserMessage("and?")), (ToolSpec("no valid name!"),))


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, those written in C among them."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def parses_of(work: Callable[[], object]) -> int:
    """How many JSON texts are parsed."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name == "decode"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_arguments_are_parsed_once_a_request(dialect: str) -> None:
    """A call's arguments are looked at once when a request is built, not once to check and once to send them."""
    made = ADAPTERS[dialect]._dialect
    quirks = made.quirks("https://api.example.test", "claude-sonnet-4-5")
    request = history(10, "call_{}")
    assert parses_of(lambda: made.body("m", request, quirks, "")) == 10


@pytest.mark.parametrize("dialect", ADAPTERS)
@pytest.mark.parametrize("call_id", ["same", "", "call_{}", "not valid {}!"])
def test_a_request_grows_as_its_history(dialect: str, call_id: str) -> None:
    """Twice as many turns take twice as much work, whatever the ids are."""
    made = ADAPTERS[dialect]._dialect
    quirks = made.quirks("https://api.example.test", "claude-sonnet-4-5")

    def cost(turns: int) -> int:
        request = history(turns, call_id)
        return calls_of(lambda: made.body("m", request, quirks, "anthropic:claude"))

    cost(1)  # what is done once is done
    once, twice = cost(50), cost(100)
    assert twice < 2.1 * once
