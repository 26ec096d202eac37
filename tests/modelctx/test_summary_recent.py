"""SummaryRecent: a summary of what came before, and the recent part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx import SummaryRecent, Window
from gotato_modelctx._context_notes import dropped_from
from gotato_py import (
    Compaction,
    ContextBuilder,
    InvalidArgument,
    MemoryTranscript,
    Message,
    TurnView,
    UserMessage,
    check_messages,
)
from gotato_testkit import strategies as gst
from gotato_testkit.contracts import ContextBuilderContract

from ..effort import costly


class TestWithCompactions(ContextBuilderContract):
    """A builder of summaries keeps the promises of a context builder."""

    examples = 5

    def make(self) -> ContextBuilder:
        return SummaryRecent(max_messages=4)


class TestWithAGivenSummary(ContextBuilderContract):
    """So does one whose summary is given by the program."""

    examples = 5

    def make(self) -> ContextBuilder:
        return SummaryRecent(lambda view: "Earlier, much was said.", max_tokens=50)


def talk(count: int) -> MemoryTranscript:
    """A transcript of `count` user messages."""
    return MemoryTranscript([UserMessage(f"u{number}", id=f"u{number}") for number in range(count)])


def view_of(transcript: MemoryTranscript) -> TurnView:
    """The view of a transcript."""
    return TurnView("s", transcript.messages, transcript)


def texts(builder: ContextBuilder, transcript: MemoryTranscript) -> list[str]:
    """The texts that the model would see."""
    return [message.text for message in builder.build(view_of(transcript)).messages]


def test_the_summary_of_a_compaction_stays() -> None:
    """A window of the recent part keeps the summary in front of it; a plain window would lose it."""
    transcript = talk(4)
    transcript.replace(Compaction(UserMessage("Summary."), "u3"))
    for number in range(4, 9):
        transcript.append(UserMessage(f"u{number}"))
    assert texts(SummaryRecent(max_messages=4), transcript) == ["Summary.", "u7", "u8"]
    assert texts(Window(4), transcript) == ["u6", "u7", "u8"]
    (dropped,) = dropped_from(SummaryRecent(max_messages=4).build(view_of(transcript)))
    assert (dropped.messages, dropped.tokens) == (3, 15)


def test_all_is_shown_as_long_as_it_fits() -> None:
    """`view.messages` itself, with or without a summary in it; the summary counts for nothing."""
    builder, transcript = SummaryRecent(max_messages=4), talk(4)
    view = view_of(transcript)
    assert builder.build(view).messages is view.messages
    transcript.replace(Compaction(UserMessage("Summary." * 100), "u1"))
    transcript.append(UserMessage("u4"))
    transcript.append(UserMessage("u5"))
    view = view_of(transcript)
    assert builder.build(view).messages is view.messages


def test_a_new_compaction_is_followed() -> None:
    """The same builder goes on with the summary of the next compaction."""
    builder, transcript = SummaryRecent(max_messages=3), talk(5)
    assert texts(builder, transcript) == ["u3", "u4"] == texts(builder, transcript)
    transcript.replace(Compaction(UserMessage("First."), "u3"))
    assert texts(builder, transcript) == ["First.", "u4"]
    for number in range(5, 9):
        transcript.append(UserMessage(f"u{number}", id=f"u{number}"))
    assert texts(builder, transcript) == ["First.", "u7", "u8"]
    transcript.replace(Compaction(UserMessage("Second."), "u7"))
    assert texts(builder, transcript) == ["Second.", "u8"]


def test_a_given_summary_comes_first() -> None:
    """A str or a message, asked for with the view; None and blank text are no summary."""
    transcript = talk(5)
    transcript.replace(Compaction(UserMessage("Summary."), "u0"))
    given = iter(["Memory.", UserMessage("Notes."), None, "  "])
    seen: list[TurnView] = []

    def summary(view: TurnView) -> str | UserMessage | None:
        seen.append(view)
        return next(given)

    builder = SummaryRecent(summary, max_messages=2)
    rest = ["Summary.", "u3", "u4"]
    assert [texts(builder, transcript) for _ in range(4)] == [["Memory.", *rest], ["Notes.", *rest], rest, rest]
    assert seen[0].transcript is transcript


@costly(4)
@given(gst.histories(min_turns=1, max_turns=4), st.integers(1, 12), st.data())
def test_after_any_compaction_the_context_can_be_sent(messages: list[Message], bound: int, data: st.DataObject) -> None:
    """Pairs are kept, the summary comes first, and the rest is the end of the history."""
    transcript = MemoryTranscript(messages)
    ends = [at for at in range(len(messages)) if not check_messages(messages[: at + 1])]
    through = messages[data.draw(st.sampled_from(ends))].id
    transcript.replace(Compaction(UserMessage("Summary."), through))
    ordered = list(transcript.messages)
    kept = list(SummaryRecent(max_messages=bound).build(TurnView("s", ordered, transcript)).messages)
    assert check_messages(kept) == []
    assert kept[0].text == "Summary."
    rest = kept[1:]
    tail = rest[1:] if rest and isinstance(rest[0], UserMessage) else rest
    assert not tail or [id(each) for each in tail] == [id(each) for each in ordered[-len(tail) :]]


def test_wrong_arguments_are_refused() -> None:
    """No bound, a summary that cannot be asked for, one that gives something else."""
    with pytest.raises(InvalidArgument, match="max_messages"):
        SummaryRecent()
    with pytest.raises(InvalidArgument, match="summary"):
        SummaryRecent(4, max_messages=1)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match="gave a int"):
        SummaryRecent(lambda view: 7, max_messages=1).build(view_of(talk(1)))  # type: ignore[arg-type]  # on purpose
    assert repr(SummaryRecent(max_tokens=9)) == "SummaryRecent(max_tokens=9, keep=0.5)"
