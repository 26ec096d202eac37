"""Which calls are open, kept up message by message at a cost that does not depend on the history."""

from __future__ import annotations

from gotato_py import AssistantMessage, Message, ToolMessage, ToolResult


class OpenCalls:
    """The calls of the last message that is no result, as far as they have none.

    A result belongs to the call that its `key` names; one without a key to any call that no key names. A provider's id
    decides nothing: duplicate, blank and reused ids are legal.
    """

    __slots__ = ("_unnamed", "count")

    def __init__(self) -> None:
        self.count: int = 0
        self._unnamed: set[str] = set()  # the keys that no result has named

    def takes(self, result: ToolResult) -> bool:
        """Whether there is an open call for the result."""
        return self.count > 0 and (not result.key or result.key in self._unnamed)

    def add(self, message: Message) -> None:
        """Takes the next message, which the rules allow here."""
        if isinstance(message, ToolMessage):
            self.count -= 1
            self._unnamed.discard(message.result.key)
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            self.count = len(message.tool_calls)
            self._unnamed = {f"{message.id}:{index}" for index in range(self.count)}
