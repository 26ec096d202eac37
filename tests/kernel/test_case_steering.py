"""Cases of steering: a message that comes for a run while it goes on, from wherever that may be."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from gotato_py import (
    Accept,
    Allow,
    Ask,
    ControlDelivered,
    Event,
    Hooks,
    Limits,
    MessageEnd,
    NotRunning,
    RunStatus,
)
from gotato_testkit import Do, FakeTool, call, say

from .controls import delivered, on
from .hosts import in_thread
from .laws import assert_laws
from .stage import Stage

BATCH = say("On it. ") + call("a") + call("b") + call("c")


def steered(act: Callable[[], object], *, limits: Limits | None = None) -> Stage:
    """A stage whose first answer calls a, b and c; `act` is done while a runs."""
    tools = [FakeTool("a", Do(act)), FakeTool("b", "b"), FakeTool("c", "c")]
    return Stage(BATCH, say("Done."), tools=tools, limits=limits or Limits())


class TestC28WhileABatchRuns:
    """A message comes while the calls of an answer run."""

    def test_c28_after_the_batch(self) -> None:
        """The whole batch runs; then the message is committed, and the next request ends with it."""
        ids: list[str] = []
        stage = steered(lambda: ids.append(in_thread(lambda: stage.agent.steer("use the other file"))))
        assert stage.run().text == "Done."
        batch = ["A On it.  [a, b, c] tool_calls", "R call_1 ok", "R call_2 ok", "R call_3 ok"]
        assert stage.history == ["U do it", *batch, "U use the other file", "A Done. end_turn"]
        assert stage.asked[1] == ["U do it", *batch, "U use the other file"]
        assert delivered(stage) == [(ids[0], "steer")]
        assert_laws(stage)

    def test_c28_the_events_of_a_delivery(self) -> None:
        """The message ends, and then it is told that it was delivered, between the two turns."""
        stage = steered(lambda: stage.agent.steer("use the other file"))
        stage.run()
        at = stage.kinds.index("control_delivered")
        assert stage.kinds[at - 2 : at + 2] == ["turn_end", "message_end", "control_delivered", "turn_start"]
        ended, told = stage.events[at - 1 : at + 1]
        assert isinstance(ended, MessageEnd)
        assert isinstance(told, ControlDelivered)
        assert ended.message.id == told.message_id
        assert_laws(stage)

    @pytest.mark.parametrize("where", ["worker", "host"])
    def test_c28_a_parallel_batch(self, where: str) -> None:
        """A parallel batch is finished as well, whether the message comes from one of its workers or from the host."""

        def hurry() -> str:
            return stage.agent.steer("hurry")

        act = hurry if where == "worker" else lambda: in_thread(hurry)
        stage = steered(act, limits=Limits(max_parallel_tools=3))
        assert stage.run().text == "Done."
        assert [line[0] for line in stage.history] == list("UARRRUA")
        assert stage.history[5] == "U hurry"
        assert stage.asked[1][-1] == "U hurry"
        assert_laws(stage)

    def test_c28_two_messages(self) -> None:
        """Two come in the order in which they were queued, both before the next request."""
        stage = steered(lambda: (stage.agent.steer("first"), in_thread(lambda: stage.agent.steer("second"))))
        assert stage.run().text == "Done."
        assert stage.history[5:] == ["U first", "U second", "A Done. end_turn"]
        assert len(stage.asked) == 2
        assert_laws(stage)

    def test_c28_while_the_last_answer_comes(self) -> None:
        """A message that comes during a text answer makes another turn of the same run."""
        stage = Stage([*say("All ")[:-1], Do(lambda: stage.agent.steer("And Bergen?")), *say("done.")], say("Rain."))
        result = stage.run("Oslo?")
        assert (result.text, result.metrics.turns) == ("Rain.", 2)
        assert stage.history == ["U Oslo?", "A All done. end_turn", "U And Bergen?", "A Rain. end_turn"]
        assert_laws(stage)

    def test_c28_before_the_first_request(self) -> None:
        """What comes as the run begins is delivered before the model is asked at all."""
        stage = Stage(say("Both."), extensions=[on("agent_start", lambda: stage.agent.steer("and this"))])
        assert stage.run().text == "Both."
        assert stage.asked[0] == ["U do it", "U and this"]
        assert_laws(stage)

    @pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
    @pytest.mark.parametrize("parallel", [1, 3])
    def test_c28_at_every_event(self, parallel: int, streaming: bool) -> None:
        """Wherever in the run it comes, it never stands between a call and its result, and is delivered once."""
        number = 0
        while True:
            number += 1
            stage = steered_at(number, parallel)
            if streaming:
                with stage.agent.stream("do it") as stream:
                    list(stream)
            else:
                stage.run()
            if stage.events[number - 1].kind == "agent_end":
                break
            kinds = "".join(line[0] for line in stage.history)
            assert kinds in {"UUARRRA", "UARRRUA", "UARRRAUA"}, stage.history
            assert len(delivered(stage)) == 1
            assert_laws(stage)
        assert number > 20


def steered_at(number: int, parallel: int) -> Stage:
    """A stage that plays a batch and is steered at the event of that number, unless it is the last."""
    seen: list[Event] = []

    def observe(event: Event) -> None:
        seen.append(event)
        if len(seen) == number and event.kind != "agent_end":
            stage.agent.steer("now")

    tools = [FakeTool(name, name) for name in "abc"]
    limits = Limits(max_parallel_tools=parallel)
    stage = Stage(
        BATCH, say("Done."), say("Well then."), tools=tools, extensions=[Hooks(observe=observe)], limits=limits
    )
    return stage


NO_WISH: dict[str, Callable[..., object]] = {
    "transform": lambda view, messages: messages,
    "check_answer": lambda view, message: Accept(),
    "before_tool": lambda use: Allow(),
    "after_tool": lambda use, result: result,
}
"""What an extension returns that has no wishes; at the other points it is None."""


class TestC28FromAnywhere:
    """Whatever runs within a run may steer it."""

    @pytest.mark.parametrize(
        "point",
        ["before_run", "before_turn", "transform", "check_answer", "before_tool", "after_tool", "should_stop"],
    )
    def test_c28_from_an_extension(self, point: str) -> None:
        """An extension steers from any point; the message comes at the next boundary."""
        told: list[str] = []

        def act(*given: object) -> object:
            if not told:
                told.append(stage.agent.steer("from the hook"))
            return NO_WISH[point](*given) if point in NO_WISH else None

        extension: Any = SimpleNamespace(**{point: act})
        stage = Stage(call("a"), say("Done."), tools=[FakeTool("a", "a")], extensions=[extension])
        assert stage.run().text == "Done."
        assert [each for each, _ in delivered(stage)] == told
        assert stage.history.count("U from the hook") == 1
        assert_laws(stage)

    def test_c28_from_a_signal_handler(self) -> None:
        """A signal handler may steer the run that its own thread drives, at whatever line that is."""

        def on_signal(number: int, frame: FrameType | None) -> None:
            stage.agent.steer("by signal")

        before = signal.signal(signal.SIGUSR1, on_signal)
        try:
            stage = steered(lambda: signal.raise_signal(signal.SIGUSR1))
            assert stage.run().text == "Done."
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert stage.history[5] == "U by signal"
        assert_laws(stage)

    def test_c28_where_no_run_goes_on(self) -> None:
        """An agent that is idle, that waits or that is closed takes no message, and says what to do instead."""
        ask = Hooks(before_tool=lambda use: Ask("may it?"))
        stage = Stage(call("a"), tools=[FakeTool("a")], extensions=[ask])
        for status in ("idle", "waiting", "closed"):
            assert stage.agent.status == status
            for control in (stage.agent.steer, stage.agent.follow_up):
                with pytest.raises(NotRunning, match=r"run\(message\)"):
                    control("hello?")
            assert stage.agent.withdraw("m-1") is False
            if status == "idle":
                assert stage.run().status is RunStatus.WAITING
                assert stage.history == ["U do it", "A  [a] tool_calls"]
            elif status == "waiting":
                stage.agent.close()
        assert len(stage.messages) == 2
