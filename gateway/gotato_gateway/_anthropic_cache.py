"""Marks for Anthropic's prompt cache ("Prompt caching" in its documentation): at most four, each on a block.

What is marked is a prefix: the tools, then the system prompt, then the messages up to a block. Where more marks are
asked for than the server takes, those of the system prompt and the tools stay, then the newest.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._json import Object

MOST_MARKS = 4


def mark(
    breakpoints: Sequence[str | int], system: Sequence[Object], tools: Sequence[Object], ends: Sequence[Object | None]
) -> None:
    """Puts the marks where `breakpoints` says; `ends` are the last blocks of the messages."""
    fixed = [blocks[-1] for name, blocks in (("system", system), ("tools", tools)) if name in breakpoints and blocks]
    places = sorted({each for each in breakpoints if isinstance(each, int) and each < len(ends)}, reverse=True)
    marked = len(fixed)
    for block in fixed:
        _mark(block)
    for place in places:
        end = ends[place]
        if marked < MOST_MARKS and end is not None and "cache_control" not in end:
            _mark(end)
            marked += 1


def _mark(block: Object) -> None:
    block["cache_control"] = {"type": "ephemeral"}
