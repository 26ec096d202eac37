"""Characters that two pieces of a text share, as halves of a surrogate pair in two JSON strings."""

from __future__ import annotations

from ._json import clean


class Halves:
    """Holds back half a character until the other half is there; one that never comes is U+FFFD."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """What can be given on now, free of lone surrogates."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def finish(self) -> str:
        """What was held back, at the end of the text."""
        half, self._half = self._half, ""
        return clean(half)
