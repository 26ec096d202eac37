"""What the points of a run are shown: one frozen view, made when a point has callables; and what they changed."""

from __future__ import annotations

from ._ledger import Ledger
from ._run import Run
from ._value import unchecked_later
from .context import TurnResult, TurnView
from .events import SessionCompacted
from .messages import ToolMessage, UserMessage
from .parts import NO_USAGE

_make_view = unchecked_later(TurnView)


def turn_view(run: Run, result: TurnResult | None = None, message: UserMessage | None = None) -> TurnView:
    """The run as it stands."""
    setup = run.setup
    return _make_view(
        setup.instructions, run.ledger.view(), setup.transcript, run.id, run.turn, run.usage, run.deps, run.scope,
        result, message,
    )  # fmt: skip


def turn_result(run: Run) -> TurnResult:
    """What the turn that has just ended came to; before the first one, the batch that was resumed."""
    results = [each for each in run.committed[run.turn_mark :] if isinstance(each, ToolMessage)]
    message = run.message if run.turn else run.resumed
    return TurnResult(message, tuple(results), run.turn_usage, run.stop_reason)


def count_compactions(run: Run) -> int:
    """How often the transcript was compacted so far; 0 where it does not say."""
    return len(getattr(run.setup.transcript, "compactions", ()))


def catch_compactions(run: Run) -> None:
    """Takes over what a point has compacted, and announces it."""
    count = count_compactions(run)
    if count <= run.compactions:
        return
    transcript = run.setup.transcript
    new = getattr(transcript, "compactions", ())[run.compactions :]
    run.compactions = count
    run.ledger, run.hasher = Ledger(), None
    run.ledger.catch_up(transcript)
    # The last message that was known may be one of those that the summary stands for.
    run.last_before = run.announcer.last_told = transcript.messages[-1].id
    for each in new:
        if each.usage is not NO_USAGE:  # what the summary cost is the run's
            run.count(each.usage)
        if run.listening:
            run.announcer.emit(SessionCompacted, each.through, each.tokens_before, each.tokens_after)
