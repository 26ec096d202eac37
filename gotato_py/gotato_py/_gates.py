"""The gates before a tool: asked in order, to the first that blocks; a gate that fails is one that blocks."""

from __future__ import annotations

from ._hooks import consult, wrong_return
from ._mapping import copied
from ._run import Run
from ._value import of_defaults
from .decisions import Allow, Ask, Block
from .errors import ExtensionFailure
from .messages import ToolResult
from .normalise import bound_parts
from .parts import Part
from .tools import ToolContext

_ALLOW: Allow | Ask | Block = of_defaults(Allow)


def gate(run: Run, use: ToolContext[object]) -> Allow | Ask | Block:
    """Whether the call may run. A `Block` wins over every `Ask`, so that nobody is asked about a call that is blocked;
    of several questions the first is put. Raises the end of the scope: a gate may have taken its time."""
    verdict = _ALLOW
    for hook in run.setup.points.before_tool:
        try:
            decided = consult(run, hook, (_shown(use),), _decision, _ALLOW)
        except ExtensionFailure:
            return Block(f"{hook.extension.name} failed")
        if isinstance(decided, Block):
            return decided if decided.result is None else _bounded(run, decided.reason, decided.result)
        if isinstance(decided, Ask) and verdict is _ALLOW:
            verdict = decided
    if run.scope.cancelled:
        run.scope.check()
    return verdict


def _shown(use: ToolContext[object]) -> ToolContext[object]:
    """The call as a gate sees it: whatever a gate does to what it is shown, the tool is told what was decided on."""
    return ToolContext.for_call(
        use.name, copied(use.keywords()), use.run_id, use.turn, use.call_id, use.key, use.index, use.effect, use.scope,
        use.deps, use.progress, use.charge,
    )  # fmt: skip


def _bounded(run: Run, reason: str, shown: ToolResult | tuple[Part, ...]) -> Block:
    """A block that shows that, no larger than the result of a tool may be."""
    parts = shown.parts if isinstance(shown, ToolResult) else shown
    return Block(reason, bound_parts(parts, run.setup.bounds.result_bytes))


def _decision(returned: object) -> Allow | Ask | Block:
    if not isinstance(returned, Allow | Ask | Block):
        raise wrong_return("Allow(), Block(reason) or Ask(question)", returned)
    return returned
