"""What a run of the state machine does, as data that Hypothesis draws: scripts, faults, limits, ways to run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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

from .machine_deeds import CONTROLS, DEEDS, INTERRUPTS, RAISES, RETURNS, WAITS, Untyped
from .machine_extensions import COMMON, COUNT, MOODS, SAME, Mood
from .machine_laws import UNFINISHED
from .machine_world import Fault, Make

# Answers

usages = st.builds(Usage, st.integers(0, 50), st.integers(0, 50))
texts = st.sampled_from(["a", "Hello wor", "  ", "", "\n", "zwölf €", "\ud800", "x" * 40, "7", '{"value": 8}'])
RETRYABLE = (RateLimited, Overloaded, ConnectionFailed, ModelProtocolError)
FINAL = (AuthenticationFailed, ContextOverflow, InvalidRequest, QuotaExhausted, ContentFiltered, ModelError)
typed_errors = st.builds(
    lambda kind, retryable, after: kind("the provider says no", retryable=retryable, retry_after=after),
    st.sampled_from([*RETRYABLE, *FINAL]),
    st.sampled_from([None, None, True, False]),
    st.sampled_from([None, None, 0.0, 2.0, 1000.0]),
)
untyped_errors = st.sampled_from([ValueError("a bug"), OSError("a bug"), Cancelled("not mine"), DeadlineExceeded("no")])
unruly_errors = st.sampled_from([SystemExit(2), GeneratorExit(), MemoryError(), Untyped()])
errors = st.one_of(typed_errors, typed_errors, untyped_errors, unruly_errors)
deeds = st.sampled_from([*DEEDS, *DEEDS, *RAISES, *RETURNS, *CONTROLS, *WAITS, *INTERRUPTS, "close"])
quick = st.sampled_from([*["thing", "behind", "progress"] * 4, "heed", *CONTROLS, "hang", "raise ValueError"])
ODD_ARGUMENTS = [
    "",
    "null",
    "{}",
    "[1]",
    "5",
    '{"a":',
    '{"do": 1}',
    '{"do":"x","y":1}',
    '{"a":true,"b":1}',
    '{"a":"5","b":1}',
]


def ask(name: str, arguments: object, ident: str = "c1") -> ToolCallReady:
    """A complete call."""
    said = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCallReady(ToolCall(ident, name, said))


idents = st.sampled_from(["c1", "c1", "c2", "", "x|" * 30])
tools = st.sampled_from(["act", "act", "act", "slow", "solo", "extra", "other"])
calls = st.one_of(
    st.builds(lambda tool, do, ident: ask(tool, {"do": do}, ident), tools, deeds, idents),
    st.builds(lambda a, b, ident: ask("add", {"a": a, "b": b}, ident), st.integers(0, 9), st.integers(0, 9), idents),
    st.builds(ask, st.sampled_from(["act", "add", "serch", "", "Add"]), st.sampled_from(ODD_ARGUMENTS), idents),
)
finals = st.sampled_from([7, 7, 8, "seven", None]).map(lambda value: ask("final_answer", {"value": value}))
some = st.builds(lambda tool, do: ask(tool, {"do": do}), tools, quick)
batches = st.builds(
    lambda some, end: [*some, end],
    st.lists(st.one_of(some, some, some, some, finals), min_size=1, max_size=4),
    st.just(Done(StopReason.TOOL_CALLS)),
)
"""Answers that call several tools, most of which do what they are asked for."""
pieces = st.one_of(
    texts.map(TextDelta),
    texts.map(TextDelta),
    calls,
    calls,
    finals,
    st.builds(UsageUpdate, usages),
    st.just(ReasoningDelta("let me see")),
    st.just(ReasoningDone("signed", "dialect:family")),
    st.just(ReasoningDone()),
    st.just(ToolCallDelta(0, "add", '{"a"')),
    st.just(RateLimits(remaining_requests=3)),
    st.just(kit.Wait(2)),
)
REASONS = [each for each in StopReason if each not in ("cancelled", "error")]
ends = st.builds(
    Done,
    st.sampled_from([*REASONS, StopReason.END_TURN, StopReason.TOOL_CALLS, StopReason.TOOL_CALLS]),
    st.none() | usages,
)
good = st.builds(lambda body, end: [*body, end], st.lists(pieces, max_size=5), ends)
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
    return st.sampled_from(list(places)).flatmap(
        lambda at: st.builds(Fault, st.just(at), st.integers(1, places[at]), st.sampled_from(actions))
    )


store_faults = _faults(COMMITS, ["os error", "store failure", "broken store"])
meanwhile = _faults(
    CALLED, [*CONTROLS, *CONTROLS, "busy", "close", *(f"thread {each}" for each in CONTROLS), "late steer", "late close"]
)
faults = st.one_of(
    meanwhile,
    store_faults,
    _faults(PLACES, list(INTERRUPTS)),
    _faults(CALLED, [*INTERRUPTS, "cancel", "signal", "thread cancel", "late cancel"]),
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
ways = st.sampled_from(WAYS)


def _does(point: str) -> st.SearchStrategy[str]:
    proper = st.sampled_from([SAME, *MOODS[point]])
    return st.one_of(proper, proper, proper, st.sampled_from(COMMON))


def moods_of(points: Sequence[str], whos: Sequence[int] = range(COUNT)) -> st.SearchStrategy[Mood]:
    """What extensions may do at those points."""
    return st.sampled_from(points).flatmap(
        lambda point: st.builds(
            Mood,
            st.sampled_from(whos),
            st.just(point),
            st.lists(_does(point), min_size=1, max_size=4).map(tuple),
        )
    )


asking = st.builds(
    Mood,
    st.integers(0, COUNT - 1),
    st.just("before_tool"),
    st.lists(st.sampled_from(["ask", "ask", SAME, "ask for 5 s", "ask for nothing", "block"]), min_size=1, max_size=4).map(tuple),
)
moods = moods_of([*MOODS, "before_tool", "before_tool", "before_tool"])
offers = st.sampled_from(["none", "one", "two"] * 4 + ["twice", "wrong", "nothing", "raise ValueError", "raise Cancelled"])


@dataclass(frozen=True)
class Plan:
    """One run: what the model does, what goes wrong, and how the caller takes it."""

    steps: Sequence[kit.Step] = ()
    faults: Sequence[Fault] = ()
    moods: Sequence[Mood] = ()
    offers: Sequence[str] = ()
    grumbles: frozenset[str] = field(default_factory=frozenset)
    way: str = "run"
    leave_after: int = 0
    timeout: float | None = None
    output: type | None = None


def _plans(
    steps: st.SearchStrategy[kit.Step], faults: st.SearchStrategy[Fault], timeouts: Sequence[float | None]
) -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        st.lists(steps, max_size=4),
        st.lists(faults, max_size=3),
        st.lists(moods, max_size=5),
        st.lists(offers, max_size=3),
        st.frozensets(st.sampled_from(GRUMBLES), max_size=2) | st.just(frozenset()),
        ways,
        st.integers(0, 12),
        st.sampled_from(timeouts),
        st.sampled_from([None, None, int]),
    )


questions = st.builds(Plan, st.lists(batches, min_size=1, max_size=2), moods=st.lists(asking, min_size=1, max_size=2))
# Runs that probably end waiting for a person.
plans = st.one_of(
    _plans(st.one_of(batches, batches, batches, good), st.one_of(faults, meanwhile, meanwhile), [None]),
    _plans(st.one_of(batches, batches, batches, good), st.one_of(faults, meanwhile, meanwhile), [None]),
    _plans(steps, faults, [None, None, None, 0.0, 1.0, 20.0]),
)
"""Most runs come far: they call tools, and what happens meanwhile is part of it."""

# How agents are made

POINTS = tuple(point for point in MOODS if point != "observe")

few = st.sampled_from([None, 0, 1, 2])
tool_timeouts = st.sampled_from([None, None, 0.02, 0.0])
_fields = st.fixed_dictionaries(
    {},
    optional={
        "max_turns": few,
        "max_tool_calls": few,
        "max_messages": st.sampled_from([None, 0, 1, 4, 20]),
        "max_message_bytes": st.sampled_from([None, 0, 10, 100]),
        "max_transcript_bytes": st.sampled_from([None, 0, 100, 1000]),
        "max_tool_result_bytes": st.sampled_from([None, 0, 1, 50]),
        "max_tool_progress_bytes": st.sampled_from([None, 0, 3]),
        "max_tool_progress_updates": few,
        "max_steer": few,
        "max_follow_up": few,
        "max_parallel_tools": few,
        "max_total_tokens": st.sampled_from([None, 0, 10, 100]),
        "max_repeated_calls": few,
        "max_settle_vetoes": few,
        "max_abandoned": few,
        "run_timeout": st.sampled_from([None, 0.0, 1.0, 50.0]),
        "model_timeout": st.sampled_from([0.0, 1.0, 20.0]),  # never None: nothing else ends a stall
        "tool_timeout": tool_timeouts,
        "wrap_up": st.booleans(),
    },
)
small_limits = _fields.map(lambda given: Limits(**given))  # type: ignore[arg-type]  # each field has its own values
parallel_limits = st.builds(
    Limits,
    max_parallel_tools=st.sampled_from([2, 3, None]),
    tool_timeout=tool_timeouts,
    max_abandoned=st.sampled_from([8, 1]),
)
makes = st.builds(
    Make,
    st.one_of(st.just(Limits()), st.just(Limits()), parallel_limits, parallel_limits, small_limits),
    st.integers(1, 3),
    st.sampled_from([(), POINTS, POINTS, POINTS]) | st.lists(st.sampled_from(list(MOODS)), unique=True).map(tuple),
    st.booleans(),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)
