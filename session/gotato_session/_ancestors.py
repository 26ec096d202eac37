"""What is left of a session together with those that it was forked from, where these are damaged or gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gotato_py import NotFound, SessionCorrupt

from ._head import FORK_KEYS, Head, read_head
from .journal import JSONObject

_ITS_OWN = ("run", "event", "waiting", "metadata")
"""The entries of a session that its forks do not have; a fork's metadata are in its head."""


def is_gap(entry: JSONObject) -> bool:
    """Whether it stands where something is missing, as `StoreBase.salvage_journal` says; a gap that a copy has kept is
    an entry as others are."""
    return entry.get("type") == "gap" and "seq" not in entry


def what_is_left(id: str, salvage: Callable[[str], Sequence[JSONObject]], *heirs: str) -> list[JSONObject]:
    """What can be read of a session, and before that of those that it was forked from, as a session of its own: a head
    without a parent, then entries and gaps. Raises `SessionCorrupt` where there is no head."""
    first, *own = salvage(id)
    head = read_head(id, [first, *own])
    alone = {key: value for key, value in first.items() if key not in FORK_KEYS}
    if not head.parent_id:
        return [alone, *own]
    try:
        if head.parent_id in (id, *heirs):
            raise SessionCorrupt("it is its own ancestor")
        shared = _shared(what_is_left(head.parent_id, salvage, id, *heirs)[1:], head, first.get("created_at"))
    except (NotFound, SessionCorrupt):
        shared = [_gap(f"all that it had from the session {head.parent_id} is missing")]
    move = [] if head.branch is None else [{"seq": head.at, "v": 1, "type": "branch", "time": 0.0, "to": head.branch}]
    return [alone, *shared, *move, *own]


def _shared(left: Sequence[JSONObject], head: Head, forked_at: object) -> list[JSONObject]:
    """Of what is left of the parent, what a fork has from it: messages, marks, labels, what came of pending calls."""
    found: list[JSONObject] = []
    last = 0
    is_same = any(each.get("seq") == head.at and each.get("time") == head.at_time for each in left)
    for entry in left:
        seq, time = entry.get("seq", last), entry.get("time", 0.0)
        if seq > head.at or (not is_same and isinstance(forked_at, float) and time > forked_at):
            break  # written after the fork, in the place of what was lost
        last = seq
        if entry.get("type") not in _ITS_OWN:
            found.append(entry)
    if last < head.at:
        missing = f"entry {head.at}" if last + 1 == head.at else f"entries {last + 1} to {head.at}"
        found.append(_gap(f"missing of the session {head.parent_id}: {missing}"))
    return found


def _gap(text: str) -> JSONObject:
    return {"type": "gap", "text": text}
