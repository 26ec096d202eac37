"""Cases of runs that were interrupted where they could not be closed: whoever comes next closes them."""

from __future__ import annotations

from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import (
    AgentClosed,
    AgentEnd,
    Busy,
    Event,
    Hooks,
    InvalidState,
    MemoryTranscript,
    NotRunning,
    RunRecord,
    TextDelta,
)
from gotato_testkit import Do, say

from .hosts import PATIENCE_S, SOON_S, Host, took
from .interrupts import LineInterrupt
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage


def interrupted_at_the_end(stage: Stage, number: int) -> bool:
    """Interrupts a run before that line of its end. Returns whether the end has so many."""
    lines = LastLines({number: _interrupt})
    stage.script.replace([TextDelta("Fine."), Do(lines.arm_once), *say()])
    try:
        with lines.watching():
            stage.run()
    except KeyboardInterrupt:
        pass
    return number <= lines.count


def _interrupt() -> None:
    raise KeyboardInterrupt


class InterruptedAtTheEnd(MemoryTranscript):
    """A transcript in which Ctrl-C comes as a run is recorded, once: it is closed by then, but has the agent still."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 1

    def end_run(self, record: RunRecord) -> None:
        """Is interrupted."""
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


def left_behind(**options: Any) -> Stage:
    """A stage whose run was interrupted where it could not be closed."""
    stage = Stage(say("Done."), transcript=InterruptedAtTheEnd(), **options)
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert "agent_end" not in stage.kinds
    return stage


class TestLeftBehind:
    """A run was interrupted where it could not close itself."""

    def test_at_every_line(self) -> None:
        """Whichever line that was, `wait_idle` closes the run, and its end is told."""
        number = 0
        while True:
            number += 3
            stage = Stage()
            if not interrupted_at_the_end(stage, number):
                break
            assert stage.agent.wait_idle(SOON_S) is True
            assert stage.kinds[-1] == "agent_end"
            assert_laws(stage)
        assert number > 100

    def test_nobody_steers_it(self) -> None:
        """It takes no message, and there is nothing to cancel: nothing goes on."""
        stage = left_behind()
        assert stage.agent.status == "idle"
        for control in (stage.agent.steer, stage.agent.follow_up):
            with pytest.raises(NotRunning):
                control("hello?")
        assert stage.agent.cancel() is False
        assert_laws(stage, repair=True)

    def test_many_find_it(self) -> None:
        """Of many threads one closes it, and all the others wait for that: none is told `Busy`."""
        for _ in range(20):
            stage = left_behind()
            hosts = [Host(lambda stage=stage: stage.agent.wait_idle(PATIENCE_S)) for _ in range(8)]  # type: ignore[misc]
            assert [host.join() for host in hosts] == [True] * 8
            assert stage.kinds.count("agent_end") == 1
            assert_laws(stage)

    @pytest.mark.parametrize("entry", ["run", "wait_idle", "close"])
    def test_while_it_is_closed(self, entry: str) -> None:
        """While one thread closes it, for others it is busy; from within that, nobody waits for it."""
        closing, free = Flag(), Flag()
        told: list[object] = []

        def look(event: Event) -> None:
            if not isinstance(event, AgentEnd) or told:
                return
            with pytest.raises(AgentClosed if entry == "close" else Busy):
                stage.agent.run("me too")
            with pytest.raises(InvalidState, match="inside"):
                stage.agent.wait_idle()
            told.append(took(stage.agent.close) if entry == "close" else event)
            closing.set()
            assert free.wait(PATIENCE_S)

        stage = left_behind(extensions=[Hooks(observe=look)])
        closer = Host(stage.agent.close if entry == "close" else lambda: stage.agent.wait_idle(PATIENCE_S))
        assert closing.wait(PATIENCE_S)
        if entry == "run":
            with pytest.raises(Busy):
                stage.run()
        else:
            assert stage.agent.wait_idle(0.02) is False
        waiter = Host(stage.agent.close if entry == "close" else stage.agent.wait_idle)
        free.set()
        closer.join()
        waiter.join()
        assert stage.kinds.count("agent_end") == 1
        assert_laws(stage)

    def test_interrupted_again(self) -> None:
        """Before any line of that closing a second Ctrl-C leaves what a third entry closes."""
        number = 0
        while True:
            number += 2
            stage, line = left_behind(), LineInterrupt(number)
            line(lambda stage=stage: stage.agent.wait_idle(PATIENCE_S))  # type: ignore[misc]
            if not line.where:
                break
            assert stage.agent.wait_idle(SOON_S) is True
            assert stage.kinds.count("agent_end") == 1
            assert_laws(stage)
        assert number > 50
