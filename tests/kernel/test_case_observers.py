"""Cases of observers: they raise, they are slow, they cancel, and the run is the same with and without them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from gotato_py import (
    Agent,
    ErrorCode,
    Event,
    ExtensionFailed,
    Hooks,
    Limits,
    MessageUpdate,
    Overloaded,
    RateLimits,
    RetryPolicy,
    RunStatus,
    ToolCallDelta,
    ToolContext,
    ToolExecutionUpdate,
)
from gotato_testkit import ManualClock, Raise, ScriptedModel, SequentialIds, Step, call, say, think

from .laws import assert_laws
from .stage import Stage, history


def work(use: ToolContext[object], n: int) -> str:
    """Works, and says how far it has come."""
    use.progress(f"half of {n}")
    return f"worked on {n}"


STEPS: list[Step] = [
    [*say("On ")[:-1], Raise(Overloaded("busy"))],
    [RateLimits(10, 9), *think("Hm.", signature="s")[:-1], ToolCallDelta(0, "work", "{"), *call("work", n=1)],
    say("All done."),
]
"""A script that makes an event of every kind that this release has."""

STEADY = RetryPolicy(jitter=0.0)

KINDS = [
    "agent_start", "turn_start", "context_built", "message_start", "message_update", "reasoning_update",
    "tool_call_update", "message_end", "message_discarded", "model_retry", "rate_limits", "tool_execution_start",
    "tool_execution_update", "tool_execution_end", "tool_result_committed", "turn_end", "agent_end",
]  # fmt: skip


def raising_at(kind: str, error: BaseException) -> Hooks:
    """An observer that raises at events of that kind."""

    def observe(event: Event) -> None:
        if event.kind == kind:
            raise error

    return Hooks(observe=observe, name="grumpy")


def played(*extensions: object) -> Stage:
    """A stage on which the whole script was played."""
    stage = Stage(*STEPS, tools=[work], extensions=extensions, clock=ManualClock(), ids=SequentialIds())
    result = stage.run()
    assert (result.status, result.text) == (RunStatus.COMPLETED, "All done.")
    return stage


class TestC38ListenerRaises:
    """An observer raises."""

    def test_c38_every_kind_is_there(self) -> None:
        """The script of these cases makes every kind of event but those of an extension that fails."""
        stage = played()
        assert set(stage.kinds) == set(KINDS)
        assert_laws(stage)

    @pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)], ids=["ValueError", "SystemExit"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_c38_at_each_kind_in_turn(self, kind: str, error: BaseException) -> None:
        """The transcript is what it is without the observer, and the other events are the same, in the same order."""
        stage, undisturbed = played(raising_at(kind, error)), played()
        assert stage.messages == undisturbed.messages
        assert stage.asked == undisturbed.asked
        assert [each for each in stage.kinds if each != "extension_failed"] == undisturbed.kinds
        told = [event for event in stage.events if isinstance(event, ExtensionFailed)]
        assert len(told) == (0 if kind == "agent_end" else undisturbed.kinds.count(kind))
        for event in told:
            assert (event.extension, event.point) == ("grumpy", "observe")
            assert event.error is not None
            assert event.error.code is ErrorCode.EXTENSION_FAILURE
        assert_laws(stage)

    def test_c38_is_not_told_of_itself(self) -> None:
        """An observer that fails at everything is never told that it failed, and still gets every other event."""
        seen: list[str] = []

        def observe(event: Event) -> None:
            seen.append(event.kind)
            raise ValueError("no")

        stage = played(Hooks(observe=observe))
        assert seen == [kind for kind in stage.kinds if kind != "extension_failed"]
        assert_laws(stage)

    def test_c38_two_that_fail_tell_of_each_other(self) -> None:
        """Two observers that always raise do not go on about each other for ever."""

        def observe(event: Event) -> None:
            raise ValueError(event.kind)

        stage = played(Hooks(observe=observe, name="one"), Hooks(observe=observe, name="two"))
        assert {event.extension for event in stage.events if isinstance(event, ExtensionFailed)} == {"one", "two"}
        assert_laws(stage)

    def test_c38_is_logged_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """One log line for each failing observer, however often it fails, and no prompt text in it."""
        with caplog.at_level(logging.INFO, "gotato_py"):
            stage = played(raising_at("message_update", ValueError("All done.")))
        (line,) = caplog.messages
        assert "grumpy" in line
        assert "All done." not in line
        assert stage.kinds.count("extension_failed") == stage.kinds.count("message_update")
        assert_laws(stage)

    def test_c38_an_interrupt_is_not_a_failure(self) -> None:
        """`KeyboardInterrupt` from an observer ends the run: closed, told to every observer, then raised."""
        stage = Stage(*STEPS, tools=[work], extensions=[raising_at("tool_execution_start", KeyboardInterrupt())])
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.history[-1] == "R call_1 cancelled"
        assert stage.kinds[-1] == "agent_end"
        assert_laws(stage)  # the next run calls no tool, so the observer lets it be


class TestC38ListenerTakesItsTime:
    """An observer is slow."""

    def test_c38_order_stays(self) -> None:
        """A slow observer costs time and nothing else: every observer sees every event, in order."""
        clock = ManualClock()
        late: list[Event] = []

        def observe(event: Event) -> None:
            clock.advance(10)
            late.append(event)

        stage = Stage(*STEPS, tools=[work], extensions=[Hooks(observe=observe)], clock=clock)
        assert stage.run().text == "All done."
        assert late == stage.events
        assert_laws(stage)

    def test_c38_the_deadline_holds(self) -> None:
        """The time that an observer takes counts: the run ends at its deadline, closed."""
        clock = ManualClock()

        def observe(event: Event) -> None:
            if event.kind == "message_update" and clock.monotonic() < 10:
                clock.advance(10)

        slow = Hooks(observe=observe)
        stage = Stage(say("One two three."), extensions=[slow], clock=clock, limits=Limits(run_timeout=5))
        assert stage.run().status is RunStatus.DEADLINE_EXCEEDED
        assert stage.history == ["U do it", "A One  cancelled"]
        assert_laws(stage)


class TestC38ListenerCancels:
    """An observer calls `cancel`."""

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "agent_end"])
    def test_c38_at_each_kind_in_turn(self, kind: str) -> None:
        """A cancel from an observer is allowed anywhere before `agent_end`; the run ends cancelled or was complete."""
        told: list[bool] = []

        def observe(event: Event) -> None:
            if event.kind == kind and not told:
                told.append(stage.agent.cancel("from the observer"))

        stage = Stage(*STEPS, tools=[work], extensions=[Hooks(observe=observe)], clock=ManualClock())
        result = stage.run()
        assert told == [True]
        assert result.status is RunStatus.CANCELLED
        assert "from the observer" in str(result.error)
        assert_laws(stage)

    def test_c38_at_the_end(self) -> None:
        """At `agent_end` the run is settling: `cancel` returns False and changes nothing."""
        told: list[bool] = []
        cancel = Hooks(observe=lambda event: told.append(stage.agent.cancel()) if event.kind == "agent_end" else None)
        stage = Stage(*STEPS, tools=[work], extensions=[cancel], clock=ManualClock())
        assert stage.run().status is RunStatus.COMPLETED
        assert told == [False]
        assert_laws(stage)


def observed(agent: Agent) -> list[Event]:
    """What a stream yields."""
    return list(agent.stream("do it"))


def drained(agent: Agent) -> list[Event]:
    """Nothing: the run is not streamed."""
    agent.run("do it")
    return []


class TestC38Events:
    """What observers and the stream are told."""

    def test_c38_nobody_listens(self) -> None:
        """Without observers the transcript and the requests are the same."""
        plain = ScriptedModel(STEPS)
        agent = Agent(plain, tools=[work], clock=ManualClock(), ids=SequentialIds())
        assert agent.run("do it").text == "All done."
        stage = played()
        assert list(agent.transcript.messages) == stage.messages
        assert [history(request.messages) for request in plain.requests] == stage.asked
        assert_laws(stage)

    @pytest.mark.parametrize("go", [observed, drained])
    def test_c38_the_same_script_gives_the_same_events(self, go: Callable[[Agent], list[Event]]) -> None:
        """With a manual clock and sequential ids two runs of a script give equal events, and the stream the same."""
        told: list[list[dict[str, object]]] = []
        for _ in range(2):
            stage = Stage(*STEPS, tools=[work], clock=ManualClock(), ids=SequentialIds(), retry=STEADY)
            streamed = go(stage.agent)
            assert streamed in ([], stage.events)
            told.append([event.to_dict() for event in stage.events])
            assert_laws(stage)
        assert told[0] == told[1]

    def test_c38_pieces_are_pieces(self) -> None:
        """`message_update` holds the new piece, progress the tool's own words."""
        stage = played()
        last_turn = [event.text for event in stage.events if isinstance(event, MessageUpdate) and event.turn == 2]
        assert "".join(last_turn) == "All done."
        assert len(last_turn) > 1
        assert [event.text for event in stage.events if isinstance(event, ToolExecutionUpdate)] == ["half of 1"]
        assert_laws(stage)
