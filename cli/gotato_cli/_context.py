"""`gotato context`: what a model would see of a session, and how to shorten it."""

from __future__ import annotations

from typing import Any

from gotato_modelctx import inspect
from gotato_modelctx.compacting import compact
from gotato_modelctx.model_summarizer import ModelSummarizer
from gotato_modelctx.summarizers import Summarizer, TruncateSummarizer
from gotato_py import Cancelled, Compaction, Scope
from gotato_session import StoreBase

from ._arguments import Arguments
from ._interrupts import EXIT_INTERRUPTED, Interrupts
from ._models import model_of
from ._output import Output
from ._problems import UsageError
from ._stores import store_at
from ._tools import DEMO_TOOLS


def context_command(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Carries out the action and returns the exit code. Raises `UsageError`, errors of the store, and `CannotWrite`."""
    if arguments.action == "inspect":
        with store_at(arguments.store) as store:
            return _inspect(store, arguments, output)
    summarizer = _summarizer(arguments)
    scope = Scope()
    interrupts.watch(scope)
    try:
        with store_at(arguments.store) as store, store.open(arguments.id) as session:
            made = compact(session, summarizer, keep_tokens=arguments.keep_tokens, scope=scope)
    except Cancelled:  # by Ctrl-C: nothing else does
        output.problem("interrupted")
        return EXIT_INTERRUPTED
    told = compaction_dict(arguments.id, made)
    if arguments.json:
        output.json_line(told)
    elif made is None:
        output.lines(f"{arguments.id}: nothing was done: it fits, or nothing of it may be summarised")
    else:
        size = f"about {made.tokens_before:,} tokens became {made.tokens_after:,}"
        output.lines(f"{arguments.id}: a summary stands for everything up to {made.through}; {size}")
    return 0


def _inspect(store: StoreBase, arguments: Arguments, output: Output) -> int:
    with store.open(arguments.id, read_only=True) as session:
        found = inspect(session, instructions=arguments.instructions, tools=DEMO_TOOLS)
    if arguments.json:
        output.json_line({"id": arguments.id, **found.to_dict()})
    else:
        output.lines(str(found))
    return 0


def _summarizer(arguments: Arguments) -> Summarizer:
    if arguments.summarizer != "truncate":
        return ModelSummarizer(model_of(arguments.summarizer, arguments.base_url))
    if arguments.base_url is not None:
        raise UsageError("--base-url goes with --summarizer PROVIDER:NAME; truncating needs no network")
    return TruncateSummarizer()


def compaction_dict(id: str, made: Compaction | None) -> dict[str, Any]:
    """What became of it, as plain JSON types."""
    if made is None:
        return {"id": id, "compacted": False}
    return {
        "id": id,
        "compacted": True,
        "through": made.through,
        "tokens_before": made.tokens_before,
        "tokens_after": made.tokens_after,
        "summary": made.summary.text,
    }
