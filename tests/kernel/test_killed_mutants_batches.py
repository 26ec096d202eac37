"""What no other test would notice of batches: their last turn, cut answers, and calls that run beside others."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gotato_py import Limits, RunStatus, StopReason, ToolContext, tool
from gotato_testkit import FakeTool, call, say

from .laws import assert_laws
from .stage import Stage

TWO = Limits(max_parallel_tools=2)


@dataclass
class Number:
    """What a run is asked for."""

    value: int


class TestTheLastTurn:
    """`max_turns` is reached with the answer that is looked at."""

    def test_the_output_counts(self) -> None:
        """The output that comes with the last turn that may be taken is taken: no other turn is needed."""
        stage = Stage(call("final_answer", value=5), limits=Limits(max_turns=1))
        result = stage.agent.run("how many?", output=Number, check=False)
        assert (result.status, result.output) == (RunStatus.COMPLETED, Number(5))
        assert_laws(stage, again=False)


class TestAnswersThatWereCutOff:
    """Calls of such answers are not run."""

    def test_only_two_by_the_token_limit(self) -> None:
        """An answer that the content filter cut off is not counted among those that the token limit did."""
        filtered = say("Hm. ", stop_reason=StopReason.CONTENT_FILTER) + call("ping")
        cut = say("Hm. ", stop_reason=StopReason.MAX_TOKENS) + call("ping")
        stage = Stage(filtered, cut, say("Done."), tools=[FakeTool("ping")])
        result = stage.run()
        assert (result.status, stage.statuses) == (RunStatus.COMPLETED, ["not_run", "not_run"])
        assert_laws(stage)


class TestBesideOthers:
    """Calls on worker threads."""

    def test_cancelled_while_others_finish(self) -> None:
        """A call that waits for its turn does not start any more when the run is cancelled meanwhile."""

        @tool
        def wait(use: ToolContext[object]) -> str:
            """Waits for the end, and causes it."""
            stage.agent.cancel("by the test")
            use.scope.wait(10.0)
            return "ended"

        last = FakeTool("last")
        stage = Stage(call("wait") + call("wait") + call("last"), tools=[wait, last], limits=TWO)
        assert stage.run().status is RunStatus.CANCELLED
        assert stage.statuses[-1] == "not_run"
        assert len(stage.effects) <= 2
        assert_laws(stage)

    def test_the_nearer_of_two_timeouts(self) -> None:
        """A tool that may take less than the limit is ended by its own timeout."""

        @tool(timeout=0.05)
        def wait(use: ToolContext[object]) -> str:
            """Waits for the end."""
            use.scope.wait(10.0)
            use.scope.check()
            return "ended"

        stage = Stage(call("wait"), say("Done."), tools=[wait], limits=Limits(tool_timeout=60.0))
        began = time.monotonic()
        assert stage.run().text == "Done."
        assert (stage.statuses, time.monotonic() - began < 5.0) == (["timed_out"], True)
        assert_laws(stage)
