"""What a builder knows of the histories that it was shown, so that no turn has to read one again from its start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from gotato_py import Message

from ._growth import Growth

_MOST = 256
"""How many histories a builder remembers at once: one may serve many agents."""


class Fold(Protocol):
    """Something that takes the messages of one history, one by one."""

    def add(self, message: Message) -> None:
        """Takes the next message."""
        ...


F = TypeVar("F", bound=Fold)


class Followed(Generic[F]):
    """A fold, and how far it has come."""

    __slots__ = ("fold", "growth")

    def __init__(self, fold: F) -> None:
        self.fold = fold
        self.growth = Growth()


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
        known = 0 if followed is None else followed.growth.known(messages)
        if followed is None or not known:
            followed = Followed(self._make())
        for index in range(known, len(messages)):
            followed.fold.add(messages[index])
        followed.growth.know(messages, len(messages))
        return followed

    def give_back(self, owner: object, followed: Followed[F]) -> None:
        """Keeps the fold for the next turn, and forgets the oldest of too many."""
        self._kept[id(owner)] = followed
        if len(self._kept) > _MOST:
            for oldest in list(self._kept)[:-_MOST]:
                self._kept.pop(oldest, None)
