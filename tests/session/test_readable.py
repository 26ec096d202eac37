"""`to_markdown` and `to_html`: a session as people read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Approve,
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Part,
    ReasoningPart,
    RunRecord,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
    WaitingCall,
)
from gotato_session import MemoryStore, Session
from gotato_session._page_making import OUTCOMES
from gotato_session._page_pieces import MOST, _pretty
from gotato_session.readable import to_html, to_markdown

from .histories import answer, run_record, user
from .lives import live

MADE_ONCE = re.compile(r"m-[0-9a-f]{24}")
EXPECTED = """\
# Session `s-1`

- messages: 11 in this branch, of which the model is shown 7
- this branch ends at: `a4`
- other branches end at: `m-…`, `u3`
- labels: `sunny` at `a2`, `start` at the beginning
- metadata: `task = {"name": "zoë", "n": [1, null]}`
- tokens of all runs: 7 in, 7 out

## User

`u1`

> Look at Oslo

## Assistant

`a1`

*reasoning:*

> Hm.

> I look.

*calls `look` (`a1:0`)*

```json
{
  "city": "Oslo"
}
```

*calls `look` (`a1:1`)*

```
{
```

## Result of `look`: done

`t1`

*answers `a1:0`*

```
sunny
```

```json
{
  "c": 8
}
```

## Result of `look`: not run, it never started

`t2`

*answers `a1:1`*

*`no JSON`*

## Assistant

`a2`, label `sunny`

> Sunny.

## User

`u2`

> And now?

## Assistant

`a3`

*calls `order` (`a3:0`)*

## Result of `order`: pending, the work goes on elsewhere

`t3`

*answers `a3:0`*

*`on its way`*

## Summary

`s1`

*in the place of everything up to `a2` for the model; about 90 tokens became 20*

> They talked of Oslo.

## User, what came of a pending call

`m-…`

> The pending call of the tool order has come to its end (ok). Its result:
>

> arrived

## User

`u4`

> Pay it

## Assistant

`a4`

> May I?

*calls `pay` (`a4:0`)*

```json
{
  "sum": 9
}
```

## Waiting for an answer: `pay` (`a4:0`)

> Pay 9?

```json
{
  "sum": 9
}
```

## Runs

| run | started | status | turns | calls | input | output | seconds |
| --- | --- | --- | --- | --- | --- | --- | --- |
| r-1 | 1970-01-01 00:00:00 UTC | completed | 1 | 0 | 7 | 7 | 1.0 |
"""


def session_of(*messages: UserMessage | AssistantMessage | ToolMessage) -> Session:
    """A session with these messages."""
    session = Session("s-1")
    for message in messages:
        session.append(message)
    return session


def said(*parts: Part, **more: object) -> Session:
    """A session with one answer of these parts."""
    return session_of(AssistantMessage(parts, **more))  # type: ignore[arg-type]


class Reader(HTMLParser):
    """What a browser would see: the elements, their text, and whether all that was opened was closed."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Notes what is opened."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Asks whether it is the last one that was opened."""
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keeps the text."""
        if self.stack and self.stack[-1] != "style":
            self.text.append(data)


def read(page: str) -> Reader:
    """The page, read."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.stack == []
    return reader


def test_everything_that_happened_can_be_read() -> None:
    """Roles, texts, calls, results in words, the summary, labels, what waits and the runs stand there in order."""
    found = to_markdown(live(Session("s-1")))
    assert MADE_ONCE.sub("m-…", found) == EXPECTED


def test_html_says_the_same() -> None:
    """All that the Markdown says is in the page, in the same order, in elements that are closed."""
    session = live(Session("s-1"))
    text = re.sub(r"\s+", " ", " ".join(read(to_html(session)).text))
    words = re.findall(r"\w+", re.sub(r"```\w*", "", EXPECTED.replace("m-…", "").replace("---", "")))
    at = 0
    for word in words:
        found = text.find(word, at)
        assert found >= 0, word
        at = found


def test_html_needs_nothing_else() -> None:
    """It holds no script, no link, no file from elsewhere, and both colour schemes."""
    page = to_html(live(Session("s-1")))
    reader = read(page)
    assert reader.tags.isdisjoint({"script", "link", "img", "iframe", "a", "form", "object"})
    assert reader.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "dir"}
    assert "prefers-color-scheme: dark" in page
    assert "default-src 'none'" in page
    assert page.startswith("<!doctype html>\n")
    assert page.endswith("</html>\n")


EVIL = "</pre><script>alert(1)</script> \" onload='x' & `` ` ```\n# Head\n| a |\x1b[31m\x00\x85\r\n<b>"


def everywhere(text: str) -> Session:
    """A session that has the text in every place that is not ours."""
    session = Session("s-1", metadata={text: text})
    session.append(UserMessage(text, id=text))
    parts: list[Part] = [TextPart(text), ReasoningPart(text), JSONPart(text), FilePart(b"1", media_type=text)]
    parts += [ImagePart(url=text), FilePart(url=f"data:{text}", filename=text)]
    calls = [ToolCall(text, text, text), ToolCall(text, text, "{}")]
    session.append(AssistantMessage(parts, calls, model=text, id=f"a{text}"))
    session.append(ToolMessage(ToolResult(text, "failed", [text, JSONPart(text)], text, f"a{text}:0"), id=f"t{text}"))
    session.label(text)
    session.end_run(RunRecord(text, text, "failed", text, 0.0, 1.0, 1, 0, Usage()))
    session.mark_waiting([WaitingCall(f"a{text}:1", text, text, {text: text}, text)])
    return session


def test_nothing_of_what_was_said_is_markup() -> None:
    """In HTML everything is escaped, and what no browser shows is replaced."""
    page = to_html(everywhere(EVIL))
    assert "<script" not in page
    assert "<b>" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
    reader = read(page)
    assert reader.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "dir"}
    assert "<script>alert(1)</script>" in "".join(reader.text)


@given(st.text(st.sampled_from("<>&\"'`|\\\n\r\t#*_[]()!a \x00\u2028"), min_size=1, max_size=12))
def test_no_text_breaks_the_page(text: str) -> None:
    """Whatever stands in a session, the page's own elements stay the same."""
    quiet, odd = read(to_html(everywhere("x"))), read(to_html(everywhere(text)))
    assert odd.tags <= quiet.tags | {"p", "pre"}
    lines = to_markdown(everywhere(text)).split("\n")
    headings = [line for line in outside_code(lines) if line.startswith("#")]
    assert [line.split(" ")[0] for line in headings] == ["#", "##", "##", "##", "##", "##"]


def outside_code(lines: Sequence[str]) -> list[str]:
    """The lines that are in no fence."""
    kept, fence = list[str](), ""
    for line in lines:
        ticks = re.match("(`{3,})[^`]*$", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks:
            fence = ticks.group(1)
        else:
            kept.append(line)
    assert fence == ""
    return kept


def test_backticks_cannot_end_code() -> None:
    """A fence is longer than any row of backticks in what it holds, and so is what marks a name."""
    session = session_of(answer("a1", calls=1))
    session.append(ToolMessage(ToolResult("c", "ok", "a\n````\nb", key="a1:0"), id="t`1`"))
    found = to_markdown(session)
    assert "\n`````\na\n````\nb\n`````\n" in found
    assert "`` t`1` ``" in found


@pytest.mark.parametrize("status", ToolResultStatus)
def test_each_outcome_has_its_words(status: ToolResultStatus) -> None:
    """The heading of a result says what became of the call, and whether its effect is known."""
    session = session_of(answer("a1", calls=1), ToolMessage(ToolResult("c", status, "r", key="a1:0")))
    assert f"## Result of `look`: {OUTCOMES[status]}\n" in to_markdown(session)
    assert ("effect is unknown" in OUTCOMES[status]) == (status in ("cancelled", "timed_out"))


def test_a_result_without_a_key_has_no_name() -> None:
    """It is told as a result all the same."""
    session = session_of(answer("a1", calls=1), ToolMessage(ToolResult("c", "ok", "r"), id="t1"))
    assert "\n## Result of : done" not in to_markdown(session)
    assert "\n## Result of a call: done\n\n`t1`\n\n```\nr\n```\n" in to_markdown(session)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (ImagePart(b"12345", media_type="image/png"), "*[image `image/png`, 5 bytes]*"),
        (ImagePart(url="https://example.org/a.png"), "*[image at `https://example.org/a.png`]*"),
        (ImagePart(url="data:image/png;base64,AAAA"), "*[image, a data URL of 26 characters]*"),
        (AudioPart(b"x" * 2048, "audio/wav"), "*[audio `audio/wav`, 2,048 bytes]*"),
        (FilePart(b"", media_type="text/csv", filename="a b.csv"), "*[file `a b.csv` `text/csv`, 0 bytes]*"),
        (ReasoningPart("hidden", redacted=True), "*reasoning that cannot be read*"),
        (ReasoningPart(signature="s"), "*reasoning that cannot be read*"),
        (JSONPart({"a": "ü"}), '```json\n{\n  "a": "ü"\n}\n```'),
    ],
)
def test_what_is_no_text_is_told(part: Part, words: str) -> None:
    """Binary parts are placeholders with their size, data are laid out, and no byte of them is shown."""
    found = to_markdown(said(TextPart("x"), part))
    assert words in found
    assert "hidden" not in found


def test_long_results_are_cut_unless_asked_for() -> None:
    """Beginning and end are shown, and how much is left out; `full` shows it all; what people said is never cut."""
    long = "a" * 1800 + "b" * 1800 + "c" * 400
    session = session_of(
        user("u1", long),
        AssistantMessage(long, [ToolCall("c", "look", f'{{"x": "{long}"}}')], id="a1"),
        ToolMessage(ToolResult("c", "ok", [long, JSONPart([long]), ImagePart(b"12")], key="a1:0")),
    )
    for write in (to_markdown, to_html):
        cut, whole = write(session), write(session, full=True)
        assert cut.count(long) == 2
        assert whole.count(long) == 5
        assert "characters are left out here" not in whole
    found = to_markdown(session)
    assert f"*… {len(long) - MOST:,} of {len(long):,} characters are left out here …*" in found
    assert found.count("characters are left out here") == 3
    assert "*[image, 2 bytes]*" in found


@pytest.mark.parametrize(
    ("stop_reason", "words"), [("max_tokens", "limit of tokens"), ("cancelled", "cut off: the run was cancelled")]
)
def test_an_answer_that_was_cut_off_says_so(stop_reason: str, words: str) -> None:
    """Why an answer is not whole stands behind it."""
    assert words in to_markdown(said(TextPart("half"), stop_reason=stop_reason))
    assert words not in to_markdown(said(TextPart("whole"), stop_reason="end_turn"))


def test_answered_calls_and_deadlines_are_told() -> None:
    """A call that was answered and not carried out yet, and when a question expires, can be seen."""
    session = session_of(AssistantMessage("", [ToolCall("c", "pay"), ToolCall("d", "pay")], id="a1"))
    session.mark_waiting(
        [WaitingCall("a1:0", decision=Approve()), WaitingCall("a1:1", name="pay", expires_at=86400.0)],
    )
    found = to_markdown(session)
    assert "## Answered, not carried out yet: `a call` (`a1:0`)\n\n*answered: approve*" in found
    assert "## Waiting for an answer: `pay` (`a1:1`)\n\n*the question expires at 1970-01-02 00:00:00 UTC*" in found


def test_gaps_and_what_is_to_be_mended_are_told() -> None:
    """The place of a gap, what was mended, a message of what came of pending work, and open calls are marked."""
    session = session_of(
        UserMessage("[lost]", id="g1", metadata={"gap": True}),
        UserMessage("arrived", id="u1", metadata={"tool_update": "a0:0"}),
        answer("a1", calls=1),
    )
    found = to_markdown(session)
    assert "## Gap\n\n`g1`\n\n> [lost]" in found
    assert "## User, what came of a pending call\n\n`u1`" in found
    assert "## To be mended when it is opened for writing\n\n```\nmessage 2: call 0 has no result" in found
    session._log.state.gaps.append("line 3 is damaged")
    assert "- mended: `line 3 is damaged`\n" in to_markdown(session)


def test_a_fork_names_its_parent() -> None:
    """Where a session comes from stands at its top."""
    parent = MemoryStore().create("s-1")
    parent.append(user("u1"))
    assert "- forked from: `s-1`\n" in to_markdown(parent.fork(id="s-2"))


def test_an_empty_session_is_a_page_too() -> None:
    """Nothing happened, and that is what is told."""
    assert (
        to_markdown(Session("s-1"))
        == "# Session `s-1`\n\n- messages: 0 in this branch, of which the model is shown 0\n"
    )
    assert "<article" not in to_html(Session("s-1"))


def test_usage_and_times_of_runs() -> None:
    """Cached tokens are told, a failed run says why, and a time that no calendar has is shown as it is."""
    session = session_of(user("u1"))
    usage = Usage(1200, 3, cache_read_tokens=1000)
    session.end_run(RunRecord("r-1", "a", "failed", "overloaded", 1e300, 61.25, 2, 1, usage))
    found = to_markdown(session)
    assert "- tokens of all runs: 1,200 in (1,000 from the cache), 3 out" in found
    assert "| r-1 | 1e+300 (Unix seconds) | failed: overloaded | 2 | 1 | 1,200 | 3 | 61.2 |" in found


def test_data_nested_too_deep_are_told() -> None:
    """Arguments that Python's JSON cannot read are shown as they were sent."""
    deep = "[" * 100_000
    session = session_of(AssistantMessage("", [ToolCall("c", "look", deep)], id="a1"))
    assert f"```\n{'[' * 1500}\n```" in to_markdown(session)
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert _pretty(value) == "(nested too deep to be shown)"


class _Moving(Session):
    """A session to which another thread adds so many messages while it is read."""

    __slots__ = ("left",)

    left: int

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """Its runs, and a message more."""
        if self.left:
            self.left -= 1
            self.append(user("", "late"))
        return super().runs


def test_what_is_shown_belongs_together() -> None:
    """A commit that comes while the page is made is in all of it."""
    session = _Moving("s-1")
    session.left = 1
    session.append(user("u1"))
    found = to_markdown(session)
    assert "- messages: 2 in this branch" in found
    assert "> late" in found


def test_a_session_that_never_rests_is_shown_all_the_same() -> None:
    """Who reads waits for nobody, however much is written meanwhile."""
    session = _Moving("s-1")
    session.left = 1000
    session.append(user("u1", "first"))
    assert "> first" in to_markdown(session)
    assert session.left > 900


@pytest.mark.parametrize("write", [to_markdown, to_html])
def test_only_sessions_are_read(write: Callable[[Session], str]) -> None:
    """Something else is told by name."""
    with pytest.raises(InvalidArgument, match=r"session must be a Session, not str"):
        write("s-1")  # type: ignore[arg-type]


def test_runs_come_in_the_order_of_their_ends() -> None:
    """The table has a line for each run."""
    session = Session("s-1")
    for name in ("r-2", "r-1"):
        session.end_run(run_record(name))
    rows = [line.split(" | ")[0] for line in to_markdown(session).splitlines() if line.startswith("| r-")]
    assert rows == ["| r-2", "| r-1"]
