"""The observer that keeps events as entries of a session."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from math import inf

from gotato_py import Event, InvalidArgument

from ._arguments import wrong
from ._json import json_text
from ._log import Log
from ._rules import event_entry

DEFAULT_MAX_BYTES = 1024 * 1024


class Recorder:
    """Keeps events in a session: those of some kinds, while the session has no more than so many bytes of them as JSON.

    An event that does not fit into what is left is not kept and counts in `dropped`; a smaller one after it may be.
    """

    __slots__ = ("_kinds", "_log", "_most", "dropped")

    def __init__(self, log: Log, kinds: Collection[str] | None, max_bytes: int | None) -> None:
        self._log = log
        self._kinds = _checked_kinds(kinds)
        if max_bytes is not None and (type(max_bytes) is not int or max_bytes < 0):
            raise InvalidArgument("record: max_bytes must be None or an int of at least 0")
        self._most = inf if max_bytes is None else max_bytes
        self.dropped: int = 0

    def observe(self, event: Event) -> None:
        """Keeps the event, if it is of one of the kinds and there is room for it."""
        if self._kinds is not None and event.kind not in self._kinds:
            return
        text = json_text("event", event.to_dict())
        if self._log.state.event_bytes + len(text.encode()) > self._most:
            self.dropped += 1
            return
        self._log.commit("Session.observe", partial(event_entry, text))


_EVENT_KINDS = frozenset(each.kind for each in Event.__args__)


def _checked_kinds(kinds: Collection[str] | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    if isinstance(kinds, str) or not isinstance(kinds, Collection):
        raise wrong("record: kinds", "None or a collection of kinds of events", kinds)
    for kind in kinds:
        if kind not in _EVENT_KINDS:
            raise InvalidArgument(f"record: kinds holds {kind!r}; an event is one of {', '.join(sorted(_EVENT_KINDS))}")
    return frozenset(kinds)
