"""Case C48: a summarizer that fails, is ended, or is overtaken by what happens meanwhile."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.model_summarizer import ModelSummarizer
from gotato_modelctx.policy import CompactPolicy
from gotato_py import (
    ContextOverflow,
    EmptyResponse,
    ErrorCode,
    ExtensionFailed,
    LimitExceeded,
    MemoryTranscript,
    Overloaded,
    RetryPolicy,
    RunStatus,
    SessionCompacted,
)
from gotato_session import Session
from gotato_testkit import Do, ManualClock, Raise, ScriptedModel, Stall, Step, call, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage
from .fake_summarizers import FakeSummarizer

LONG = "word " * 50
SMALL = CompactPolicy(ceiling=300, floor=100)
FAILURES: dict[str, tuple[list[Step], type[Exception]]] = {
    "raises": ([Raise(Overloaded("busy"))] * 3, Overloaded),
    "empty": ([say(), say()], EmptyResponse),
    "cut": ([say("Cut", stop_reason="max_tokens")], LimitExceeded),
}


class StuckSummarizer:
    """Does something, and waits for the end of its scope."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.model = ScriptedModel([[Do(act), Stall()]])
        self.summarize = ModelSummarizer(self.model).summarize


def talking(*steps: Step, summarizer: Any, transcript: Any = None, **options: Any) -> Stage:
    """A stage whose context is over its ceiling at the third run."""
    extensions = [AutoCompact(SMALL, summarizer)]
    stage = Stage(say(f"One {LONG}"), say(f"Two {LONG}"), *steps, clock=ManualClock(), transcript=transcript,
                  extensions=extensions, **options)  # fmt: skip
    assert stage.run(f"first {LONG}").ok
    assert stage.run(f"second {LONG}").ok
    assert not any(isinstance(event, SessionCompacted) for event in stage.events)
    return stage


def failures(stage: Stage) -> list[tuple[str, str]]:
    """The failures that were told: where, and what."""
    events = [event for event in stage.events if isinstance(event, ExtensionFailed)]
    return [(each.point, each.error.message if each.error else "") for each in events]


@pytest.mark.parametrize(("steps", "kind"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("make", [MemoryTranscript, Session])
def test_c48_a_failure_where_the_context_still_fits(make: Any, steps: list[Step], kind: type[Exception]) -> None:
    """Nothing changes, the failure is told by an event, and the run goes on."""
    summarizer = ModelSummarizer(ScriptedModel(steps), retry=RetryPolicy(base=0))
    stage = talking(say("Ok."), summarizer=summarizer, transcript=make())
    result = stage.run(f"third {LONG}")
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Ok.")
    assert len(stage.asked[-1]) == 5
    assert stage.transcript.compactions == ()  # type: ignore[attr-defined]
    ((point, said),) = failures(stage)
    assert (point, said.partition(":")[0]) == ("before_run", kind.__name__)
    assert "word" not in said
    assert_laws(stage)


@pytest.mark.parametrize(("steps", "kind"), FAILURES.values(), ids=FAILURES)
def test_c48_a_failure_where_it_does_not_fit(steps: list[Step], kind: type[Exception]) -> None:
    """The run fails with the overflow, whose cause is what the summary failed of; no second summary is asked for."""
    cheap = ScriptedModel(steps)
    overflow = ContextOverflow("the context is full")
    stage = talking(Raise(overflow), summarizer=ModelSummarizer(cheap, retry=RetryPolicy(base=0)))
    before = [*stage.history, f"U third {LONG}"]
    result = stage.run(f"third {LONG}")
    assert (result.status, result.error) == (RunStatus.FAILED, overflow)
    assert result.error is not None
    assert result.error.code is ErrorCode.CONTEXT_OVERFLOW
    assert isinstance(overflow.cause, kind)
    assert overflow.__cause__ is overflow.cause
    assert type(pickle.loads(pickle.dumps(overflow)).cause) is kind
    assert kind.__name__ in "".join(traceback.format_exception(overflow))
    assert (stage.history, len(stage.asked), len(cheap.requests)) == (before, 3, len(steps))
    assert_laws(stage)


@pytest.mark.parametrize(("steps", "kind"), FAILURES.values(), ids=FAILURES)
def test_c48_a_failure_when_the_provider_refuses(steps: list[Step], kind: type[Exception]) -> None:
    """The same where the first attempt is the one after the refusal."""
    overflow = ContextOverflow("the context is full")
    summarizer = ModelSummarizer(ScriptedModel(steps), retry=RetryPolicy(base=0))
    extensions = [AutoCompact(CompactPolicy(10_000, 5_000), summarizer)]
    stage = Stage(say("One."), Raise(overflow), clock=ManualClock(), extensions=extensions)
    assert stage.run(f"first {LONG}").ok
    result = stage.run("second")
    assert result.error is overflow
    assert isinstance(overflow.cause, kind)
    assert [point for point, _ in failures(stage)] == ["on_overflow"]
    assert_laws(stage)


@pytest.mark.parametrize("where", ["before_run", "before_turn", "on_overflow"])
def test_c48_the_host_aborts(where: str) -> None:
    """The cancellation of the run ends the summary: cancelled, no entry, no failure told."""
    stages: list[Stage] = []
    stuck = StuckSummarizer(lambda: stages[0].agent.cancel("enough"))
    overflow = Raise(ContextOverflow("the context is full"))
    if where == "before_run":
        stage = talking(summarizer=stuck)
        message = f"third {LONG}"
    elif where == "before_turn":
        stage = Stage(call("work"), tools=[work], extensions=[AutoCompact(SMALL, stuck)], clock=ManualClock())
        stage.script.replace(say(LONG * 2), call("work"))
        assert stage.run("first").ok
        message = "second"
    else:
        extensions = [AutoCompact(CompactPolicy(10_000, 5_000), stuck)]
        stage = Stage(say("One."), overflow, extensions=extensions, clock=ManualClock())
        assert stage.run("first").ok
        message = "second"
    stages.append(stage)
    result = stage.run(message)
    assert (result.status, len(stuck.model.requests)) == (RunStatus.CANCELLED, 1)
    assert stage.transcript.compactions == ()  # type: ignore[attr-defined]
    assert failures(stage) == []
    assert overflow.error.cause is None  # type: ignore[union-attr]
    assert_laws(stage, again=where != "before_turn")


def work() -> str:
    """Works."""
    return LONG * 3


def test_c48_a_deadline() -> None:
    """The run's time ends the summary too."""
    waits = ScriptedModel([[Stall()]])
    stage = talking(summarizer=ModelSummarizer(waits, timeout=None))
    result = stage.run(f"third {LONG}", timeout=5)
    assert (result.status, failures(stage)) == (RunStatus.DEADLINE_EXCEEDED, [])
    assert stage.transcript.compactions == ()  # type: ignore[attr-defined]
    assert_laws(stage, again=False)


def test_c48_a_message_comes_meanwhile() -> None:
    """A message that is queued while the summary is made is delivered after, once."""
    stages: list[Stage] = []

    def steer() -> str:
        stages[0].agent.steer("and quickly")
        return "They talked."

    stage = talking(say("Ok."), summarizer=FakeSummarizer(steer))
    stages.append(stage)
    assert stage.run(f"third {LONG}").ok
    assert stage.transcript.compactions != ()  # type: ignore[attr-defined]
    told = [line for request in stage.asked[2:] for line in request if line == "U and quickly"]
    assert len(told) == 1
    assert_laws(stage)


def test_c48_a_fork_meanwhile() -> None:
    """A fork that is made while the summary is made has all messages and no half compaction."""
    session, forks = Session(), []

    def fork() -> str:
        forks.append(session.fork())
        return "They talked."

    stage = talking(say("Ok."), summarizer=FakeSummarizer(fork), transcript=session)
    before = stage.history
    assert stage.run(f"third {LONG}").ok
    (forked,) = forks
    assert [each.text for each in forked.messages] == [
        line.split(" ", 1)[1].removesuffix(" end_turn") for line in before
    ]
    assert (forked.compactions, len(session.compactions)) == ((), 1)
    assert_laws(stage)


def test_c48_an_interrupt_meanwhile() -> None:
    """Ctrl-C while the summary is made ends the run closed, and nothing is compacted."""
    stage = talking(summarizer=FakeSummarizer(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        stage.run(f"third {LONG}")
    assert stage.transcript.compactions == ()  # type: ignore[attr-defined]
    assert_laws(stage)


def test_c48_an_interrupt_of_the_hosts_own() -> None:
    """A host's own kind of interrupt is no failure of the summarizer: it comes out unchanged."""

    class Enough(Exception):
        pass

    stage = talking(summarizer=FakeSummarizer(Enough()), interrupts=[Enough])
    with pytest.raises(Enough):
        stage.run(f"third {LONG}")
    assert_laws(stage)
