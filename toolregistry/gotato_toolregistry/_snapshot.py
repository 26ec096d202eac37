"""The state of a registry at one moment: never changed, only followed by another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gotato_py import Tool, ToolSpec


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A registered tool; `spec` is what it said of itself when it was registered."""

    tool: Tool
    spec: ToolSpec
    active: bool

    def same_tool(self, other: Entry) -> bool:
        """Whether both offer one tool that says the same of itself."""
        return self.tool is other.tool and self.spec == other.spec


class Snapshot:
    """The tools by name, in the order of registration.

    Snapshots form a chain: each is followed by at most one other. `followed_by` is one dict operation, which is atomic,
    so that threads, and a signal handler in the middle of a change, need no lock to agree on what comes next.
    """

    __slots__ = ("_next", "_offered", "active", "entries", "tools", "version")

    tools: tuple[Tool, ...]
    version: int

    def __init__(self, entries: Mapping[str, Entry] = {}, before: Snapshot | None = None) -> None:
        self._next: dict[str, Snapshot] = {}
        self.entries: Mapping[str, Entry] = entries
        self.version = 0 if before is None else before.version + 1
        self.active: tuple[str, ...] = tuple([name for name, entry in entries.items() if entry.active])
        self._offered = tuple([entries[name] for name in self.active])
        # The same tuple while the same tools are in it: an agent knows by its identity that nothing changed.
        if before is not None and self._offered == before._offered:
            self.tools = before.tools
        else:
            self.tools = tuple([entry.tool for entry in self._offered])

    def followed_by(self, next_one: Snapshot) -> bool:
        """Makes `next_one` the state after this one; False if that place is taken."""
        return self._next.setdefault("", next_one) is next_one

    def newest(self) -> Snapshot:
        """The end of the chain."""
        last = self
        while last._next:
            last = last._next[""]
        return last
