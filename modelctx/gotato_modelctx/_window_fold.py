"""Where a window starts: folded from the history alone, so that a restart and `inspect` find the same place."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gotato_py import AssistantMessage, Message, ToolMessage, UserMessage

from .tokens import TokenCounter, message_tokens


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a window may hold, None for no bound, and the share of it that is left when it has overflowed."""

    messages: int | None
    tokens: int | None
    keep: float
    counter: TokenCounter | None

    def is_exceeded(self, messages: int, tokens: int) -> bool:
        """Whether so much is too much."""
        return (self.messages is not None and messages > self.messages) or (
            self.tokens is not None and tokens > self.tokens
        )

    def is_low(self, messages: int, tokens: int) -> bool:
        """Whether so much leaves room for the turns to come."""
        return (self.messages is None or messages <= self.messages * self.keep) and (
            self.tokens is None or tokens <= self.tokens * self.keep
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """A place to start from: its index, the tokens before it, and the user message that what follows belongs to (its
    index; -1 for none) with the tokens that it adds, 0 where it is the start itself."""

    index: int = 0
    before: int = 0
    head: int = -1
    head_tokens: int = 0

    @property
    def adds_head(self) -> bool:
        """Whether the user message stands before the start."""
        return 0 <= self.head < self.index


class WindowFold:
    """Takes a history message by message and says where the window starts.

    The start moves when the budget is exceeded at a point where no call is open, and then so far that no more than the
    share `keep` is left: the next turns only append, and the prefix stays in the provider's cache. Cost per message
    does not depend on the history.
    """

    __slots__ = ("_budget", "_count", "_cuts", "_open", "_pinned", "_tail", "_tokens", "_unseen", "_user", "start")

    def __init__(self, budget: Budget, *, pinned: int = 0) -> None:
        self._budget = budget
        self._pinned = pinned  # messages at the start that always stay and count for nothing
        self._count = 0
        self._tokens = 0
        self._open = 0
        self._tail = pinned  # where the part begins that always stays, as `tail_start` says
        self._unseen = False  # whether the model has not answered the results of the last batch
        self._user = (-1, 0)  # the last user message: its index, its tokens
        self._cuts: deque[Cut] = deque()
        self.start: Cut = Cut(pinned)

    @property
    def dropped_tokens(self) -> int:
        """The tokens of what is left out."""
        return self.start.before - self.start.head_tokens

    @property
    def is_over(self) -> bool:
        """Whether what has to stay takes more than the budget."""
        return self._budget.is_exceeded(*self._size_from(self.start))

    def add(self, message: Message) -> None:
        """Takes the next message."""
        index = self._count
        self._count += 1
        if index < self._pinned:
            return
        tokens = message_tokens(message, self._budget.counter)
        if isinstance(message, ToolMessage):
            self._open -= 1
        else:
            self._take_border(message, index, tokens)
        self._tokens += tokens
        if self._open <= 0 and self._budget.is_exceeded(*self._size_from(self.start)):
            self._move()

    def _take_border(self, message: UserMessage | AssistantMessage, index: int, tokens: int) -> None:
        """A message that the window may start at."""
        if isinstance(message, AssistantMessage):
            self._open = len(message.tool_calls)
            self._tail, self._unseen = index, bool(message.tool_calls)
            head, head_tokens = self._user
        else:
            self._open = 0
            if not self._unseen:
                self._tail = index
            self._user = (index, tokens)
            head, head_tokens = index, 0
        self._cuts.append(Cut(index, self._tokens, head, head_tokens))

    def _size_from(self, cut: Cut) -> tuple[int, int]:
        messages = self._count - cut.index + cut.adds_head
        return messages, self._tokens - cut.before + cut.head_tokens

    def _move(self) -> None:
        """To the first place from which little enough is kept, or else to the last that is allowed."""
        while len(self._cuts) > 1 and self._cuts[1].index <= self._tail:
            if self._cuts[0].index > self.start.index and self._budget.is_low(*self._size_from(self._cuts[0])):
                break
            self._cuts.popleft()
        if self._cuts and self._cuts[0].index > self.start.index:
            self.start = self._cuts[0]
