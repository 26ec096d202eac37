"""What an extension remembers of a transcript, for as long as it matters."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import ref

T = TypeVar("T")

MOST = 64
"""How many transcripts are remembered: agents may share an extension, and most of them come and go."""


class PerTranscript(Generic[T]):
    """A value for each of the transcripts that were seen last; one that is forgotten is made anew.

    A transcript that can be referred to weakly is not kept alive; another one only among the few last.
    """

    __slots__ = ("_known", "_lock", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._known: dict[int, tuple[Callable[[], object], T]] = {}
        self._lock = Lock()

    def of(self, transcript: object) -> T:
        """The value of this transcript."""
        with self._lock:
            found = self._known.pop(id(transcript), None)
            if found is None or found[0]() is not transcript:  # an id may come again
                found = (_reference(transcript), self._make())
                self._make_room()
            self._known[id(transcript)] = found  # the newest stands last
            return found[1]

    def _make_room(self) -> None:
        if len(self._known) >= MOST:
            gone = [key for key, (refer, _) in self._known.items() if refer() is None]
            for key in gone or [next(iter(self._known))]:
                del self._known[key]


def _reference(transcript: object) -> Callable[[], object]:
    try:
        return ref(transcript)
    except TypeError:  # a class with slots and without one for this
        return lambda: transcript
