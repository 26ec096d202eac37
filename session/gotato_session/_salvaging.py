"""What is left of a damaged session, put together so that it can go on, with its gaps marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gotato_py import GotatoError, ToolMessage, UserMessage

from ._ancestors import is_gap
from ._closing import closing_entries
from ._entries import (
    BranchEntry,
    CompactionEntry,
    Entry,
    GapEntry,
    LabelEntry,
    MessageEntry,
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

    The model is told of a gap by a user message. Calls whose results are lost are closed as *effect unknown* if they
    were started; results whose call is lost, and what names a place that is lost, are left out. `state` is the one
    before the first entry; it takes the new ones.
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
    __slots__ = ("_new_id", "_state", "_untold", "entries")

    def __init__(self, state: State, new_id: Callable[[], str]) -> None:
        self.entries: list[Entry] = []
        self._state = state
        self._new_id = new_id
        self._untold: list[str] = []  # gaps of which the model was not told yet

    def add_gap(self, text: str) -> None:
        """Marks a gap."""
        self._take(GapEntry(self._state.seq + 1, self._state.time, text))
        self._untold.append(text)

    def add(self, entry: Entry) -> None:
        """Takes an entry that is left, unless it fits no more."""
        state = self._state
        if isinstance(entry, MessageEntry | CompactionEntry):
            if not isinstance(entry, MessageEntry) or not isinstance(entry.message, ToolMessage):
                self.tell_gaps()
            if entry.parent in state.nodes and entry.parent != state.leaf and not self._is_new(state.leaf):
                self._take(BranchEntry(state.seq + 1, entry.time, entry.parent))  # the move itself was lost
            entry.parent = state.leaf
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
        for closing in closing_entries(state, state.time, self._new_id, why=_LOST):
            self._take(closing)
        if state.path.open:  # a batch that waits: the gap is told once it is over
            return
        text = f"[Part of this conversation was lost here: {'; '.join(dict.fromkeys(self._untold))}.]"
        message = UserMessage(text, id=self._new_id(), metadata={GAP: True})
        self._untold.clear()
        self._take(MessageEntry(state.seq + 1, state.time, state.leaf, message))

    def _is_new(self, entry_id: str) -> bool:
        """Whether the entry was made here: what follows it in the copy followed its parent once."""
        node = self._state.nodes.get(entry_id)
        return isinstance(node, MessageEntry) and GAP in node.message.metadata

    def _take(self, entry: Entry) -> None:
        self._state.take((entry,))
        self.entries.append(entry)
