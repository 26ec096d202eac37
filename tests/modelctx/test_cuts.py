"""Cut points: where a history may be cut (C46)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx import cut_points, estimate_tokens, last_cut_within, tail_start
from gotato_py import (
    AssistantMessage,
    InvalidArgument,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_testkit import strategies as gst
from gotato_testkit.strategies import OpenHistory

from ..effort import costly


def calls(ident: str, *names: str) -> AssistantMessage:
    """An answer with calls."""
    return AssistantMessage("", [ToolCall(name, "t") for name in names], id=ident)


def result(key: str) -> ToolMessage:
    """The result of a call."""
    return ToolMessage(ToolResult("c", "ok", "r", key=key))


HISTORY: list[Message] = [
    UserMessage("u1", id="u1"),
    calls("a1", "a", "b"),
    result("a1:1"),
    result("a1:0"),
    AssistantMessage("done", id="a2"),
    UserMessage("u2", id="u2"),
    calls("a3", "c"),
    result("a3:0"),
]
"""U A([a,b]) R(b) R(a) A U A([c]) R(c), as in C46; the results of the first batch in finish order."""


def test_no_cut_stands_at_a_result() -> None:
    """C46: a cut stands at user messages and answers, never between a call and its results."""
    assert cut_points(HISTORY) == [0, 1, 4, 5, 6]
    assert cut_points([]) == []


@costly(4)
@given(gst.histories(max_turns=4))
def test_what_is_kept_can_be_sent(messages: list[Message]) -> None:
    """C46: from every cut point on, and up to it, every call has its results and every result its call."""
    for cut in cut_points(messages):
        assert check_messages(messages[cut:]) == []
        assert check_messages(messages[:cut]) == []
        assert not isinstance(messages[cut], ToolMessage)


@costly(4)
@given(gst.open_histories())
def test_open_calls_are_never_cut_away(opened: OpenHistory) -> None:
    """C46: calls that are open at the tail stay, with their message, whether they wait or were cut off."""
    answer = next(at for at, each in enumerate(opened.messages) if each.id == opened.open[0].rpartition(":")[0])
    assert cut_points(opened.messages)[-1] == answer
    assert cut_points(opened.messages, opened.waiting)[-1] == answer
    assert tail_start(opened.messages) == answer
    assert last_cut_within(opened.messages, 0, waiting=opened.waiting) == answer


def test_what_waits_is_kept_whatever_follows() -> None:
    """A call that waits holds its message even where others come after it."""
    waiting = [WaitingCall("a1:0")]
    assert cut_points(HISTORY, waiting) == [0, 1]
    assert last_cut_within(HISTORY, 0, waiting=waiting) == 1


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([], 0),
        (HISTORY[:1], 0),
        ([UserMessage("a"), UserMessage("b")], 1),
        ([result("a:0")], 0),
        (HISTORY[:4], 1),
        ([*HISTORY[:4], UserMessage("steer")], 1),
        (HISTORY[:5], 4),
        (HISTORY[:6], 5),
        ([*HISTORY[:6], UserMessage("and this")], 6),
        (HISTORY, 6),
    ],
)
def test_the_tail_is_what_has_to_stay(messages: list[Message], start: int) -> None:
    """The last batch with what was said since, or the last user message, or an answer at the end."""
    assert tail_start(messages) == start


@costly(4)
@given(gst.histories(max_turns=4), st.integers(0, 300))
def test_a_budget_is_kept_where_it_can_be(messages: list[Message], budget: int) -> None:
    """The first cut from which on no more is kept than the budget; the tail stays even if it alone takes more."""
    cut = last_cut_within(messages, budget)
    allowed = [at for at in cut_points(messages) if at <= tail_start(messages)]
    fitting = [at for at in allowed if estimate_tokens(messages[at:]) <= budget]
    assert cut == (fitting or allowed[-1:] or [0])[0]


def test_a_counter_decides_what_fits() -> None:
    """The counter counts what is kept."""
    assert last_cut_within(HISTORY, 40, counter=lambda text: 1) == last_cut_within(HISTORY, 40)
    assert last_cut_within(HISTORY, 40, counter=lambda text: 1000) == 6


def test_a_negative_budget_is_refused() -> None:
    """A budget below nothing is a mistake of the caller."""
    with pytest.raises(InvalidArgument, match="budget"):
        last_cut_within(HISTORY, -1)
