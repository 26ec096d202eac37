"""What no other test would notice of steers, follow-ups and cancels: without limits, and at the very end of a run."""

from __future__ import annotations

import pytest

from gotato_py import Limits, NotRunning, RunStatus
from gotato_testkit import Do, FakeTool, call, say

from .controls import delivered, on
from .laws import assert_laws
from .stage import Stage


class TestWithoutLimit:
    """`max_steer` and `max_follow_up` may be None."""

    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    def test_any_number_waits(self, control: str) -> None:
        """Then any number of messages may wait, and all of them are delivered in their order."""

        def queue() -> None:
            for number in range(20):
                getattr(stage.agent, control)(f"{number}")

        limits = Limits(max_steer=None, max_follow_up=None)
        answers = [say("Yes.")] * 21
        stage = Stage(call("a"), *answers, tools=[FakeTool("a", Do(queue))], limits=limits)
        assert stage.run().status is RunStatus.COMPLETED
        assert [line for line in stage.history if line[0] == "U"][1:] == [f"U {number}" for number in range(20)]
        assert len(delivered(stage)) == 20
        assert_laws(stage)


class TestWhileOneIsDelivered:
    """An observer acts as a steer is told to be in the transcript."""

    def test_another_one_is_taken(self) -> None:
        """A message that comes while another is delivered is taken too, and delivered behind it."""
        queue = Do(lambda: stage.agent.steer("first"))
        again = on("message_end", lambda: stage.agent.steer("second"), number=3)
        stage = Stage(call("a"), say("Done."), tools=[FakeTool("a", queue)], extensions=[again])
        assert stage.run().text == "Done."
        assert stage.history[3:5] == ["U first", "U second"]
        assert_laws(stage)


class TestAtTheEnd:
    """An observer acts at agent_end, where the run takes nothing any more."""

    def test_what_was_not_delivered_stays_so(self) -> None:
        """A message that the run has given up as undelivered cannot be withdrawn any more: the result lists it."""
        told: list[object] = []

        def act() -> None:
            told.append(stage.agent.withdraw(ids[0]))
            with pytest.raises(NotRunning):
                stage.agent.steer("too late")
            told.append(stage.agent.cancel())

        ids: list[str] = []

        def stop() -> None:
            ids.append(stage.agent.steer("hurry"))
            stage.cancel()

        stage = Stage(call("a"), tools=[FakeTool("a", Do(stop))], extensions=[on("agent_end", act)])
        result = stage.run()
        assert (result.status, told) == (RunStatus.CANCELLED, [False, False])
        assert [message.id for message in result.undelivered] == ids
        assert_laws(stage)

    def test_it_is_too_late_to_cancel(self) -> None:
        """A run that has come to its end is not cancelled any more, and `cancel` says so."""
        told: list[bool] = []
        stage = Stage(say("Done."), extensions=[on("agent_end", lambda: told.append(stage.agent.cancel()))])
        result = stage.run()
        assert (result.status, told) == (RunStatus.COMPLETED, [False])
        assert_laws(stage)
