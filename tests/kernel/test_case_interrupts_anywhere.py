"""Cases of Ctrl-C anywhere: by real signals at random moments, and at every line of the kernel that a run executes."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator

import pytest

from gotato_testkit import Step, call, say, think

from .interrupts import LineInterrupt, interrupted
from .laws import Stage, assert_laws

POINTS = 125
"""Random moments for each of the four ways to be interrupted by a real signal."""


def save(n: int) -> str:
    """Saves."""
    return f"saved {n}"


def script() -> list[Step]:
    """Two turns: an answer with a call, and text."""
    return [think("Hm.", signature="s") + say("On it. ") + call("save", n=1), say("Done.")]


@pytest.fixture(autouse=True)
def _dropped_streams_may_warn() -> Iterator[None]:
    """An interrupt between two steps of a stream makes its reader drop it, of which it rightly warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def run_of(stage: Stage) -> object:
    """The script as a run."""
    return stage.run()


def stream_of(stage: Stage) -> object:
    """The script as a stream, read to its end."""
    with stage.agent.stream("do it", check=False) as stream:
        for _ in stream:
            pass
    return stream.result


def taken_by(go: Callable[[Stage], object]) -> float:
    """The seconds that an undisturbed run takes here."""
    stage = Stage(*script(), tools=[save])
    began = time.perf_counter()
    go(stage)
    return time.perf_counter() - began


@pytest.mark.parametrize("go", [run_of, stream_of])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_c33_by_real_signals(go: Callable[[Stage], object], twice: bool) -> None:
    """Wherever a signal comes, and a second one during the closing, the store is valid and the next run works."""
    dice = random.Random(33)
    took = min(taken_by(go) for _ in range(5))
    hits = 0
    for _ in range(POINTS):
        stage = Stage(*script(), tools=[save])
        moments = [dice.uniform(0.00001, took * 1.1), *([dice.uniform(0.00001, took * 0.3)] if twice else [])]
        came = interrupted(lambda stage=stage: go(stage), *moments)  # type: ignore[misc]  # bound at once
        hits += came
        assert_laws(stage, repair=True, lost_streams=came)  # one that the script had made and not given out yet
    assert hits > POINTS / 4


@pytest.mark.parametrize("go", [run_of, stream_of])
def test_c33_at_every_line_of_the_kernel(go: Callable[[Stage], object]) -> None:
    """Before any line that a run executes an interrupt leaves nothing that the next run does not close, told once."""
    swallowed: list[str] = []
    broken: list[str] = []
    number = 0
    while True:
        number += 1
        stage = Stage(*script(), tools=[save])
        line = LineInterrupt(number)
        came_out = line(lambda stage=stage: go(stage))  # type: ignore[misc]  # bound at once
        if not line.where:
            break
        if not came_out:
            swallowed.append(line.where)
        try:
            assert_laws(stage, repair=True)
        except AssertionError as error:
            broken.append(f"{line.where}: {error}".splitlines()[0])
    assert number > 500
    assert swallowed == []
    assert broken == []
