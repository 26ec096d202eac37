"""What comes for a run while it goes on: steers for the next turn boundary, follow-ups for where it would settle.

One lock decides: a message that was accepted is delivered by this run or listed as undelivered; any other raises.
"""

from __future__ import annotations

from threading import RLock

from .errors import LimitExceeded, NotRunning
from .messages import UserMessage

STEER, FOLLOW_UP = "steer", "follow_up"


class Inbox:
    """The queues of one run. A message leaves its queue when it is committed, so that none is lost in between.

    The lock is re-entrant: a signal handler may steer the run that its own thread is about to steer.
    """

    __slots__ = ("_delivering", "_lock", "_open", "_queues", "waits")

    def __init__(self) -> None:
        self._lock = RLock()
        self._open = False
        self._queues: dict[str, list[UserMessage]] = {}
        self._delivering = ""
        self.waits = False  # whether something may be there: read without the lock, once a turn

    def open(self) -> None:
        """Takes messages from now on."""
        self._open = True

    def put(self, control: str, message: UserMessage, most: int | None) -> None:
        """Queues the message; one with the id of a queued one is that one. Raises `NotRunning` and `LimitExceeded`."""
        operation = f"Agent.{control}"
        with self._lock:
            if not self._open:
                raise not_running(operation)
            queue = self._queues.setdefault(control, [])
            if any(message.id == queued.id for each in self._queues.values() for queued in list(each)):
                return
            if most is not None and len(queue) >= most:
                text = f"{len(queue)} messages wait to be delivered already (limits.max_{control})"
                raise LimitExceeded(text, limit=f"max_{control}", operation=operation)
            self.waits = True
            queue.append(message)

    def withdraw(self, message_id: str) -> bool:
        """Takes a message out of its queue. False if it is not there, or on its way into the transcript."""
        with self._lock:
            if not self._open or message_id == self._delivering:
                return False
            for queue in self._queues.values():
                for message in list(queue):
                    if message.id == message_id:
                        queue.remove(message)
                        return True
            return False

    def next(self, control: str) -> UserMessage | None:
        """The message that is delivered next; it can no longer be withdrawn."""
        with self._lock:
            queue = self._queues.get(control)
            if not queue:
                self._delivering = ""
                self.waits = any(self._queues.values())
                return None
            self._delivering = queue[0].id
            return queue[0]

    def delivered(self, control: str) -> None:
        """The next message is in the transcript."""
        with self._lock:
            self._queues[control].pop(0)
            self._delivering = ""

    def settle(self) -> bool:
        """Takes nothing more, if nothing is there. False if something has come."""
        with self._lock:
            if any(self._queues.values()):
                return False
            self._open = False
            return True

    def close(self) -> list[UserMessage]:
        """Takes nothing more; what was not delivered, in the order in which it would have been."""
        with self._lock:
            self._open = False
            return [message for control in (STEER, FOLLOW_UP) for message in self._queues.get(control, ())]


def not_running(operation: str) -> NotRunning:
    """No run is there to deliver a message."""
    return NotRunning("no run goes on that could deliver this message; pass it to run()", operation=operation)
