"""The JSON text of an object that comes in pieces."""

from __future__ import annotations

import re

from ._json import is_object, parse_strict

_MARKS = re.compile(r'["{}\[\]]|\\.?', re.DOTALL)


class ObjectText:
    """The pieces, which may be cut anywhere. `whole` tells when they are an object; no piece is looked at twice for it.

    It counts brackets. Text that is no object when all of them are closed is none with more behind it either.
    """

    __slots__ = ("_counted", "_depth", "_escaped", "_hopeless", "_opened", "_pieces", "_quoted")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._counted = self._depth = 0
        self._opened = self._quoted = self._escaped = self._hopeless = False

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        """The next piece."""
        self._pieces.append(piece)

    def whole(self) -> bool:
        """Whether the text so far is an object."""
        for piece in self._pieces[self._counted :]:
            self._count(piece)
        self._counted = len(self._pieces)
        if not self._opened or self._depth > 0 or self._quoted or self._hopeless:
            return False
        try:
            self._hopeless = not is_object(parse_strict(str(self)))
        except ValueError:
            self._hopeless = True
        return not self._hopeless

    def _count(self, piece: str) -> None:
        start = 1 if self._escaped and piece else 0
        self._escaped = self._escaped and not piece
        for mark in _MARKS.findall(piece, start):
            if mark == '"':
                self._quoted = not self._quoted
            elif mark == "\\":  # what it escapes is in the next piece
                self._escaped = True
            elif self._quoted:
                continue
            elif mark in "{[":
                self._depth += 1
                self._opened = True
            elif mark in "}]":
                self._depth -= 1
