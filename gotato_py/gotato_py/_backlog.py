"""What a subscriber has not read yet, as an immutable value: each step makes the next one."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from ._value import replace
from .events import Event, MessageUpdate, ReasoningUpdate, ToolCallUpdate, ToolExecutionUpdate

OPEN, FINISHED, CLOSED = "open", "finished", "closed"


# No id says which answer a piece is of, and none is needed: an answer begins and ends with an event of another kind.
_answer = attrgetter("run_id", "turn")
_UPDATES: dict[type, tuple[str, str, Callable[[Event], object]]] = {
    # the field of its text, what stands between two of them, what is equal in two that can be joined
    MessageUpdate: ("text", "", _answer),
    ReasoningUpdate: ("text", "", _answer),
    ToolCallUpdate: ("fragment", "", attrgetter("run_id", "turn", "index")),
    ToolExecutionUpdate: ("text", "\n", attrgetter("run_id", "turn", "key")),
}


class Joined:
    """Updates of one message that became one: the newest of them, the first name that was said, and the texts of all.

    Each text is at least twice as long as the next: joining n of them, one by one, costs n log n and not n².
    """

    __slots__ = ("event", "name", "texts")

    def __init__(self, event: Event, name: str, texts: tuple[str, ...]) -> None:
        self.event = event
        self.name = name  # many providers name a tool in the first piece only
        self.texts = texts

    def whole(self) -> Event:
        """The one update that stands for them all."""
        field, separator, _ = _UPDATES[type(self.event)]
        changes = {field: separator.join(self.texts)}
        return replace(self.event, **changes, name=self.name) if self.name else replace(self.event, **changes)


Entry = Event | Joined
Link = tuple[Entry, "Link | None"]
"""The first entry of a list, and the rest of it."""


def join(older: Entry, newer: Entry) -> Joined | None:
    """Two neighbours as one, or None where they are not updates of the same message."""
    before = older.event if isinstance(older, Joined) else older
    event = newer.event if isinstance(newer, Joined) else newer
    if type(before) is not type(event) or type(event) not in _UPDATES:
        return None
    field, separator, whose = _UPDATES[type(event)]
    if whose(before) != whose(event):
        return None
    texts = _texts_of(older, field)
    for text in _texts_of(newer, field):
        texts = _extended(texts, separator, text)
    return Joined(event, _name_of(older) or _name_of(newer), texts)


def _extended(texts: tuple[str, ...], separator: str, text: str) -> tuple[str, ...]:
    kept = list(texts)
    while kept and len(kept[-1]) < 2 * len(text):
        text = kept.pop() + separator + text
    return (*kept, text)


def _texts_of(entry: Entry, field: str) -> tuple[str, ...]:
    if isinstance(entry, Joined):
        return entry.texts
    text: str = getattr(entry, field)
    return (text,)


def _name_of(entry: Entry) -> str:
    name: str = getattr(entry, "name", "")
    return name


class Backlog:
    """Events in their order, at most `maxsize` of them: those of `front`, oldest first, then `back`, newest first.

    The newest is always in `back`, where an update finds it. A backlog that has been full is `crowded` until half of it
    is read: updates are joined at once meanwhile, so that no two neighbours are left that could be, and nobody has to
    look for them at every further event. `missed` counts the events that found no room.
    """

    __slots__ = ("back", "crowded", "front", "last", "maxsize", "missed", "next", "size", "state")

    def __init__(
        self,
        maxsize: int,
        front: Link | None = None,
        back: Link | None = None,
        size: int = 0,
        crowded: bool = False,
        last: Event | None = None,
        missed: int = 0,
        state: str = OPEN,
    ) -> None:
        self.maxsize = maxsize
        self.front = front
        self.back = back
        self.size = size
        self.crowded = crowded
        self.last = last  # what was pushed last, read or not
        self.missed = missed
        self.state = state
        self.next: dict[str, Backlog] = {}  # what took the place of this one

    @property
    def must_wait(self) -> bool:
        """Whether a reader has to wait: nothing is there, and it is not the end."""
        return not self.size and not self.missed and self.state is OPEN

    def pushed(self, event: Event) -> Backlog:
        """With one more event. The same one twice in a row is one: whoever was interrupted pushes it again."""
        if event is self.last or self.state is not OPEN:
            return self
        if self.missed:
            return Backlog(self.maxsize, self.front, self.back, self.size, True, event, self.missed + 1)
        if self.crowded or self.size >= self.maxsize:
            return self._squeezed(event)
        return Backlog(self.maxsize, self.front, (event, self.back), self.size + 1, False, event)

    def _squeezed(self, event: Event) -> Backlog:
        front, back, size = self.front, self.back, self.size
        joined = None if back is None else join(back[0], event)
        if back is not None and joined is not None:
            return Backlog(self.maxsize, front, (joined, back[1]), size, self.crowded, event)
        if not self.crowded:
            front, back, size = None, *_joined_neighbours(front, back)
        if size >= self.maxsize:
            return Backlog(self.maxsize, front, back, size, True, event, 1)
        return Backlog(self.maxsize, front, (event, back), size + 1, size >= self.maxsize // 2, event)

    def taken(self) -> tuple[Backlog, Event, Backlog] | None:
        """This backlog, its oldest event, and what is then left; None where there is nothing."""
        front, back = self.front, self.back
        if back is None:
            return None
        if front is None:
            front, back = _turned(back)
        entry, front = front
        size = self.size - 1
        crowded = self.crowded and size > self.maxsize // 2
        event = entry.whole() if isinstance(entry, Joined) else entry
        return self, event, Backlog(self.maxsize, front, back, size, crowded, self.last, self.missed, self.state)

    def given_back(self, event: Event) -> Backlog:
        """With the oldest event as it was before it was taken; it may be one more than `maxsize`."""
        if self.state is CLOSED:
            return self
        front, back = (None, (event, None)) if self.back is None else ((event, self.front), self.back)
        return Backlog(self.maxsize, front, back, self.size + 1, self.crowded, self.last, self.missed, self.state)

    def ended(self, state: str) -> Backlog:
        """Finished, which leaves what is queued to the readers, or closed, which leaves nothing."""
        if self.state is CLOSED or self.state is state:
            return self
        if state is CLOSED:
            return Backlog(self.maxsize, state=state)
        return Backlog(self.maxsize, self.front, self.back, self.size, self.crowded, None, self.missed, state)


def _turned(back: Link) -> tuple[Link, Link | None]:
    """A list, newest first, as a front and a back that holds the newest only. Of one entry there is no back."""
    newest, older = back
    if older is None:
        return back, None
    entry, older = older
    front: Link = (entry, None)
    while older is not None:
        entry, older = older
        front = (entry, front)
    return front, (newest, None)


def _joined_neighbours(front: Link | None, back: Link | None) -> tuple[Link | None, int]:
    """All entries as one list, newest first, with neighbours joined where that can be; and how many there are then."""
    newer: list[Entry] = []
    while back is not None:
        entry, back = back
        newer.append(entry)
    joined: Link | None = None
    size = 0
    while front is not None or newer:
        entry, front = (newer.pop(), None) if front is None else front
        both = None if joined is None else join(joined[0], entry)
        if joined is not None and both is not None:
            joined = (both, joined[1])
        else:
            joined, size = (entry, joined), size + 1
    return joined, size
