"""Builders that show the recent part of a history: alone, or behind a summary of what came before."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from gotato_py import Compaction, InvalidArgument, Message, ModelContext, TurnView, UserMessage

from ._arguments import check_counter
from ._context_notes import DROPPED, Dropped
from ._following import Following
from ._window_fold import Budget, Cut, WindowFold
from .tokens import TokenCounter

SummaryGiver = str | UserMessage | Callable[[TurnView], str | UserMessage | None]
"""The summary that comes first, or what gives it; None where there is none."""


class Window:
    """Shows the newest messages that fit, and leaves out the rest; nothing is changed in the transcript.

    `max_messages` counts messages, `max_tokens` their estimated tokens (`estimate_tokens`; system text, tools and panel
    are not among them). When one of them is exceeded, the start moves so far that at most the share `keep` of each is
    left: the turns that follow only append, so that the provider's cache stays warm. It moves only to a user message,
    or to an answer whose results are all kept; the user message that an answer belongs to is then shown before it.
    The last batch of calls with its results and what was said since is always kept, and so is the last user message,
    even where that alone is too much.

    The summary of a compaction is a message like others and may be left out: where histories are compacted,
    `SummaryRecent` keeps it. Where the window starts follows from the history alone: it is the same after a restart.
    Work per turn does not grow with the history. One window may serve many agents, on many threads.
    Raises `InvalidArgument` without a bound, for a bound below 1, and for a `keep` that is not above 0 and at most 1.
    """

    __slots__ = ("_budget", "_following")

    def __init__(
        self,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        *,
        keep: float = 0.5,
        counter: TokenCounter | None = None,
    ) -> None:
        self._budget = budget_of("Window", max_messages, max_tokens, keep, counter)
        self._following = Following(self._fold)

    def __repr__(self) -> str:
        return f"Window({_said(self._budget)})"

    def _fold(self) -> WindowFold:
        return WindowFold(self._budget)

    def build(self, view: TurnView) -> ModelContext:
        """The newest messages that fit; `view.messages` itself as long as all do."""
        followed = self._following.take(view.transcript, view.messages)
        start, notes = followed.fold.start, _notes(self, followed.fold, 0)
        self._following.give_back(view.transcript, followed)
        if not start.index:
            return ModelContext(view.system, view.messages, metadata=notes)
        return ModelContext(view.system, _kept(view, start, ()), metadata=notes)


class SummaryRecent:
    """Shows a summary of what came before, and the recent part of the history; the transcript stays as it is.

    The summary that a compaction put into the transcript always stays at the start. `summary`, if given, comes before
    it, as a user message: a str, a message, or a callable that is asked for each request and gives one, or None for no
    summary. It should stay the same for many turns, since it stands at the start of what a provider caches. The bounds
    are those of `Window`, for the recent part alone.
    """

    __slots__ = ("_budget", "_pinned", "_plain", "_said", "_summary")

    def __init__(
        self,
        summary: SummaryGiver | None = None,
        *,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        keep: float = 0.5,
        counter: TokenCounter | None = None,
    ) -> None:
        if summary is not None and not isinstance(summary, str | UserMessage) and not callable(summary):
            raise InvalidArgument("SummaryRecent.summary must be a str, a UserMessage, or a callable that takes a view")
        self._summary = summary
        self._said = UserMessage("")
        self._budget = budget_of("SummaryRecent", max_messages, max_tokens, keep, counter)
        self._pinned = Following(lambda: WindowFold(self._budget, pinned=1))
        self._plain = Following(lambda: WindowFold(self._budget))

    def __repr__(self) -> str:
        return f"SummaryRecent({_said(self._budget)})"

    def build(self, view: TurnView) -> ModelContext:
        """The summaries, and the newest messages that fit."""
        given = self._given(view)
        pinned = int(_starts_with_summary(view))
        following = self._pinned if pinned else self._plain
        followed = following.take(view.transcript, view.messages)
        start, notes = followed.fold.start, _notes(self, followed.fold, pinned)
        following.give_back(view.transcript, followed)
        if start.index == pinned and given is None:
            return ModelContext(view.system, view.messages, metadata=notes)
        first = [given] if given is not None else []
        return ModelContext(view.system, _kept(view, start, (*first, *view.messages[:pinned])), metadata=notes)

    def _given(self, view: TurnView) -> UserMessage | None:
        said = self._summary(view) if callable(self._summary) else self._summary
        if said is None or isinstance(said, UserMessage):
            return said
        if not isinstance(said, str):
            text = f"SummaryRecent.summary gave a {type(said).__name__}; it has to give a str, a UserMessage or None"
            raise InvalidArgument(text)
        if not said.strip():
            return None
        message = self._said
        if message.text != said:
            self._said = message = UserMessage(said)
        return message  # the same for the same text: a builder behind this one knows the history again by it


def budget_of(
    where: str, messages: int | None, tokens: int | None, keep: float, counter: TokenCounter | None
) -> Budget:
    """The bounds, checked."""
    if messages is None and tokens is None:
        raise InvalidArgument(f"{where}: give max_messages or max_tokens; without a bound it is full_history")
    for name, given in (("max_messages", messages), ("max_tokens", tokens)):
        if given is not None and (type(given) is not int or given < 1):
            raise InvalidArgument(f"{where}.{name} must be None or an int of at least 1")
    share: Any = keep  # Any: callers without a type checker
    if not isinstance(share, int | float) or isinstance(share, bool) or not (isfinite(share) and 0 < share <= 1):
        raise InvalidArgument(f"{where}.keep must be a number above 0 and at most 1")
    check_counter(f"{where}.counter", counter)
    return Budget(messages, tokens, float(keep), counter)


def _starts_with_summary(view: TurnView) -> bool:
    """Whether the first message is the summary of the transcript's last compaction."""
    compactions: Any = getattr(view.transcript, "compactions", None)  # Any: optional in a transcript
    last: Compaction | None = compactions[-1] if compactions else None
    return last is not None and len(view.messages) > 0 and view.messages[0].id == last.summary.id


def _kept(view: TurnView, start: Cut, first: tuple[Message, ...]) -> tuple[Message, ...]:
    head = (view.messages[start.head],) if start.adds_head else ()
    return (*first, *head, *view.messages[start.index :])


def _notes(builder: Window | SummaryRecent, fold: WindowFold, pinned: int) -> dict[str, object]:
    start = fold.start
    count = start.index - pinned - start.adds_head
    found: list[Dropped] = []
    if count > 0:
        found.append(Dropped(repr(builder), count, fold.dropped_tokens, "older than the newest messages that fit"))
    if fold.is_over:
        found.append(
            Dropped(repr(builder), 0, 0, "over its bounds: the last batch or message, which has to stay, takes more")
        )
    return {DROPPED: tuple(found)} if found else {}


def _said(budget: Budget) -> str:
    bounds = {"max_messages": budget.messages, "max_tokens": budget.tokens}
    shown = [f"{name}={given}" for name, given in bounds.items() if given is not None]
    return ", ".join([*shown, f"keep={budget.keep:g}"])
