"""Cases of Ctrl-C at any line of a run that waits for a person, and of one that goes on with the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import AssistantMessage, Message, RunStatus
from gotato_testkit import say

from ..effort import by_profile
from .interrupts import LineInterrupt
from .laws_of_waiting import YES, assert_invariants, assert_laws, waits_for
from .stage import Stage
from .test_case_approvals_cut_off import set_up

STEP = by_profile(dev=37, ci=11, nightly=1)
"""Every how many lines a run is interrupted; at each of them but in the profile for every day."""


class TestC33AtEveryLine:
    """Ctrl-C before any line that a run executes which waits, and one that goes on with the answers."""

    def test_c33_of_a_run_that_waits(self) -> None:
        """It comes out, no question is lost half way, and whoever goes on finds a transcript that can be sent."""
        self.assert_every(lambda: set_up([]), lambda stage, given: stage.run())

    def test_c33_of_a_run_that_resumes(self) -> None:
        """It comes out, nothing that was approved runs twice, and the next run works."""
        self.assert_every(waiting, lambda stage, given: stage.run(None, answers=given))

    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_c33_of_a_stream_that_resumes(self) -> None:
        """The same where the run is iterated; a stream that an interrupt drops warns of it, rightly."""

        def go(stage: Stage, given: dict[str, Any]) -> None:
            with stage.agent.stream(answers=given, check=False) as stream:
                for _ in stream:
                    pass

        self.assert_every(waiting, go)

    def assert_every(self, make: Callable[[], Stage], go: Callable[[Stage, dict[str, Any]], object]) -> None:
        """Interrupts one run after another, each some lines later, until one comes to its end."""
        broken: list[str] = []
        number = 1
        while True:
            stage, line = make(), LineInterrupt(number)
            given = {each.key: YES for each in stage.transcript.waiting}
            came_out = line(lambda stage=stage, given=given: go(stage, given))  # type: ignore[misc]  # bound at once
            if not line.where:
                break
            try:
                assert came_out
                after(stage, given)
            except AssertionError as error:
                broken.append(f"{line.where}: {error}".splitlines()[0])
            number += STEP
        assert number > 20 * STEP
        assert broken == []


def waiting() -> Stage:
    """A stage whose run waits."""
    stage = set_up([])
    assert waits_for(stage.run()) == ["pay", "mail"]
    return stage


def after(stage: Stage, given: dict[str, Any]) -> None:
    """What holds when a run was interrupted somewhere: what waits can be answered, and the laws stand."""
    stage.agent.wait_idle()  # closes what was left
    assert_invariants(stage)
    if stage.agent.status == "waiting":
        stage.script.replace(say("Done."))
        keys = {each.key: YES for each in stage.transcript.waiting}
        done = stage.run(None, answers=keys)
        assert (done.status, done.text) == (RunStatus.COMPLETED, "Done."), done
    calls = [message for message in stage.messages if isinstance(message, AssistantMessage) and message.tool_calls]
    results: list[Message] = [*stage.results]
    assert len(results) == sum(len(message.tool_calls) for message in calls)
    assert_laws(stage)
