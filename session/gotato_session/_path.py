"""The current branch: its messages from the first to the newest, and what of them the model may see."""

from __future__ import annotations

from gotato_py import (
    AssistantMessage,
    Compaction,
    MemoryTranscript,
    Message,
    MessageView,
    ToolCall,
    ToolMessage,
    ToolResult,
)

OpenCall = tuple[str, ToolCall]
"""A call that has no result, by its key."""


class Path:
    """`history` is every message, `context` the last summary and what follows it: one list until something is
    compacted. Adding a message costs the same however many there are."""

    __slots__ = ("_keyless", "_unnamed", "anchor", "compactions", "context", "history", "open")

    def __init__(self) -> None:
        self.history: list[Message] = []
        self.context: list[Message] = self.history
        self.compactions: tuple[Compaction, ...] = ()
        self.anchor: str = ""  # the id of the newest message that is no result
        self.open: int = 0  # how many of its calls have no result
        self._unnamed: dict[str, ToolCall] = {}  # its calls that no result has named, in their order
        self._keyless: int = 0  # results without a key: they belong to the first calls that no key names

    def copy(self) -> Path:
        """The same, to go on from apart."""
        made = Path()
        made.history = list(self.history)
        made.context = made.history if self.context is self.history else list(self.context)
        made.compactions, made.anchor, made.open = self.compactions, self.anchor, self.open
        made._unnamed, made._keyless = dict(self._unnamed), self._keyless
        return made

    def up_to(self, index: int) -> Path:
        """The branch that ends with the message at that index. Only while nothing is compacted."""
        start = index
        while start and isinstance(self.history[start], ToolMessage):
            start -= 1
        made = Path()
        made.history = made.context = self.history[:start]
        for message in self.history[start : index + 1]:
            made.add(message)
        return made

    def takes(self, result: ToolResult) -> bool:
        """Whether there is an open call for the result.

        A result belongs to the call that its `key` names; one without a key to any call that no key names. A provider's
        id decides nothing: duplicate, blank and reused ids are legal.
        """
        return self.open > 0 and (not result.key or result.key in self._unnamed)

    @property
    def open_calls(self) -> list[OpenCall]:
        """The calls without a result, in their order."""
        return list(self._unnamed.items())[self._keyless :] if self.open else []

    def add(self, message: Message) -> None:
        """Takes the next message, which the rules allow here."""
        if isinstance(message, ToolMessage):
            self.open -= 1
            if self._unnamed.pop(message.result.key, None) is None:
                self._keyless += 1
        else:
            self.anchor = message.id
            if isinstance(message, AssistantMessage) and message.tool_calls:
                self.open, self._keyless = len(message.tool_calls), 0
                self._unnamed = {f"{message.id}:{index}": call for index, call in enumerate(message.tool_calls)}
        if self.context is not self.history:
            self.context.append(message)
        self.history.append(message)

    def compact(self, compaction: Compaction) -> Compaction:
        """Puts the summary in the place of what it covers in `context`, and returns the compaction as it is kept.

        Raises `InvalidArgument`, and changes nothing, for what would break the context. `history` keeps it all.
        """
        kept, context = compacted(self.context, compaction)
        self.context = context
        self.compactions = (*self.compactions, kept)
        return kept

    def view(self) -> MessageView:
        """What the model may see now."""
        context = self.context
        return MessageView(context, len(context))


def compacted(context: list[Message], compaction: Compaction) -> tuple[Compaction, list[Message]]:
    """The compaction as it is kept, and the messages that it leaves."""
    tried = MemoryTranscript(context)
    tried.replace(compaction)
    return tried.compactions[-1], list(tried.messages)
