"""Cases of many hung tools, and of a process that wants to exit while one hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from gotato_py import Agent, Limits, RunStatus, ToolMessage, check_messages, tool
from gotato_testkit import ScriptedModel, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import PATIENCE_S, SOON_S, Hanging, until, within

AGENTS, RUNS = 125, 8
"""A thousand runs in all; each waits for the grace of its hung tool, so many go on at once."""


def test_c21_a_thousand_runs_each_leave_a_hung_thread() -> None:
    """Without a cap every run ends well, nothing is lost or mixed up, and all is gone when the threads are."""
    threads = threading.active_count()
    outcomes: list[str] = []

    free = threading.Event()

    @tool(timeout=0.001)
    def hang() -> str:
        """Hangs until all runs have ended."""
        free.wait(10 * PATIENCE_S)
        return "too late"

    def converse() -> None:
        agent = agents[threading.current_thread().name]
        outcomes.extend(agent.run("do it").text for _ in range(RUNS))

    unlimited = Limits(max_abandoned=None, max_repeated_calls=None)
    script = [call("hang"), say("I see.")] * RUNS
    agents = {f"host {n}": Agent(ScriptedModel(script), tools=[hang], limits=unlimited) for n in range(AGENTS)}
    hosts = [threading.Thread(target=converse, name=name) for name in agents]
    try:
        for host in hosts:
            host.start()
        for host in hosts:
            host.join()
    finally:
        free.set()
    assert outcomes == ["I see."] * (AGENTS * RUNS)
    for agent in agents.values():
        messages = agent.transcript.messages
        assert check_messages(messages) == []
        results = [each.result.status for each in messages if isinstance(each, ToolMessage)]
        assert results == ["timed_out"] * RUNS
    until(lambda: not any(agent.abandoned for agent in agents.values()))
    until(lambda: threading.active_count() <= threads)


def test_c21_many_in_one_batch() -> None:
    """A hundred calls that hang at once are all given up after one timeout and one grace, in the order of the calls."""
    with Hanging(timeout=0.05) as hang:
        many = call("hang")
        for _ in range(99):
            many += call("hang")
        stage = Stage(
            many,
            say("I see."),
            tools=[hang],
            limits=Limits(max_abandoned=None, max_repeated_calls=None, max_parallel_tools=None),
        )
        with within(PATIENCE_S):  # one after another they would take thrice as long
            assert stage.run().status is RunStatus.COMPLETED
        assert stage.statuses == ["timed_out"] * 100
        assert len(stage.agent.abandoned) == 100
        assert len({each.key for each in stage.agent.abandoned}) == 100
        assert_laws(stage)
    until(lambda: stage.agent.abandoned == ())


EXIT = """
import sys, time
from gotato_py import Agent, Limits, tool
from gotato_testkit import ScriptedModel, call, say

@tool(timeout={timeout})
def hang():
    "Hangs."
    if {ends}:
        agent.cancel("enough")
    time.sleep(3600)

agent = Agent(ScriptedModel([call("hang"), say("I see.")]), tools=[hang])
result = agent.run("do it", check=False)
assert agent.abandoned
print(result.status, time.monotonic(), flush=True)
sys.exit(3)
"""


def exit_of(script: str) -> str:
    """The status that the process printed before it ended, soon and with what was asked for."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    ended = time.monotonic()
    assert (done.returncode, done.stderr) == (3, "")
    status, at = done.stdout.split()
    assert ended - float(at) < SOON_S
    return status


def test_c21_the_exit_of_the_process_is_not_delayed() -> None:
    """After a timeout, and after a cancel, the interpreter ends at once while the tool still hangs."""
    for timeout, ends, status in ((0.05, False, "completed"), (3600, True, "cancelled")):
        assert exit_of(EXIT.format(timeout=timeout, ends=ends)) == status
