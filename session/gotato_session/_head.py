"""The first entry of a journal: which session it is, and where it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gotato_py import InvalidArgument, NotSupported, SessionCorrupt

from ._json import is_object, json_object, json_value
from ._state import State
from .journal import JSONObject

FORMAT = 1
"""The version of a session as a whole; a newer one is not read."""

FORK_KEYS = ("parent_id", "at", "at_id", "at_time", "branch")
"""What only the head of a fork has."""


def new_head(id: str, created_at: float, values: Mapping[str, str]) -> JSONObject:
    """The head of a session that begins with nothing."""
    head: JSONObject = {"gotato_session": FORMAT, "id": id, "created_at": created_at}
    if values:
        head["metadata"] = {key: json_value(text) for key, text in values.items()}
    return head


def fork_head(id: str, parent_id: str, created_at: float, at: str | None, state: State) -> JSONObject:
    """The head of a fork that begins with `state`; its metadata are there for lists of sessions."""
    head = {**new_head(id, created_at, state.values), "parent_id": parent_id, "at": state.seq, "at_time": state.time}
    return {**head, "at_id": state.leaf} if at is None else {**head, "branch": at}


@dataclass(frozen=True, slots=True)
class Head:
    """A head that was read. `at` is the number of the last entry that a fork has from its parent, `at_time` its time.
    `branch` is the message or summary from which the fork goes on; where that is the newest one, it is in `at_id`
    instead. Time and id tell what was shared from other entries that have these numbers now."""

    values: dict[str, str]
    parent_id: str = ""
    at: int = 0
    branch: str | None = None
    at_id: str | None = None
    at_time: float | None = None

    def begins_with(self, state: State) -> bool:
        """Whether that is the parent's state from which the fork went on."""
        same = self.at_id in (None, state.leaf) and self.at_time in (None, state.time)
        return state.seq == self.at and same and (not self.branch or self.branch in state.nodes)


def read_head(id: str, entries: list[JSONObject]) -> Head:
    """The head of a journal. Raises `NotSupported` for a newer version, `SessionCorrupt` for what is none."""
    given = entries[0] if entries else {}
    version = given.get("gotato_session")
    if type(version) is not int:
        raise SessionCorrupt(f"the session {id} has no head: it is no session, or its store lost it", line=1)
    if version > FORMAT:
        text = f"the session {id} was written by a newer release (version {version}, this one reads {FORMAT})"
        raise NotSupported(text)
    metadata, parent, at = given.get("metadata", {}), given.get("parent_id", ""), given.get("at", 0)
    branch, at_id, at_time = given.get("branch"), given.get("at_id"), given.get("at_time")
    is_right = given.get("id") == id and isinstance(parent, str) and type(at) is int
    is_right = is_right and isinstance(branch, str | None) and isinstance(at_id, str | None)
    if not is_right or not is_object(metadata) or not isinstance(at_time, float | int | None):
        raise SessionCorrupt(f"the head of the session {id} is damaged", line=1)
    try:
        return Head(json_object("metadata", metadata), parent, at, branch, at_id, at_time)
    except InvalidArgument as error:
        raise SessionCorrupt(f"the head of the session {id} is damaged: {error.message}", line=1) from None
