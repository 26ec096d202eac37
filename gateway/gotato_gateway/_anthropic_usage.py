"""Token counts of the Messages API ("Usage" in Anthropic's API reference), as one neutral `Usage`.

`input_tokens` counts neither what was read from a cache nor what was written to one; the neutral input is all three.
Counts are cumulative: those of a `message_delta` replace those of `message_start`, except where they are 0 or left out.
What the server spends on a summary of its own (`iterations`, "Compaction") is not counted: nothing here asks for one.
"""

from __future__ import annotations

from gotato_py import Usage

from ._json import Object, count, obj

_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class UsageCounts:
    """What was counted so far in one answer."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, said: Object) -> None:
        """The counts of one event."""
        self._take("thinking_tokens", obj(said.get("output_tokens_details")))
        for name in _COUNTS:
            self._take(name, said)

    def _take(self, name: str, said: Object) -> None:
        number = count(said.get(name))
        if number is not None:
            self._counts[name] = number or self._counts.get(name, 0)

    def total(self) -> Usage | None:
        """The neutral counts; None if nothing was counted."""
        if not self._counts:
            return None
        fresh, output, read, written = (self._counts.get(name, 0) for name in _COUNTS)
        thought = min(self._counts.get("thinking_tokens", 0), output)
        return Usage(fresh + read + written, output, read, written, thought)
