"""What a session should hold, in lists and dicts: a model of it that is as simple as it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gotato_py import AssistantMessage, Compaction, Message, RunRecord, ToolMessage, Usage, UserMessage, WaitingCall
from gotato_session import Session

Closing = tuple[str, str]
"""The key of a call and the status with which it is closed."""


@dataclass
class Twin:
    """A session, entry by entry. `nodes` is the tree: id → (parent, the message or compaction)."""

    id: str
    parent_id: str = ""
    nodes: dict[str, tuple[str, Message | Compaction]] = field(default_factory=dict)
    leaf: str = ""
    started: set[str] = field(default_factory=set)
    results: dict[str, ToolMessage] = field(default_factory=dict)  # the first of each call
    waiting_at: dict[str, tuple[WaitingCall, ...]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    held: list[UserMessage] = field(default_factory=list)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    running: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    # ---- what follows

    @property
    def path(self) -> list[str]:
        """From the first entry to the newest."""
        found: list[str] = []
        at = self.leaf
        while at:
            found.insert(0, at)
            at = self.nodes[at][0]
        return found

    @property
    def history(self) -> list[Message]:
        """The messages of the path."""
        return [node for node in map(self._node, self.path) if not isinstance(node, Compaction)]

    @property
    def context(self) -> list[Message]:
        """The last summary and what follows it."""
        shown: list[Message] = []
        for node in map(self._node, self.path):
            if isinstance(node, Compaction):
                through = [each.id for each in shown].index(node.through)
                shown = [node.summary, *shown[through + 1 :]]
            else:
                shown.append(node)
        return shown

    @property
    def compactions(self) -> list[Compaction]:
        """Those of the path."""
        return [node for node in map(self._node, self.path) if isinstance(node, Compaction)]

    def _node(self, entry_id: str) -> Message | Compaction:
        return self.nodes[entry_id][1]

    @property
    def anchor(self) -> str:
        """The id of the last message that is no result."""
        return next((each.id for each in reversed(self.history) if not isinstance(each, ToolMessage)), "")

    @property
    def open(self) -> list[str]:
        """The keys of the calls at the tail that have no result."""
        tail = next((each for each in reversed(self.history) if not isinstance(each, ToolMessage)), None)
        if not isinstance(tail, AssistantMessage):
            return []
        named = {each.result.key for each in self.history if isinstance(each, ToolMessage)}
        return [key for index in range(len(tail.tool_calls)) if (key := f"{tail.id}:{index}") not in named]

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """The calls of the batch at the tail that wait."""
        return self.waiting_at.get(self.anchor, ())

    @property
    def closing(self) -> list[Closing]:
        """What the open calls get when nobody works on them."""
        waits = {call.key for call in self.waiting}
        still = any(key in waits and key not in self.started and key not in self.results for key in self.open)
        found: list[Closing] = []
        for key in self.open:
            if key in self.results:
                found.append((key, str(self.results[key].result.status)))
            elif key in self.started:
                found.append((key, "cancelled"))
            elif not still:
                found.append((key, "not_run"))
        return found

    @property
    def untold(self) -> list[str]:
        """The keys of the pending calls of the path that were completed, and whose message is elsewhere."""
        told = {each.metadata.get("tool_update") for each in self.history}
        waits = {each.metadata["tool_update"] for each in self.held}
        results = [each.result for each in self.history if isinstance(each, ToolMessage)]
        keys = [each.key for each in results if each.status == "pending"]
        return [key for key in keys if key in self.settled and key not in told | waits]

    @property
    def leaves(self) -> list[str]:
        """The entries that nothing follows."""
        parents = {parent for parent, _ in self.nodes.values()}
        return [each for each in self.nodes if each not in parents]

    # ---- what happens

    def add(self, message: Message) -> None:
        """A message comes to the tail."""
        self.nodes[message.id] = (self.leaf, message)
        self.leaf = message.id
        if isinstance(message, ToolMessage):
            self.results.setdefault(message.result.key, message)

    def place(self) -> None:
        """What was held gets its place, if no call is open."""
        if not self.open:
            for message in self.held:
                self.add(message)
            self.held = []

    def fork(self, id: str, at: str | None) -> Twin:
        """What a fork begins with."""
        return Twin(
            id, self.id, dict(self.nodes), self.leaf if at is None else at, set(self.started), dict(self.results), {},
            set(self.settled), list(self.held), {}, "", dict(self.labels), dict(self.metadata),
        )  # fmt: skip


def assert_equal(session: Session, twin: Twin) -> None:
    """All that can be read of the session is what the twin holds."""
    assert [each.id for each in session.history] == [each.id for each in twin.history]
    assert [each.id for each in session.messages] == [each.id for each in twin.context]
    assert session.history == twin.history
    assert list(session.path) == twin.path
    assert list(session.tree.items()) == [(id, parent) for id, (parent, _) in twin.nodes.items()]
    assert list(session.leaves) == twin.leaves
    assert set(session.started) == twin.started
    assert session.waiting == twin.waiting
    assert list(session.compactions) == twin.compactions
    assert session.runs == tuple(twin.runs.values())
    assert session.usage == sum((each.usage for each in twin.runs.values()), Usage())
    assert (session.metadata, session.labels) == (twin.metadata, twin.labels)
    if not twin.open or twin.closing or twin.open[0] in [each.key for each in twin.waiting]:
        assert len(session.check()) == len(twin.closing)
