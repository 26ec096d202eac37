# requires: ../gotato-py
"""gotato-py in the line of the peers: copy this file beside theirs and start it as they are started.

The path above leads from the folder where `setup.sh` runs to a checkout of this project; change it to where yours is.
"""

# mypy: disable-error-code="import-not-found"
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import peerlib

from gotato_py import (
    Agent,
    Done,
    Limits,
    ModelEvent,
    ModelRequest,
    RunResult,
    Scope,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Transcript,
    Usage,
)

NAME, DIST, IMPORT = "gotato_py", "gotato-py", "from gotato_py import Agent"
NOTES = "limits.max_turns and max_tool_calls None; a new conversation is a new agent"

UNBOUNDED = Limits(max_turns=None, max_tool_calls=None)


def lookup(key: str) -> str:
    """Look up a key."""
    return str(peerlib.payload(key))


class Model:
    """Says what the script says, in events made anew each time, with token usage."""

    def __init__(self, script: Any) -> None:  # Any: peerlib's Script, which has no types
        self.script = script

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """One answer."""
        if self.script.deltas:
            for piece in self.script.deltas:
                yield TextDelta(piece)
            yield Done(StopReason.END_TURN, Usage(10, 5))
            return
        step = self.script.step(request.messages)
        if step is None:
            yield TextDelta(peerlib.FINAL)
            yield Done(StopReason.END_TURN, Usage(10, 5))
        else:
            yield ToolCallReady(ToolCall(step[0], "lookup", step[1]))
            yield Done(StopReason.TOOL_CALLS, Usage(10, 5))


class Holder:
    """An agent that can be replaced by a new one: agents are made, used and dropped, never emptied."""

    __slots__ = ("agent", "model")

    def __init__(self, model: Model) -> None:
        self.model = model
        self.agent = Agent(model, tools=[lookup], limits=UNBOUNDED)


def make_model(script: Any) -> Model:  # Any: as above
    """A model that follows the script."""
    return Model(script)


def make_agent(model: Model) -> Holder:
    """An agent with the one tool, given as a bare function."""
    return Holder(model)


def run(holder: Holder) -> RunResult[None]:
    """A whole run."""
    return holder.agent.run("go")


def text(result: RunResult[None]) -> str:
    """The final text."""
    return result.text


def history(holder: Holder, result: RunResult[None]) -> Transcript:
    """What a caller keeps in order to go on."""
    return holder.agent.transcript


def reset(holder: Holder) -> None:
    """Begins a new conversation."""
    holder.agent = Agent(holder.model, tools=[lookup], limits=UNBOUNDED)


def stream(holder: Holder, consume: Callable[[str], object]) -> None:
    """One streamed turn."""
    with holder.agent.stream("go") as events:
        for piece in events.text:
            consume(piece)


if __name__ == "__main__":
    peerlib.main(globals())
