"""Cases of a summary that comes while something else is going on: calls that wait, two runs, an interrupt."""

from __future__ import annotations

from gotato_py import Compaction, Hooks, MemoryTranscript, TurnView, UserMessage
from gotato_testkit import call, say

from ..effort import by_profile
from .interrupts import LineInterrupt
from .laws import assert_laws
from .laws_of_waiting import YES, asks
from .stage import Stage
from .test_case_points_compact import compacting, last, told, work

STEP = by_profile(dev=37, ci=11, nightly=1)
"""Every how many lines a run is interrupted; at each of them but in the profile for every day."""


class TestWhileACallWaits:
    """An extension compacts when a run goes on with a batch that waited."""

    def test_what_came_before_the_batch(self) -> None:
        """Old messages may go while calls are open; the batch goes on as if nothing had happened."""
        left = [1]

        def compact(view: TurnView) -> None:
            if left and view.message is None:
                left.pop()
                view.transcript.replace(Compaction(UserMessage("Summary."), view.messages[1].id))  # type: ignore[attr-defined]

        stage = Stage(say("One."), call("work") + call("work", n=2), say("Two."), tools=[work], extensions=[
            asks("work"), Hooks(before_run=compact),
        ])  # fmt: skip
        stage.run("first")
        result = stage.run("second")
        done = stage.run(None, answers={each.key: YES for each in result.waiting})
        assert (done.text, len(told(stage))) == ("Two.", 1)
        assert stage.asked[-1] == ["U Summary.", "U second", "A  [work, work] tool_calls", "R call_1 ok", "R call_2 ok"]
        assert_laws(stage)


class TestBetweenRuns:
    """Somebody else compacts, between two runs of an agent."""

    def test_one_message_replaced_by_one(self) -> None:
        """A summary in the place of a single message changes no count, and is seen all the same."""
        stage = Stage(say("One."), say("Two."))
        stage.run("first")
        transcript = stage.transcript
        assert isinstance(transcript, MemoryTranscript)
        transcript.replace(Compaction(UserMessage("Summary."), transcript.messages[0].id))
        assert stage.run("second").text == "Two."
        assert stage.asked[-1] == ["U Summary.", "A One. end_turn", "U second"]
        assert told(stage) == []
        assert_laws(stage)


def test_c33_a_run_that_compacts() -> None:
    """Ctrl-C at any line of a run that compacts everything: the next run works, and every message was told."""
    broken: list[str] = []
    number = 1
    while True:
        stage = Stage(call("work"), say("Done."), tools=[work], extensions=[
            Hooks(before_turn=compacting(last, times=2)),
        ])  # fmt: skip
        line = LineInterrupt(number)
        line(lambda stage=stage: stage.run())  # type: ignore[misc]  # bound at once
        if not line.where:
            break
        try:
            assert_laws(stage, repair=True)
            ended = {event.message.id for event in stage.events if event.kind == "message_end"}  # type: ignore[union-attr]
            assert {message.id for message in stage.messages if message.role == "assistant"} <= ended
        except AssertionError as error:
            broken.append(f"{line.where}: {error}".splitlines()[0])
        number += STEP
    assert number > 20 * STEP
    assert broken == []
