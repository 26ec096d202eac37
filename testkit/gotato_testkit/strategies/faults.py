"""Plans for `FaultyTool` and `FaultyTranscript`: what fails, at which call of it, with what."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from gotato_py import StoreFailure, ToolError
from gotato_testkit.faults import Fault, FaultPlan

TRANSCRIPT_OPERATIONS = ("append", "mark_started", "mark_waiting", "replace", "begin_run", "end_run")
TOOL_OPERATIONS = ("execute", "executed")


def faults(
    operations: Sequence[str] = (*TRANSCRIPT_OPERATIONS, *TOOL_OPERATIONS),
    *,
    errors: st.SearchStrategy[BaseException] | None = None,
    latest: int = 8,
) -> st.SearchStrategy[Fault]:
    """One fault: the n-th call (1 to `latest`) of an operation raises an error."""
    known = st.sampled_from(ERRORS) if errors is None else errors
    return st.builds(Fault, st.sampled_from(operations), st.integers(1, latest), known)


def fault_plans(
    operations: Sequence[str] = (*TRANSCRIPT_OPERATIONS, *TOOL_OPERATIONS),
    *,
    errors: st.SearchStrategy[BaseException] | None = None,
    latest: int = 8,
    max_size: int = 2,
) -> st.SearchStrategy[FaultPlan]:
    """Up to `max_size` faults, none the simplest."""
    return st.lists(faults(operations, errors=errors, latest=latest), max_size=max_size).map(FaultPlan)


ERRORS: tuple[BaseException, ...] = (
    StoreFailure("the disk is full"),
    OSError(28, "No space left on device"),
    ToolError("not today"),
    ValueError("a bug"),
)
"""What fails, unless `errors` says otherwise."""
