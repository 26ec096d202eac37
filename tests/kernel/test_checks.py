"""The two rules of every history, against an independent reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
)
from gotato_py.checks import EMPTY_ANSWER, PAIRING, RequestHistory, check_messages

from . import strategies as sts


def answer(*ids: str, ident: str = "m") -> AssistantMessage:
    """An answer with nothing but calls, with these provider ids."""
    return AssistantMessage("", [ToolCall(each, "t") for each in ids], id=ident)


def result(key: str = "", call_id: str = "", text: str = "r") -> ToolMessage:
    """A result."""
    return ToolMessage(ToolResult(call_id, "ok", text, key=key))


def batches(messages: Sequence[Message]) -> list[tuple[int, AssistantMessage, list[tuple[int, ToolMessage]]]]:
    """Every message with calls, and the results directly behind it."""
    found = []
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            behind = []
            for later in range(index + 1, len(messages)):
                each = messages[later]
                if not isinstance(each, ToolMessage):
                    break
                behind.append((later, each))
            found.append((index, message, behind))
    return found


def pair(message: AssistantMessage, behind: list[tuple[int, ToolMessage]]) -> tuple[list[int | None], list[int]]:
    """For each call the index of its result, and the results that have no call: keys first, the others in order."""
    answered: list[int | None] = [None] * len(message.tool_calls)
    loose: list[int] = []
    strays: list[int] = []
    claimed = 0
    for index, each in behind:
        key = each.result.key
        own = [at for at in range(len(answered)) if key.rpartition(":")[2] == str(at) and ":" in key]
        own = own if not message.id or key == f"{message.id}:{own[0] if own else None}" else []
        foreign = bool(key and message.id and not own)
        if foreign or claimed == len(answered) or (own and answered[own[0]] is not None):
            strays.append(index)
        else:
            claimed += 1
            if own:
                answered[own[0]] = index
            else:
                loose.append(index)
    for at, known in enumerate(answered):
        if known is None and loose:
            answered[at] = loose.pop(0)
    return answered, strays


def naive(messages: Sequence[Message], waiting: Sequence[WaitingCall]) -> list[tuple[int, int]]:
    """The rules read literally, over the whole list."""
    problems: list[tuple[int, int]] = []
    placed: set[int] = set()
    for index, called, behind in batches(messages):
        answered, strays = pair(called, behind)
        placed.update(at for at, _ in behind)
        problems += [(stray, PAIRING) for stray in strays]
        missing = [at for at, known in enumerate(answered) if known is None]
        at_tail = index + len(behind) == len(messages) - 1
        allowed = bool(missing) and at_tail and f"{called.id}:{missing[0]}" in {call.key for call in waiting}
        problems += [] if allowed else [(index, PAIRING)] * len(missing)
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage) and index not in placed:
            problems.append((index, PAIRING))
        if isinstance(message, AssistantMessage) and not message.tool_calls and not message.text.strip():
            problems.append((index, EMPTY_ANSWER))
    return sorted(problems)


@given(sts.histories(), st.lists(st.sampled_from(["m0:0", "m1:1", "same:0", ":0"]), max_size=2))
def test_the_checks_agree_with_the_rules_read_literally(messages: list[Message], keys: list[str]) -> None:
    """The incremental check finds exactly what a naive reading of the two rules finds."""
    waiting = [WaitingCall(key) for key in keys]
    assert sorted((each.index, each.rule) for each in check_messages(messages, waiting)) == naive(messages, waiting)


@given(sts.histories())
def test_the_request_order_is_the_call_order(messages: list[Message]) -> None:
    """In `ordered`, results stand in the order of their calls; nothing is lost or added, strays stay behind them."""
    expected: list[Message] = list(messages)
    for index, message, behind in batches(messages):
        answered, strays = pair(message, behind)
        if None not in answered or index + len(behind) + 1 < len(messages):
            order = [at for at in answered if at is not None] + strays
            expected[index + 1 : index + 1 + len(behind)] = [messages[at] for at in order]
    assert [id(each) for each in RequestHistory(messages).ordered] == [id(each) for each in expected]


@given(sts.histories())
def test_open_calls_are_those_of_the_tail_without_a_result(messages: list[Message]) -> None:
    """`open_calls` holds key and call of each call at the tail that has no result."""
    found = batches(messages)
    expected = []
    if found and found[-1][0] + len(found[-1][2]) == len(messages) - 1:
        _, message, behind = found[-1]
        answered, _ = pair(message, behind)
        expected = [
            (f"{message.id}:{at}", message.tool_calls[at]) for at, known in enumerate(answered) if known is None
        ]
    history = RequestHistory(messages)
    assert history.open_calls == expected
    assert history.settled == (not expected)


@given(sts.histories())
def test_checking_in_steps_is_checking_at_once(messages: list[Message]) -> None:
    """Adding one message at a time, and looking in between, changes nothing."""
    history = RequestHistory()
    for count, message in enumerate(messages, 1):
        history.add(message)
        assert len(history) == count
        assert sorted(map(repr, history.problems + history.tail_problems())) == sorted(
            map(repr, check_messages(messages[:count]))
        )
    assert history.ordered == RequestHistory(messages).ordered


@given(st.lists(st.integers(1, 4), max_size=4), st.randoms(), st.booleans())
def test_finish_order_is_legal(sizes: list[int], rng: Any, keyed: bool) -> None:
    """Results of a batch may come in any order; with keys they are sorted, and same ids everywhere do no harm."""
    messages: list[Message] = []
    expected: list[str] = []
    for turn, size in enumerate(sizes):
        messages.append(answer(*["same"] * size, ident=f"m{turn}"))
        order = list(range(size))
        rng.shuffle(order)
        messages += [result(f"m{turn}:{at}" if keyed else "", "same", f"{turn}.{at}") for at in order]
        expected += [f"{turn}.{at}" for at in (range(size) if keyed else order)]
    assert check_messages(messages) == []
    assert [each.text for each in RequestHistory(messages).ordered if isinstance(each, ToolMessage)] == expected


def test_a_view_taken_while_settled_stays() -> None:
    """What follows later leaves the messages of an earlier request where they were."""
    history = RequestHistory([UserMessage("u"), answer("a", "b"), result("m:1"), result("m:0")])
    before = list(history.ordered)
    for message in (answer("a", "b", ident="n"), result("n:1"), result("n:0"), UserMessage("v"), result()):
        history.add(message)
    assert history.ordered[: len(before)] == before


def test_keyless_results_take_the_calls_that_no_key_names() -> None:
    """A result without a key belongs to the first call left over, even when a key comes after it."""
    history = RequestHistory([answer("a", "b"), result(text="loose"), result("m:0", text="named")])
    assert [each.text for each in history.ordered] == ["", "named", "loose"]
    assert history.problems == []


def test_a_message_without_an_id_pairs_by_index() -> None:
    """A rewritten message that lost its id still gets its results, in call order."""
    history = RequestHistory([answer("a", "b", ident=""), result("old:1", text="1"), result("old:0", text="0")])
    assert [each.text for each in history.ordered] == ["", "0", "1"]
    assert history.problems == []


@pytest.mark.parametrize(
    ("messages", "index", "said"),
    [
        ([UserMessage("u"), result()], 1, "no message with calls"),
        ([AssistantMessage("t"), result()], 1, "no message with calls"),
        ([answer("a"), result("m:0"), UserMessage("u"), result("m:0")], 3, "no message with calls"),
        ([answer("a"), result("m:0"), result("m:0")], 2, "a second result"),
        ([answer("a"), result(), result()], 2, "a second result"),
        ([answer("a"), result("m:0"), result("x:0")], 2, "its key names no call"),
        ([answer("a"), UserMessage("u")], 0, "call 0 has no result"),
        ([answer("a", "b"), result("m:1")], 0, "call 0 has no result"),
        ([UserMessage("u"), answer("a")], 1, "call 0 has no result"),
    ],
)
def test_rule_one(messages: list[Message], index: int, said: str) -> None:
    """Each call has exactly one result, directly behind its message, and no result is without its call."""
    (problem,) = check_messages(messages)
    assert (problem.index, problem.rule) == (index, PAIRING)
    assert said in problem.text


@pytest.mark.parametrize(
    ("message", "empty"),
    [
        (AssistantMessage(), True),
        (AssistantMessage(" \n\t"), True),
        (AssistantMessage([ReasoningPart("long")]), True),
        (AssistantMessage([ReasoningPart("long"), TextPart("")]), True),
        (AssistantMessage("a"), False),
        (AssistantMessage([ImagePart(url="u")]), False),
        (AssistantMessage([JSONPart(None)]), False),
        (AssistantMessage([ReasoningPart("r"), TextPart("a")]), False),
    ],
)
def test_rule_two(message: AssistantMessage, empty: bool) -> None:
    """An answer without calls needs a part that is neither reasoning nor white space."""
    assert [each.rule for each in check_messages([UserMessage("u"), message])] == [EMPTY_ANSWER] * empty


def test_calls_make_an_answer() -> None:
    """An answer with nothing but calls, or reasoning and calls, is not empty."""
    said = AssistantMessage([ReasoningPart("r")], [ToolCall("a", "t")], id="m")
    assert check_messages([said, result("m:0")]) == []


def test_only_waiting_calls_may_be_open() -> None:
    """The tail may be open while its first open call is one that waits; those behind it may then be open too."""
    messages: list[Message] = [answer("a", "b", "c"), result("m:0")]
    assert check_messages(messages, [WaitingCall("m:1")]) == []
    assert check_messages(messages, [WaitingCall("m:2"), WaitingCall("m:1")]) == []
    assert [each.index for each in check_messages(messages, [WaitingCall("m:2")])] == [0, 0]
    assert [each.index for each in check_messages(messages, [WaitingCall("m:0")])] == [0, 0]
    assert len(check_messages([*messages, UserMessage("u")], [WaitingCall("m:1")])) == 2


def test_problems_come_in_order_and_quote_nothing() -> None:
    """Problems are sorted by message, and their text holds no content of it."""
    secret = "s3cret"
    said = AssistantMessage(secret, [ToolCall(secret, secret, secret)] * 2, id=secret)
    messages: list[Message] = [said, result("x:1", secret, secret), UserMessage(secret), result(secret, secret, secret)]
    problems = check_messages(messages)
    assert [each.index for each in problems] == [0, 0, 1, 3]
    assert secret not in repr(problems)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("text",), "messages must be a sequence"),
        (([UserMessage("u"), "text"],), r"messages\[1\] must be a message, not str"),
        (([], [1]), r"waiting\[0\] must be a WaitingCall, not int"),
        (([], 5), "waiting must be a sequence, not int"),
    ],
)
def test_bad_arguments(given: tuple[Any, ...], said: str) -> None:
    """What is no history is an InvalidArgument that names the argument."""
    with pytest.raises(InvalidArgument, match=said):
        check_messages(*given)
