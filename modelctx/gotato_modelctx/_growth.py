"""How much of a history that grows was looked at already."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import Message


class Growth:
    """Remembers a history by its first and its last known message; one that does not go on from those is another.

    Messages are never changed and a history only grows, so those two, at their places, tell all between them.
    """

    __slots__ = ("_count", "_first", "_last")

    def __init__(self) -> None:
        self._first: Message | None = None
        self._last: Message | None = None
        self._count = 0

    def known(self, messages: Sequence[Message]) -> int:
        """How many of the messages are known; 0 for another history, which is to be looked at from its start."""
        count = self._count
        if not (count and count <= len(messages)):
            return 0
        return count if messages[0] is self._first and messages[count - 1] is self._last else 0

    def know(self, messages: Sequence[Message], count: int) -> None:
        """The first `count` of the messages are known from now on."""
        self._count = count
        if count:
            self._first, self._last = messages[0], messages[count - 1]
