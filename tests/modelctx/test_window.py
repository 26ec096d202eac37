"""Window: the newest messages that fit, from a place that seldom moves."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx import Window, cut_points, estimate_tokens, tail_start
from gotato_modelctx._context_notes import dropped_from
from gotato_modelctx._following import Followed, Following
from gotato_modelctx._request_order import in_request_order
from gotato_py import (
    Agent,
    AssistantMessage,
    ContextBuilder,
    InvalidArgument,
    Limits,
    MemoryTranscript,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    TurnView,
    UserMessage,
    check_messages,
    tool,
)
from gotato_testkit import ScriptedModel, call, say
from gotato_testkit import strategies as gst
from gotato_testkit.contracts import ContextBuilderContract

from ..effort import costly

BOUNDS = st.tuples(st.none() | st.integers(1, 20), st.none() | st.integers(1, 300)).filter(any)
KEEPS = st.sampled_from([0.01, 0.3, 0.5, 0.9, 1.0])


class TestOfMessages(ContextBuilderContract):
    """A window of messages keeps the promises of a context builder."""

    examples = 5

    def make(self) -> ContextBuilder:
        return Window(4)


class TestOfTokens(ContextBuilderContract):
    """A window of tokens does too; one that is shared by all of the histories."""

    examples = 5
    window = Window(max_tokens=60, keep=0.8)

    def make(self) -> ContextBuilder:
        return self.window


def view_of(messages: Sequence[Message], transcript: MemoryTranscript | None = None) -> TurnView:
    """A view of these messages."""
    return TurnView("s", messages, MemoryTranscript() if transcript is None else transcript)


def settled_lengths(messages: Sequence[Message]) -> list[int]:
    """The lengths at which no call is open."""
    return [length for length in range(1, len(messages) + 1) if not check_messages(messages[:length])]


def turns(count: int) -> list[Message]:
    """One user message, and `count` answers with one call and its result each."""
    made: list[Message] = [UserMessage("task", id="u")]
    for number in range(count):
        made.append(AssistantMessage("", [ToolCall("c", "t")], id=f"a{number}"))
        made.append(ToolMessage(ToolResult("c", "ok", "r", key=f"a{number}:0"), id=f"r{number}"))
    return made


@costly(4)
@given(gst.histories(min_turns=1, max_turns=5), BOUNDS, KEEPS)
def test_whatever_the_bounds_the_context_can_be_sent(
    messages: list[Message], bounds: tuple[int | None, int | None], keep: float
) -> None:
    """C46: pairs are kept, a user message comes first, what the model has not answered is there, in its order."""
    ordered = in_request_order(messages)
    window = Window(*bounds, keep=keep)
    transcript = MemoryTranscript()
    for length in settled_lengths(ordered):
        shown = ordered[:length]
        kept = window.build(view_of(shown, transcript)).messages
        assert check_messages(kept) == []
        assert isinstance(kept[0], UserMessage)
        start = length - len(kept) + 1
        assert [id(each) for each in kept[1:]] == [id(each) for each in shown[start:]]
        assert start - 1 <= tail_start(shown) or start <= tail_start(shown)
        assert kept[0] is next(each for each in reversed(shown[:start]) if isinstance(each, UserMessage))
        fits = len(kept) <= (bounds[0] or length) and estimate_tokens(kept) <= (bounds[1] or 10**9)
        assert fits or start in (tail_start(shown), tail_start(shown) + 1)


@costly(4)
@given(gst.histories(min_turns=1, max_turns=5), BOUNDS, KEEPS)
def test_where_it_starts_follows_from_the_history_alone(
    messages: list[Message], bounds: tuple[int | None, int | None], keep: float
) -> None:
    """A window that has followed the history and a new one, as after a restart, show the same; so does one that was
    asked at some of the turns only."""
    ordered = in_request_order(messages)
    following, seldom = Window(*bounds, keep=keep), Window(*bounds, keep=keep)
    transcript = MemoryTranscript()
    for count, length in enumerate(settled_lengths(ordered)):
        shown = ordered[:length]
        kept = following.build(view_of(shown, transcript)).messages
        assert list(kept) == list(Window(*bounds, keep=keep).build(view_of(shown)).messages)
        if count % 3 == 0:
            assert list(kept) == list(seldom.build(view_of(shown, transcript)).messages)


@costly(4)
@given(gst.histories(min_turns=1, max_turns=5), BOUNDS, KEEPS)
def test_the_prefix_moves_only_when_the_bounds_are_exceeded(
    messages: list[Message], bounds: tuple[int | None, int | None], keep: float
) -> None:
    """Between two moves each context begins with the one before it; it moves only where that was too much."""
    ordered = in_request_order(messages)
    window = Window(*bounds, keep=keep)
    transcript = MemoryTranscript()
    last: list[Message] = []
    last_length = 0
    for length in settled_lengths(ordered):
        kept = list(window.build(view_of(ordered[:length], transcript)).messages)
        longer = [*last, *ordered[last_length:length]]
        if [id(each) for each in kept] != [id(each) for each in longer]:
            assert len(longer) > (bounds[0] or 10**9) or estimate_tokens(longer) > (bounds[1] or 10**9)
        last, last_length = kept, length


def test_it_moves_in_large_steps() -> None:
    """Of 60 turns under a bound of 21 messages, 8 move the start; the other requests only append."""
    model = ScriptedModel([call("look")] * 60 + [say("Done")])
    answers = iter(range(100))

    @tool
    def look() -> str:
        """Looks."""
        return str(next(answers))

    agent = Agent(model, tools=[look], context_builder=Window(21), limits=Limits(max_turns=None))
    agent.run("task")
    starts = [request.messages[1].id for request in model.requests[1:]]
    assert len(set(starts)) == 1 + 8
    assert {request.messages[0].text for request in model.requests} == {"task"}
    assert max(len(request.messages) for request in model.requests) == 21


def test_all_is_shown_as_long_as_it_fits() -> None:
    """`view.messages` itself is given, which costs the kernel nothing, and nothing is noted."""
    shown = view_of(turns(3))
    context = Window(7).build(shown)
    assert context.messages is shown.messages
    assert dict(context.metadata) == {}
    assert Window(7).build(view_of([])).messages == []


def test_what_is_left_out_is_noted() -> None:
    """How many messages, about how many tokens, and why."""
    messages = turns(10)
    context = Window(11).build(view_of(messages))
    (dropped,) = dropped_from(context)
    assert dropped.by == "Window(max_messages=11, keep=0.5)"
    assert dropped.messages == len(messages) - len(context.messages)
    assert dropped.tokens == estimate_tokens(messages) - estimate_tokens(context.messages)


def test_what_is_not_answered_stays_even_if_it_is_too_much() -> None:
    """A batch larger than the bounds is shown whole, behind its user message, and that is noted."""
    calls = [ToolCall(str(number), "t") for number in range(5)]
    messages: list[Message] = [
        UserMessage("old"),
        AssistantMessage("ok"),
        UserMessage("task"),
        AssistantMessage("", calls),
    ]
    messages += [ToolMessage(ToolResult(each.id, "ok", "r" * 100)) for each in calls]
    context = Window(2, 10).build(view_of([*messages, UserMessage("steer")]))
    assert list(context.messages) == [*messages[2:], UserMessage("steer")]
    assert "over its bounds" in dropped_from(context)[-1].reason


def test_a_history_that_begins_with_an_answer_is_cut_too() -> None:
    """Where no user message is there to be shown first, the answer is first."""
    messages = turns(5)[1:]
    assert list(Window(3).build(view_of(messages)).messages) == messages[-2:]
    stray: list[Message] = [ToolMessage(ToolResult("c", "ok", "r"))] * 2
    assert list(Window(1).build(view_of(stray)).messages) == stray


def test_each_message_is_counted_once() -> None:
    """Work per turn does not grow with the history: what was counted is not counted again."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return 1

    messages = [UserMessage(str(number)) for number in range(50)]
    window, transcript = Window(max_tokens=40, counter=counter), MemoryTranscript()
    for length in range(1, 51):
        window.build(view_of(messages[:length], transcript))
    assert counted == [message.text for message in messages]


def test_another_history_is_read_anew() -> None:
    """A history that does not go on from what is known, compacted, branched or swapped, is counted from its start."""
    messages, transcript, window = turns(6), MemoryTranscript(), Window(5)
    other = turns(6)
    for shown in (messages, messages[:7], messages[:1], other, messages[4:], [], messages):
        fresh = Window(5).build(view_of(shown)).messages
        assert list(window.build(view_of(shown, transcript)).messages) == list(fresh)


def test_one_window_serves_many_threads() -> None:
    """Eight threads ask one window about forks of one history, all under one transcript: each sees its own."""
    window, shared = Window(9), turns(3)
    transcript = MemoryTranscript()
    wrong: list[int] = []

    def work(number: int) -> None:
        own = [*shared, *[UserMessage(f"{number} {at}", id=f"{number} {at}") for at in range(40)]]
        for length in range(len(shared), len(own) + 1):
            kept = window.build(view_of(own[:length], transcript)).messages
            if list(kept) != list(Window(9).build(view_of(own[:length])).messages):
                wrong.append(number)

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Counter:
    """A fold that counts."""

    def __init__(self) -> None:
        self.seen = 0

    def add(self, message: Message) -> None:
        """Counts."""
        self.seen += 1


def test_a_fold_in_hand_is_nobody_elses() -> None:
    """While one has the fold of a history, another reads it anew; the oldest of too many is forgotten."""
    following, owner, messages = Following(Counter), object(), turns(2)
    first = following.take(owner, messages)
    second = following.take(owner, messages)
    assert (first is second, first.fold.seen, second.fold.seen) == (False, 5, 5)
    following.give_back(owner, first)
    assert following.take(owner, messages) is first
    following.give_back(owner, first)
    owners = [object() for _ in range(256)]
    for each in owners:
        following.give_back(each, Followed(Counter()))
    assert following.take(owner, messages) is not first


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (Window, "max_messages or max_tokens"),
        (lambda: Window(0), "max_messages"),
        (lambda: Window(True), "max_messages"),
        (lambda: Window(max_tokens=-1), "max_tokens"),
        (lambda: Window(1.5), "max_messages"),  # type: ignore[arg-type]  # on purpose
        (lambda: Window(1, keep=0), "keep"),
        (lambda: Window(1, keep=1.1), "keep"),
        (lambda: Window(1, keep=float("nan")), "keep"),
        (lambda: Window(1, keep="half"), "keep"),  # type: ignore[arg-type]  # on purpose
        (lambda: Window(1, counter=4), "counter"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_wrong_bounds_are_refused(make: object, named: str) -> None:
    """When the window is made, and the error names the argument."""
    with pytest.raises(InvalidArgument, match=named):
        make()  # type: ignore[operator]  # one of the callables above


def test_cut_points_agree_with_the_window() -> None:
    """Wherever the bound stands, the part that is kept begins at one of the cut points of the history."""
    messages = turns(12)
    for bound in range(1, 30):
        kept = list(Window(bound).build(view_of(messages)).messages)
        if len(kept) < len(messages):
            assert len(messages) - len(kept) + 1 in cut_points(messages)


@costly(3)
@given(gst.histories(max_turns=4))
def test_results_are_put_in_the_order_of_their_calls(messages: list[Message]) -> None:
    """A history in finish order becomes one in call order, as a request shows it; nothing is lost."""
    ordered = in_request_order(messages)
    assert sorted(map(id, ordered)) == sorted(map(id, messages))
    assert check_messages(ordered) == []
    keys = [message.result.key for message in ordered if isinstance(message, ToolMessage) and message.result.key]
    assert keys == sorted(keys, key=lambda key: (int(key[1 : key.index(":")]), key))
