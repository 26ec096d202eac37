"""How full a context is: what the provider reported last, and what has come since; each message is counted once."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import AssistantMessage, Compaction, Message

from ._growth import Growth
from .compacting import KEPT, Measure


class Load:
    """Counts a history that grows. One that does not go on from what is known is counted from its start.

    Usage counts from answers that are younger than the last compaction: an older one was of a context that is gone.
    What a request takes beside its messages is the same as before it, and counts until an answer tells of it again.
    """

    __slots__ = ("_behind", "_growth", "_is_measured", "_reported", "beside", "estimated", "request")

    def __init__(self) -> None:
        self._growth = Growth()
        self._reported: int | None = None  # tokens of the last request that its provider counted, with its answer
        self._behind = 0  # of the messages behind that answer
        self.estimated = 0  # of all messages
        self.request = 0  # of that last request alone, as reported; 0 where none was
        self.beside = 0  # that a request takes beside its messages, as far as usage tells; 0 where none does
        self._is_measured = False  # whether an answer that counts has told of it

    def follow(self, messages: Sequence[Message], compactions: Sequence[Compaction], measure: Measure) -> None:
        """Takes what is new."""
        start, known = 0, self._growth.known(messages)
        if not known:
            start = _older(messages, compactions)
            self._reported, self._behind, self.estimated, self.request = None, 0, 0, 0
            self._is_measured = False
        self._growth.know(messages, 0)  # an interrupt leaves it uncounted, not counted twice
        for index in range(known, len(messages)):
            self._take(messages[index], measure, counts=index >= start)
        self._growth.know(messages, len(messages))

    def _take(self, message: Message, measure: Measure, *, counts: bool) -> None:
        size = measure(message)
        if counts and isinstance(message, AssistantMessage) and message.usage.input_tokens:
            self._measure_request(message.usage.input_tokens)
            self._reported, self._behind = message.usage.total_tokens, 0
        else:
            self._behind += size
        self.estimated += size

    def _measure_request(self, reported: int) -> None:
        """Takes what the request of all messages so far was counted as. The least of several differences counts: the
        fewer messages a request holds, the less of the difference is their estimate's error."""
        beside = max(0, reported - self.estimated)
        self.request = reported
        self.beside = min(self.beside, beside) if self._is_measured else beside
        self._is_measured = True

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
