"""Cases of two agents on one transcript in memory: one run at a time has it, and none that was left behind keeps it."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import (
    Agent,
    Busy,
    Hooks,
    InvalidArgument,
    MemoryTranscript,
    RunRecord,
    RunStatus,
    TextDelta,
    Usage,
    UserMessage,
    check_messages,
)
from gotato_testkit import Do, ScriptedModel, SequentialIds, call, say

from .hosts import PATIENCE_S, Host
from .interrupts import LineInterrupt
from .programs import output_of

COPIES: dict[str, Callable[[MemoryTranscript], MemoryTranscript]] = {
    "to_dict": lambda given: MemoryTranscript.from_dict(json.loads(json.dumps(given.to_dict()))),
    "pickle": lambda given: pickle.loads(pickle.dumps(given)),
    "deepcopy": copy.deepcopy,
}


def record(run_id: str) -> RunRecord:
    """The record of a run that has ended."""
    return RunRecord(run_id, "", "completed", "", 0.0, 0.0, 1, 0, Usage())


def agent_on(transcript: MemoryTranscript, *steps: Any, **options: Any) -> Agent:
    """An agent on the transcript whose ids are those of every other one here."""
    return Agent(ScriptedModel(list(steps) or [say("Fine.")]), transcript=transcript, ids=SequentialIds(), **options)


def assert_sendable(transcript: MemoryTranscript) -> None:
    """Nobody has the transcript, and a run of a new agent completes on it."""
    assert Agent(ScriptedModel([say("And on.")]), transcript=transcript).run("next").text == "And on."
    assert check_messages(transcript.messages) == []


class TestASecondRun:
    """Another agent wants the transcript while a run has it."""

    def test_from_a_tool(self) -> None:
        """An agent within the other's tool is `Busy`, told by whom, and commits nothing; both have a "run-1"."""
        transcript = MemoryTranscript()
        inner = agent_on(transcript)
        errors: list[Busy] = []

        def ask() -> str:
            """Asks the other one."""
            before = list(transcript.messages)
            for begin in (lambda: inner.run("me too"), inner.run, lambda: next(inner.stream("me too"))):
                with pytest.raises(Busy) as caught:
                    begin()
                errors.append(caught.value)
            assert list(transcript.messages) == before
            return "refused"

        began = time.time()
        result = agent_on(transcript, call("ask"), say("Done."), tools=[ask]).run("go")
        assert (result.text, len(result.new_messages)) == ("Done.", 4)
        assert [(each.run_id, each.operation) for each in errors] == [(result.run_id, "MemoryTranscript.begin_run")] * 3
        assert all(began - 1 <= (each.since or 0) <= time.time() + 1 for each in errors)
        assert type(pickle.loads(pickle.dumps(errors[0])).run_id) is str
        assert inner.status == "idle"
        assert inner.run("now?").text == "Fine."
        assert_sendable(transcript)

    def test_from_another_thread(self) -> None:
        """An agent in another thread is `Busy` at once, and runs when the first has ended."""
        transcript = MemoryTranscript()
        going, go_on = Flag(), Flag()

        def hold() -> None:
            going.set()
            assert go_on.wait(PATIENCE_S)

        first, second = agent_on(transcript, [TextDelta("One"), Do(hold), *say(" two.")]), agent_on(transcript)
        host = Host(lambda: first.run("count"))
        assert going.wait(PATIENCE_S)
        with pytest.raises(Busy):
            second.run("me too")
        assert len(transcript.messages) == 1
        go_on.set()
        assert host.join().text == "One two."
        assert second.run("me too").text == "Fine."
        assert_sendable(transcript)

    def test_an_end_of_another_run_changes_nothing(self) -> None:
        """Only the end of the run that has it lets a transcript go; an agent's hold goes with the agent's own run."""
        transcript = MemoryTranscript()
        transcript.begin_run("r-1")
        for run_id in ("r-1", "r-2"):
            with pytest.raises(Busy, match="busy with run r-1"):
                transcript.begin_run(run_id)
        transcript.end_run(record("r-2"))
        with pytest.raises(Busy):
            transcript.begin_run("r-2")
        transcript.end_run(record("r-1"))
        with agent_on(transcript).stream("count", check=False) as stream:
            transcript.end_run(record(next(stream).run_id))
            with pytest.raises(Busy):
                transcript.begin_run("r-2")
        transcript.begin_run("r-2")
        wrong: Any = 5
        with pytest.raises(InvalidArgument, match=r"^MemoryTranscript\.begin_run: run_id must be a str, not int"):
            transcript.begin_run(wrong)

    @pytest.mark.parametrize("how", COPIES)
    def test_a_copy_is_nobodys(self, how: str) -> None:
        """A copy that is made during a run holds the same messages, and another agent runs on it at once."""
        transcript = MemoryTranscript()
        copies: list[MemoryTranscript] = []

        def look() -> str:
            """Copies."""
            copies.append(COPIES[how](transcript))
            assert_sendable(copies[0])
            return "copied"

        assert agent_on(transcript, call("look"), say("Done."), tools=[look]).run("go").text == "Done."
        assert copies[0].messages[:2] == transcript.messages[:2]
        assert_sendable(transcript)

    def test_a_subclass_that_keeps_the_end_to_itself(self) -> None:
        """A subclass whose `end_run` does not call this one's lets runs follow one another all the same."""

        class Mine(MemoryTranscript):
            def end_run(self, record: RunRecord) -> None:
                raise OSError

        transcript = Mine()
        assert agent_on(transcript).run("go", check=False).status is RunStatus.FAILED
        assert agent_on(transcript).run("go", check=False).status is RunStatus.FAILED


def drop_half_read(agent: Agent) -> None:
    """Begins a stream, reads it to the first word of the answer, and drops it."""
    streams = [agent.stream("count")]
    while next(streams[0]).kind != "message_update":
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()


class TestAStream:
    """A stream has the transcript while it is open."""

    def test_half_read_and_closed(self) -> None:
        """Whoever leaves a stream early lets the transcript go; while it is open it is busy."""
        transcript = MemoryTranscript()
        with agent_on(transcript, say("One two three.")).stream("count", check=False) as stream:
            next(stream)
            with pytest.raises(Busy):
                agent_on(transcript).run("me too")
        assert_sendable(transcript)

    def test_half_read_and_dropped(self) -> None:
        """A dropped stream holds up no other agent. Its own, used again while the other has the transcript, tells the
        end of the run, and writes nothing between the other's messages."""
        transcript = MemoryTranscript()
        kinds: list[str] = []
        observer = Hooks(observe=lambda event: kinds.append(event.kind))
        first = agent_on(transcript, [TextDelta("One"), *say(" two.")], say("Mine."), extensions=[observer])
        drop_half_read(first)

        def interfere() -> str:
            """Uses the first agent."""
            assert first.wait_idle(PATIENCE_S)
            with pytest.raises(Busy):
                first.run("mine")
            return "refused"

        result = agent_on(transcript, call("interfere"), say("Done."), tools=[interfere]).run("go")
        assert (result.text, len(result.new_messages)) == ("Done.", 4)
        assert len(transcript.messages) == 5
        assert kinds.count("agent_end") == 1
        assert_sendable(transcript)

    def test_dropped_with_its_agent(self) -> None:
        """Where nobody is left to close the dropped run, the next one closes what it left open."""
        transcript = MemoryTranscript()
        drop_half_read(agent_on(transcript, [TextDelta("One"), *say(" two.")]))
        gc.collect()
        assert_sendable(transcript)

    def test_a_dropped_one_is_closed_by_its_agent(self) -> None:
        """Where no other has come meanwhile, the agent's next entry keeps what the dropped run had said."""
        transcript = MemoryTranscript()
        agent = agent_on(transcript, [TextDelta("One"), *say(" two.")])
        drop_half_read(agent)
        assert agent.wait_idle(PATIENCE_S)
        assert [message.text for message in transcript.messages if not isinstance(message, UserMessage)] == ["One"]
        assert_sendable(transcript)


def play(number: int, *, opcodes_of: str = "") -> LineInterrupt:
    """A run with a tool that is interrupted there; then another agent takes the transcript, and the first goes on."""
    transcript = MemoryTranscript()

    def work() -> str:
        """Works."""
        return "done"

    first = agent_on(transcript, call("work"), say("Done."), tools=[work])
    line = LineInterrupt(number, opcodes_of=opcodes_of)
    line(lambda: first.run("go"))
    if number % 2:
        assert first.wait_idle(PATIENCE_S)
    assert_sendable(transcript)
    assert first.wait_idle(PATIENCE_S)
    assert_sendable(transcript)
    return line


def test_ctrl_c_at_any_line_leaves_it_to_the_next() -> None:
    """Ctrl-C before any line of a run: another agent can run at once, and so can the first one after it."""
    number = 1
    while play(number).where:
        number += 3
    assert number > 500


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="traces bytecodes of frames that were entered before alone")
def test_ctrl_c_at_any_bytecode_of_taking_it() -> None:
    """The same before any bytecode of the module that says who has it."""
    number = 1
    while play(number, opcodes_of="_hold.py").where:
        number += 1
    assert number > 50


def refused_at(number: int) -> str:
    """An agent in another one's tool gets `Busy`, interrupted before that line; where that was."""
    transcript = MemoryTranscript()
    inner, line = agent_on(transcript), LineInterrupt(number)

    def ask() -> str:
        """Asks the other one."""
        with suppress(Busy):
            line(lambda: inner.run("me too"))
        assert inner.wait_idle(PATIENCE_S)
        with pytest.raises(Busy):
            inner.run("me too")
        return "refused"

    result = agent_on(transcript, call("ask"), say("Done."), tools=[ask]).run("go")
    assert (result.text, len(transcript.messages)) == ("Done.", 4), line.where
    assert [message.text for message in result.new_messages] == ["go", "", "refused", "Done."], line.where
    assert_sendable(transcript)
    return line.where


def test_ctrl_c_as_a_run_is_refused() -> None:
    """Ctrl-C before any line of a run that gets `Busy`: what that agent closes later is nothing of the other's run."""
    number = 1
    while refused_at(number):
        number += 1
    assert number > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_its_own() -> None:
    """A fork during a run, in a tool and beside an open stream: in the child a new agent takes the copy at once."""
    program = """
    import os
    from gotato_py import *
    from gotato_testkit import *

    transcript = MemoryTranscript()
    transcript.begin_run("outer")

    def in_child(act):
        process = os.fork()
        if not process:
            try:
                act()
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def run_there():
        assert Agent(EchoModel(), transcript=transcript).run("in the child").ok
        assert check_messages(transcript.messages) == []

    def work() -> int:
        "Forks."
        return in_child(run_there)

    print(in_child(run_there))
    transcript.end_run(RunRecord("outer", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
    agent = Agent(ScriptedModel([call("work"), say("Done."), say("One two.")]), tools=[work], transcript=transcript)
    print(agent.run("go").new_messages[2].text)
    with agent.stream("count") as stream:
        print(in_child(run_there))
        try:
            Agent(EchoModel(), transcript=transcript).run("here")
        except Busy:
            print("busy")
        print("".join(stream.text))
    """
    assert output_of(program).split() == ["0", "0", "0", "busy", "One", "two."]
