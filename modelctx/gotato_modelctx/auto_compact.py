"""Compaction by itself: before a request that is too large, and after one that was."""

from __future__ import annotations

from dataclasses import dataclass, field

from gotato_py import Clock, Compaction, ContextOverflow, InvalidArgument, Scope, SystemClock, TurnView

from ._arguments import check_count, check_measure, check_type
from ._load import Load
from ._per_transcript import PerTranscript
from .compacting import OPERATION, Measure, compact
from .policy import CompactPolicy
from .summarizers import Summarizer, TruncateSummarizer, checked_summarizer
from .tokens import estimate_tokens, message_tokens

_LEAST_SUMMARY = 100
"""Tokens that a summary may take, however low the floor is: in less there is nothing to be said."""


@dataclass(slots=True)
class _Known:
    """What is remembered of one transcript."""

    load: Load = field(default_factory=Load)
    call: tuple[str, int] = ("", 0)  # the model call that is being prepared: its run and turn
    tried: bool = False  # whether an attempt was made for it
    made: bool = False  # whether that attempt has compacted
    spared: bool = False  # whether it asked for no summary because of what usage says, which is not exact
    failure: Exception | None = None  # or what it failed of
    attempts: int = 0  # in a row that were of no use
    until: float = 0.0  # when the next one may be made, once there were too many


class AutoCompact:
    """An extension that keeps a context within its policy: `Agent(…, extensions=[AutoCompact(policy, summarizer)])`.

    Without a summarizer it is a `TruncateSummarizer` whose summaries take at most a quarter of the floor.

    Before a run and before each request it looks how large the request will be, and compacts what is over
    `policy.ceiling`, down to about `policy.floor`. It goes by the usage of the last answer, if that is younger than
    the last compaction, and an estimate of what came since; else by the estimate of all of it. When the provider
    refuses a request as too large, it compacts at least half away, and the request is built again. One attempt for a
    model call, whoever asks for it.

    A failed attempt changes nothing. It is told by an `extension_failed` event and the log, and the run goes on if the
    provider takes the request; if not, the run fails with that `ContextOverflow`, whose `cause` is the failure. What
    no summary can cure is told with the sizes of what is too large, before one is paid for. After `max_attempts`
    attempts in a row that failed, or after which the provider still counted a request over the ceiling, there is none
    for `pause` seconds (by the run's clock), then one at a time; a context that comes under its ceiling ends the row. A
    request that was refused is always attempted, since the run would fail without, also where by the usage of answers
    no summary can help: the provider took requests with as much beside their messages.

    `overhead` is what every request holds beside instructions and messages, in tokens: tools, and the sections that a
    builder adds. It is all that tells of them until an answer has reported its usage. From then on it is measured as
    well: the input tokens, cached ones too, that are more than the estimate of the request's messages; the least since
    the last compaction, or the one from before it until there is another. The larger of the two counts, that which is
    given with the instructions, and what is measured. `measure` says how large a message is when it is sent. One
    AutoCompact may serve several agents. Raises `InvalidArgument` for what these cannot be.
    """

    advisory = True
    """The kernel tells of its failures and lets the run go on."""

    def __init__(
        self,
        policy: CompactPolicy,
        summarizer: Summarizer | None = None,
        *,
        overhead: int = 0,
        max_attempts: int = 3,
        pause: float = 60.0,
        measure: Measure = message_tokens,
        name: str = "AutoCompact",
    ) -> None:
        check_type("AutoCompact.policy", policy, CompactPolicy)
        if summarizer is None:
            summarizer = TruncateSummarizer(min(1000, max(_LEAST_SUMMARY, policy.floor // 4)))
        checked_summarizer("AutoCompact.summarizer", summarizer)
        check_count("AutoCompact.overhead", overhead)
        check_count("AutoCompact.max_attempts", max_attempts, 1)
        check_measure("AutoCompact.measure", measure)
        if not isinstance(pause, int | float) or not pause >= 0:
            raise InvalidArgument("AutoCompact.pause must be a number of seconds of at least 0")
        self.name = name
        self._policy, self._summarizer = policy, summarizer
        self._overhead, self._measure = overhead, measure
        self._max_attempts, self._pause = max_attempts, pause
        self._known = PerTranscript(_Known)

    def __repr__(self) -> str:
        return f"AutoCompact({self._policy!r}, {self._summarizer!r})"

    def before_run(self, view: TurnView) -> None:
        """Makes room for the message of the run, before it is committed."""
        self._keep_within(view)

    def before_turn(self, view: TurnView) -> None:
        """Makes room for the request of the turn."""
        self._keep_within(view)

    def on_overflow(self, view: TurnView, error: ContextOverflow) -> bool:
        """Makes room for a request that the provider refused; the error gets the cause if that fails."""
        known = self._look(view)
        if known.tried and not known.spared:
            _explain(error, known.failure or self._still_too_large(view, known))
            return False
        try:
            self._attempt(view, known, "overflow", most=known.load.estimated // 2)
        except Exception as failure:
            if not _has_ended(view):
                _explain(error, failure)
            raise
        return True

    def _keep_within(self, view: TurnView) -> None:
        known = self._look(view)
        if known.tried:
            return
        coming = 0 if view.message is None else self._measure(view.message)
        fixed = self._fixed(view, known)
        tokens = known.load.tokens(fixed) + coming
        if tokens <= self._policy.ceiling:
            known.attempts = 0
        elif not self._pauses(view, known):
            excess = (tokens - fixed) / max(1, known.load.estimated + coming)
            self._attempt(view, known, "ceiling", coming=coming, excess=max(1.0, excess))

    def _look(self, view: TurnView) -> _Known:
        """What is known of the transcript, as it is now."""
        known = self._known.of(view.transcript)
        call = (view.run_id, max(1, view.turn))  # what comes before a run is for its first turn
        known.load.follow(view.messages, getattr(view.transcript, "compactions", ()), self._measure)
        if known.call != call:
            if known.made and known.load.request <= self._policy.ceiling:
                known.attempts = 0  # the last attempt was of use, by all that is known of the request after it
            known.call, known.tried, known.made, known.spared, known.failure = call, False, False, False, None
        return known

    def _given(self, view: TurnView) -> int:
        """Tokens beside the messages, as far as they are known without usage."""
        return self._overhead + estimate_tokens(view.system)

    def _fixed(self, view: TurnView, known: _Known) -> int:
        """Tokens beside the messages, by all that is known."""
        return max(self._given(view), known.load.beside)

    def _pauses(self, view: TurnView, known: _Known) -> bool:
        return known.attempts >= self._max_attempts and _clock(view).monotonic() < known.until

    def _attempt(
        self,
        view: TurnView,
        known: _Known,
        reason: str,
        *,
        coming: int = 0,
        excess: float = 1.0,
        most: int | None = None,
    ) -> Compaction:
        """Compacts, or raises why not. `excess` is how many tokens there really are to an estimated one, `most` the
        most tokens that messages may keep."""
        known.tried = True
        known.attempts += 1
        known.until = _clock(view).monotonic() + self._pause
        overhead, given = self._fixed(view, known) + coming, self._given(view) + coming
        floor, wanted = self._policy.floor, getattr(self._summarizer, "max_tokens", 0)
        summary = min(wanted, floor // 4) if isinstance(wanted, int) else 0
        keep = max(0, int((floor - overhead - summary) / excess))
        try:
            made = compact(
                view.transcript,
                self._summarizer,
                keep_tokens=keep if most is None else min(keep, most),
                scope=view.scope,
                reason=reason,
                overhead=overhead if most is None else given,  # for a refused request it is worth the summary
                ceiling=self._policy.ceiling,
                measure=self._measure,
            )
            if made is None:
                text = f"nothing can be cut, the {len(view.messages)} message(s) have to stay"
                raise self._too_large(view, known, text)
        except Exception as failure:
            known.failure = failure
            known.spared = overhead > given and most is None and _is_refused(failure)
            if _has_ended(view):  # the run was ended, and nothing failed
                known.attempts -= 1
            raise
        known.made = True
        return made

    def _still_too_large(self, view: TurnView, known: _Known) -> ContextOverflow:
        return self._too_large(view, known, "it was compacted already; lower the ceiling of the policy")

    def _too_large(self, view: TurnView, known: _Known, why: str) -> ContextOverflow:
        messages, fixed = known.load.estimated, self._fixed(view, known)
        coming = 0 if view.message is None else self._measure(view.message)
        sizes = f"its messages take about {messages + coming} tokens, instructions and tools {fixed}"
        return ContextOverflow(f"the request is too large: {why}; {sizes}", operation="AutoCompact")


def _clock(view: TurnView) -> Clock:
    return view.scope.clock if isinstance(view.scope, Scope) else SystemClock()  # left out of a view made by hand


def _has_ended(view: TurnView) -> bool:
    return isinstance(view.scope, Scope) and view.scope.cancelled


def _is_refused(failure: Exception) -> bool:
    """Whether `compact` has asked for no summary, since none could help; a summarizer's model may overflow too."""
    return isinstance(failure, ContextOverflow) and failure.operation == OPERATION


def _explain(error: ContextOverflow, failure: Exception) -> None:
    """Says why the overflow was not cured; the error is the one that the run fails with."""
    error.cause = error.__cause__ = failure
