"""What a row is, and how two things are measured beside each other on a machine that is never quiet."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Figure = Callable[[], float]
"""Measures once, and returns the figure."""


@dataclass(frozen=True)
class Effort:
    """How much is measured. Quick is for trying the command out: its figures mean little."""

    quick: bool = False

    def times(self, thorough: int, quick: int = 2) -> int:
        """How often to measure."""
        return quick if self.quick else thorough


@dataclass(frozen=True)
class Spread:
    """The median of what was measured, with the least and the most."""

    middle: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The spread of the values."""
    return Spread(median(values), min(values), max(values))


@dataclass(frozen=True)
class Measured:
    """What a row found: the figure, and where there is one, the floor's figure and the ratio of the two."""

    ours: Spread
    floor: Spread | None = None
    ratio: Spread | None = None


@dataclass(frozen=True)
class Goal:
    """What a row must reach, and what it aims at. `of` says which number is judged; `least`, that more is better."""

    must: float
    aim: float
    of: Literal["ours", "ratio"] = "ours"
    least: bool = False

    def reached(self, found: float, wanted: float) -> bool:
        """Whether the number found is as good as the one wanted."""
        return found >= wanted if self.least else found <= wanted


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    title: str
    unit: str
    goal: Goal | None
    measure: Callable[[Effort], Measured]

    def judged(self, measured: Measured) -> Spread | None:
        """The number that the goal is about."""
        return measured.ratio if self.goal is not None and self.goal.of == "ratio" else measured.ours

    def verdict(self, measured: Measured) -> str:
        """What the median says about the goal."""
        found = self.judged(measured)
        if self.goal is None or found is None:
            return "-"
        if self.goal.reached(found.middle, self.goal.aim):
            return "aim"
        return "must" if self.goal.reached(found.middle, self.goal.must) else "MISSED"


def paired(floor: Figure, ours: Figure, times: int) -> Measured:
    """Measures the two by turns, A B A B …, so that a slow spell of the machine meets both; ratios are of pairs."""
    floor()  # a first time, for caches
    ours()
    pairs: list[tuple[float, float]] = []
    for _ in range(times):
        gc.collect()
        first = floor()
        gc.collect()
        pairs.append((first, ours()))
    return Measured(
        ours=spread([mine for _, mine in pairs]),
        floor=spread([bare for bare, _ in pairs]),
        ratio=spread([mine / bare for bare, mine in pairs]),
    )
