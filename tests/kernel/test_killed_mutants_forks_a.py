"""What no other test would notice of forks: a child has its own process, but the run of its parent is not its own."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from gotato_py import ForkedProcess, MemoryTranscript, RunRecord, RunStream
from gotato_testkit import say

from .laws import assert_laws
from .stage import Stage

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def holds_in_a_child(check: Callable[[], None]) -> bool:
    """Whether the check raises nothing in a fork of this process, which ends there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests may have left behind
        child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(40)
        try:
            check()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def refused(operation: str, act: Callable[[], object]) -> None:
    """Asserts that the operation is refused because this process is a fork."""
    with pytest.raises(ForkedProcess) as caught:
        act()
    assert caught.value.operation == operation


class Recording(MemoryTranscript):
    """A transcript that keeps the records of its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[RunRecord] = []

    def end_run(self, record: RunRecord) -> None:
        """Keeps the record."""
        self.records.append(record)


@contextmanager
def going_on(stage: Stage) -> Generator[list[RunStream[None]], None, None]:
    """A run that stands at an event of its stream; the list holds that alone. It completes in the end."""
    streams = [stage.agent.stream("count", check=False)]
    next(streams[0])
    yield streams
    assert "".join(streams[0].text) == "One two three."
    assert_laws(stage)


class TestARunOfTheParent:
    """A stream stands at an event when the process forks."""

    def test_every_entry_is_refused(self) -> None:
        """Each use of the agent in the child raises `ForkedProcess`, which names what was called."""
        stage = Stage(say("One two three."))
        agent = stage.agent

        def check() -> None:
            refused("Agent.run", lambda: agent.run("mine"))
            refused("Agent.run", lambda: next(agent.stream("mine")))
            refused("Agent.steer", lambda: agent.steer("mine"))
            refused("Agent.follow_up", lambda: agent.follow_up("mine"))
            refused("Agent.withdraw", lambda: agent.withdraw("m-1"))
            refused("Agent.wait_idle", agent.wait_idle)
            refused("Agent.wait_idle", lambda: agent.wait_idle(0))
            refused("Agent.subscribe", agent.subscribe)
            assert agent.cancel() is False

        with going_on(stage):
            assert holds_in_a_child(check)

    def test_closing_the_agent_leaves_it_alone(self) -> None:
        """`close` in the child does not end the scope of the parent's run, and returns at once."""
        stage = Stage(say("One two three."))
        with going_on(stage) as streams:
            ended: list[str] = []
            streams[0]._run.scope.on_end(lambda: ended.append("ended"))

            def check() -> None:
                stage.agent.close()
                assert ended == []

            assert holds_in_a_child(check)

    def test_dropping_the_stream_does_nothing(self) -> None:
        """A child that drops its copy of the stream tells nobody, records nothing, and warns of nothing."""
        transcript = Recording()
        stage = Stage(say("One two three."), transcript=transcript)
        with going_on(stage) as streams:
            told = list(stage.kinds)

            def check() -> None:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    streams.clear()
                assert (caught, transcript.records, stage.kinds) == ([], [], told)

            assert holds_in_a_child(check)
            assert len(streams) == 1


def test_a_stream_that_was_not_begun_is_the_childs() -> None:
    """A child that begins a stream which its parent had only made is the one that has the run."""
    stage = Stage(say("One two three."))
    stream = stage.agent.stream("count", check=False)

    def check() -> None:
        assert "".join(stream.text) == "One two three."
        assert (stream.result.ok, stage.agent.wait_idle(0), stage.agent.status) == (True, True, "idle")

    assert holds_in_a_child(check)
    assert "".join(stream.text) == "One two three."
    assert_laws(stage)
