"""Case C46: where a compaction cuts."""

from __future__ import annotations

import pytest

from gotato_modelctx.compacting import compact
from gotato_modelctx.tokens import estimate_tokens
from gotato_py import MemoryTranscript, Message, WaitingCall, check_messages

from .fake_summarizers import FakeSummarizer, answer, calls, result, user

HISTORY: list[Message] = [
    user("u1"),
    calls("a1", "a", "b"),
    result("a1", 0),
    result("a1", 1),
    answer("a2"),
    user("u2"),
    calls("a3", "c"),
    result("a3", 0),
]


def kept_after(messages: list[Message], keep: int) -> list[str]:
    """The ids that a compaction leaves behind its summary."""
    transcript = MemoryTranscript(messages)
    compact(transcript, FakeSummarizer(), keep_tokens=keep)
    assert check_messages(transcript.messages, transcript.waiting) == []
    return [each.id for each in transcript.messages[1:]]


@pytest.mark.parametrize(
    ("fits", "kept"),
    [
        (["a1-r0", "a1-r1", "a2", "u2", "a3", "a3-r0"], ["a2", "u2", "a3", "a3-r0"]),
        (["a1-r1", "a2", "u2", "a3", "a3-r0"], ["a2", "u2", "a3", "a3-r0"]),
        (["a3-r0"], ["a3", "a3-r0"]),
        (["a1", "a1-r0", "a1-r1", "a2", "u2", "a3", "a3-r0"], ["a1", "a1-r0", "a1-r1", "a2", "u2", "a3", "a3-r0"]),
    ],
    ids=["between the call and its first result", "between two results", "after the last call", "before the call"],
)
def test_c46_a_budget_that_would_cut_a_pair(fits: list[str], kept: list[str]) -> None:
    """What stays starts at a user message or at an answer with all its results; so it is less, or the last batch."""
    budget = estimate_tokens([each for each in HISTORY if each.id in fits])
    assert kept_after(HISTORY, budget) == kept


def test_c46_every_budget() -> None:
    """Whatever the budget, nothing starts with a result, and every pair is whole."""
    for budget in range(estimate_tokens(HISTORY)):
        kept = kept_after(HISTORY, budget)
        assert kept
        assert "-r" not in kept[0]


def test_c46_open_calls_at_the_tail() -> None:
    """Calls that have no result yet stay, with their message and the results that are there."""
    history = [*HISTORY[:6], calls("a3", "c", "d"), result("a3", 0)]
    transcript = MemoryTranscript(history)
    compact(transcript, FakeSummarizer(), keep_tokens=0)
    assert [each.id for each in transcript.messages[1:]] == ["a3", "a3-r0"]


def test_c46_calls_that_wait() -> None:
    """A batch that waits for a person stays, and so does the record of what it waits for."""
    transcript = MemoryTranscript([*HISTORY[:6], calls("a3", "c", "d"), result("a3", 0)])
    waiting = WaitingCall("a3:1", "d", "d", {}, "May it?")
    transcript.mark_waiting([waiting])
    compact(transcript, FakeSummarizer(), keep_tokens=0)
    assert [each.id for each in transcript.messages[1:]] == ["a3", "a3-r0"]
    assert transcript.waiting == (waiting,)
    assert check_messages(transcript.messages, transcript.waiting) == []


def test_c46_what_the_user_said_last() -> None:
    """What the user said last stays, and so does a batch that the model has not seen."""
    assert kept_after([*HISTORY, user("u3"), user("u4")], 0) == ["a3", "a3-r0", "u3", "u4"]
    assert kept_after([*HISTORY[:5], user("u3"), user("u4")], 0) == ["u4"]


def test_c46_the_request_starts_with_a_user_message() -> None:
    """The summary is a user message, so what stays may start with an answer."""
    transcript = MemoryTranscript(HISTORY)
    compact(transcript, FakeSummarizer(), keep_tokens=0)
    assert [each.role for each in transcript.messages] == ["user", "assistant", "tool"]
