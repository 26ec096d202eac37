"""The reasoning in an answer of the responses dialect: its parts joined, each item closed with what can go back.

An item is closed when the one behind it is known, since the signature has to say what that was.
"""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import ModelEvent, ReasoningDelta, ReasoningDone

from ._halves import Halves
from ._json import Object
from ._responses_output import CALL, Item, Output, texts_in
from ._responses_reasoning import seal

BETWEEN_PARTS = "\n\n"


class Thoughts:
    """Gives the events of reasoning to `give`. At most one item is open, and at most one waits for its follower."""

    def __init__(self, origin: str, output: Output, give: Callable[[ModelEvent], None]) -> None:
        self._origin, self._output, self._give = origin, output, give
        self._halves = Halves()
        self._open: Item | None = None
        self._waiting: Item | None = None

    def add(self, item: Item, part: tuple[str, int | None], said: str) -> None:
        """A further piece of one part of an item."""
        if not said or item.closed:
            return
        if self._open is not item:
            self.interrupt()
            self._open = item
        if item.told and part not in item.told:
            said = BETWEEN_PARTS + said
        item.told.add(part)
        item.shown = True
        if whole := self._halves.feed(said):
            self._give(ReasoningDelta(whole))

    def done(self, item: Item, said: Object) -> None:
        """An item is complete. What no delta told is told now."""
        if item.closed:
            return
        if not item.told:
            for index, each in enumerate(item.summary + texts_in(said.get("content"))):
                self.add(item, ("whole", index), each)
        if not item.shown and not item.encrypted:
            return
        follower = self._output.behind(item)
        if follower is None:
            self._waiting = item
        else:
            self._close(item, follower)

    def followed_by(self, follower: Item) -> None:
        """A new item was announced."""
        if self._waiting is not None:
            self._close(self._waiting, follower)

    def interrupt(self) -> None:
        """Something else is about to be told: reasoning that is still open there ends, for what it showed."""
        if self._open is not None:
            self._open.shown = False
            self._end_text()
            self._give(ReasoningDone("", self._origin))

    def finish(self) -> None:
        """The answer is over: what waits has no follower, what is open was never completed."""
        if self._waiting is not None:
            self._close(self._waiting, None)
        self.interrupt()

    def _close(self, item: Item, follower: Item | None) -> None:
        self._waiting = None if self._waiting is item else self._waiting
        if self._open is item:
            self._end_text()
        else:
            self.interrupt()
        item.closed = True
        signature = ""
        if item.encrypted:
            call = follower.position if follower is not None and follower.kind == CALL else None
            kind, phase = ("", "") if follower is None else (follower.kind, follower.phase)
            signature = seal(item.id, item.summary, item.encrypted, kind, call, phase)
        elif not item.shown:
            return
        self._give(ReasoningDone(signature, self._origin, redacted=bool(signature) and not item.shown))

    def _end_text(self) -> None:
        self._open = None
        if half := self._halves.finish():
            self._give(ReasoningDelta(half))
