"""Puts a summary in the place of old messages: measured before it is paid for, committed only when it is good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gotato_py import (
    Compaction,
    ContextOverflow,
    EmptyResponse,
    ExtensionFailure,
    InvalidState,
    Message,
    NotSupported,
    Scope,
    Transcript,
    Usage,
    WaitingCall,
    replace,
)

from ._arguments import check_count, check_measure, check_type, is_sequence, wrong
from .cuts import cut_points, tail_start
from .summaries import is_summary, summary_message
from .summarizers import Summarizer, checked_summarizer
from .tokens import message_tokens

COVERED, KEPT = "covered", "kept"
"""The keys in a compaction's `metadata` of how many messages it has put its summary in the place of, and how many it
left behind that: those are older than it."""

Measure = Callable[[Message], int]
"""Tokens of one message, as it is sent."""

Commit = Callable[[Compaction], bool]

OPERATION = "compact"
"""What its errors call it."""


def compact(
    transcript: Transcript,
    summarizer: Summarizer,
    *,
    keep_tokens: int,
    scope: Scope | None = None,
    reason: str = "",
    overhead: int = 0,
    ceiling: int | None = None,
    measure: Measure = message_tokens,
) -> Compaction | None:
    """Puts one summary in the place of the oldest messages, so that those behind it take at most `keep_tokens` tokens.

    Returns what was committed; None, and asks for no summary, where everything fits or nothing can be cut. Calls are
    never cut from their results. What `tail_start` names stays, whatever its size: an answer at the very end, or the
    last user message, or the last answer with calls and all behind it; so do calls that are open or wait, with their
    message.

    Where a `ceiling` is given and what stays is over it, together with the `overhead` of every request (instructions,
    tools), no summary can help: `ContextOverflow` says what is how large, before one is paid for. `measure` says how
    large a message is; `reason` is kept with the compaction.

    Raises what the summarizer raises, `EmptyResponse` for an empty summary, `ExtensionFailure` for one that is not
    smaller than what it replaces, `Cancelled` or `DeadlineExceeded` when the scope ends, `NotSupported` for a
    transcript without `replace`, `InvalidState` for one that is read-only, what `replace` raises, and
    `InvalidArgument`. Nothing is changed then.
    """
    own = Scope() if scope is None else scope
    _check_options(own, reason, overhead, ceiling, measure)
    commit = _check(transcript, summarizer, keep_tokens)
    messages = transcript.messages
    sizes = [measure(message) for message in messages]
    total = sum(sizes)
    keep = keep_tokens if ceiling is None else max(0, min(keep_tokens, ceiling - overhead))
    cut = _cut(messages, sizes, keep, transcript.waiting) if total > keep else 0
    if messages and ceiling is not None and total + overhead > ceiling:
        _check_remainder(messages, sizes, cut, overhead, ceiling)
    if not cut:
        return None
    made = _summarized(summarizer, messages[:cut], own, measure, sum(sizes[:cut]))
    after = measure(made.summary) + sum(sizes[cut:])
    told = {COVERED: cut, KEPT: len(messages) - cut}
    made = replace(made, reason=reason, tokens_before=total, tokens_after=after, metadata=told)
    if not commit(made):
        raise InvalidState("the transcript refused the compaction; nothing was changed", operation=OPERATION)
    kept: Sequence[Compaction] = getattr(transcript, "compactions", ())
    return kept[-1] if kept else made


def _summarized(
    summarizer: Summarizer, covered: Sequence[Message], scope: Scope, measure: Measure, replaced: int
) -> Compaction:
    """The messages as a compaction; raises for a summary that is none, and once the scope has ended."""
    scope.check()
    text: object = summarizer.summarize(covered, scope)
    scope.check()  # a summarizer that does not look at its scope comes back all the same
    summary = summary_message(_checked(summarizer, text, replaced, measure))
    usage = getattr(text, "usage", None)
    return Compaction(summary, covered[-1].id, usage=usage if isinstance(usage, Usage) else Usage())


def _check(transcript: Transcript, summarizer: object, keep_tokens: object) -> Commit:
    checked_summarizer(f"{OPERATION}: summarizer", summarizer)
    check_count(f"{OPERATION}: keep_tokens", keep_tokens)
    if not is_sequence(getattr(transcript, "messages", None)):
        raise wrong(f"{OPERATION}: transcript", "a Transcript", transcript)
    commit: Commit | None = getattr(transcript, "replace", None)
    if commit is None:
        text = f"{type(transcript).__name__} has no replace: it cannot be compacted"
        raise NotSupported(text, operation=OPERATION)
    if getattr(transcript, "read_only", False) is True:  # said before a summary is paid for
        text = "the transcript is open for reading only; open it for writing"
        raise InvalidState(text, operation=OPERATION)
    return commit


def _check_options(scope: object, reason: object, overhead: object, ceiling: object, measure: object) -> None:
    check_type(f"{OPERATION}: scope", scope, Scope)
    check_type(f"{OPERATION}: reason", reason, str)
    check_count(f"{OPERATION}: overhead", overhead)
    check_measure(f"{OPERATION}: measure", measure)
    if ceiling is not None and type(ceiling) is not int:
        raise wrong(f"{OPERATION}: ceiling", "None or an int", ceiling)


def _cut(messages: Sequence[Message], sizes: Sequence[int], keep: int, waiting: Sequence[WaitingCall]) -> int:
    """How many of the oldest messages go: as few as leave at most `keep` tokens, else as many as may. 0 for none."""
    least = 1 if messages and is_summary(messages[0]) else 0  # a summary alone would be replaced by one of itself
    latest = tail_start(messages)
    behind = sum(sizes)
    at = cut = 0
    for point in cut_points(messages, waiting):
        behind -= sum(sizes[at:point])
        at = point
        if least < point <= latest:
            cut = point
            if behind <= keep:
                break
    return cut


def _check_remainder(messages: Sequence[Message], sizes: Sequence[int], cut: int, overhead: int, ceiling: int) -> None:
    """Raises where no summary can bring the context under its ceiling: all of what stays is too large."""
    kept = sum(sizes[cut:])
    if cut and kept + overhead <= ceiling:
        return
    largest = max(range(cut, len(messages)), key=lambda index: sizes[index])
    text = (
        f"no summary can bring the context under {ceiling} tokens: what is sent beside these messages (instructions, "
        f"sections, tools, a new message) takes {overhead}, the {len(messages) - cut} message(s) that have to stay "
        f"take {kept}, the largest of them (messages[{largest}], {messages[largest].role}) {sizes[largest]}"
    )
    sizes_told = {"ceiling": ceiling, "overhead": overhead, "kept": kept, "largest": sizes[largest]}
    raise ContextOverflow(text, operation=OPERATION, details=sizes_told)


def _checked(summarizer: object, text: object, replaced: int, measure: Measure) -> str:
    """The summary, if it is one."""
    name = type(summarizer).__name__
    if not isinstance(text, str):
        said = f"{name}.summarize returned a {type(text).__name__}; it has to return a str"
        raise ExtensionFailure(said, operation=OPERATION)
    if not text.strip():
        raise EmptyResponse(f"{name}.summarize returned an empty summary; nothing was changed", operation=OPERATION)
    size = measure(summary_message(text)) - measure(summary_message(""))  # the text alone: a message is never for free
    if size >= replaced:
        said = f"the summary of {name} takes {size} tokens and would replace {replaced}; nothing was changed"
        raise ExtensionFailure(said, operation=OPERATION, details={"summary": size, "replaced": replaced})
    return text
