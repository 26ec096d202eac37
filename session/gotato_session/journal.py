"""The seam to where a session is kept: a journal of entries that only grows.

An entry is a dict of plain JSON data. The first one is the head, which `create_journal` was given:

    {"gotato_session": 1, "id": "s-…", "created_at": 1.7e9, "metadata": {…}}
    {"gotato_session": 1, "id": "s-…", "created_at": 1.7e9, "parent_id": "s-…", "at": 17, "at_time": 1.7e9, …}
                                               a fork: "at" is the number of the last entry that it has from its parent

All others have a number, `"seq"`, one more than the entry before; the first has 1, in a fork `at + 1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .lease import Lease

JSONObject = dict[str, Any]
"""A dict of plain JSON data."""


class Journal(Protocol):
    """One session's entries, opened by a writer, who has the lease, or read-only.

    Optional members, read with a default: `recovered: Sequence[str]`, what opening it had to mend, one line each;
    `last_seq: int`, the number of the last entry that is kept, which otherwise is read from `entries()`; and
    `is_kept() -> bool`, whether what it first read is still kept under its id, neither removed nor replaced: without it
    a fork of a session that nobody writes to reads all of that session to find out.

    Called by one thread at a time, not always the same one.
    """

    @property
    def lease(self) -> Lease | None:
        """The writer's lease; None where it was opened read-only."""
        ...

    def entries(self) -> list[JSONObject]:
        """Everything that is kept, the head first. Raises `SessionCorrupt` for damage."""
        ...

    def append(self, entries: Sequence[JSONObject]) -> None:
        """One commit: keeps all of them, or, when it raises an Exception, none. They carry the next numbers.

        Raises `LeaseLost` once another has taken the session over, `ForkedProcess` in a forked child; anything else
        that it raises is told as a `StoreFailure`. An interrupt (KeyboardInterrupt) may come before or after the
        moment that counts: what is kept then, `last_seq` or `entries()` say.
        """
        ...

    def sync(self) -> None:
        """Makes what was appended survive a power cut, if the store promises that later than at the commit."""
        ...

    def close(self) -> None:
        """Lets the session go. Does nothing twice; in a forked child it leaves the parent's lease alone."""
        ...
