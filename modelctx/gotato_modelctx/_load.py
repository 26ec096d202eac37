"""How full a context is: what the provider reported last, and what has come since; each message is counted once."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import AssistantMessage, Compaction, Message

from ._growth import Growth
from .compacting import KEPT, Measure


class Load:
    """Counts a history that grows. One that does not go on from what is known is counted from its start.

    Usage counts from answers that are younger than the last compaction: an older one was of a context that is gone.
    """

    __slots__ = ("_behind", "_growth", "_reported", "estimated", "request")

    def __init__(self) -> None:
        self._growth = Growth()
        self._reported: int | None = (
            None  # tokens of the last request that was counted by its provider, with its answer
        )
        self._behind = 0  # of the messages behind that answer
        self.estimated = 0  # of all messages
        self.request = 0  # of that last request alone, as reported; 0 where none was

    def follow(self, messages: Sequence[Message], compactions: Sequence[Compaction], measure: Measure) -> None:
        """Takes what is new."""
        start, known = 0, self._growth.known(messages)
        if not known:
            start = _older(messages, compactions)
            self._reported, self._behind, self.estimated, self.request = None, 0, 0, 0
        self._growth.know(messages, 0)  # an interrupt leaves it uncounted, not counted twice
        for index in range(known, len(messages)):
            self._take(messages[index], measure, counts=index >= start)
        self._growth.know(messages, len(messages))

    def _take(self, message: Message, measure: Measure, *, counts: bool) -> None:
        size = measure(message)
        self.estimated += size
        self._behind += size
        if counts and isinstance(message, AssistantMessage) and message.usage.input_tokens:
            self._reported, self._behind, self.request = message.usage.total_tokens, 0, message.usage.input_tokens

    def tokens(self, overhead: int) -> int:
        """How many tokens the next request takes: as reported, and an estimate of what came since; where nothing was
        reported, the estimate of all of it and the `overhead` of every request."""
        return self.estimated + overhead if self._reported is None else self._reported + self._behind


def _older(messages: Sequence[Message], compactions: Sequence[Compaction]) -> int:
    """How many of the messages are older than the compaction that they begin with; all, where it does not say."""
    for each in reversed(compactions):
        if messages and each.summary.id == messages[0].id:
            kept = each.metadata.get(KEPT)
            return 1 + kept if isinstance(kept, int) else len(messages)
    return 0
