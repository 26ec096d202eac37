"""What the files of a session are called.

A name that ends in ".jsonl" is a session's, and no other file has such a name; so no id can lead to a file that stands
beside another session. "~" is in no id: names with it belong to one id alone.
"""

from __future__ import annotations

from pathlib import Path

from gotato_py import InvalidArgument

from ._arguments import a_session_id

SUFFIX = ".jsonl"


def is_id(text: str) -> bool:
    """Whether a session can have that id."""
    try:
        a_session_id("id", text)
    except InvalidArgument:
        return False
    return True


class Names:
    """The paths of one session. Raises `InvalidArgument` for an id that no session can have."""

    def __init__(self, folder: Path, id: str) -> None:
        self.id = a_session_id("id", id)
        self.folder = folder
        self.journal = folder / f"{id}{SUFFIX}"
        self.lease = folder / f"{id}.lease"
        self.fence = folder / f".{id}~fence"
        """Stands there while the journal is being replaced or removed: whoever writes to it then has lost it."""
        self.copy = folder / f".{id}~copy"

    def side(self, kind: str, number: int) -> Path:
        """A side file of that kind, "torn" or "version-<v>"; they are numbered from 1."""
        return self.folder / f"{self.id}.{kind}-{number}"
