"""Structured output at the end of an answer: the calls of `final_answer`, and the text of models that keep schemas."""

from __future__ import annotations

from collections.abc import Sequence

from ._closing import commit_result, refused
from ._mapping import FrozenMapping
from ._output import FINAL_ANSWER, Read
from ._run import Run
from ._structured import Output
from .messages import AssistantMessage, ToolMessage, ToolResult
from .parts import StopReason, TextPart, ToolCall, ToolResultStatus
from .violations import SchemaViolation

IS_FINAL = "final_answer"
"""Metadata key of the result that was taken as the run's output; true."""


_CUT = {  # what is left may be valid, and something else than what was meant
    StopReason.MAX_TOKENS: "one that its token limit cut off; make it shorter",
    StopReason.CONTENT_FILTER: "one that the content filter cut off",
}


def is_final(run: Run, call: ToolCall) -> bool:
    """Whether the call gives the run's output."""
    return run.output is not None and not run.output.native and call.name == FINAL_ANSWER


def takes_final(run: Run, message: AssistantMessage) -> bool:
    """Whether the message holds the output, so that no further turn is needed."""
    return any(is_final(run, call) and isinstance(_read(run, call), Read) for call in message.tool_calls)


def _read(run: Run, call: ToolCall) -> Read | SchemaViolation:
    assert run.output is not None  # is_final has looked
    return run.output.plan.read_arguments(call.arguments, run.setup.interrupts)


def commit_final_answers(run: Run, message: AssistantMessage, calls: Sequence[tuple[int, ToolCall]]) -> None:
    """Takes the first call that fits; the others are told why they were not taken."""
    output = run.output
    assert output is not None  # there are such calls only with an output
    for index, call in calls:
        key = f"{message.id}:{index}"
        if output.read is not None:
            why = f"an earlier {FINAL_ANSWER} of this message was taken"
            commit_result(run, refused(call, key, ToolResultStatus.NOT_RUN, why))
            continue
        read = _read(run, call)
        if isinstance(read, Read):
            output.read = read
            taken = (TextPart("taken"),)
            metadata = FrozenMapping({IS_FINAL: True})
            commit_result(run, ToolResult(call.id, ToolResultStatus.OK, taken, "", key, metadata))
        else:
            why = f"invalid arguments for {FINAL_ANSWER}: {read}"
            commit_result(run, refused(call, key, ToolResultStatus.NOT_RUN, why))
    if output.read is None:
        output.count()


def commit_unready_answers(run: Run, message: AssistantMessage, calls: Sequence[tuple[int, ToolCall]]) -> None:
    """Refuses output that came before a call of the same message which waits for a person."""
    why = f"other calls of this message wait for a person; call {FINAL_ANSWER} when they have their results"
    for index, call in calls:
        commit_result(run, refused(call, f"{message.id}:{index}", ToolResultStatus.NOT_RUN, why))


def read_text(run: Run, output: Output, message: AssistantMessage | None) -> bool:
    """Takes an answer without calls as the output, or has the model corrected. Returns whether it was taken.

    A model that was to call `final_answer` and gives the very JSON as text is understood: small ones often do.
    """
    text, stop = ("", StopReason.NONE) if message is None else (message.text, message.stop_reason)
    read: Read | SchemaViolation
    if stop in _CUT:
        read = SchemaViolation("$", "a whole answer", _CUT[stop])
    else:
        read = output.plan.read_text(text, run.setup.interrupts)
    if isinstance(read, Read):
        output.read = read
        return True
    if output.native:
        output.correct(read)
    else:
        output.ask_for_call()
    return False


def reread(run: Run, output: Output, message: AssistantMessage) -> bool:
    """Reads the output from an answer that is there already, or has the model corrected. Returns whether it fits."""
    for call in message.tool_calls:
        read = output.plan.read_arguments(call.arguments, run.setup.interrupts) if call.name == FINAL_ANSWER else None
        if isinstance(read, Read):
            output.read = read
            return True
    return read_text(run, output, message)


def is_taken(message: ToolMessage) -> bool:
    """Whether this is the result of an answer that was a run's output."""
    return message.result.metadata.get(IS_FINAL) is True
