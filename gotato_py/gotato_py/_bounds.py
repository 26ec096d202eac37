"""Where limits are checked: each returns or ends the run as limited."""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONEncoder

from ._ledger import size_of
from ._run import Ending, Run
from .errors import InvalidArgument, LimitExceeded
from .messages import UserMessage
from .parts import ReasoningPart, TextPart
from .result import RunStatus

_canonical = JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
_REPEAT_WINDOW = 64  # different calls remembered at once; a cycle longer than this is left to max_turns


def limited(limit: str, text: str, *, wrap_up: bool = False) -> Ending:
    """The end of a run by a limit."""
    error = LimitExceeded(f"{text} (limits.{limit})", limit=limit, operation="Agent.run")
    return Ending(RunStatus.LIMITED, error, wrap_up=wrap_up)


def check_user_message(run_limit: int | None, message: UserMessage, where: str, operation: str = "Agent.run") -> None:
    """Refuses, before anything is changed, a user message that no provider takes, or over `max_message_bytes`."""
    if all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts):
        text = f"{where} is empty: no provider takes a user message that says nothing"
        raise InvalidArgument(text, operation=operation)
    if any(isinstance(part, ReasoningPart) for part in message.parts):
        raise InvalidArgument(f"{where} holds a ReasoningPart; only a model's answer can", operation=operation)
    if run_limit is not None and (size := size_of(message)) > run_limit:
        text = f"{where} is {size} bytes, over limits.max_message_bytes ({run_limit})"
        raise InvalidArgument(text, operation=operation)


def check_room(run: Run, more: int = 0) -> None:
    """Ends the run if the transcript is full, or would be over its bytes with so many more."""
    limits = run.setup.limits
    if limits.max_messages is not None and run.ledger.count >= limits.max_messages:
        raise limited("max_messages", f"the transcript holds {run.ledger.count} messages")
    if limits.max_transcript_bytes is not None and run.ledger.size + max(1, more) > limits.max_transcript_bytes:
        raise limited("max_transcript_bytes", f"the transcript holds {run.ledger.size} bytes")


def check_turn(run: Run) -> None:
    """Ends the run if no further turn may begin. One comparison each, until one of them is reached."""
    bounds, ledger = run.setup.bounds, run.ledger
    if ledger.count >= bounds.messages or ledger.size >= bounds.transcript_bytes:
        check_room(run)
    if run.turn >= bounds.turns or bounds.counts_tokens:
        check_next_turn(run)


def check_next_turn(run: Run) -> None:
    """Ends the run if no turn or token is left: the results of a batch could then never be seen."""
    limits = run.setup.limits
    if limits.max_turns is not None and run.turn >= limits.max_turns:
        raise limited("max_turns", f"the run took {run.turn} turns", wrap_up=True)
    most = limits.max_total_tokens
    if most is not None and run.usage.total_tokens >= most:
        raise limited("max_total_tokens", f"the run used {run.usage.total_tokens} tokens", wrap_up=True)


def no_call_left(run: Run) -> Ending:
    """The end of a run that may make no further call."""
    for name in ("max_repeated_calls", "max_parallel_tools"):
        if getattr(run.setup.limits, name) == 0:
            return limited(name, "no call is admitted", wrap_up=True)
    return limited("max_tool_calls", f"the run made {run.tool_calls} tool calls", wrap_up=True)


def check_abandoned(run: Run) -> None:
    """Ends the run if so many calls were given up and still run that no further one may be put at that risk."""
    most = run.setup.limits.max_abandoned
    if most is None:
        return
    assert run.abandoned is not None  # since the run has the agent
    alive = len(run.abandoned.alive())
    if alive >= most:
        raise limited("max_abandoned", f"{alive} calls that were given up still run, see Agent.abandoned")


def canonical(arguments: Mapping[str, object]) -> str:
    """The arguments as text that does not depend on their order."""
    if len(arguments) == 1:  # the usual case; nothing in a plain value has an order
        ((name, only),) = arguments.items()
        if not isinstance(only, dict | list):
            return f"{name}={only!r}"
    return _canonical(dict(arguments))


def count_repeats(run: Run, name: str, arguments: str, result: object) -> int:
    """How often this call has now had this same result: 1 for the first time, and again for each new result."""
    key = (name, arguments)
    known = run.repeats.pop(key, None)
    count = known[1] + 1 if known is not None and known[0] == result else 1
    run.repeats[key] = (result, count)
    if len(run.repeats) > _REPEAT_WINDOW:
        del run.repeats[next(iter(run.repeats))]
    return count
