"""`<think>…</think>` at the beginning of an answer's text, which some servers leave there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_OPEN, _CLOSE = "<think>", "</think>"
_MOST_BEFORE = 100
"""White space before the tag, in characters: a model that says nothing but that is not held back for ever."""


class Piece(NamedTuple):
    """Some text, and whether it is reasoning."""

    reasoning: bool
    text: str


class ThinkTags:
    """Splits text that comes in pieces; a tag may be cut anywhere. Only a tag before all other text counts."""

    def __init__(self) -> None:
        self._state = "before"
        self._held = ""

    def feed(self, text: str) -> Iterator[Piece]:
        """The pieces that are decided now."""
        self._held += text
        if self._state == "before":
            self._begin()
        if self._state == "opened":
            self._held = self._held.lstrip("\n")
            self._state = "inside" if self._held else "opened"
        if self._state == "inside":
            yield from self._inside()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        if self._state == "text" and self._held:
            yield Piece(False, self._take(len(self._held)))

    def finish(self) -> Iterator[Piece]:
        """What was held back, at the end of the text."""
        if self._held:
            yield Piece(self._state == "inside", self._take(len(self._held)))

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._state, self._held = "opened", start[len(_OPEN) :]
        elif not _OPEN.startswith(start) or len(self._held) > _MOST_BEFORE:
            self._state = "text"

    def _inside(self) -> Iterator[Piece]:
        end = self._held.find(_CLOSE)
        if end >= 0:
            thought = self._take(end)
            self._take(len(_CLOSE))
            self._state = "after"
        else:
            thought = self._take(len(self._held) - _overlap(self._held))
        if thought:
            yield Piece(True, thought)

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def _overlap(text: str) -> int:
    """How many of the last characters may be the beginning of the closing tag."""
    return next((size for size in range(min(len(_CLOSE) - 1, len(text)), 0, -1) if _CLOSE.startswith(text[-size:])), 0)
