"""`compact`: what it takes, what it refuses, and what holds after any number of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx.compacting import KEPT, compact
from gotato_modelctx.summaries import Summary, is_summary
from gotato_modelctx.summarizers import TruncateSummarizer
from gotato_modelctx.tokens import estimate_tokens
from gotato_py import (
    Cancelled,
    Compaction,
    ContextOverflow,
    DeadlineExceeded,
    EmptyResponse,
    ExtensionFailure,
    InvalidArgument,
    InvalidState,
    MemoryTranscript,
    Message,
    NotSupported,
    Scope,
    Usage,
    UserMessage,
    check_messages,
)
from gotato_session import Session
from gotato_testkit import FaultyTranscript
from gotato_testkit import strategies as gst

from ..effort import costly
from .fake_summarizers import FakeSummarizer, answer, user

TALK: list[Message] = [user("u1"), answer("a1"), user("u2"), answer("a2"), user("u3"), answer("a3")]


def ids(transcript: Any) -> list[str]:
    """Those of the messages."""
    return [each.id for each in transcript.messages]


def filled(transcript: Any, messages: list[Message]) -> Any:
    """The transcript with these messages."""
    for message in messages:
        transcript.append(message)
    return transcript


@pytest.mark.parametrize("make", [MemoryTranscript, Session])
def test_a_summary_stands_for_the_oldest(make: Any) -> None:
    """As few messages as leave what was asked for are replaced; what is committed is returned."""
    transcript, summarizer = filled(make(), TALK), FakeSummarizer(Summary("Short.", Usage(9, 1)))
    made = compact(transcript, summarizer, keep_tokens=estimate_tokens(TALK[2:]), reason="test")
    assert isinstance(made, Compaction)
    assert summarizer.asked == [tuple(TALK[:2])]
    assert [each.text for each in transcript.messages] == ["Short.", *(each.text for each in TALK[2:])]
    assert made == transcript.compactions[-1]
    assert (made.through, made.reason, made.usage, made.metadata[KEPT]) == ("a1", "test", Usage(9, 1), 4)
    assert made.summary.id == transcript.messages[0].id != ""
    assert made.tokens_before == estimate_tokens(TALK)
    assert made.tokens_after == estimate_tokens(transcript.messages)
    assert is_summary(transcript.messages[0])
    assert transcript.messages[0].metadata["last_user"] == "u1"


def test_nothing_to_do() -> None:
    """Where everything fits, or nothing can be cut, there is None, and no summary is asked for."""
    summarizer = FakeSummarizer()
    for messages in ([], TALK[:1], TALK[1:2]):
        assert compact(MemoryTranscript(messages), summarizer, keep_tokens=0) is None
    assert compact(MemoryTranscript(TALK), summarizer, keep_tokens=estimate_tokens(TALK)) is None
    assert summarizer.asked == []


def test_a_summary_alone_is_not_summarised() -> None:
    """Where only the earlier summary could be cut, there is nothing to do."""
    transcript, summarizer = MemoryTranscript(TALK), FakeSummarizer()
    assert compact(transcript, summarizer, keep_tokens=0) is not None
    assert compact(transcript, summarizer, keep_tokens=0) is None
    assert len(summarizer.asked) == 1


def test_the_next_summary_gets_the_one_before() -> None:
    """A further compaction hands the earlier summary in, marked as one, in front of what is new."""
    transcript, summarizer = MemoryTranscript(TALK[:4]), FakeSummarizer("First.", "Second.")
    compact(transcript, summarizer, keep_tokens=0)
    filled(transcript, TALK[4:])
    compact(transcript, summarizer, keep_tokens=0)
    earlier, *new = summarizer.asked[1]
    assert (earlier.text, is_summary(earlier), [each.id for each in new]) == ("First.", True, ["a2", "u3"])
    assert [each.text for each in transcript.messages[:1]] == ["Second."]
    assert [each.metadata["last_user"] for each in transcript.messages[:1]] == ["u3"]


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (ValueError("no"), ValueError, "no"),
        ("", EmptyResponse, "returned an empty summary"),
        (" \n", EmptyResponse, "nothing was changed"),
        (lambda: None, ExtensionFailure, "returned a NoneType; it has to return a str"),
        ("word " * 400, ExtensionFailure, "takes 500 tokens and would replace 340"),
    ],
)
@pytest.mark.parametrize("make", [MemoryTranscript, Session])
def test_a_bad_summary_changes_nothing(make: Any, act: Any, kind: type[Exception], said: str) -> None:
    """A summarizer that fails, says nothing, returns what is no text or more than it replaces is told."""
    transcript = filled(make(), TALK)
    with pytest.raises(kind, match=said):
        compact(transcript, FakeSummarizer(act), keep_tokens=0)
    assert (ids(transcript), transcript.compactions) == ([each.id for each in TALK], ())


def test_too_large_to_be_cured() -> None:
    """Where what stays is over the ceiling, that is said with all sizes, before a summary is paid for."""
    huge = answer("huge", words=4000)
    transcript, summarizer = MemoryTranscript([*TALK[:3], huge]), FakeSummarizer()
    with pytest.raises(ContextOverflow) as raised:
        compact(transcript, summarizer, keep_tokens=0, overhead=200, ceiling=1000)
    assert str(raised.value) == (
        "no summary can bring the context under 1000 tokens: what is sent beside these messages (instructions, "
        "sections, tools, a new message) takes 200, the 1 message(s) that have to stay take 5006, the largest of "
        "them (messages[3], assistant) 5006"
    )
    assert raised.value.details == {"ceiling": 1000, "overhead": 200, "kept": 5006, "largest": 5006}
    assert summarizer.asked == []
    with pytest.raises(ContextOverflow, match="takes 5000, the 1 message"):
        compact(MemoryTranscript(TALK[:1]), summarizer, keep_tokens=0, overhead=5000, ceiling=1000)


def test_a_ceiling_bounds_what_is_kept() -> None:
    """No more is kept than fits under the ceiling beside the overhead, whatever was asked for."""
    transcript = MemoryTranscript(TALK)
    made = compact(
        transcript, FakeSummarizer(), keep_tokens=10_000, overhead=100, ceiling=100 + estimate_tokens(TALK[3:])
    )
    assert made is not None
    assert ids(transcript)[1:] == ["a2", "u3", "a3"]


def test_a_message_is_as_large_as_it_is_measured() -> None:
    """`measure` decides how large a message is."""
    transcript = MemoryTranscript(TALK)
    compact(transcript, FakeSummarizer(), keep_tokens=3, measure=lambda message: 1)
    assert ids(transcript)[1:] == ["a2", "u3", "a3"]


@pytest.mark.parametrize("ended", [True, False], ids=["before", "meanwhile"])
def test_an_ended_scope(ended: bool) -> None:
    """A scope that has ended, or ends while the summary is made, leaves no entry, whatever the summarizer returns."""
    scope, transcript = Scope(), MemoryTranscript(TALK)
    summarizer = FakeSummarizer(lambda: "Late." if scope.cancel("enough") else "")
    if ended:
        scope.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        compact(transcript, summarizer, keep_tokens=0, scope=scope)
    assert (len(summarizer.asked), transcript.compactions) == (0 if ended else 1, ())
    with pytest.raises(DeadlineExceeded):
        compact(transcript, summarizer, keep_tokens=0, scope=Scope(0))


def test_a_transcript_that_fails() -> None:
    """What the transcript raises comes out as it is; one that says no, or cannot be compacted, is told."""

    class Refusing(MemoryTranscript):
        def replace(self, compaction: Compaction) -> bool:
            return False

    class Bare:
        messages: tuple[Message, ...] = ()
        started: frozenset[str] = frozenset()
        waiting = ()

    full = FaultyTranscript(MemoryTranscript(TALK), lambda operation, count: OSError(28, "full"))
    with pytest.raises(OSError, match="full"):
        compact(full, FakeSummarizer(), keep_tokens=0)
    assert full.messages == TALK
    with pytest.raises(InvalidState, match="refused the compaction"):
        compact(Refusing(TALK), FakeSummarizer(), keep_tokens=0)
    with pytest.raises(NotSupported, match="Bare has no replace"):
        compact(Bare(), FakeSummarizer(), keep_tokens=0)  # type: ignore[arg-type]


def test_a_transcript_that_keeps_no_list() -> None:
    """Where a transcript does not say what it kept, what was given to it is returned."""

    class Plain:
        def __init__(self) -> None:
            self.messages: list[Message] = list(TALK)
            self.started: frozenset[str] = frozenset()
            self.waiting = ()

        def replace(self, compaction: Compaction) -> bool:
            self.messages = [compaction.summary, *self.messages[-1:]]
            return True

    made = compact(Plain(), FakeSummarizer(), keep_tokens=0)  # type: ignore[arg-type]
    assert made is not None
    assert made.through == "u3"


@pytest.mark.parametrize("keep", [-1, 1.5, True, None])
def test_bad_arguments(keep: Any) -> None:
    """What cannot be a number of tokens or a summarizer is refused by name."""
    with pytest.raises(InvalidArgument, match="keep_tokens must be an int"):
        compact(MemoryTranscript(TALK), FakeSummarizer(), keep_tokens=keep)
    with pytest.raises(InvalidArgument, match="summarizer must be an object that has a method summarize"):
        compact(MemoryTranscript(TALK), "no", keep_tokens=1)  # type: ignore[arg-type]


class Numbered:
    """A summarizer that writes the ids of all it stands for, so that a test can see what a summary covers."""

    def summarize(self, messages: Any, scope: Scope) -> str:
        """The covered ids; those of an earlier summary are in its text."""
        return " ".join(each.text if is_summary(each) else each.id for each in messages)


def covered_by(transcript: Any) -> set[str]:
    """The ids that the summary in the context stands for."""
    first = transcript.messages[0]
    return set(first.text.split()) if is_summary(first) else set()


@costly(4)
@given(
    history=gst.histories(min_turns=1, max_turns=4),
    budgets=st.lists(st.integers(0, 120), min_size=1, max_size=4),
    pieces=st.integers(1, 4),
    session=st.booleans(),
)
def test_every_message_is_there_or_covered(
    history: list[Message], budgets: list[int], pieces: int, session: bool
) -> None:
    """However often it is compacted while it grows: every message is verbatim in the context, or inside the summary
    that is in it; pairs stay whole; the last user message is recognised."""
    transcript: Any = Session() if session else MemoryTranscript()
    share = max(1, len(history) // pieces)
    for start in range(0, len(history), share):
        filled(transcript, history[start : start + share])
        for budget in budgets:
            try:
                compact(transcript, Numbered(), keep_tokens=budget)
            except ExtensionFailure:
                pass  # of tiny messages: the summary would be no smaller
        seen = history[: start + share]
        present = {each.id: each for each in transcript.messages if not is_summary(each)}
        assert covered_by(transcript) | present.keys() == {each.id for each in seen}
        assert covered_by(transcript).isdisjoint(present)
        assert all(present[each.id] == each for each in seen if each.id in present)
        if start + share >= len(history):
            assert check_messages(transcript.messages) == []
        users = [each.id for each in seen if isinstance(each, UserMessage)]
        last = next(each for each in reversed(transcript.messages) if isinstance(each, UserMessage))
        assert last.metadata.get("last_user", last.id) == users[-1]


@costly(4)
@given(history=gst.histories(min_turns=1, max_turns=4), budget=st.integers(0, 400))
def test_truncated_summaries_are_always_smaller(history: list[Message], budget: int) -> None:
    """The summarizer without a model never fails on a history that can be cut, and what it leaves can be sent."""
    transcript = MemoryTranscript(history)
    made = compact(transcript, TruncateSummarizer(), keep_tokens=budget)
    assert check_messages(transcript.messages) == []
    if made is not None:
        assert made.summary.text.strip()


@costly(4)
@given(open_history=gst.open_histories(max_turns=2), budget=st.integers(0, 200))
def test_open_calls_are_never_covered(open_history: gst.OpenHistory, budget: int) -> None:
    """Whatever the budget: calls without a result stay with their message, and a compaction is never refused."""
    transcript = MemoryTranscript(open_history.messages)
    transcript.mark_waiting(open_history.waiting)
    compact(transcript, TruncateSummarizer(), keep_tokens=budget)
    present = set(ids(transcript))
    assert {key.rpartition(":")[0] for key in open_history.open} <= present
