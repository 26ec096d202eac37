"""A token bucket: so much at once, so much a second afterwards. Plain arithmetic, without threads and clocks."""

from __future__ import annotations

from math import inf

_NOTHING = 1e-6
"""A shortage below this is the rounding of times, and waiting for it would never end."""


class Bucket:
    """Holds at most what one minute allows, full at first. `level` is below 0 while it owes.

    More than it ever holds is taken from a full one, which then owes the rest.
    """

    def __init__(self, per_minute: float) -> None:
        self.capacity = float(per_minute)
        self.level = self.capacity

    def refill(self, seconds: float) -> None:
        """What has come in during that time."""
        self.level = min(self.capacity, self.level + seconds * self.capacity / 60)

    def delay(self, amount: float, before: float = 0.0) -> float:
        """Seconds until `amount` can be taken, if `before` is taken first."""
        missing = before + min(amount, self.capacity) - self.level
        return missing * 60 / self.capacity if missing > _NOTHING else 0.0

    def take(self, amount: float) -> None:
        """Takes that much out; a negative amount is given back."""
        self.level = min(self.capacity, self.level - amount)

    def know(self, remaining: float | None) -> None:
        """Lowers the level to what the provider says is left."""
        self.level = min(self.level, inf if remaining is None else remaining)
