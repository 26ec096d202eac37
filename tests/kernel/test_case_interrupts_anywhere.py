"""Cases of Ctrl-C anywhere: by real signals at random moments, and at every line of the kernel that a run executes."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator

import pytest

from gotato_py import Event, Hooks, Limits, Overloaded, RetryPolicy, ToolContext
from gotato_testkit import ManualClock, Raise, Step, call, say, think

from ..effort import by_profile
from .interrupts import LineInterrupt, interrupted
from .laws import assert_laws
from .stage import Stage

POINTS = by_profile(dev=40, ci=100, nightly=125)
"""Random moments for each of the four ways to be interrupted by a real signal."""


TWELFTHS = range(by_profile(dev=1, ci=3, nightly=12))
"""Which twelfths of the kernel's lines are tried."""
BYTECODES = by_profile(dev=5, ci=1, nightly=1)
"""Every which bytecode of the loop is tried."""


class SoftTimeLimit(Exception):  # named as task queues name theirs
    """Raised by a task queue when time is running out; an ordinary exception for whoever does not know it."""


def save(use: ToolContext[object], n: int) -> str:
    """Saves."""
    use.progress("half of it")
    if n == 2:
        raise ValueError("disk full")
    return f"saved {n}"


def smooth() -> Stage:
    """A stage where something was said before, set for two turns: an answer with a call, and text."""
    steps: list[Step] = [think("Hm.", signature="s") + say("On it. ") + call("save", n=1), say("Done.")]
    return begun(Stage(say("Before."), *steps, tools=[save], interrupts=[SoftTimeLimit]))


def rough() -> Stage:
    """A stage where much goes wrong: retries, silence, unknown and failing tools, cut calls, an observer that raises
    at every third event, and a limit that is reached and wrapped up."""
    seen: list[Event] = []

    def grumble(event: Event) -> None:
        seen.append(event)
        if len(seen) % 3 == 0:
            raise ValueError(event.kind)

    steps: list[Step] = [
        [*say("Half an ans")[:-1], Raise(Overloaded("busy"))],
        say(),
        say("On it. ") + call("save", n=1) + call("shave", n=1) + call("save", n="x") + call("save", n=2),
        say("Cut. ", stop_reason="max_tokens") + call("save", n=3),
        say("Too late. ") + call("save", n=4),
        say("That is what I have."),
    ]
    stage = Stage(
        say("Before."),
        *steps,
        tools=[save],
        extensions=[Hooks(observe=grumble)],
        interrupts=[SoftTimeLimit],
        limits=Limits(max_turns=3, wrap_up=True),
        clock=ManualClock(),
        retry=RetryPolicy(jitter=0.0),
    )
    return begun(stage)


def begun(stage: Stage) -> Stage:
    """The stage after its first answer."""
    assert stage.run("hello").text == "Before."
    return stage


def run_of(stage: Stage) -> object:
    """The script as a run."""
    return stage.run()


def stream_of(stage: Stage) -> object:
    """The script as a stream, read to its end."""
    with stage.agent.stream("do it", check=False) as stream:
        for _ in stream:
            pass
    return stream.result


@pytest.fixture(autouse=True)
def _dropped_streams_may_warn() -> Iterator[None]:
    """An interrupt between two steps of a stream makes its reader drop it, of which it rightly warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def taken_by(go: Callable[[Stage], object]) -> float:
    """The seconds that an undisturbed run takes here."""
    stage = smooth()
    began = time.perf_counter()
    go(stage)
    return time.perf_counter() - began


# A second interrupt may hit the finaliser of what the first one dropped, where Python can only report it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("go", [run_of, stream_of])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_c33_by_real_signals(go: Callable[[Stage], object], twice: bool) -> None:
    """Wherever a signal comes, and a second one during the closing, it comes out, and the next run works."""
    dice = random.Random(33)
    took = min(taken_by(go) for _ in range(5))
    hits = 0
    for _ in range(POINTS):
        stage = smooth()
        moments = [dice.uniform(0.00001, took * 1.1), *([dice.uniform(0.00001, took * 0.3)] if twice else [])]
        came = interrupted(lambda stage=stage: go(stage), *moments)  # type: ignore[misc]  # bound at once
        assert came.came_out == (came.raised > 0)
        hits += came.raised
        assert_laws(stage, repair=True, lost_streams=came.raised)  # made by the script and not given out yet
    assert hits > POINTS / 4


@pytest.mark.parametrize("twelfth", TWELFTHS)
@pytest.mark.parametrize(
    ("make", "go", "kind", "step"),
    [
        (smooth, run_of, KeyboardInterrupt, 1),
        (smooth, stream_of, KeyboardInterrupt, 1),
        (smooth, run_of, SoftTimeLimit, 3),
        (rough, run_of, KeyboardInterrupt, 5),
        (rough, stream_of, SoftTimeLimit, 5),
    ],
)
def test_c33_at_the_lines_of_the_kernel(
    make: Callable[[], Stage], go: Callable[[Stage], object], kind: type[BaseException], step: int, twelfth: int
) -> None:
    """Before any line that a run executes an interrupt comes out as it is, and the next run closes what it left open.

    No line is excepted: an event is told once, and what was committed is told, wherever the interrupt came.
    """
    assert_every(make, go, lambda number: LineInterrupt(number, kind), range(1 + twelfth * step, 100_000, 12 * step))


@pytest.mark.parametrize("go", [run_of, stream_of])
def test_c33_at_every_bytecode_of_the_loop(go: Callable[[Stage], object]) -> None:
    """An interrupt that comes while an event is handed out, between one generator and the next, is not lost either."""
    assert_every(smooth, go, lambda number: LineInterrupt(number, opcodes_of="_loop.py"), range(1, 100_000, BYTECODES))


def assert_every(
    make: Callable[[], Stage],
    go: Callable[[Stage], object],
    interrupt: Callable[[int], LineInterrupt],
    numbers: range,
) -> None:
    """Interrupts one run after another, each at the next of these numbers, until one comes to its end undisturbed."""
    swallowed: list[str] = []
    broken: list[str] = []
    number = numbers.start
    for number in numbers:
        stage, line = make(), interrupt(number)
        came_out = line(lambda stage=stage: go(stage))  # type: ignore[misc]  # bound at once
        if not line.where:
            break
        if not came_out:
            swallowed.append(line.where)
        try:
            assert_laws(stage, repair=True)
        except AssertionError as error:
            broken.append(f"{line.where}: {error}".splitlines()[0])
    assert number > numbers.start + 20
    assert swallowed == []
    assert broken == []
