"""Summaries without a model, and how messages are written out for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx._clipping import clip, clip_tokens
from gotato_modelctx._rendering import rendered
from gotato_modelctx.summaries import FRAME, Summary, is_summary, split_summary, summary_message
from gotato_modelctx.summarizers import TruncateSummarizer
from gotato_modelctx.tokens import estimate_tokens
from gotato_py import (
    AssistantMessage,
    AudioPart,
    Cancelled,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ReasoningPart,
    Scope,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    message_from_dict,
    message_to_dict,
)

from .fake_summarizers import answer, user


def test_short_histories_are_kept_as_text() -> None:
    """Where there is room, every message is written out, under a line that says what it is."""
    filler = user("filler", words=400)
    summary = TruncateSummarizer(5000).summarize([UserMessage("Hi."), AssistantMessage("Hello."), filler], Scope())
    assert summary.startswith(FRAME + "[user]\nHi.\n\n[assistant]\nHello.\n\n[user]\nfiller word")
    assert (summary.usage, isinstance(summary, str)) == (Usage(), True)


def test_the_middle_is_left_out() -> None:
    """Of long histories the beginning and the end stay, within the bound, with a note between."""
    history: list[Message] = [
        UserMessage("The first task."),
        *[answer(f"a{n}") for n in range(60)],
        UserMessage("The last word."),
    ]
    summary = TruncateSummarizer(200).summarize(history, Scope())
    assert estimate_tokens(summary) <= 200
    assert "The first task." in summary
    assert summary.endswith("The last word.")
    assert "characters left out …]" in summary
    assert summary == TruncateSummarizer(200).summarize(history, Scope())


def test_one_long_message_hides_no_other() -> None:
    """A long message is cut by itself, so that others are seen beside it."""
    history: list[Message] = [UserMessage("Read it."), AssistantMessage("x" * 50_000), UserMessage("And now?")]
    summary = TruncateSummarizer(1000).summarize(history, Scope())
    assert ("Read it." in summary, "And now?" in summary) == (True, True)
    assert estimate_tokens(summary) < 400


def test_the_earlier_summary_comes_first() -> None:
    """The beginning of an earlier summary stays, however often it is summarised; its frame is not doubled."""
    summarizer = TruncateSummarizer(150)
    text: str = summarizer.summarize([UserMessage("The first task."), answer("a", 400)], Scope())
    for number in range(20):
        text = summarizer.summarize([summary_message(text), user(f"u{number}"), answer(f"a{number}")], Scope())
        assert estimate_tokens(text) <= 150
    assert "The first task." in text
    assert text.count(FRAME) == 1


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.integers(1, 100))
def test_never_over_the_bound_and_always_smaller(texts: list[str], most: int) -> None:
    """The summary is never empty, never over its bound, and smaller than what it replaces."""
    messages = [UserMessage(text) for text in texts]
    summary = TruncateSummarizer(most).summarize(messages, Scope())
    assert summary.strip()
    assert estimate_tokens(summary) <= min(most, max(1, estimate_tokens(messages) // 2))


def test_what_it_refuses() -> None:
    """No messages, a bound that is none, and a scope that has ended."""
    with pytest.raises(InvalidArgument, match="messages is empty"):
        TruncateSummarizer().summarize([], Scope())
    for most in (0, -1, 1.5, True):
        with pytest.raises(InvalidArgument, match="max_tokens must be an int of at least 1"):
            TruncateSummarizer(most)  # type: ignore[arg-type]
    scope = Scope()
    scope.cancel()
    with pytest.raises(Cancelled):
        TruncateSummarizer().summarize([user("u")], scope)
    assert repr(TruncateSummarizer(7)) == "TruncateSummarizer(7)"


def test_a_counter_of_ones_own() -> None:
    """Tokens are counted by the counter that was given."""
    history: list[Message] = [user(f"u{n}") for n in range(40)]
    for most in (100, 300):
        summary = TruncateSummarizer(most, counter=len).summarize(history, Scope())
        assert most // 2 <= len(summary) <= most


def test_how_messages_are_written_out() -> None:
    """Each message is a block of text; calls, results and media go by what they are, reasoning is left out."""
    asked = AssistantMessage(
        [ReasoningPart("hm"), TextPart("I look.")],
        [ToolCall("c1", "look", '{"at":"it"}'), ToolCall("c1", "find", "")],
        id="a",
    )
    blocks = rendered(
        [
            UserMessage(
                [TextPart("See"), ImagePart(b"1"), AudioPart(b"2"), FilePart(b"3", filename="x.pdf"), FilePart(b"4")]
            ),
            asked,
            ToolMessage(ToolResult("c1", "ok", JSONPart({"n": 1}), key="a:0")),
            ToolMessage(ToolResult("c1", "not_run", error="limit", key="a:1")),
            ToolMessage(ToolResult("c9", "ok", "seen")),
            AssistantMessage("y" * 100),
            ToolMessage(ToolResult("c1", "ok")),
        ],
        40,
    )
    assert blocks == [
        "[user]\n" + clip("See\n(a picture)\n(sound)\n(a file: x.pdf)\n(a file: without a name)", 40),
        '[assistant]\nI look.\n[calls look with {"at":"it"}]\n[calls find with {}]',
        '[result of look: ok]\n{"n": 1}',
        "[result of find: not_run]\n" + clip("The tool was not run: limit", 40),
        "[result of a tool: ok]\nseen",
        "[assistant]\n" + "y" * 20 + "\n[… 60 characters left out …]\n" + "y" * 20,
        "[result of find: ok]",
    ]


def test_clipping() -> None:
    """Head and tail stay, in characters or in tokens; a bound under the note leaves nothing."""
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 3, lambda count: f"<{count}>") == "ab<4>g"
    assert clip("abc", 0, lambda count: f"<{count}>") == "<3>"
    assert clip_tokens("ä" * 100, 50) == "ä" * 100
    assert estimate_tokens(clip_tokens("ä" * 1000, 50)) in range(40, 51)
    assert clip_tokens("a" * 1000, 3) == ""


def test_a_summary_as_a_message() -> None:
    """The mark of a summary survives storage, a user's own message is none, and the frame is taken off again."""
    message = summary_message(Summary(FRAME + "Short.", Usage(1, 2)))
    again = message_from_dict(message_to_dict(message))
    assert is_summary(again)
    assert split_summary([again, user("u")]) == ("Short.", [user("u")])
    assert split_summary([user("u")]) == ("", [user("u")])
    assert split_summary([]) == ("", [])
    assert not is_summary(UserMessage("x", metadata={"summary": "yes"}))
    assert not is_summary(AssistantMessage("x", metadata={"summary": True}))
    assert type(message.parts[0].text) is str  # type: ignore[union-attr]
