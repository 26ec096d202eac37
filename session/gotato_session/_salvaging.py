"""What is left of a damaged session, put together so that it can go on, with its gaps marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gotato_py import GotatoError, Message, ToolMessage, UserMessage

from ._ancestors import is_gap
from ._closing import closing_entries
from ._entries import (
    BranchEntry,
    CompactionEntry,
    Entry,
    GapEntry,
    LabelEntry,
    MessageEntry,
    StartedEntry,
)
from ._entry_json import entry_from_dict
from ._opening import check_fit
from ._state import State
from .journal import JSONObject

GAP = "gap"
"""The key in the `metadata` of the user message that tells of a gap."""
_LOST = "what came of it was lost with a part of the session"


def salvaged(stored: Sequence[JSONObject], state: State, new_id: Callable[[], str]) -> list[Entry]:
    """The entries of a copy: those that are left and still fit, numbered anew, and one for each gap.

    The model is told of a gap by a user message. Calls whose results are lost are closed as *effect unknown*: the mark
    that they were started may be lost as well. What followed an entry that is lost follows the message that tells so;
    results whose call is lost, and labels of a place that is lost, are left out. `state` is the one before the first
    entry; it takes the new ones.
    """
    copy = _Copy(state, new_id)
    for data in stored:
        if is_gap(data):
            copy.add_gap(str(data.get("text", "something is missing here")))
            continue
        try:
            copy.add(entry_from_dict(data))
        except GotatoError:
            copy.add_gap("an entry that could not be read")
    copy.tell_gaps()
    return copy.entries


class _Copy:
    __slots__ = ("_made", "_new_id", "_places", "_state", "_told", "_untold", "entries")

    def __init__(self, state: State, new_id: Callable[[], str]) -> None:
        self.entries: list[Entry] = []
        self._state = state
        self._new_id = new_id
        self._untold: list[str] = []  # gaps of which the model was not told yet
        self._told = ""  # the message that tells of the last gap
        self._made: set[str] = set()  # the messages that were made here
        self._places: dict[str, str] = {}  # what stands for an entry that is lost: the one that the next is put behind

    def add_gap(self, text: str) -> None:
        """Marks a gap."""
        self._take(GapEntry(self._state.seq + 1, self._state.time, text))
        self._untold.append(text)
        if not self._state.waiting_calls:
            self._mark_open()

    def add(self, entry: Entry) -> None:
        """Takes an entry that is left, unless it fits no more."""
        state = self._state
        if isinstance(entry, MessageEntry | CompactionEntry):
            self._come_to(entry)
            entry.parent = state.leaf
        elif isinstance(entry, BranchEntry) and entry.to and entry.to not in state.nodes:
            entry.to = self._places.get(entry.to, self._told) or entry.to
        entry.seq = state.seq + 1
        try:
            check_fit(entry, state)
        except GotatoError:
            if isinstance(entry, LabelEntry | BranchEntry):
                return  # the place is lost, and what follows says where it belongs
            self._untold.append(f"a {type(entry).__name__.removesuffix('Entry').lower()} that has lost its place")
            return
        self._take(entry)

    def tell_gaps(self) -> None:
        """Closes what is open at a gap, and tells the model of it."""
        if not self._untold:
            return
        state = self._state
        self._close_open()
        if state.path.open:  # a batch that waits: the gap is told once it is over
            return
        text = f"[Part of this conversation was lost here: {'; '.join(dict.fromkeys(self._untold))}.]"
        self._untold.clear()
        self._told = self._new_id()
        self._make(UserMessage(text, id=self._told, metadata={GAP: True}))

    def _come_to(self, entry: MessageEntry | CompactionEntry) -> None:
        """Goes where the entry belongs: behind its parent, or, where that is lost, behind what stands for it."""
        state, parent = self._state, entry.parent
        is_lost = bool(parent) and parent not in state.nodes
        place = self._places.get(parent) if is_lost else parent
        is_result = isinstance(entry, MessageEntry) and isinstance(entry.message, ToolMessage)
        if place is None and state.path.open and not self._untold and not is_result:
            place = self._told  # what is open here is of another branch
        if place is not None and not self._is_at(place):
            self._take(BranchEntry(state.seq + 1, entry.time, place))  # the move itself was lost
        if is_result:
            return
        if isinstance(entry, MessageEntry) and state.path.open:  # it came after results, which are lost
            self._mark_open()
            self._close_open()
        if not state.path.open:
            self.tell_gaps()
        if is_lost:
            self._places.setdefault(parent, state.leaf)

    def _is_at(self, place: str) -> bool:
        """Whether the copy stands there, or right behind it: what was made here was put between the two."""
        at = self._state.leaf
        while at != place and at in self._made:
            at = self._state.nodes[at].parent
        return at == place

    def _mark_open(self) -> None:
        """Marks the open calls as started: that they were may be lost with what came of them."""
        state = self._state
        for key, _ in state.path.open_calls:
            if key not in state.started and key not in state.results:
                self._take(StartedEntry(state.seq + 1, state.time, key))

    def _close_open(self) -> None:
        """Gives the open calls results. A message that waits for its place gets it where it comes."""
        for closing in closing_entries(self._state, self._state.time, self._new_id, why=_LOST):
            if isinstance(closing, MessageEntry) and isinstance(closing.message, ToolMessage):
                self._make(closing.message)

    def _make(self, message: Message) -> None:
        self._take(MessageEntry(self._state.seq + 1, self._state.time, self._state.leaf, message))
        self._made.add(message.id)

    def _take(self, entry: Entry) -> None:
        self._state.take((entry,))
        self.entries.append(entry)
