"""Cases of `os.fork`: a copy of an idle agent works, one of a running agent is refused, and the parent goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gotato_testkit import say

from .laws import assert_laws
from .programs import output_of
from .stage import Stage

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

HEAD = """
    import os, signal, sys, threading, time
    from gotato_py import *
    from gotato_testkit import *
    from pathlib import Path
    from threading import Event, Thread

    def fork(child):
        "Forks; the child does that, and exits as any program does. Returns its exit status."
        process = os.fork()
        if process:
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        signal.alarm(40)
        child()
        sys.exit(0)

    def refused(act):
        "Asserts that it is refused, at once, because this process is a fork."
        began = time.monotonic()
        try:
            act()
        except ForkedProcess:
            assert time.monotonic() - began < 5
        else:
            raise AssertionError("not refused")

    class Filed(MemoryTranscript):
        "A transcript that notes each of its calls in a file, and which process made it."
        path = Path(sys.argv[1])

        def note(self, what):
            with self.path.open("a") as file:
                file.write(f"{os.getpid()} {what}\\n")

        def append(self, message):
            self.note(message.role)
            return super().append(message)

        def begin_run(self, run_id):
            self.note("begin")

        def end_run(self, record):
            self.note("end")
"""


def played(tmp_path: Path, program: str) -> list[str]:
    """The lines that the program prints."""
    lines = output_of(HEAD + program, str(tmp_path / "calls")).splitlines()
    assert_laws(Stage(say("Done.")))
    return lines


class TestC35Idle:
    """The agent is idle when the process forks."""

    def test_c35_the_child_works(self, tmp_path: Path) -> None:
        """The child runs and watches its copy, which goes on from what both know; the parent's is as it was."""
        program = """
    agent = Agent(EchoModel())
    stream = agent.subscribe()
    agent.run("before")
    known = len(agent.transcript.messages)

    def child():
        refused(lambda: stream.get(timeout=0))
        with agent.subscribe() as mine:
            assert agent.run("in the child").ok
            kinds = [event.kind for event in iter(lambda: mine.get(timeout=0), None)]
        assert (kinds[0], kinds[-1], kinds.count("agent_end")) == ("agent_start", "agent_end", 1)
        assert agent.wait_idle(0) and agent.status == "idle"
        ids = [message.id for message in agent.transcript.messages]
        assert len(ids) == known + 2 == len(set(ids))
        agent.close()
        print(ids[-1], flush=True)

    status = fork(child)
    assert len(agent.transcript.messages) == known
    assert agent.run("after").ok
    events = list(iter(lambda: stream.get(timeout=0), None))
    assert [event.kind for event in events].count("agent_end") == 2
    print(status, agent.transcript.messages[-1].id, agent.status)
"""
        child_id, rest = played(tmp_path, program)
        status, parent_id, state = rest.split()
        assert (status, state) == ("0", "idle")
        assert child_id != parent_id

    def test_c35_whatever_another_thread_holds(self, tmp_path: Path) -> None:
        """A thread that does not exist in the child may hold the agent's lock for ever there: the child has its own."""
        program = """
    agent = Agent(EchoModel())
    agent.run("before")
    stream = agent.subscribe()
    held, done = Event(), Event()

    def hold():
        with agent._slot._audience(os.getpid()).lock:
            held.set()
            done.wait()

    holder = Thread(target=hold)
    holder.start()
    held.wait()

    def child():
        mine = agent.subscribe()
        assert agent.run("in the child").ok
        assert agent.wait_idle(0)
        agent.close()
        print([event.kind for event in mine][-1])

    status = fork(child)
    done.set()
    holder.join()
    assert agent.run("after").ok
    print(status)
"""
        assert played(tmp_path, program) == ["agent_end", "0"]

    def test_c35_a_stream_that_was_not_begun(self, tmp_path: Path) -> None:
        """A stream that was made and not entered belongs to whoever begins it."""
        program = """
    agent = Agent(EchoModel())
    stream = agent.stream("hello")
    status = fork(lambda: print("".join(stream.text)))
    print(status, "".join(stream.text))
"""
        first, second = played(tmp_path, program)
        assert second == f"0 {first}"


class TestC35Running:
    """A run goes on in another thread when the process forks."""

    RUNNING = """
    going, go_on = Event(), Event()
    def hold():
        going.set()
        assert go_on.wait(50)
    agent = Agent(ScriptedModel([[TextDelta("One"), Do(hold), *say(" two.")]]), transcript=Filed())
    results = []
    stream = agent.subscribe()
    runner = Thread(target=lambda: results.append(agent.run("count")))
    runner.start()
    going.wait()
    """

    def test_c35_the_child_is_refused(self, tmp_path: Path) -> None:
        """Each use in the child raises `ForkedProcess` at once, `close` returns, and the parent's run completes."""
        program = (
            self.RUNNING
            + """
    def child():
        refused(lambda: agent.run("mine"))
        refused(lambda: next(agent.stream("mine")))
        refused(lambda: agent.steer("mine"))
        refused(lambda: agent.follow_up("mine"))
        refused(lambda: agent.withdraw("m-1"))
        refused(agent.wait_idle)
        refused(lambda: agent.wait_idle(0))
        refused(agent.subscribe)
        refused(stream.get)
        refused(lambda: next(stream))
        assert agent.cancel() is False
        began = time.monotonic()
        agent.close()
        agent.close()
        with agent:
            pass
        assert time.monotonic() - began < 5

    status = fork(child)
    go_on.set()
    runner.join()
    agent.close()
    pids = {line.split()[0] for line in Filed.path.read_text().splitlines()}
    calls = [line.split()[1] for line in Filed.path.read_text().splitlines()]
    print(status, results[0].text, [event.kind for event in stream][-1], pids == {str(os.getpid())}, *calls)
"""
        )
        assert played(tmp_path, program) == ["0 One two. agent_end True begin user assistant end"]

    def test_c35_the_childs_exit(self, tmp_path: Path) -> None:
        """A child that only exits, agent and all, stores nothing, says nothing, and leaves the parent's run alone."""
        program = (
            self.RUNNING
            + """
    def child():
        global agent, stream
        del agent, stream

    before = Filed.path.read_text()
    statuses = [fork(child), fork(lambda: None)]
    assert Filed.path.read_text() == before
    go_on.set()
    runner.join()
    print(statuses, results[0].status, len(before.splitlines()))
"""
        )
        assert played(tmp_path, program) == ["[0, 0] completed 2"]


class TestC35WithinARun:
    """The thread that forks is itself within a run."""

    def test_c35_an_open_stream(self, tmp_path: Path) -> None:
        """The child cannot read, and need not close, a stream that its parent began; dropping it there does nothing."""
        program = """
    agent = Agent(ScriptedModel([say("One two three.")]), transcript=Filed())
    stream = agent.stream("count", check=False)
    next(stream)
    cancelled = []
    stream._run.scope.on_end(lambda: cancelled.append(os.getpid()))

    def child():
        global stream
        refused(lambda: next(stream))
        refused(lambda: stream.result)
        stream.close()
        refused(lambda: agent.run("mine"))
        del stream
        assert (cancelled, agent.cancel()) == ([], False)

    status = fork(child)
    print(status, "".join(stream.text), stream.result.status)
    pids = {line.split()[0] for line in Filed.path.read_text().splitlines()}
    print(pids == {str(os.getpid())}, agent.status)
"""
        assert played(tmp_path, program) == ["0 One two three. completed", "True idle"]

    def test_c35_a_stream_that_has_ended(self, tmp_path: Path) -> None:
        """The child may look at what a stream came to before the fork."""
        program = """
    agent = Agent(EchoModel())
    stream = agent.stream("hello")
    list(stream)

    def child():
        assert list(stream) == []
        stream.close()
        print(stream.result.text)

    print(fork(child), stream.result.text)
"""
        first, second = played(tmp_path, program)
        assert second == f"0 {first}"

    def test_c35_in_a_tool(self, tmp_path: Path) -> None:
        """A tool may fork: a child that ends there, as a worker process does, is none of the run's business."""
        program = """
    def work():
        "Forks."
        process = os.fork()
        if not process:
            try:
                refused(lambda: agent.run("mine"))
                refused(lambda: agent.steer("mine"))
                refused(agent.wait_idle)
            except BaseException:
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    agent = Agent(ScriptedModel([call("work"), say("Done.")]), tools=[work], transcript=Filed())
    result = agent.run("go")
    print(result.text, result.new_messages[2].text, agent.status)
"""
        assert played(tmp_path, program) == ["Done. 0 idle"]
