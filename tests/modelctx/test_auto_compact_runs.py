"""`AutoCompact` in runs of every kind: nothing is lost, nothing is torn, and a task that comes twice is known."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.summaries import is_summary
from gotato_modelctx.summarizers import TruncateSummarizer
from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    ContextOverflow,
    Hooks,
    Limits,
    MemoryTranscript,
    Message,
    MessageEnd,
    RunStatus,
    Scope,
    ToolResultCommitted,
    Usage,
    UserMessage,
    check_messages,
)
from gotato_session import Session
from gotato_testkit import EchoModel, ManualClock, Raise, call, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage

SMALL = CompactPolicy(ceiling=300, floor=120)


def work(words: int = 20) -> str:
    """Works."""
    return "word " * words


class CoveringSummarizer:
    """Writes a number for the summary and remembers what that covers; fails where its script says so."""

    def __init__(self, fails: Sequence[bool]) -> None:
        self._fails = iter(fails)
        self.covers: dict[str, set[str]] = {}

    def summarize(self, messages: Sequence[Message], scope: Scope) -> str:
        """The number."""
        if next(self._fails, False):
            raise OSError("no")
        covered: set[str] = set()
        for message in messages:
            covered |= self.covers[message.text] if is_summary(message) else {message.id}
        name = f"No. {len(self.covers)}"
        self.covers[name] = covered
        return name


def committed(stage: Stage) -> list[Message]:
    """All that the runs have committed, as told."""
    return [event.message for event in stage.events if isinstance(event, MessageEnd | ToolResultCommitted)]


STEPS = st.one_of(
    st.integers(1, 80).map(lambda words: say("word " * words)),
    st.integers(1, 80).map(lambda words: call("work", words=words)),
    st.integers(1, 80).map(lambda words: call("work", words=words) + call("work", words=1)),
    st.integers(1, 600).map(lambda tokens: say("word", usage=Usage(tokens, 1))),
    st.just(Raise(ContextOverflow("full"))),
)


@given(
    steps=st.lists(STEPS, min_size=4, max_size=24),
    asked=st.lists(st.integers(1, 80), min_size=1, max_size=6),
    fails=st.lists(st.booleans(), max_size=6),
    session=st.booleans(),
)
def test_nothing_is_lost(steps: list[Any], asked: list[int], fails: list[bool], session: bool) -> None:
    """Whatever overflows, whatever the summarizer does: every message is verbatim in the context or covered by the
    summary in it, pairs stay whole, and at most one summary is asked for by a model call."""
    summarizer = CoveringSummarizer(fails)
    transcript: Any = Session() if session else MemoryTranscript()
    stage = Stage(*steps, say("End."), tools=[work], transcript=transcript, clock=ManualClock(),
                  extensions=[AutoCompact(SMALL, summarizer)], limits=Limits(max_repeated_calls=None))  # fmt: skip
    for words in asked:
        stage.run("word " * words)
        assert check_messages(transcript.messages) == []
        first = transcript.messages[0]
        covered = summarizer.covers[first.text] if is_summary(first) else set[str]()
        present = {each.id: each for each in transcript.messages if not is_summary(each)}
        everything = committed(stage)
        assert covered | present.keys() == {each.id for each in everything}
        assert covered.isdisjoint(present)
        assert all(present[each.id] == each for each in everything if each.id in present)
    turns = stage.kinds.count("turn_start")
    assert stage.kinds.count("session_compacted") <= turns
    assert_laws(stage)


@pytest.mark.parametrize("make", [MemoryTranscript, Session])
def test_a_task_that_comes_twice(make: Any) -> None:
    """A redelivered message is known though a summary covers it or its answer's beginning: it costs nothing."""
    task = UserMessage("word " * 200, id="task")
    steps = [call("work", words=100), call("work", words=100), say("Done.")]
    stage = Stage(*steps, tools=[work], transcript=make(), extensions=[AutoCompact(SMALL, TruncateSummarizer(50))])
    assert stage.run(task).text == "Done."
    assert "task" not in {each.id for each in stage.messages}
    again = stage.run(task)
    assert (again.status, again.text, again.new_messages) == (RunStatus.COMPLETED, "Done.", ())
    assert len(stage.asked) == 3
    assert_laws(stage)


@pytest.mark.parametrize("make", [MemoryTranscript, Session])
def test_a_run_that_waits(make: Any) -> None:
    """What waits for a person survives a compaction before the run goes on: it runs once, as it was shown."""
    ask = Hooks(before_tool=lambda use: Ask("May it?") if use.arguments["words"] == 7 else Allow())
    steps = [say("word " * 100), call("work", words=7) + call("work", words=9), say("Done.")]
    auto = AutoCompact(CompactPolicy(300, 100), TruncateSummarizer(50))
    stage = Stage(*steps, tools=[work], transcript=make(), extensions=[ask])
    assert stage.run("word " * 100).ok
    waiting = stage.run("word " * 100).waiting
    agent = Agent(stage.model, tools=[work], transcript=stage.transcript, extensions=[ask, auto])
    result = agent.run(answers={waiting[0].key: Approve()})
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Done.")
    assert len(stage.transcript.compactions) == 1  # type: ignore[attr-defined]
    assert [each.text for each in stage.results] == ["word " * 7, "word " * 9]
    assert check_messages(stage.transcript.messages) == []
    assert len(stage.asked[-1]) == 4


def test_threads_share_one() -> None:
    """Agents on several threads share one AutoCompact: each context stays within the policy, none sees another's."""
    auto = AutoCompact(SMALL, TruncateSummarizer(60))

    def converse(name: int) -> Agent:
        agent = Agent(EchoModel(), extensions=[auto])
        for number in range(30):
            agent.run(f"agent{name} {number} " + "word " * 30)
        return agent

    with ThreadPoolExecutor(6) as pool:
        agents = list(pool.map(converse, range(6)))
    for name, agent in enumerate(agents):
        text = " ".join(message.text for message in agent.transcript.messages)
        assert len(text) < 2500
        assert {f"agent{other}" in text for other in range(6) if other != name} == {False}
