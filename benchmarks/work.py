"""The work that both sides do: rounds of one tool call with a unique result of 4 KB, then a text."""

from __future__ import annotations

from itertools import count

FINAL = "All done."
ROUNDS = 25
RESULT_BYTES = 4096

_numbers = count(1)


def lookup(key: str) -> str:
    """Look up a key."""
    return f"{key}:{next(_numbers)}:".ljust(RESULT_BYTES, "x")


class Script:
    """What the model says: `rounds` tool calls, then the final text; then the same again."""

    def __init__(self, rounds: int, deltas: int = 0) -> None:
        self.rounds = rounds
        self.deltas = [f"w{number % 1000:03d} " for number in range(deltas)]
        self._taken = 0

    def step(self) -> tuple[str, str] | None:
        """The id and the arguments of a tool call, or None for the final text."""
        self._taken += 1
        if self._taken <= self.rounds:
            return f"call_{self._taken}", f'{{"key": "k{self._taken}"}}'
        self._taken = 0
        return None
