"""What a run of the state machine does, as data that Hypothesis draws: scripts, faults, moods, limits, ways to run.

What has few values is drawn from a list of all of them: one draw instead of five is most of the machine's speed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import TypeVar

from hypothesis import strategies as st

import gotato_testkit as kit
from gotato_py import (
    AuthenticationFailed,
    Cancelled,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    Done,
    InvalidRequest,
    Limits,
    ModelError,
    ModelProtocolError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RateLimits,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    Usage,
    UsageUpdate,
)

from .machine_deeds import CONTROLS, DEEDS, INTERRUPTS, RAISES, RETURNS, UNFINISHED, WAITS, Untyped
from .machine_extensions import COMMON, COUNT, MOODS, SAME
from .machine_words import Fault, Make, Mood, Plan


def ask(name: str, arguments: object, ident: str = "c1") -> ToolCallReady:
    """A complete call."""
    said = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCallReady(ToolCall(ident, name, said))


T = TypeVar("T")


def any_of(values: Iterable[T]) -> st.SearchStrategy[T]:
    """One of many values, printed as it is; `sampled_from` would print them all, and a mapped one its number."""
    listed = list(values)
    places = st.integers(0, len(listed) - 1)

    @st.composite
    def any_one(draw: st.DrawFn) -> T:
        return listed[draw(places)]

    return any_one()


# Answers

TEXTS = ["a", "Hello wor", "  ", "", "\n", "zwölf €", "\ud800", "x" * 40, "7", '{"value": 8}']
TOOLS = ["act", "act", "act", "slow", "solo", "extra", "other"]
DOES = [*DEEDS, *DEEDS, *RAISES, *RETURNS, *CONTROLS, *WAITS, *INTERRUPTS, "close"]
QUICK = [
    *["thing", "behind", "progress"] * 4,
    *["heed", "heed", "hang", "cancel and hang", "interrupt", "raise ValueError"],
    *CONTROLS,
]
IDENTS = ["c1", "c1", "c2", "", "x|" * 30]
ODD_ARGUMENTS = (
    *("", "null", "{}", "[1]", "5", '{"a":', '{"do": 1}', '{"do":"x","y":1}'),
    *('{"a":true,"b":1}', '{"a":"5","b":1}'),
)
usages = st.sampled_from([Usage(), Usage(2, 1), Usage(40, 7), Usage(0, 50)])
texts = st.sampled_from([TextDelta(text) for text in TEXTS])
calls = st.one_of(
    any_of(ask(tool, {"do": do}, ident) for do, tool, ident in product(DOES, TOOLS, IDENTS)),
    any_of(ask("add", {"a": a, "b": 1}, ident) for a, ident in product(range(5), IDENTS)),
    any_of(ask(*call) for call in product(["act", "add", "serch", "", "Add"], ODD_ARGUMENTS, IDENTS)),
)
finals = any_of(ask("final_answer", {"value": value}) for value in (7, 7, 8, "seven", None))
quick = any_of(ask(tool, {"do": do}) for do, tool in product(QUICK, TOOLS))
batches = st.builds(
    lambda some: [*some, Done(StopReason.TOOL_CALLS)],
    st.lists(st.one_of(quick, quick, quick, quick, finals), min_size=1, max_size=4),
)
"""Answers that call several tools, most of which do what they are asked for."""
others = st.sampled_from(
    [
        *[UsageUpdate(Usage(7, 3)), ReasoningDelta("let me see"), ReasoningDone("signed", "dialect:family")],
        *[ReasoningDone(), ToolCallDelta(0, "add", '{"a"'), RateLimits(remaining_requests=3), kit.Wait(2)],
    ]
)
REASONS = [each for each in StopReason if each not in ("cancelled", "error")]
ends = st.builds(
    Done,
    st.sampled_from([*REASONS, StopReason.END_TURN, StopReason.TOOL_CALLS, StopReason.TOOL_CALLS]),
    st.none() | usages,
)
pieces = st.one_of(texts, texts, calls, calls, finals, others)
good = st.builds(lambda body, end: [*body, end], st.lists(pieces, max_size=5), ends)

# Answers that are none

RETRYABLE = (RateLimited, Overloaded, ConnectionFailed, ModelProtocolError)
FINAL = (AuthenticationFailed, ContextOverflow, ContextOverflow, InvalidRequest, QuotaExhausted, ContentFiltered)
typed_errors = st.builds(
    lambda kind, retryable, after: kind("the provider says no", retryable=retryable, retry_after=after),
    st.sampled_from([*RETRYABLE, *FINAL, ModelError]),
    st.sampled_from([None, None, True, False]),
    st.sampled_from([None, None, 0.0, 2.0, 1000.0]),
)
untyped_errors = st.builds(
    lambda kind: kind("not mine"), st.sampled_from([ValueError, OSError, Cancelled, DeadlineExceeded])
)
unruly_errors = st.builds(lambda kind: kind(), st.sampled_from([SystemExit, GeneratorExit, MemoryError, Untyped]))
overflows = st.builds(lambda body: [*body, kit.Raise(ContextOverflow("too long"))], st.lists(pieces, max_size=1))
errors = st.one_of(typed_errors, typed_errors, untyped_errors, unruly_errors)
oddities = st.sampled_from([None, 7, "text", object(), Done, [], kit.Stall(), ReasoningDelta(UNFINISHED)])
breaks = st.one_of(
    st.just(()),
    errors.map(kit.Raise).map(lambda each: (each,)),
    oddities.map(lambda each: (each,)),
    oddities.map(lambda each: (each, Done())),
    st.just((Done(), TextDelta("after the end"))),
    st.just((Done(), Done())),
    st.just((ReasoningDelta(UNFINISHED), kit.Stall())),
    st.just((Done(), kit.RaiseOnClose(ValueError("close fails")))),
    st.just((kit.RaiseOnClose(OSError("close fails")),)),
)
broken = st.builds(lambda body, end: [*body, *end], st.lists(pieces, max_size=3), breaks)
steps: st.SearchStrategy[kit.Step] = st.one_of(
    good,
    good,
    batches,
    broken,
    errors.map(kit.Raise),
    st.sampled_from([kit.Return(None), kit.Return(5), kit.Return(iter([])), kit.Stall(), [Done()], []]),
)

# What happens meanwhile

CALLED = {"request": 3, "model event": 6, "tool": 3, "observer": 25, "hook": 15, "source": 2}
"""Where somebody else's code is in charge, in the middle of a run, and how often it probably is."""
COMMITS = {"append": 6, "mark": 2, "mark waiting": 2, "begin_run": 1, "end_run": 1, "replace": 1}
COMMITTED = {"appended": 6, "marked": 2, "marked waiting": 2}
PLACES = {"any": 60, **CALLED, **COMMITS, **COMMITTED, "clock": 20, "ids": 8}


def _faults(places: Mapping[str, int], actions: Sequence[str]) -> st.SearchStrategy[Fault]:
    """Any of the actions at any of the places, each of which is as likely as another."""
    some = [[Fault(at, nth + 1, does) for nth, does in product(range(places[at]), actions)] for at in places]
    return st.one_of([any_of(each) for each in some])


store_faults = _faults(COMMITS, ["os error", "store failure", "broken store"])
threads = [f"thread {each}" for each in CONTROLS]
meanwhile = _faults(
    CALLED,
    [*CONTROLS, *CONTROLS, *threads, "busy", "close", "close stream", "late steer", "late close", "late wait"],
)
faults = st.one_of(
    meanwhile,
    store_faults,
    _faults(PLACES, list(INTERRUPTS)),
    _faults(
        CALLED, [*INTERRUPTS, "cancel", "cancel scope", "signal", "thread cancel", "late cancel", "thread close stream"]
    ),
    _faults({**CALLED, **COMMITTED}, ["kill"]),
)
GRUMBLES = (
    "agent_start",
    "turn_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "turn_end",
    "agent_end",
)
WAYS = ("run", "run", "checked", "stream", "text", "result", "break", "close", "drop", "left open")


def moods_of(points: Sequence[str], whos: Sequence[int] = range(COUNT)) -> st.SearchStrategy[Mood]:
    """What extensions may do at those points, each of which is as likely as another."""
    does = {
        point: st.lists(st.sampled_from([SAME, *MOODS[point] * 3, *COMMON]), min_size=1, max_size=4).map(tuple)
        for point in points
    }
    return st.one_of([st.builds(Mood, st.sampled_from(whos), st.just(point), does[point]) for point in points])


asking = st.builds(
    Mood,
    st.sampled_from(range(COUNT)),
    st.just("before_tool"),
    st.lists(
        st.sampled_from(["ask", "ask", SAME, "ask for 5 s", "ask for nothing", "block"]), min_size=1, max_size=4
    ).map(tuple),
)
moods = st.one_of(moods_of(list(MOODS)), moods_of(list(MOODS)), moods_of(["before_tool", "on_overflow"]), asking)
builds = st.sampled_from(["same", "same", "window", "panel", "copy", "wrong", "open", "nothing", "raise ValueError"])
offers = st.sampled_from(
    [*["none", "one", "two"] * 4, "twice", "wrong", "nothing", "raise ValueError", "raise Cancelled"]
)


def _plans(
    steps: st.SearchStrategy[kit.Step], faults: st.SearchStrategy[Fault], timeouts: Sequence[float | None]
) -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        st.lists(steps, max_size=4),
        st.lists(faults, max_size=3),
        st.lists(moods, max_size=5),
        st.lists(offers, max_size=3),
        st.lists(builds, max_size=3),
        any_of(frozenset(each) for count in (0, 0, 1, 2) for each in combinations(GRUMBLES, count)),
        st.sampled_from(WAYS),
        st.integers(0, 12),
        st.sampled_from(timeouts),
        st.sampled_from([None, None, int]),
    )


questions = st.builds(Plan, st.lists(batches, min_size=1, max_size=2), moods=st.lists(asking, min_size=1, max_size=2))
"""Runs that probably end waiting for a person."""
far = _plans(
    st.one_of(batches, batches, batches, batches, good, overflows), st.one_of(faults, meanwhile, meanwhile), [None]
)
plans = st.one_of(far, far, _plans(steps, faults, [None, None, None, 0.0, 1.0, 20.0]))
"""Most runs come far: they call tools, and what happens meanwhile is part of it."""

# How agents are made

POINTS = tuple(point for point in MOODS if point != "observe")
FEW: list[float | None] = [None, 0, 1, 2]
TOOL_TIMEOUTS = [None, None, 0.02, 0.0]
SMALL: dict[str, list[float | None]] = {
    **dict.fromkeys(("max_turns", "max_tool_calls", "max_tool_progress_updates", "max_steer", "max_follow_up"), FEW),
    **dict.fromkeys(("max_parallel_tools", "max_repeated_calls", "max_settle_vetoes", "max_abandoned"), FEW),
    "max_messages": [None, 0, 1, 4, 20],
    "max_message_bytes": [None, 0, 10, 100],
    "max_transcript_bytes": [None, 0, 100, 1000],
    "max_tool_result_bytes": [None, 0, 1, 50],
    "max_tool_progress_bytes": [None, 0, 3],
    "max_total_tokens": [None, 0, 10, 100],
    "run_timeout": [None, 0.0, 1.0, 50.0],
    "model_timeout": [0.0, 1.0, 20.0],  # never None: nothing else ends a stall
    "tool_timeout": TOOL_TIMEOUTS,
    "wrap_up": [False, True],
}
small_limits = st.lists(any_of((name, value) for name, values in SMALL.items() for value in values), max_size=4).map(
    lambda given: Limits(**dict(given))  # type: ignore[arg-type]  # each field has its own values
)
parallel_limits = any_of(
    Limits(max_parallel_tools=most, tool_timeout=timeout, max_abandoned=abandoned)
    for most, timeout, abandoned in product([2, 3, None], TOOL_TIMEOUTS, [8, 1])
)
wrapped_limits = any_of(
    Limits(**{name: 1 + more}, wrap_up=True)
    for name, more in product(("max_turns", "max_tool_calls", "max_repeated_calls", "max_total_tokens"), range(3))
)
makes = st.builds(
    Make,
    st.one_of(st.just(Limits()), st.just(Limits()), parallel_limits, parallel_limits, small_limits, wrapped_limits),
    st.integers(1, 3),
    st.sampled_from([(), POINTS, POINTS, POINTS, ("before_tool",), ("after_tool", "observe"), (*POINTS, "observe")]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    built=st.sampled_from([False, False, True]),
)
