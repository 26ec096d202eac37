"""`AutoCompact`: when it compacts, how far, how often it tries, and what it costs a turn."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_modelctx._load import Load
from gotato_modelctx._per_transcript import MOST, PerTranscript
from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.compacting import compact
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.summarizers import TruncateSummarizer
from gotato_modelctx.tokens import estimate_tokens, message_tokens
from gotato_py import (
    Agent,
    AssistantMessage,
    Compaction,
    ContextOverflow,
    ExtensionFailed,
    InvalidArgument,
    MemoryTranscript,
    Message,
    TurnView,
    Usage,
    UserMessage,
)
from gotato_session import Session
from gotato_testkit import EchoModel, ManualClock, Raise, ScriptedModel, Step, call, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage
from .fake_summarizers import FakeSummarizer, answer, user
from .metered import Metered

LONG = "word " * 50
SMALL = CompactPolicy(ceiling=300, floor=100)


def view_of(transcript: Any, *, turn: int = 1, run: str = "r", system: str = "") -> TurnView:
    """A view made by hand."""
    return TurnView(system, transcript.messages, transcript, run, turn)


def talk(pairs: int, usage: Usage | None = None) -> MemoryTranscript:
    """A conversation of so many questions and answers, some 115 tokens a pair."""
    messages: list[Message] = []
    for number in range(pairs):
        messages += [user(f"u{number}"), answer(f"a{number}")]
    if usage is not None:
        last = messages.pop()
        messages.append(AssistantMessage(last.parts, usage=usage, id=last.id))
    return MemoryTranscript(messages)


def test_a_context_stays_within_its_policy() -> None:
    """However long the conversation goes on, no request is over the ceiling, and every message is in it or covered."""
    model = EchoModel()
    agent = Agent(model, instructions="Be brief.", extensions=[AutoCompact(SMALL, TruncateSummarizer(100))])
    sizes = []
    for number in range(40):
        agent.run(f"question {number} {LONG}")
        sizes.append(estimate_tokens(agent.transcript.messages))
    assert max(sizes) < 500
    assert 10 <= len(agent.transcript.compactions) <= 40  # type: ignore[attr-defined]


def test_down_to_the_floor() -> None:
    """What is over the ceiling is compacted down to the floor: instructions, overhead, summary and all."""
    transcript = talk(10)
    policy = CompactPolicy(ceiling=1000, floor=600)
    AutoCompact(policy, TruncateSummarizer(100), overhead=50).before_turn(view_of(transcript, system="Be brief. " * 10))
    (made,) = transcript.compactions
    assert made.reason == "ceiling"
    assert 400 < made.tokens_after + 50 + 25 <= 600


def test_under_the_ceiling_nothing_happens() -> None:
    """At the ceiling itself nothing is compacted; one token more, and it is."""
    transcript, summarizer = talk(3), FakeSummarizer()
    size = estimate_tokens(transcript.messages)
    AutoCompact(CompactPolicy(size, 100), summarizer).before_turn(view_of(transcript))
    assert summarizer.asked == []
    AutoCompact(CompactPolicy(size - 1, 100), summarizer).before_turn(view_of(transcript))
    assert len(summarizer.asked) == 1


@pytest.mark.parametrize(
    ("system", "overhead"), [("word " * 100, 0), ("", 125)], ids=["instructions", "tools and the like"]
)
def test_everything_that_is_sent_counts(system: str, overhead: int) -> None:
    """Instructions, and what the caller says of tools, count beside the messages."""
    transcript, summarizer = talk(2), FakeSummarizer()
    AutoCompact(SMALL, summarizer, overhead=overhead).before_turn(view_of(transcript, system=system))
    assert len(summarizer.asked) == 1
    AutoCompact(SMALL, summarizer).before_turn(view_of(talk(2)))
    assert len(summarizer.asked) == 1


def test_usage_and_what_came_since() -> None:
    """The usage of the last answer counts with an estimate of what came behind it; nothing is estimated before it."""
    summarizer = FakeSummarizer()
    transcript = talk(3, Usage(180, 60))  # some 340 by an estimate
    AutoCompact(SMALL, summarizer).before_turn(view_of(transcript))
    assert summarizer.asked == []
    transcript.append(user("more"))
    AutoCompact(SMALL, summarizer).before_turn(view_of(transcript, turn=2))
    assert len(summarizer.asked) == 1


def test_usage_far_above_the_estimate_keeps_less() -> None:
    """Where there are many more real tokens than estimated ones, the estimate of what may stay is scaled."""
    policy = CompactPolicy(ceiling=5000, floor=2500)
    asked, said = UserMessage("Hi.", id="u"), AssistantMessage("Hi.", usage=Usage(50, 10), id="a")  # 5 by an estimate
    transcript = MemoryTranscript([asked, said, *talk(10, Usage(11_000, 0)).messages])
    AutoCompact(policy, FakeSummarizer()).before_turn(view_of(transcript))
    assert 100 < estimate_tokens(transcript.messages) < 300


def test_before_a_run_its_message_counts() -> None:
    """Room is made for the message of a run before it is committed, and its own tokens are part of what has to fit."""
    summarizer = FakeSummarizer()
    stage = Stage(say(LONG), say(LONG), say("Ok."), extensions=[AutoCompact(SMALL, summarizer)], clock=ManualClock())
    assert stage.run("hi").ok
    assert stage.run("hi").ok
    assert stage.run(f"third {LONG}{LONG}{LONG}").text == "Ok."
    (asked,) = summarizer.asked
    assert all("third" not in message.text for message in asked)
    assert stage.asked[-1][0] == "U Summary 1."
    assert_laws(stage)


def test_within_a_run() -> None:
    """A run whose tools fill the context is compacted between its turns, and its question stays or is covered."""

    def work() -> str:
        """Works."""
        return LONG * 2

    summarizer = FakeSummarizer()
    stage = Stage(*[call("work")] * 8, say("Done."), tools=[work], extensions=[AutoCompact(SMALL, summarizer)],
                  clock=ManualClock())  # fmt: skip
    assert stage.run("work a lot").text == "Done."
    assert 2 <= len(summarizer.asked) <= 8
    assert max(estimate_tokens(request) for request in stage.model.requests) < 500
    assert_laws(stage)


def test_one_attempt_for_a_model_call() -> None:
    """What fails before a run is not tried again before its first turn, nor at an overflow; the next turn is anew."""
    summarizer, transcript = FakeSummarizer(*[ValueError("no")] * 9), talk(4)
    auto = AutoCompact(SMALL, summarizer)
    with pytest.raises(ValueError, match="no"):
        auto.before_run(view_of(transcript, turn=0))
    auto.before_turn(view_of(transcript))
    error = ContextOverflow("full")
    assert auto.on_overflow(view_of(transcript), error) is False
    assert isinstance(error.cause, ValueError)
    assert len(summarizer.asked) == 1
    with pytest.raises(ValueError, match="no"):
        auto.before_turn(view_of(transcript, turn=2))
    with pytest.raises(ValueError, match="no"):
        auto.before_turn(view_of(transcript, run="another"))


def test_an_overflow_after_a_compaction() -> None:
    """A request that was compacted and is refused all the same is not compacted twice; the error says what is in it."""
    transcript, auto = talk(4), AutoCompact(SMALL, FakeSummarizer())
    auto.before_turn(view_of(transcript))
    error = ContextOverflow("full")
    assert auto.on_overflow(view_of(transcript), error) is False
    assert str(error.cause) == (
        "the request is too large: it was compacted already; lower the ceiling of the policy; its messages take about "
        "75 tokens, instructions and tools 0"
    )


class TestBreaker:
    """After attempts that were of no use it stops trying for a while."""

    def test_it_pauses_and_tries_again(self) -> None:
        """Three failures in a row are the last for a minute; then it tries once a minute, until it works."""
        clock = ManualClock()
        summarizer = FakeSummarizer(*[ValueError("no")] * 4)
        model = ScriptedModel([say("Ok.") for _ in range(20)])
        failed: list[Any] = []

        class Watch:
            def observe(self, event: object) -> None:
                if isinstance(event, ExtensionFailed):
                    failed.append(clock.monotonic())

        agent = Agent(model, transcript=talk(4), clock=clock, extensions=[AutoCompact(SMALL, summarizer), Watch()])
        for _ in range(12):
            agent.run("more")
            clock.advance(10.0)
        assert failed == [0.0, 10.0, 20.0, 80.0]
        clock.advance(60.0)
        agent.run("more")
        assert len(summarizer.asked) == 5
        assert len(agent.transcript.compactions) == 1  # type: ignore[attr-defined]

    def test_under_the_ceiling_the_row_ends(self) -> None:
        """A context that was seen under its ceiling starts the count anew."""
        summarizer, transcript = FakeSummarizer(*[ValueError("no")] * 9), talk(4)
        auto = AutoCompact(SMALL, summarizer, max_attempts=1)

        def look(turn: int) -> None:
            try:
                auto.before_turn(view_of(transcript, turn=turn))
            except ValueError:
                pass

        look(1)
        look(2)
        assert len(summarizer.asked) == 1
        compact(transcript, FakeSummarizer(), keep_tokens=100)
        look(3)
        for name in "abcdef":
            transcript.append(user(name))
        look(4)
        assert len(summarizer.asked) == 2

    def test_compactions_of_no_use(self) -> None:
        """Compacting at each turn without coming under the ceiling ends as failures do: the summaries are too long."""
        clock, summarizer, model = ManualClock(), FakeSummarizer(*["sum " * 60] * 12), Metered(200)
        agent = Agent(model, clock=clock, extensions=[AutoCompact(SMALL, summarizer)])
        for _ in range(12):
            agent.run(LONG)
        assert len(summarizer.asked) == 3
        assert min(model.sizes[1:]) > SMALL.ceiling

    def test_an_overflow_is_always_tried(self) -> None:
        """A refused request is the run's last chance: it is compacted although nothing was tried at the turn before."""
        summarizer = FakeSummarizer(ValueError("no"))
        extensions = [AutoCompact(SMALL, summarizer, max_attempts=1, pause=1e9)]
        steps: list[Step] = [say("One."), Raise(ContextOverflow("full")), say("Ok.")]
        stage = Stage(*steps, transcript=talk(4), extensions=extensions, clock=ManualClock())
        assert stage.run("first").ok
        assert stage.run("second").text == "Ok."
        assert len(summarizer.asked) == 2
        assert_laws(stage)

    def test_a_cancelled_run_is_no_failure(self) -> None:
        """What ended with the run counts for nothing."""
        stages: list[Stage] = []

        def cancel() -> str:
            stages[0].cancel()
            return "Late."

        summarizer = FakeSummarizer(cancel, cancel, "Good.")
        stage = Stage(say("Ok."), transcript=talk(4), extensions=[AutoCompact(SMALL, summarizer, max_attempts=1)])
        stages.append(stage)
        assert [stage.run("more").status.value for _ in range(3)] == ["cancelled", "cancelled", "completed"]
        assert_laws(stage)


class TestLoad:
    """How full a context is."""

    def follow(self, load: Load, transcript: Any) -> int:
        """The tokens, beside 10 that every request takes."""
        load.follow(transcript.messages, transcript.compactions, message_tokens)
        return load.tokens(10)

    def test_each_message_is_looked_at_once(self) -> None:
        """The work of a turn does not grow with the history."""
        looked: list[str] = []

        def measure(message: Message) -> int:
            looked.append(message.id)
            return 1

        transcript, auto = talk(2), AutoCompact(CompactPolicy(10**9, 0), FakeSummarizer(), measure=measure)
        for turn in range(1, 50):
            auto.before_turn(view_of(transcript, turn=turn))
            transcript.append(user(f"x{turn}"))
        assert len(looked) == len(set(looked)) == 4 + 48

    def test_usage_behind_a_compaction(self) -> None:
        """An answer that is younger than the compaction counts again."""
        transcript, load = talk(2, Usage(500, 5)), Load()
        assert self.follow(load, transcript) == 505
        compact(transcript, FakeSummarizer(), keep_tokens=80)
        assert self.follow(load, transcript) == 10 + estimate_tokens(transcript.messages)
        transcript.append(AssistantMessage("hi", usage=Usage(70, 7), id="new"))
        transcript.append(UserMessage("go on", id="go"))
        assert self.follow(load, transcript) == 77 + 6
        assert self.follow(Load(), transcript) == 77 + 6

    def test_a_compaction_of_somebody_else(self) -> None:
        """Where a compaction does not say what it kept, no usage counts that is there when it is first seen."""
        transcript, load = talk(3, Usage(500, 5)), Load()
        transcript.replace(Compaction(UserMessage("Short."), "a0"))
        assert self.follow(load, transcript) == 10 + estimate_tokens(transcript.messages)
        transcript.append(AssistantMessage("hi", usage=Usage(70, 7), id="new"))
        assert self.follow(load, transcript) == 77

    def test_a_branch_from_before_a_compaction(self) -> None:
        """Where the context does not begin with a summary, all of its usage counts."""
        session = Session()
        for message in talk(3, Usage(500, 5)).messages:
            session.append(message)
        compact(session, FakeSummarizer(), keep_tokens=0)
        others = session.compactions
        session.branch("a2")
        for compactions in (session.compactions, others):
            load = Load()
            load.follow(session.messages, compactions, message_tokens)
            assert load.tokens(0) == 505

    def test_a_shared_one(self) -> None:
        """One AutoCompact keeps the contexts of several agents apart."""
        summarizer = FakeSummarizer()
        auto = AutoCompact(SMALL, summarizer)
        agents = [Agent(ScriptedModel([say(LONG)] * 9), extensions=[auto]) for _ in range(3)]
        for _ in range(2):
            for agent in agents:
                agent.run(LONG)
        assert summarizer.asked == []
        for agent in agents:
            agent.run(LONG)
        assert [len(agent.transcript.compactions) for agent in agents] == [1, 1, 1]  # type: ignore[attr-defined]

    def test_what_is_remembered(self) -> None:
        """A transcript that can be is not kept alive; of the others only the last are."""
        known: PerTranscript[list[int]] = PerTranscript(list)
        session, memory = Session(), MemoryTranscript()
        known.of(session).append(1)
        known.of(memory).append(2)
        assert (known.of(session), known.of(memory)) == ([1], [2])
        for _ in range(MOST):
            known.of(Session())
        assert known.of(memory) == [2]
        others = [MemoryTranscript() for _ in range(MOST + 1)]
        for other in others:
            known.of(other).append(3)
        assert known.of(memory) == []
        assert len(known._known) <= MOST


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": (300, 100)}, "policy must be a CompactPolicy, not tuple"),
        ({"summarizer": "short"}, "summarizer must be an object that has a method summarize"),
        ({"overhead": -1}, "overhead must be an int"),
        ({"max_attempts": 0}, "max_attempts must be an int of at least 1"),
        ({"pause": -1}, "pause must be a number of seconds"),
        ({"pause": float("nan")}, "pause must be a number of seconds"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str) -> None:
    """What cannot be is refused by name, when it is made."""
    given: dict[str, Any] = {"policy": SMALL, "summarizer": FakeSummarizer(), **options}
    with pytest.raises(InvalidArgument, match=said):
        AutoCompact(given.pop("policy"), given.pop("summarizer"), **given)


@pytest.mark.parametrize("values", [(100, 100), (100, 200), (100, -1), (1.5, 1), (100, True), ("100", 1)])
def test_bad_policies(values: Any) -> None:
    """A floor is below its ceiling, and both are numbers of tokens."""
    with pytest.raises(InvalidArgument, match="0 <= floor < ceiling"):
        CompactPolicy(*values)


def test_a_policy_of_a_window() -> None:
    """A policy may be given as shares of a model's window."""
    assert CompactPolicy.of_window(200_000) == CompactPolicy(160_000, 80_000)
    assert CompactPolicy.of_window(1000, ceiling=0.5, floor=0.1) == CompactPolicy(500, 100)
    with pytest.raises(InvalidArgument, match="window must be an int"):
        CompactPolicy.of_window(0)
    with pytest.raises(InvalidArgument, match="are shares"):
        CompactPolicy.of_window(1000, ceiling=80, floor=40)
    assert repr(AutoCompact(SMALL, TruncateSummarizer(9))) == (
        "AutoCompact(CompactPolicy(ceiling=300, floor=100), TruncateSummarizer(9))"
    )
