"""What comes for a run while it goes on: steers for the next turn boundary, follow-ups for where it would settle.

One step decides: a message that was accepted is delivered by this run or listed as undelivered; any other raises.
"""

from __future__ import annotations

from collections.abc import Callable

from .errors import LimitExceeded, NotRunning
from .messages import UserMessage

STEER, FOLLOW_UP = "steer", "follow_up"
CONTROL = "control"
"""Metadata key of a message with which a run went on, and how it came: it opened no run of its own."""
Queued = tuple[str, UserMessage]
"""A message, and which of the two controls it came by."""


class _Held:
    """What an inbox holds at one moment, as a value; `next` has what took its place."""

    __slots__ = ("delivering", "is_open", "next", "queued")

    def __init__(self, is_open: bool, queued: tuple[Queued, ...] = (), delivering: Queued | None = None) -> None:
        self.is_open = is_open
        self.queued = queued
        self.delivering = delivering  # on its way into the transcript: it can no longer be withdrawn
        self.next: dict[str, _Held] = {}


_NOTHING = _Held(False)  # never replaced: no step changes an inbox that is closed


class Inbox:
    """The queues of one run. A message leaves its queue when it is committed, so that none is lost in between.

    A step makes the next `_Held` and puts it in place by one atomic dict operation. So any thread and any signal
    handler may call this at any moment: there is no lock that an interrupted thread or a forked one could hold.
    """

    __slots__ = ("_held", "waits")

    def __init__(self) -> None:
        self._held = _NOTHING
        self.waits: bool = False  # whether anything ever came: looked at once a turn

    def open(self) -> None:
        """Takes messages from now on."""
        self._held = _Held(True)

    def put(self, control: str, message: UserMessage, most: int | None) -> None:
        """Queues the message; one with the id of a queued one is that one. Raises `NotRunning` and `LimitExceeded`."""

        def with_message(held: _Held) -> _Held:
            if not held.is_open:
                raise not_running(f"Agent.{control}")
            if any(message.id == queued.id for _, queued in held.queued):
                return held
            waiting = sum(kind == control for kind, _ in held.queued)
            if most is not None and waiting >= most:
                text = f"{waiting} messages wait to be delivered already (limits.max_{control})"
                raise LimitExceeded(text, limit=f"max_{control}", operation=f"Agent.{control}")
            self.waits = True
            return _Held(True, (*held.queued, (control, message)), held.delivering)

        self._step(with_message)

    def withdraw(self, message_id: str) -> bool:
        """Takes a message out of its queue. False if it is not there, or on its way into the transcript."""
        found = False

        def without_message(held: _Held) -> _Held:
            nonlocal found
            left = tuple([each for each in held.queued if each[1].id != message_id or each is held.delivering])
            found = held.is_open and len(left) < len(held.queued)
            return _Held(True, left, held.delivering) if found else held

        self._step(without_message)
        return found

    def begin_delivery(self, control: str) -> UserMessage | None:
        """The message of that queue that is delivered next; from here on it can no longer be withdrawn."""

        def with_first(held: _Held) -> _Held:
            first = next((each for each in held.queued if each[0] == control), None)
            return held if first is held.delivering else _Held(True, held.queued, first)

        delivering = self._step(with_first).delivering
        return None if delivering is None else delivering[1]

    def end_delivery(self) -> None:
        """That message is in the transcript."""
        self._step(lambda held: _Held(True, tuple([each for each in held.queued if each is not held.delivering])))

    def settle(self) -> bool:
        """Takes nothing more, if nothing is there. False if something has come."""
        return not self._step(lambda held: held if held.queued or not held.is_open else _Held(False)).is_open

    def close(self) -> list[UserMessage]:
        """Takes nothing more; what was not delivered, in the order in which it would have been."""
        held = self._step(lambda held: _Held(False, held.queued) if held.is_open else held)
        return [message for control in (STEER, FOLLOW_UP) for kind, message in held.queued if kind == control]

    def _step(self, change: Callable[[_Held], _Held]) -> _Held:
        """Puts what `change` makes of what is held in its place, and returns that. If it raises, nothing is changed."""
        while True:
            before = self._held
            while before.next:
                before = before.next["next"]
            after = change(before)
            if after is before:
                return after
            if before.next.setdefault("next", after) is after:
                self._held = after  # only a shortcut: the way along `next` leads there too
                return after


def not_running(operation: str) -> NotRunning:
    """No run is there to deliver a message."""
    return NotRunning("no run goes on that could deliver this message; run(message) begins one", operation=operation)
