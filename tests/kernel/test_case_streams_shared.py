"""Cases of a stream that two have in hand: two threads, or the run itself and its reader."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import Event, Hooks, InvalidState, MemoryTranscript, RunRecord, RunStatus, RunStream, TextDelta
from gotato_testkit import Do, FakeTool, call, say

from .controls import on
from .hosts import PATIENCE_S, SOON_S, Host, in_thread
from .laws import assert_laws
from .stage import Stage

READS: dict[str, Callable[[RunStream[None]], object]] = {
    "next": next,
    "result": lambda stream: stream.result,
    "text": lambda stream: next(stream.text),
    "list": list,
}


class Read:
    """A stream that another thread reads, which is inside the run until it is let go."""

    def __init__(self, stage: Stage) -> None:
        self._inside, self._free = Flag(), Flag()
        stage.script.replace([TextDelta("One"), Do(self._hold), *say(" two.")])
        self.stream = stage.agent.stream("count", check=False)
        next(self.stream)
        self.reader = Host(lambda: [event.kind for event in self.stream])
        assert self._inside.wait(PATIENCE_S)

    def _hold(self) -> None:
        self._inside.set()
        assert self._free.wait(PATIENCE_S)

    def let_go(self) -> list[str]:
        """Lets the run go on; the kinds that its reader got."""
        self._free.set()
        return self.reader.join()


class TestAnotherThreadReads:
    """A thread is inside the run, as the reader of its stream."""

    @pytest.mark.parametrize("how", READS)
    def test_reading_as_well(self, how: str) -> None:
        """Whoever reads at the same time is refused and told why; the first reader gets every event."""
        stage = Stage()
        read = Read(stage)
        for _ in range(2):
            with pytest.raises(InvalidState, match="being read"):
                READS[how](read.stream)
        kinds = read.let_go()
        assert kinds == stage.kinds[1:]
        assert (read.stream.result.text, stage.agent.status) == ("One two.", "idle")
        assert_laws(stage)

    def test_closing_it(self) -> None:
        """Whoever closes it cancels the run, which ends where it is read."""
        stage = Stage()
        read = Read(stage)
        read.stream.close()
        assert read.let_go()[-1:] == ["agent_end"]
        assert read.stream.result.status is RunStatus.CANCELLED
        assert_laws(stage)

    def test_a_refused_read_changes_nothing(self) -> None:
        """Who is inside is still known: its observer closes the agent without waiting for itself."""
        took: list[float] = []

        def close() -> None:
            began = time.monotonic()
            stage.agent.close()
            took.append(time.monotonic() - began)

        stage = Stage(extensions=[on("message_end", close, number=2)])
        read = Read(stage)
        with pytest.raises(InvalidState):
            next(read.stream)
        assert read.let_go()[-1] == "agent_end"
        assert took[0] < SOON_S
        assert_laws(stage)

    def test_at_the_same_moment(self) -> None:
        """Of many threads that read one stream each event goes to one; those who come in between are refused."""
        stage = Stage(say("one two three four five six seven eight nine ten " * 5))
        with stage.agent.stream("count") as stream:

            def read() -> list[Event]:
                got: list[Event] = []
                while True:
                    try:
                        got.append(next(stream))
                    except InvalidState:
                        time.sleep(0)
                    except StopIteration:
                        return got

            readers = [Host(read) for _ in range(4)]
            got = [event for reader in readers for event in reader.join()]
        assert sorted(event.sequence for event in got) == [event.sequence for event in stage.events]
        assert_laws(stage)


class TestTheRunReadsItself:
    """What runs within the run reads the stream that runs it."""

    @pytest.mark.parametrize("how", READS)
    def test_from_a_tool(self, how: str) -> None:
        """A tool is refused, and that is its result."""
        tool = FakeTool("a", Do(lambda: READS[how](stream)))
        stage = Stage(call("a"), say("I see."), tools=[tool])
        stream = stage.agent.stream("go")
        assert "".join(stream.text) == "I see."
        assert stage.history[2] == "R call_1 failed"
        assert "being read" in stage.results[0].text
        assert_laws(stage)

    def test_from_an_observer(self) -> None:
        """An observer is refused, which is told as its failure; the run goes on."""
        read = Hooks(observe=lambda event: next(stream) if event.kind == "turn_start" else None)
        stage = Stage(say("Done."), extensions=[read])
        stream = stage.agent.stream("go")
        assert "".join(stream.text) == "Done."
        assert stage.kinds.count("extension_failed") == 1
        assert_laws(stage)


class OutOfMoney(ValueError):
    """Ends a run from anywhere, and is a ValueError, too."""


def test_an_interrupt_that_is_a_value_error() -> None:
    """An interrupt that comes as a stream is closed or read comes out, whatever class it is of."""

    def broke(event: Event) -> None:
        if event.kind in kinds:
            raise OutOfMoney

    for kinds in ({"agent_end"}, {"turn_start"}):
        stage = Stage(say("One two."), extensions=[Hooks(observe=broke)], interrupts=[OutOfMoney])
        stream = stage.agent.stream("go")
        next(stream)
        with pytest.raises(OutOfMoney):
            stream.close() if kinds == {"agent_end"} else list(stream)
        kinds = set()  # the laws run it once more
        assert_laws(stage)


class Recording(MemoryTranscript):
    """A transcript that takes runs one at a time, and is interrupted as it begins one."""

    def __init__(self, interrupts: int) -> None:
        super().__init__()
        self._interrupts = interrupts
        self.runs: list[str] = []
        self.open: list[str] = []

    def begin_run(self, run_id: str) -> None:
        """Begins one."""
        assert self.open == []
        self.open.append(run_id)
        self._interrupts -= 1
        if self._interrupts >= 0:
            raise KeyboardInterrupt

    def end_run(self, record: RunRecord) -> None:
        """Ends it."""
        self.open.remove(record.run_id)
        self.runs.append(record.status)


@pytest.mark.parametrize("entry", ["run", "wait_idle", "close", "another thread"])
def test_an_interrupt_as_a_run_begins(entry: str) -> None:
    """A run that the transcript has begun when Ctrl-C comes is ended there by the next entry; nothing of it is told."""
    transcript = Recording(1)
    stage = Stage(say("Done."), transcript=transcript)
    with pytest.raises(KeyboardInterrupt):
        stage.run()
    assert (stage.agent.status, stage.events, stage.history) == ("idle", [], [])
    acts: dict[str, Callable[[], Any]] = {
        "run": stage.run,
        "wait_idle": lambda: stage.agent.wait_idle(0),
        "close": stage.agent.close,
        "another thread": lambda: in_thread(stage.run),
    }
    acts[entry]()
    assert transcript.open == []
    assert transcript.runs == (["cancelled", "completed"] if entry in {"run", "another thread"} else ["cancelled"])
    assert_laws(stage)
