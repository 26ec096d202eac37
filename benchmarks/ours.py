"""gotato-py's side: a scripted model that makes its events anew each time, as an adapter does, and agents on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.work import FINAL, Script, lookup

from gotato_py import (
    Agent,
    Done,
    Limits,
    ModelEvent,
    ModelRequest,
    Scope,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Usage,
    tool,
)

UNBOUNDED = Limits(max_turns=None, max_tool_calls=None)
LOOKUP = tool(lookup)
_USAGE = Usage(10, 5)


class OurModel:
    """Says what the script says, with token usage in every answer."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """One answer."""
        if self.script.deltas:
            for piece in self.script.deltas:
                yield TextDelta(piece)
            yield Done(StopReason.END_TURN, _USAGE)
            return
        step = self.script.step()
        if step is None:
            yield TextDelta(FINAL)
            yield Done(StopReason.END_TURN, _USAGE)
        else:
            yield ToolCallReady(ToolCall(step[0], "lookup", step[1]))
            yield Done(StopReason.TOOL_CALLS, _USAGE)


def our_agent(rounds: int, *, deltas: int = 0, extensions: Sequence[object] = ()) -> Agent:
    """An agent with the one tool, on a model with a script of its own."""
    model = OurModel(Script(rounds, deltas))
    return Agent(model, tools=[LOOKUP], limits=UNBOUNDED, extensions=extensions)
