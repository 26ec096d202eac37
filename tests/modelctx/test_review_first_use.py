"""What somebody who uses the package for the first time takes for granted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gotato_modelctx import (
    AutoCompact,
    Chain,
    CompactPolicy,
    Rules,
    Summary,
    SummaryRecent,
    TruncateSummarizer,
    Window,
    compact,
    inspect,
    is_summary,
)
from gotato_modelctx._per_transcript import MOST, PerTranscript
from gotato_py import (
    Agent,
    AssistantMessage,
    Compaction,
    InvalidArgument,
    InvalidState,
    MemoryTranscript,
    Message,
    ModelContext,
    ModelRequest,
    Scope,
    TurnView,
    UserMessage,
)
from gotato_session import MemoryStore
from gotato_testkit import ScriptedModel, say

from .fake_summarizers import FakeSummarizer


def talk(turns: int) -> list[Message]:
    """So many questions and answers of some 50 tokens each."""
    made: list[Message] = []
    for number in range(turns):
        made.append(UserMessage(f"Question {number} " + "word " * 40, id=f"u{number}"))
        made.append(AssistantMessage(f"Answer {number} " + "word " * 40, id=f"a{number}"))
    return made


def test_compaction_needs_no_summarizer() -> None:
    """An `AutoCompact` of a policy alone summarises without a model, within a quarter of the floor."""
    transcript = MemoryTranscript(talk(40))
    model = ScriptedModel([say("Fine.")])
    agent = Agent(model, transcript=transcript, extensions=[AutoCompact(CompactPolicy(ceiling=3000, floor=1600))])
    agent.run("And now?")
    first = model.requests[0].messages[0]
    assert is_summary(first)
    assert "Question 0" in first.text
    assert len(first.text) <= 400 * 4
    assert "TruncateSummarizer(400)" in repr(AutoCompact(CompactPolicy(ceiling=3000, floor=1600)))


@pytest.mark.parametrize(("floor", "most"), [(0, 100), (399, 100), (2000, 500), (100_000, 1000)])
def test_how_large_a_summary_is_then(floor: int, most: int) -> None:
    """A quarter of the floor, at least 100 tokens and at most 1000."""
    assert f"TruncateSummarizer({most})" in repr(AutoCompact(CompactPolicy(200_000, floor)))


class Plain:
    """A summarizer of the user's own: a plain class."""

    def summarize(self, messages: Sequence[Message], scope: Scope) -> str:
        """How many there were."""
        return f"{len(messages)} messages."


@pytest.mark.parametrize("given", [Plain, TruncateSummarizer, Summary, object(), "short"])
def test_a_class_is_no_summarizer(given: Any) -> None:
    """A class in place of an instance, or what cannot summarize, is refused when it is given, not at the first need."""
    with pytest.raises(InvalidArgument, match="an object that has a method summarize"):
        AutoCompact(CompactPolicy(300, 100), given)
    with pytest.raises(InvalidArgument, match="an object that has a method summarize"):
        compact(MemoryTranscript(), given, keep_tokens=1)


def test_no_summary_is_paid_for_a_session_that_is_only_read() -> None:
    """A read-only session is refused before the summarizer is asked."""
    store = MemoryStore()
    with store.create("a") as session:
        for message in talk(3):
            session.append(message)
    summarizer = FakeSummarizer()
    with store.open("a", read_only=True) as session:
        with pytest.raises(InvalidState, match="for reading only"):
            compact(session, summarizer, keep_tokens=0)
        assert len(session.messages) == 6
    assert summarizer.asked == []


def test_rules_of_a_folder_alone(tmp_path: Path) -> None:
    """Without a root, the files above the folder are not read."""
    (tmp_path / "AGENTS.md").write_text("above", "utf-8")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "AGENTS.md").write_text("here", "utf-8")
    found = Rules(tmp_path / "app")()
    assert [(each.text, dict(each.attrs)) for each in found] == [("here", {"path": "AGENTS.md"})]


def test_rules_are_asked_of_a_folder(tmp_path: Path) -> None:
    """The file itself in place of its folder is refused, rather than taken for a folder without rules."""
    (tmp_path / "AGENTS.md").write_text("here", "utf-8")
    with pytest.raises(InvalidArgument, match="must be a folder, not a file"):
        Rules(tmp_path / "AGENTS.md")


@pytest.mark.parametrize("given", ["Before.", UserMessage("Before."), lambda view: "Before."])
def test_a_summary_may_be_a_text(given: Any) -> None:
    """A text, a message and a callable that gives one are the same to `SummaryRecent`."""
    transcript = MemoryTranscript(talk(4))
    context = SummaryRecent(given, max_messages=2).build(TurnView("", transcript.messages, transcript))
    assert [message.text[:10] for message in context.messages] == ["Before.", "Question 3", "Answer 3 w"]


def test_behind_a_summary_each_message_is_read_once() -> None:
    """A builder behind `SummaryRecent` knows the history again: equal texts are one message."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return 1

    messages = talk(20)
    texts = iter(["Before."] * 9 + ["Later."])
    chain = Chain(SummaryRecent(lambda view: next(texts), max_messages=100), Window(max_tokens=10_000, counter=counter))
    transcript = MemoryTranscript()
    for length in range(22, 40, 2):
        chain.build(TurnView("", messages[:length], transcript))
        assert counted == ["Before.", *[message.text for message in messages[:length]]]
    assert chain.build(TurnView("", messages, transcript)).messages[0].text == "Later."
    assert len(counted) == 39 + 41


def test_what_is_left_out_by_all_compactions() -> None:
    """Where a history was compacted twice, the messages and the tokens that `inspect` tells are those of both."""
    transcript = MemoryTranscript(talk(6))
    first = compact(transcript, Plain(), keep_tokens=400)
    second = compact(transcript, Plain(), keep_tokens=100)
    assert first is not None
    assert second is not None
    (dropped,) = inspect(transcript).dropped
    saved = first.tokens_before - first.tokens_after + second.tokens_before - second.tokens_after
    assert (dropped.messages, dropped.tokens) == (12 - len(transcript.messages) + 1, saved)


def test_compactions_that_do_not_tell() -> None:
    """What compactions of somebody else have left out is not counted, and said without a number."""
    transcript = MemoryTranscript(talk(3))
    transcript.replace(Compaction(UserMessage("Summary."), "a0"))
    found = inspect(transcript)
    assert [(each.messages, each.tokens) for each in found.dropped] == [(None, None)]
    assert "left out by compaction: some messages: summarised: 1 compaction, the summary is shown" in str(found)


@pytest.mark.parametrize("given", [ModelContext("Be brief."), ModelRequest("Be brief."), [UserMessage("Hi!")], None])
def test_only_what_can_be_asked_is_inspected(given: Any) -> None:
    """What has messages and is no transcript is refused, rather than shown without its system text."""
    with pytest.raises(InvalidArgument, match="an Agent, a Transcript or a TurnView"):
        inspect(given)


def test_a_note_of_what_is_left_out_is_whole() -> None:
    """A summary without a model has one note of how much is left out, in its middle, and no piece of another."""
    messages = [UserMessage("word " * 400, id=f"u{number}") for number in range(10)]
    said = TruncateSummarizer(200).summarize(messages, Scope())
    assert said.count("left out") == said.count("[…") == said.count("…]") == 1


class Slotted:
    """A transcript of a class that no weak reference can be made to."""

    __slots__ = ()


def test_a_transcript_that_cannot_be_referred_to_weakly() -> None:
    """It is remembered all the same, until too many others have come."""
    known: PerTranscript[list[int]] = PerTranscript(list)
    transcript = Slotted()
    known.of(transcript).append(1)
    assert known.of(transcript) == [1]
    others = [Slotted() for _ in range(MOST)]
    for other in others:
        known.of(other)
    assert known.of(transcript) == []
