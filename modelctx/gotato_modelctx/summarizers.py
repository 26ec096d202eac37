"""What makes a summary of messages: the seam, and the summarizer that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gotato_py import InvalidArgument, Message, Scope

from ._arguments import check_count, check_counter
from ._clipping import clip_tokens
from ._rendering import rendered
from .summaries import FRAME, Summary, split_summary
from .tokens import TokenCounter, estimate_tokens


class Summarizer(Protocol):
    """Makes a summary of messages that are to be left out of the context.

    One attribute is optional and read with a default: `max_tokens: int`, the most that a summary takes; room is kept
    for it.
    """

    def summarize(self, messages: Sequence[Message], scope: Scope) -> str:
        """The summary, as the model is to read it: it stands there as a user message, so it says what it is.

        Called in the thread of the run. The first message may itself be a summary (`is_summary`): the new one takes its
        place, and holds what of it still counts. A `Summary` tells what it cost. Whatever this raises, an empty text,
        or one that is not smaller than the messages, changes nothing in the transcript. Once `scope` has ended it
        raises `Cancelled` or `DeadlineExceeded`.
        """
        ...


def checked_summarizer(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what has no method `summarize`, and for a class in place of an instance."""
    if isinstance(given, type) or not callable(getattr(given, "summarize", None)):
        name = given.__name__ if isinstance(given, type) else type(given).__name__
        raise InvalidArgument(f"{where} must be an object that has a method summarize(messages, scope), not {name}")


_SHARE = 8  # the longest message gets this part of the room, so that several are seen
_LEAST = 120  # characters of a message


class TruncateSummarizer:
    """Keeps the beginning and the end of what was said, as text, and leaves out the middle. No model, no cost.

    The same messages give the same summary, of at most `max_tokens` tokens and at most half of what it replaces. What
    an earlier summary said comes first, so its beginning, the first task for one, stays through any number of them.
    """

    def __init__(self, max_tokens: int = 1000, *, counter: TokenCounter | None = None) -> None:
        check_count("TruncateSummarizer.max_tokens", max_tokens, 1)
        check_counter("TruncateSummarizer.counter", counter)
        self.max_tokens = max_tokens
        self._counter = counter

    def __repr__(self) -> str:
        return f"TruncateSummarizer({self.max_tokens})"

    def summarize(self, messages: Sequence[Message], scope: Scope) -> Summary:
        """The head and the tail of it all. Raises `InvalidArgument` where there are no messages."""
        scope.check()
        if not messages:
            raise InvalidArgument("TruncateSummarizer.summarize: messages is empty")
        room = max(1, min(self.max_tokens, estimate_tokens(messages, counter=self._counter) // 2))
        earlier, others = split_summary(messages)
        blocks = rendered(others, max(_LEAST, 4 * room // _SHARE), lambda count: " … ")  # may be cut once more
        said = "\n\n".join([earlier, *blocks] if earlier else blocks)
        inside = room - estimate_tokens(FRAME, counter=self._counter)
        if inside > room // 2:
            return Summary(FRAME + clip_tokens(said, inside, counter=self._counter))
        return Summary(clip_tokens(said, room, counter=self._counter, note=lambda count: "…") or "…")
