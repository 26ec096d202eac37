"""When a context is compacted, and how far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gotato_py import InvalidArgument


@dataclass(frozen=True, slots=True)
class CompactPolicy:
    """Compact what takes more than `ceiling` tokens, down to about `floor` tokens.

    What is known of a request counts: messages and instructions by an estimate, tools and the sections that a builder
    adds by the usage that answers report. Until one has, these count as `AutoCompact(overhead=…)` says, as nothing
    where it does not: a first request may be over the ceiling by as much.

    Above the ceiling there has to be room for an answer and for what tools return in one turn. The further the floor
    is below it, the more seldom a summary is made, and the prompt cache lost. Raises `InvalidArgument` unless
    0 <= floor < ceiling.
    """

    ceiling: int
    floor: int

    def __post_init__(self) -> None:
        if type(self.ceiling) is not int or type(self.floor) is not int or not 0 <= self.floor < self.ceiling:
            raise InvalidArgument("CompactPolicy takes two ints, 0 <= floor < ceiling: numbers of tokens")

    @classmethod
    def of_window(cls, window: int, *, ceiling: float = 0.8, floor: float = 0.4) -> Self:
        """The policy for a model that takes `window` tokens, with ceiling and floor as shares of it."""
        if type(window) is not int or window < 1:
            raise InvalidArgument("CompactPolicy.of_window: window must be an int of at least 1")
        shares = isinstance(floor, int | float) and isinstance(ceiling, int | float)
        if not shares or not 0 <= floor < ceiling <= 1:
            raise InvalidArgument("CompactPolicy.of_window: floor and ceiling are shares, 0 <= floor < ceiling <= 1")
        return cls(int(window * ceiling), int(window * floor))
