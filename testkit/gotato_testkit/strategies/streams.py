"""What a model streams: events, whole answers, answers that are cut off or break the protocol, scripts of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from hypothesis import strategies as st

from gotato_py import (
    ConnectionFailed,
    Done,
    ModelError,
    ModelEvent,
    Overloaded,
    RateLimits,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    UsageUpdate,
)
from gotato_testkit._error_json import MODEL_ERRORS
from gotato_testkit.steps import Raise, Stall, Step

from .data import texts, visible_texts
from .messages import tool_calls, usages

T = TypeVar("T")

_ENDS = (
    StopReason.END_TURN,
    StopReason.STOP_SEQUENCE,
    StopReason.MAX_TOKENS,
    StopReason.CONTENT_FILTER,
    StopReason.PAUSE,
)
_SECONDS = st.sampled_from([None, 0.0, 2.0, 1000.0])


def model_errors(kinds: Sequence[type[ModelError]] = MODEL_ERRORS) -> st.SearchStrategy[ModelError]:
    """Typed errors, with or without a wait that the provider asks for."""
    retryable = st.sampled_from([None, None, True, False])
    return st.builds(_error, st.sampled_from(kinds), _SECONDS, retryable)


def model_events(*, calls: st.SearchStrategy[ToolCall] | None = None) -> st.SearchStrategy[ModelEvent]:
    """Single events of every kind, in no order that makes sense."""
    return st.one_of(
        _text(),
        st.builds(ToolCallReady, tool_calls() if calls is None else calls),
        st.builds(ReasoningDelta, texts(surrogates=True)),
        st.builds(ReasoningDone, texts(), texts(), st.booleans()),
        st.builds(ToolCallDelta, st.integers(0, 3), texts(), texts(surrogates=True)),
        _accounts(),
        st.builds(Done, st.sampled_from(_ENDS), st.none() | usages(most=1000), texts(), texts()),
    )


@st.composite
def answers(draw: st.DrawFn, *, calls: st.SearchStrategy[ToolCall] | None = None) -> list[ModelEvent]:
    """Whole answers: at least some text or a call, calls in deltas before they are ready, exactly one `Done`, last.

    `calls` says what is called; left out, any name with any text for arguments.
    """
    said = draw(st.lists(_thought() | _text().map(_alone) | _accounts().map(_alone), max_size=3))
    asked = draw(st.lists(tool_calls() if calls is None else calls, max_size=2))
    events = [event for group in said for event in group]
    if not asked and not any(isinstance(event, TextDelta) and event.text.strip() for event in events):
        events.append(TextDelta(draw(visible_texts())))
    for index, call in enumerate(asked):
        cuts = sorted(draw(st.lists(st.integers(0, len(call.arguments)), max_size=2)))
        edges = [0, *cuts, len(call.arguments)] if cuts else []
        for place, (start, end) in enumerate(pairwise(edges)):
            events.append(ToolCallDelta(index, "" if place else call.name, call.arguments[start:end]))
        events.append(ToolCallReady(call))
    stop = StopReason.TOOL_CALLS if asked else draw(st.sampled_from(_ENDS))
    return [*events, Done(stop, draw(st.none() | usages(most=1000)), draw(texts(max_size=4)), draw(texts(max_size=4)))]


def cut_answers(*, calls: st.SearchStrategy[ToolCall] | None = None) -> st.SearchStrategy[list[object]]:
    """Answers that end before their `Done`: by an error, as adapters do it, or by nothing at all."""
    ends = st.just(()) | model_errors([ConnectionFailed, Overloaded]).map(Raise).map(_alone)
    return st.builds(_cut, answers(calls=calls), st.integers(0, 9), ends)


def broken_answers(*, calls: st.SearchStrategy[ToolCall] | None = None) -> st.SearchStrategy[list[object]]:
    """Answers that break the protocol: something after `Done`, what is no event, nothing, an end that is none."""
    whole = answers(calls=calls)
    odd: st.SearchStrategy[object] = st.sampled_from([None, 7, "text", {"type": "text"}])
    after: st.SearchStrategy[object] = st.one_of(_text(), st.builds(Done))
    return st.one_of(
        st.builds(_insert, whole, st.just(0), after),
        st.builds(_insert, whole, st.just(1), odd),
        st.builds(list[object]),
        st.sampled_from([StopReason.CANCELLED, StopReason.ERROR]).map(_said_of_a_failure),
    )


def silent_answers() -> st.SearchStrategy[list[ModelEvent]]:
    """Answers that are legal and say nothing: no event but `Done`, white space, thoughts alone."""
    nothing: list[list[ModelEvent]] = [[], [TextDelta(" \n")], [ReasoningDelta("hm"), ReasoningDone()]]
    return st.sampled_from([[*events, Done()] for events in nothing])


def steps(
    *, calls: st.SearchStrategy[ToolCall] | None = None, faults: bool = True, stalls: bool = False
) -> st.SearchStrategy[Step]:
    """Steps for a `ScriptedModel`: whole answers, with `faults` also errors, cut-off, broken and silent ones.

    With `stalls`, some never end: give the run a deadline, or nothing ends it.
    """
    made: dict[str, st.SearchStrategy[Step]] = {"answer": answers(calls=calls)}
    if faults:
        made["error"] = model_errors().map(Raise)
        made["cut"] = cut_answers(calls=calls)
        made["broken"] = broken_answers(calls=calls)
        made["silent"] = silent_answers()
    if stalls:
        made["stall"] = st.builds(_cut, answers(calls=calls), st.integers(0, 9), st.just((Stall(),)))
    kinds = ["answer"] * (len(made) - 1) + list(made)  # every other one is a whole answer, or no script would get far
    return st.sampled_from(kinds).flatmap(made.__getitem__)


def scripts(
    *,
    calls: st.SearchStrategy[ToolCall] | None = None,
    faults: bool = True,
    stalls: bool = False,
    min_size: int = 1,
    max_size: int = 4,
) -> st.SearchStrategy[list[Step]]:
    """Scripts for a `ScriptedModel`, which raises `ScriptExhausted` where a run goes on behind the last step."""
    return st.lists(steps(calls=calls, faults=faults, stalls=stalls), min_size=min_size, max_size=max_size)


def _text() -> st.SearchStrategy[TextDelta]:
    return st.builds(TextDelta, texts(surrogates=True))


def _alone(item: T) -> list[T]:
    return [item]


def _thought() -> st.SearchStrategy[list[ModelEvent]]:
    """A thought in pieces and its end, which carries a signature or not."""
    return st.builds(_thought_of, st.lists(texts(), max_size=2), texts(max_size=4), st.booleans())


def _accounts() -> st.SearchStrategy[ModelEvent]:
    """What is told of tokens and limits along the way."""
    counts, seconds = st.none() | st.integers(0, 1000), st.none() | st.floats(0, 100)
    limits = st.builds(RateLimits, counts, counts, seconds, counts, counts, seconds)
    return st.builds(UsageUpdate, usages(most=1000)) | limits


def _error(kind: type[ModelError], retry_after: float | None, retryable: bool | None) -> ModelError:
    return kind("no answer", retry_after=retry_after, retryable=retryable)


def _cut(answer: list[ModelEvent], kept: int, end: Sequence[object]) -> list[object]:
    """The beginning of an answer, without its `Done`, and another end."""
    return [*answer[: kept % len(answer)], *end]


def _insert(answer: list[ModelEvent], before_end: int, item: object) -> list[object]:
    at = len(answer) - before_end
    return [*answer[:at], item, *answer[at:]]


def _said_of_a_failure(reason: StopReason) -> list[object]:
    return [TextDelta("a"), Done(reason)]


def _thought_of(pieces: list[str], signature: str, redacted: bool) -> list[ModelEvent]:
    return [*map(ReasoningDelta, pieces), ReasoningDone(signature, "dialect:family" if signature else "", redacted)]
