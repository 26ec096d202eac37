"""Histories: those that keep the rules, those that are open at the tail, and those near the rules on either side.

Each is assembled from a list of turns, and a turn from a list of rounds, so that shrinking can leave any of them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    Message,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    UserMessage,
    WaitingCall,
)

from .data import json_objects, texts, visible_texts
from .messages import parts, usages

_ENDS = (StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.MAX_TOKENS, StopReason.CANCELLED, StopReason.ERROR)
_ANSWERED = [each for each in ToolResultStatus if each is not ToolResultStatus.PENDING]


@dataclass(frozen=True, slots=True)
class OpenHistory:
    """A history whose last answer has calls without a result, as a crash or a waiting run leaves it.

    `open` holds the keys of those calls in their order, `started` those of the calls that were started, `waiting` the
    calls that wait for a person: none after a crash, else the first open one and some of those behind it.
    """

    messages: tuple[Message, ...]
    open: tuple[str, ...]
    started: frozenset[str]
    waiting: tuple[WaitingCall, ...]


@dataclass(frozen=True, slots=True)
class _Round:
    """An answer with calls, the content of each call's result, and the order in which the results come."""

    said: tuple[Part, ...]
    calls: tuple[ToolCall, ...]
    outcomes: tuple[tuple[ToolResultStatus, tuple[Part, ...], str], ...]
    order: tuple[int, ...]
    keyed: bool


@dataclass(frozen=True, slots=True)
class _Turn:
    asked: tuple[Part, ...]
    rounds: tuple[_Round, ...]
    answer: AssistantMessage | None


def histories(*, min_turns: int = 0, max_turns: int = 3) -> st.SearchStrategy[list[Message]]:
    """Whole conversations, as a transcript holds them: `check_messages` finds nothing.

    They begin with a user message and have no open call; the last turn may lack its answer. Ids are there and differ
    from each other. Results of a batch come in any order; the calls' own ids may be equal or empty, which is legal.
    """
    return _conversations(min_turns, max_turns).map(_assembled)


@st.composite
def open_histories(draw: st.DrawFn, *, waiting: bool | None = None, max_turns: int = 2) -> OpenHistory:
    """Histories with open calls at the tail: of a waiting run, of one that was cut off, or (None) of either."""
    before = draw(_conversations(0, max_turns))
    asked, batch = draw(_said()), draw(_rounds())
    waits = draw(st.booleans()) if waiting is None else waiting
    made = _assembled([*before, _Turn(asked, (), None)])
    answer = AssistantMessage(batch.said, batch.calls, stop_reason=StopReason.TOOL_CALLS, id=f"m{len(made)}")
    made.append(answer)
    keys = [f"{answer.id}:{index}" for index in range(len(batch.calls))]
    if waits:
        finished = list(range(draw(st.integers(0, len(keys) - 1))))
        first = len(finished)
        behind = [index for index in range(first + 1, len(keys)) if draw(st.booleans())]
        questions = tuple(_question(keys[index], batch.calls[index]) for index in (first, *behind))
        started: set[int] = set(finished)
    else:
        flags = draw(st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)).filter(lambda each: not all(each)))
        finished = [index for index in batch.order if flags[index]]
        questions = ()
        started = {index for index in range(len(keys)) if flags[index] or draw(st.booleans())}
    for index in finished:
        made.append(_result(batch, index, keys[index], f"m{len(made)}"))
    unanswered = tuple(key for index, key in enumerate(keys) if index not in finished)
    return OpenHistory(tuple(made), unanswered, frozenset(keys[index] for index in started), questions)


@st.composite
def loose_histories(draw: st.DrawFn) -> list[Message]:
    """Short histories near the rules, most of them against one: keys that are right, wrong, missing or doubled, answers
    without an id or with the id of another, empty answers, results that are missing, late or without a call."""
    made: list[Message] = []
    for turn in range(draw(st.integers(0, 3))):
        ident = draw(st.sampled_from([f"m{turn}", "same", ""]))
        count = draw(st.integers(0, 3))
        said = draw(st.sampled_from(["text", "", " \n"]))
        made.append(AssistantMessage(said, [ToolCall(draw(st.sampled_from("ab")), "t")] * count, id=ident))
        keys = draw(st.permutations([f"{ident}:{index}" for index in range(count)]))
        for key in keys[: draw(st.integers(0, len(keys)))] if draw(st.booleans()) else keys:
            given = draw(st.sampled_from([key, key, key, "", "m0:0", "other:1", "same:0"]))
            made.append(ToolMessage(ToolResult(draw(st.sampled_from("ab")), "ok", "r", key=given)))
        if draw(st.booleans()):
            between: list[Message] = [UserMessage("u"), ToolMessage(ToolResult("a", "ok"))]
            made.append(draw(st.sampled_from(between)))
    return made


@cache
def _conversations(least: int, most: int) -> st.SearchStrategy[list[_Turn]]:
    return st.lists(_turns(), min_size=least, max_size=most)


@cache
def _said() -> st.SearchStrategy[tuple[Part, ...]]:
    """Parts of which at least one is seen; mostly it is one short text."""
    seen = visible_texts(max_size=6).map(lambda text: (TextPart(text),))
    rich = st.lists(parts(), min_size=1, max_size=3).map(tuple).filter(_is_seen)
    return st.one_of(seen, seen, rich)


def _is_seen(said: tuple[Part, ...]) -> bool:
    return any(
        part.text.strip() if isinstance(part, TextPart) else not isinstance(part, ReasoningPart) for part in said
    )


@cache
def _turns() -> st.SearchStrategy[_Turn]:
    answers = st.builds(
        AssistantMessage,
        _said(),
        usage=usages(most=1000),
        stop_reason=st.sampled_from(_ENDS),
        model=texts(max_size=4),
        metadata=json_objects(max_size=1),
    )
    rounds = st.lists(_rounds(), max_size=2).map(tuple)
    return st.builds(_Turn, _said(), rounds, st.none() | answers)


@st.composite
def _rounds(draw: st.DrawFn) -> _Round:
    calls = draw(_batches())
    outcomes = [draw(_outcomes()) for _ in calls]
    keyed = not draw(st.booleans())
    order = draw(st.permutations(range(len(calls)))) if keyed else range(len(calls))
    said = draw(_said()) if draw(st.booleans()) else ()
    return _Round(said, tuple(calls), tuple(outcomes), tuple(order), keyed)


@cache
def _outcomes() -> st.SearchStrategy[tuple[ToolResultStatus, tuple[Part, ...], str]]:
    return st.tuples(st.sampled_from(_ANSWERED), st.just(()) | _said(), texts(max_size=4))


@cache
def _batches() -> st.SearchStrategy[list[ToolCall]]:
    arguments = st.sampled_from(["{}", '{"city":"Oslo"}', "", '{"city":']) | texts(max_size=4)
    idents, names = st.sampled_from(["c1", "c1", "c2", ""]), st.sampled_from(["find", "add", ""])
    return st.lists(st.builds(ToolCall, idents, names, arguments), min_size=1, max_size=3)


def _assembled(turns: Sequence[_Turn]) -> list[Message]:
    """The turns as messages, each with its own id and each result at its call."""
    made: list[Message] = []
    for turn in turns:
        made.append(UserMessage(turn.asked, id=f"m{len(made)}"))
        for batch in turn.rounds:
            ident = f"m{len(made)}"
            made.append(AssistantMessage(batch.said, batch.calls, stop_reason=StopReason.TOOL_CALLS, id=ident))
            for index in batch.order:
                key = f"{ident}:{index}" if batch.keyed else ""
                made.append(_result(batch, index, key, f"m{len(made)}"))
        if turn.answer is not None:
            said = turn.answer
            made.append(
                AssistantMessage(
                    said.parts,
                    usage=said.usage,
                    stop_reason=said.stop_reason,
                    model=said.model,
                    id=f"m{len(made)}",
                    metadata=said.metadata,
                )
            )
    return made


def _result(batch: _Round, index: int, key: str, ident: str) -> ToolMessage:
    status, content, error = batch.outcomes[index]
    return ToolMessage(ToolResult(batch.calls[index].id, status, content, error, key), id=ident)


def _question(key: str, call: ToolCall) -> WaitingCall:
    return WaitingCall(key, call.id, call.name, {}, f"May {call.name or 'it'} run?")
