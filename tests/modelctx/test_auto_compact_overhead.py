"""`AutoCompact` where what is large is not the messages: tools, and sections, as far as usage tells of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx._load import Load
from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.compacting import compact
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.tokens import estimate_tokens, message_tokens
from gotato_py import (
    Agent,
    AssistantMessage,
    ContextOverflow,
    ExtensionFailed,
    MemoryTranscript,
    RunStatus,
    TurnView,
    Usage,
    UserMessage,
)
from gotato_testkit import ManualClock, Raise, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage
from .fake_summarizers import FakeSummarizer
from .metered import Metered

SMALL = CompactPolicy(ceiling=300, floor=100)
QUESTION = "q" * 184  # 50 tokens as a message
ANSWER = "a" * 64  # 20 tokens


def talk(*reported: int) -> MemoryTranscript:
    """Questions of 50 tokens and answers of 20; of each, what its request is reported to have taken (0: nothing)."""
    messages: list[Any] = []
    for number, tokens in enumerate(reported):
        usage = Usage(tokens, 20 if tokens else 0)
        messages += [UserMessage(QUESTION, id=f"u{number}"), AssistantMessage(ANSWER, usage=usage, id=f"a{number}")]
    return MemoryTranscript(messages)


def view_of(transcript: Any, *, turn: int = 1, system: str = "") -> TurnView:
    """A view made by hand."""
    return TurnView(system, transcript.messages, transcript, "r", turn)


class Watch:
    """Keeps what extensions have failed of."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def observe(self, event: object) -> None:
        """Looks at one event."""
        if isinstance(event, ExtensionFailed) and event.error is not None:
            self.told.append(event.error.message)


def test_tools_that_are_too_large_are_told_and_nothing_is_paid() -> None:
    """Where tools alone are over the ceiling, no summary is asked for, and each attempt says what is how large."""
    clock, summarizer, watch, model = ManualClock(), FakeSummarizer(), Watch(), Metered(500, ANSWER)
    agent = Agent(model, clock=clock, extensions=[AutoCompact(SMALL, summarizer), watch])
    for _ in range(10):
        assert agent.run(QUESTION).ok
        clock.advance(61.0)
    assert summarizer.asked == []
    assert watch.told == [
        "ContextOverflow: no summary can bring the context under 300 tokens: what is sent beside these messages "
        "(instructions, sections, tools, a new message) takes 550, the 1 message(s) that have to stay take 20, the "
        f"largest of them (messages[{last}], assistant) 20"
        for last in range(1, 19, 2)
    ]


def test_the_last_token_decides() -> None:
    """Where tools and what stays are just within the ceiling, a summary is asked for; with one token more, none is."""
    summarizer = FakeSummarizer()
    AutoCompact(SMALL, summarizer).before_turn(view_of(talk(280 + 50, 280 + 120)))
    assert len(summarizer.asked) == 1
    with pytest.raises(ContextOverflow) as raised:
        AutoCompact(SMALL, summarizer).before_turn(view_of(talk(281 + 50, 281 + 120)))
    assert raised.value.details == {"ceiling": 300, "overhead": 281, "kept": 20, "largest": 20}
    assert len(summarizer.asked) == 1


@pytest.mark.parametrize(
    ("system", "overhead", "beside", "told"),
    [("", 0, 400, 400), ("", 350, 400, 400), ("", 450, 400, 450), ("s" * 400, 350, 400, 450), ("s" * 1800, 0, 9, 450)],
    ids=["measured alone", "measured more", "given more", "given with instructions", "instructions alone"],
)
def test_the_larger_one_counts(system: str, overhead: int, beside: int, told: int) -> None:
    """What is given counts together with the instructions, and usage holds both: the larger of the two is the size."""
    transcript = talk(beside + 50, beside + 400)
    with pytest.raises(ContextOverflow) as raised:
        AutoCompact(SMALL, FakeSummarizer(), overhead=overhead).before_turn(view_of(transcript, system=system))
    assert raised.value.details["overhead"] == told


def test_before_an_answer_only_what_is_given_counts() -> None:
    """Tools are not seen until usage tells of them; with `overhead` they are."""
    for overhead, failures in ((0, 0), (251, 1)):
        watch, model = Watch(), Metered(251)
        auto = AutoCompact(SMALL, FakeSummarizer(), overhead=overhead)
        assert Agent(model, extensions=[auto, watch]).run(QUESTION).ok
        assert (len(watch.told), model.sizes) == (failures, [301])


def test_down_to_the_floor_with_tools() -> None:
    """What usage tells of tools is part of what the floor is for: five questions and answers fit in the rest."""
    transcript = talk(*[150 + 50 + 70 * number for number in range(10)])  # 150 beside the messages
    policy = CompactPolicy(ceiling=800, floor=500)
    AutoCompact(policy, FakeSummarizer()).before_turn(view_of(transcript))
    (made,) = transcript.compactions
    assert (made.metadata["kept"], made.tokens_after) == (10, 350 + message_tokens(made.summary))


def test_a_refused_request_is_compacted_all_the_same() -> None:
    """The provider took requests with these tools: when it refuses a longer one, a summary is worth its price."""
    summarizer = FakeSummarizer()
    first, second = say(ANSWER, usage=Usage(550, 20)), say(ANSWER, usage=Usage(620, 20))
    stage = Stage(first, second, Raise(ContextOverflow("full")), say("Ok."), clock=ManualClock(),
                  extensions=[AutoCompact(SMALL, summarizer)])  # fmt: skip
    assert [stage.run(QUESTION).status for _ in range(3)] == [RunStatus.COMPLETED] * 3
    assert (len(summarizer.asked), len(stage.asked)) == (1, 4)
    assert stage.asked[-1][0] == "U Summary 1."
    assert_laws(stage)


def test_a_summarizer_that_overflows_has_had_its_attempt() -> None:
    """The overflow of the summary's own request is a failure: there is no second attempt for the model call."""
    summarizer, transcript = FakeSummarizer(ContextOverflow("too much to summarise")), talk(250, 320)
    auto, error = AutoCompact(SMALL, summarizer), ContextOverflow("full")
    with pytest.raises(ContextOverflow, match="too much to summarise"):
        auto.before_turn(view_of(transcript))
    assert auto.on_overflow(view_of(transcript), error) is False
    assert (len(summarizer.asked), str(error.cause)) == (1, "too much to summarise")


class TestMeasured:
    """What usage tells of a request beside its messages."""

    def beside(self, load: Load, transcript: Any) -> int:
        """The tokens that are measured now."""
        load.follow(transcript.messages, transcript.compactions, message_tokens)
        return load.beside

    @pytest.mark.parametrize(
        ("reported", "beside"),
        [
            ((), 0),
            ((0, 0), 0),
            ((150,), 100),
            ((150, 220), 100),
            ((150, 500), 100),  # the messages take more than was estimated
            ((0, 500), 380),
            ((150, 180), 60),  # tools were taken away
            ((150, 30), 0),  # a builder showed a part of them
        ],
    )
    def test_the_least_difference(self, reported: tuple[int, ...], beside: int) -> None:
        """The reported tokens of a request without the estimate of its messages; never less than 0."""
        assert self.beside(Load(), talk(*reported)) == beside

    def test_behind_a_compaction(self) -> None:
        """It is the same behind a compaction, until an answer tells of it anew; then it may also be more."""
        transcript, load = talk(150, 220), Load()
        assert self.beside(load, transcript) == 100
        compact(transcript, FakeSummarizer(), keep_tokens=20)
        assert self.beside(load, transcript) == 100
        assert load.tokens(load.beside) == 100 + estimate_tokens(transcript.messages)
        before = estimate_tokens(transcript.messages)
        transcript.append(AssistantMessage(ANSWER, usage=Usage(before + 170, 20), id="new"))
        assert self.beside(load, transcript) == 170
        assert self.beside(Load(), transcript) == 170

    def test_an_answer_from_before_a_compaction(self) -> None:
        """Seen for the first time, the usage of a kept answer tells nothing: its messages are gone."""
        transcript = talk(150, 220)
        compact(transcript, FakeSummarizer(), keep_tokens=20)
        assert self.beside(Load(), transcript) == 0


@given(
    beside=st.integers(0, 700),
    ceiling=st.integers(100, 600),
    questions=st.lists(st.integers(1, 900), min_size=2, max_size=12),
    pause=st.sampled_from([0.0, 60.0]),
)
def test_no_summary_is_paid_in_vain(beside: int, ceiling: int, questions: list[int], pause: float) -> None:
    """Whatever the tools take: once an answer has told of them, a summary is asked for only if what stays fits without
    it, and a request is over the ceiling only if an attempt has failed or was not due."""
    summarizer, model, watch = FakeSummarizer(), Metered(beside, ANSWER), Watch()
    auto = AutoCompact(CompactPolicy(ceiling, ceiling // 2), summarizer, pause=pause)
    agent = Agent(model, clock=ManualClock(), extensions=[auto, watch])
    agent.run("q")
    for length in questions:
        paid, failed = len(summarizer.asked), len(watch.told)
        messages = agent.transcript.messages
        coming = UserMessage("q" * length)
        stays = beside + message_tokens(coming) + message_tokens(messages[-1])
        whole = beside + message_tokens(coming) + estimate_tokens(messages)
        assert agent.run(coming).ok
        if len(summarizer.asked) > paid:
            assert whole > ceiling >= stays
        elif pause == 0.0:
            assert (len(watch.told) > failed) == (whole > ceiling)
