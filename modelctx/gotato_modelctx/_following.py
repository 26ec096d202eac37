"""What a builder knows of the histories that it was shown, so that no turn has to read one again from its start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from gotato_py import Message

_MOST = 256
"""How many histories a builder remembers at once: one may serve many agents."""


class Fold(Protocol):
    """Something that takes the messages of one history, one by one."""

    def add(self, message: Message) -> None:
        """Takes the next message."""
        ...


F = TypeVar("F", bound=Fold)


class Followed(Generic[F]):
    """A fold, and how far it has come. It goes on where the history begins with what it knows: messages are never
    changed, so the first and the last one that it knows, at their places, tell that."""

    __slots__ = ("count", "first", "fold", "last")

    def __init__(self, fold: F) -> None:
        self.fold = fold
        self.count = 0
        self.first: Message | None = None
        self.last: Message | None = None

    def continues_in(self, messages: Sequence[Message]) -> bool:
        """Whether these messages begin with the known ones."""
        if not self.count:
            return True
        return self.count <= len(messages) and messages[self.count - 1] is self.last and messages[0] is self.first

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Takes what is new."""
        for index in range(self.count, len(messages)):
            self.fold.add(messages[index])
        self.count = len(messages)
        if self.count:
            self.first, self.last = messages[0], messages[self.count - 1]


class Following(Generic[F]):
    """The folds of many histories, each found by what it belongs to. For several threads: a fold that one of them has
    in hand is not there for the others, which then read their history anew."""

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[], F]) -> None:
        self._make = make
        self._kept: dict[int, Followed[F]] = {}

    def take(self, owner: object, messages: Sequence[Message]) -> Followed[F]:
        """The fold of these messages, caught up and nobody else's until it is given back."""
        followed = self._kept.pop(id(owner), None)
        if followed is None or not followed.continues_in(messages):
            followed = Followed(self._make())
        followed.catch_up(messages)
        return followed

    def give_back(self, owner: object, followed: Followed[F]) -> None:
        """Keeps the fold for the next turn, and forgets the oldest of too many."""
        self._kept[id(owner)] = followed
        if len(self._kept) > _MOST:
            for oldest in list(self._kept)[:-_MOST]:
                self._kept.pop(oldest, None)
