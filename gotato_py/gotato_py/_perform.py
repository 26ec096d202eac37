"""One call of a tool: whatever it returns or raises is a result, but for the interrupts. Runs in any thread."""

from __future__ import annotations

from collections.abc import Mapping

from ._cut import bound_text
from ._log import debug
from ._mapping import EMPTY, FrozenMapping
from ._toolset import BoundTool
from ._value import unchecked
from .errors import ErrorCode, GotatoError, ToolError
from .messages import OUTCOME_WORDS, ToolResult
from .normalise import bound_parts, describe_exception, normalise
from .parts import Part, TextPart, ToolResultStatus
from .tools import ToolContext

_STOPPED = {
    ErrorCode.CANCELLED: ToolResultStatus.CANCELLED,
    ErrorCode.DEADLINE_EXCEEDED: ToolResultStatus.TIMED_OUT,
}
_make_result = unchecked(ToolResult)


def perform(
    bound: BoundTool,
    use: ToolContext[object],
    converted: Mapping[str, object],
    interrupts: tuple[type[BaseException], ...],
    most: int | None,
) -> tuple[ToolResult, str]:
    """The result of the call, of at most so many bytes, and the name of what the tool raised, or ""."""
    parts: tuple[Part, ...] = ()
    status, error, exception, metadata = ToolResultStatus.FAILED, "", "", EMPTY
    try:
        returned = bound.execute(use, converted)
        if type(returned) is str and returned:  # by far the most frequent one
            status, parts = ToolResultStatus.OK, (TextPart(returned),)
        else:
            done = normalise(returned, interrupts)
            status, parts, error = done.status, done.parts, done.error
            if done.handle:
                metadata = FrozenMapping({"handle": done.handle})
    except interrupts:
        raise
    except BaseException as raised:  # a tool may raise anything; it is told to the model
        exception = type(raised).__name__
        if isinstance(raised, GotatoError) and use.scope.cancelled:
            status = _STOPPED.get(raised.code, status)
        error = describe_exception(raised, interrupts)
        debug("tool %s raised %s", use.name, exception, exc_info=not isinstance(raised, ToolError))
    if error:
        error = bound_text(error, most)
        parts = (TextPart(OUTCOME_WORDS[status] + error), *parts)
    return _make_result(use.call_id, status, bound_parts(parts, most), error, use.key, metadata), exception
