"""Case C44: a context that is too large, cured by `AutoCompact`, by the summary of a model."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.model_summarizer import ModelSummarizer
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.summaries import FRAME
from gotato_py import (
    Agent,
    ContextOverflow,
    ErrorCode,
    MemoryTranscript,
    ModelRetry,
    RateLimited,
    RetryPolicy,
    RunFailed,
    RunStatus,
    SessionCompacted,
    Usage,
)
from gotato_session import Session
from gotato_testkit import ManualClock, Raise, ScriptedModel, Step, call, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage
from .fake_summarizers import FakeSummarizer

FULL = Raise(ContextOverflow("the context is full"))
ROOMY = CompactPolicy(ceiling=100_000, floor=50_000)
LONG = "word " * 50


def work() -> str:
    """Works."""
    return LONG


def talking(*steps: Step, policy: CompactPolicy = ROOMY, summarizer: Any = None, **options: Any) -> Stage:
    """A stage with two answers behind it, and a summarizer. By the first one, a request is little but messages."""
    extensions = [AutoCompact(policy, summarizer or FakeSummarizer())]
    options.setdefault("extensions", extensions)
    first, second = say(f"One {LONG}", usage=Usage(70, 70)), say(f"Two {LONG}")
    stage = Stage(first, second, *steps, tools=[work], clock=ManualClock(), retry=RetryPolicy(jitter=0), **options)
    assert stage.run(f"first {LONG}").ok
    assert stage.run(f"second {LONG}").ok
    return stage


def compactions(stage: Stage) -> int:
    """How often the session was compacted, as told."""
    return sum(isinstance(event, SessionCompacted) for event in stage.events)


@pytest.mark.parametrize("transcript", [None, Session()], ids=["memory", "session"])
def test_c44_compaction_and_one_retry(transcript: Any) -> None:
    """One compaction, one retry; the user's message is sent once and stays verbatim; the run completes."""
    cheap = ScriptedModel([say("They talked.", usage=Usage(300, 5))])
    stage = talking(FULL, say("Ok."), summarizer=ModelSummarizer(cheap), transcript=transcript)
    result = stage.run("third")
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Ok.")
    shown = stage.asked[-1]
    assert shown[0] == f"U {FRAME}They talked."
    assert shown[-1] == "U third"
    assert sum("third" in line for line in shown) == 1
    assert (len(stage.asked), len(cheap.requests), compactions(stage)) == (4, 1, 1)
    assert f"[user]\nfirst {LONG}" in cheap.requests[0].messages[0].text
    (made,) = stage.transcript.compactions  # type: ignore[attr-defined]
    assert (made.reason, made.usage) == ("overflow", Usage(300, 5))
    assert made.tokens_after < made.tokens_before
    assert_laws(stage)


def test_c44_again_overflow() -> None:
    """A second overflow of the same call fails the run: no third request, one summary, a history that can be sent."""
    summarizer = FakeSummarizer()
    stage = talking(FULL, FULL, say("never"), summarizer=summarizer)
    result = stage.run("third")
    assert (result.status, len(stage.asked), len(summarizer.asked)) == (RunStatus.FAILED, 4, 1)
    assert isinstance(result.error, ContextOverflow)
    with pytest.raises(RunFailed) as raised:
        result.raise_for_status()
    assert raised.value.code is ErrorCode.CONTEXT_OVERFLOW
    assert stage.history[0] == "U Summary 1."
    assert stage.history[-1] == "U third"
    assert "the context is full (after 2 attempts); room was made, and it still has" in str(result.error)
    assert_laws(stage)


def test_c44_in_each_turn_anew() -> None:
    """At most one attempt per model call: a later call of the same run has its own."""
    summarizer = FakeSummarizer()
    stage = talking(FULL, call("work"), FULL, say("Ok."), summarizer=summarizer)
    assert stage.run("third").text == "Ok."
    assert (len(summarizer.asked), compactions(stage)) == (2, 2)
    assert_laws(stage)


def test_c44_a_rate_limit_is_none() -> None:
    """A 429 whose text says "too many tokens" is retried, and nothing is compacted."""
    summarizer = FakeSummarizer()
    stage = talking(Raise(RateLimited("too many tokens", retry_after=1.0)), say("Ok."), summarizer=summarizer)
    assert stage.run("third").text == "Ok."
    assert stage.asked[2] == stage.asked[3]
    assert sum(isinstance(event, ModelRetry) for event in stage.events) == 1
    assert (summarizer.asked, compactions(stage)) == ([], 0)
    assert_laws(stage)


def test_c44_overflow_visible_only_in_usage() -> None:
    """A provider that says nothing and cuts is seen by its usage: the next request is compacted before it is sent."""
    summarizer = FakeSummarizer()
    silent = say(f"Three {LONG}", usage=Usage(150_000, 10))
    stage = talking(silent, say("Ok.", usage=Usage(400, 10)), say("Fine."), summarizer=summarizer)
    assert stage.run("third").ok
    assert summarizer.asked == []
    assert stage.run("fourth").text == "Ok."
    assert (len(summarizer.asked), compactions(stage), stage.asked[-1][0]) == (1, 1, "U Summary 1.")
    assert stage.run("fifth").text == "Fine."
    assert len(summarizer.asked) == 1
    assert_laws(stage)


def test_c44_usage_from_before_a_compaction_decides_nothing() -> None:
    """The answer that stays behind the summary reported the old context; nothing is compacted again because of it."""
    summarizer, huge = FakeSummarizer(), Usage(150_000, 10)
    stage = talking(say("Three", usage=huge), say("Ok."), say("Fine."), summarizer=summarizer)
    assert [stage.run(each).ok for each in ("third", "fourth", "fifth")] == [True, True, True]
    assert len(summarizer.asked) == 1
    kept = [each.usage.input_tokens for each in stage.messages if each.role == "assistant"]
    assert huge.input_tokens in kept
    again = AutoCompact(ROOMY, summarizer)  # another process: what it knows, it knows from the transcript
    stored = MemoryTranscript.from_dict(stage.transcript.to_dict())  # type: ignore[attr-defined]
    assert Agent(ScriptedModel([say("Six.")]), transcript=stored, extensions=[again]).run("sixth").ok
    assert len(summarizer.asked) == 1
    assert_laws(stage)


def test_c44_switched_off() -> None:
    """Without it the run fails at once, and a model that takes more goes on from there."""
    stage = talking(FULL, extensions=[])
    result = stage.run("third")
    assert (result.status, len(stage.asked), result.error) == (RunStatus.FAILED, 3, FULL.error)
    larger = ScriptedModel([say("Ok.")])
    assert Agent(larger, transcript=stage.transcript).run().text == "Ok."
    assert [each.text for each in larger.requests[0].messages][-1] == "third"
    assert_laws(stage)


def test_c44_a_larger_model_after_a_failure() -> None:
    """What could not be cured for one model works with a larger one: the transcript is whole and can be sent."""
    stage = talking(FULL, summarizer=FakeSummarizer(ValueError("no")))
    assert isinstance(stage.run("third").error, ContextOverflow)
    larger = ScriptedModel([say("Ok.")])
    assert Agent(larger, transcript=stage.transcript).run().text == "Ok."
    assert len(larger.requests[0].messages) == 5
    assert_laws(stage)


def test_c44_nothing_to_cut() -> None:
    """One message that is too large by itself is told, with sizes, as the cause of the run's error."""
    error = ContextOverflow("the context is full")
    stage = Stage(Raise(error), clock=ManualClock(), extensions=[AutoCompact(ROOMY, FakeSummarizer())])
    result = stage.run("word " * 4000)
    assert (result.status, result.error) == (RunStatus.FAILED, error)
    assert str(error.cause) == (
        "the request is too large: nothing can be cut, the 1 message(s) have to stay; its messages take about 5004 "
        "tokens, instructions and tools 0"
    )
    assert stage.kinds.count("extension_failed") == 1
    assert_laws(stage)


def test_c44_what_stays_is_too_large() -> None:
    """A tool result that is over the ceiling by itself is told before a summary is paid for."""
    summarizer = FakeSummarizer()
    small = CompactPolicy(ceiling=600, floor=200)

    def huge() -> str:
        """Is huge."""
        return "word " * 4000

    error = ContextOverflow("the context is full")
    extensions = [AutoCompact(small, summarizer, overhead=100)]
    stage = Stage(say("Hello."), call("huge"), Raise(error), tools=[huge], extensions=extensions, clock=ManualClock())
    assert stage.run("hi").ok
    result = stage.run("read it")
    assert (result.error, summarizer.asked) == (error, [])
    assert "no summary can bring the context under 600 tokens" in str(error.cause)
    assert (
        "takes 100, the 2 message(s) that have to stay take 5018, the largest of them (messages[4], tool) 5004"
        in str(error.cause)
    )
    assert_laws(stage)
