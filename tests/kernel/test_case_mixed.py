"""The invariants hold whatever happened: runs of every kind, one after another on one agent, in any order."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    AuthenticationFailed,
    Busy,
    Done,
    Event,
    Hooks,
    InvalidArgument,
    Limits,
    Overloaded,
    RetryPolicy,
    Scope,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolContext,
)
from gotato_testkit import Do, ManualClock, Raise, Stall, call, say, think

from ..effort import costly
from .laws import assert_invariants, assert_laws
from .stage import Stage


def work(use: ToolContext[object], how: str = "well") -> object:
    """Works, in one way or another."""
    match how:
        case "badly":
            raise ValueError("no such row")
        case "oddly":
            return object()
        case "long":
            use.scope.wait(60)
            use.scope.check()
        case "interrupted":
            raise KeyboardInterrupt
        case "nested":
            raise Busy("in another agent")
        case _:
            use.progress("half")
    return f"worked {how}"


def made() -> Stage:
    """An agent with a clock of its own, small limits and an observer that fails now and then."""
    seen: list[Event] = []

    def grumble(event: Event) -> None:
        seen.append(event)
        if len(seen) % 5 == 0:
            raise LookupError("lost count")

    return Stage(
        tools=[work],
        extensions=[Hooks(observe=grumble)],
        clock=ManualClock(),
        limits=Limits(max_turns=4, run_timeout=20, max_repeated_calls=3),
        retry=RetryPolicy(jitter=0.0),
    )


def play(*steps: Any) -> Callable[[Stage], object]:
    """A run of these steps, whatever it comes to."""

    def go(stage: Stage) -> None:
        stage.script.replace(*steps)
        try:
            stage.run()
        except KeyboardInterrupt:
            pass

    return go


def cancelled_in(*items: Any) -> Callable[[Stage], object]:
    """A run that is cancelled in the middle of an answer."""

    def go(stage: Stage) -> None:
        stage.script.replace([*items, Do(stage.cancel), *say("late")])
        stage.run()

    return go


def in_an_ended_scope(stage: Stage) -> None:
    """A run in a scope that has ended."""
    scope = Scope()
    scope.cancel()
    stage.run("never", scope=scope)


def misused(stage: Stage) -> None:
    """A run that is refused."""
    before = stage.messages
    with pytest.raises(InvalidArgument):
        stage.run("", timeout=-1)
    assert stage.messages == before


def streamed(count: int, *, drop: bool) -> Callable[[Stage], object]:
    """A stream that is read so far, then closed, or dropped in another thread."""

    def go(stage: Stage) -> None:
        stage.script.replace(say("On it. ") + call("work"), say("Done."))
        streams = [stage.agent.stream("go", check=False)]
        for _, _ in zip(range(count), streams[0], strict=False):
            pass
        if not drop:
            streams[0].close()
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            other = Thread(target=streams.clear)
            other.start()
            other.join()
            gc.collect(0)

    return go


ANSWER = say("Done.")
SITUATIONS: dict[str, Callable[[Stage], object]] = {
    "an answer": play(ANSWER),
    "thought and answer": play(think("Hm.", signature="s") + ANSWER),
    "a tool": play(call("work"), ANSWER),
    "three tools": play(call("work") + call("work", how="badly") + call("work", how="oddly"), ANSWER),
    "a tool that raises what the kernel raises": play(call("work", how="nested"), ANSWER),
    "an unknown tool": play(call("wrok") + call("work"), ANSWER),
    "wrong arguments": play(call("work", how=3), ANSWER),
    "a retry": play([TextDelta("On"), Raise(Overloaded("busy"))], ANSWER),
    "no retry left": play(*[[TextDelta("On"), Raise(Overloaded("busy"))]] * 3),
    "an error": play(Raise(AuthenticationFailed("no key"))),
    "an adapter's bug": play([TextDelta("On"), Raise(KeyError("choices"))]),
    "no end": play(*[call("work")[:-1]] * 3),
    "silence": play(say(), think("Hm.", signature="s")),
    "silence after a tool": play(call("work"), say()),
    "cut text": play(say("1. 2", stop_reason="max_tokens")),
    "cut calls": play(*[[*call("work")[:-1], Done(StopReason.MAX_TOKENS)]] * 2),
    "a filtered answer": play(say("I cannot", stop_reason="content_filter")),
    "a pause": play(say("Searching", stop_reason="pause"), ANSWER),
    "too many turns": play(*[call("work", how=str(number)) for number in range(9)]),
    "a circle": play(*[call("work")] * 9),
    "a deadline in the model": play([TextDelta("On"), Stall()]),
    "a deadline in a tool": play(call("work", how="long") + call("work"), ANSWER),
    "Ctrl-C in the model": play([TextDelta("On"), Raise(KeyboardInterrupt())]),
    "Ctrl-C in a tool": play(call("work") + call("work", how="interrupted") + call("work"), ANSWER),
    "cancelled": cancelled_in(),
    "cancelled in text": cancelled_in(TextDelta("On it")),
    "cancelled in thought": cancelled_in(*think("Hm.", done=False)[:-1]),
    "cancelled in a call": cancelled_in(TextDelta("On"), *call("work")[:-1], ToolCallDelta(1, "work", '{"')),
    "an ended scope": in_an_ended_scope,
    "misuse": misused,
    "a closed stream": streamed(5, drop=False),
    "a stream closed late": streamed(13, drop=False),
    "a dropped stream": streamed(5, drop=True),
    "a stream dropped in a turn": streamed(9, drop=True),
}

LEFT_OPEN = {name for name in SITUATIONS if "dropped" in name}
"""What leaves its run to be closed by the next entry."""


@costly(3)
@given(st.lists(st.sampled_from(sorted(SITUATIONS)), min_size=1, max_size=10))
def test_c26_any_order(names: list[str]) -> None:
    """After any sequence of runs the six invariants hold, in the middle of it too."""
    stage, left = made(), False
    for name in names:
        SITUATIONS[name](stage)
        left = name in LEFT_OPEN or (left and name == "misuse")  # which is no entry
        if not left:
            assert_invariants(stage)
    assert_laws(stage, repair=left)


@pytest.mark.parametrize("name", SITUATIONS)
def test_c26_each_twice(name: str) -> None:
    """Each situation may follow itself, and the next run works."""
    stage = made()
    SITUATIONS[name](stage)
    SITUATIONS[name](stage)
    assert_laws(stage, repair=name in LEFT_OPEN)
