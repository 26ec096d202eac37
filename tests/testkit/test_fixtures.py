"""The fixtures for pytest, and what importing the testkit does not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gotato_py
import gotato_testkit
from gotato_py import AgentEnd
from gotato_testkit import EventRecorder, ManualClock, Raise, ScriptedModel, SequentialIds, call, say
from gotato_testkit.fixtures import Scripted, event_recorder, manual_clock, scripted, sequential_ids

__all__ = ["event_recorder", "manual_clock", "scripted", "sequential_ids"]  # pytest finds them by name

ROOTS = [str(Path(module.__file__ or "").parents[1]) for module in (gotato_py, gotato_testkit)]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def test_agents_are_the_same_in_every_test(
    scripted: Scripted, event_recorder: EventRecorder, manual_clock: ManualClock, sequential_ids: SequentialIds
) -> None:
    """Agents of `scripted` have the clock, the ids and the recorder of the test."""
    agent = scripted([call("weather", city="Oslo"), say("Sunny.")], tools=[weather])
    assert agent.run("Oslo?").text == "Sunny."
    assert agent.id == "agent-1"
    assert event_recorder.of(AgentEnd)[0].run_id == "run-1"
    assert event_recorder.events[0].timestamp == manual_clock.time()
    assert sequential_ids("agent") == "agent-2"


def test_waits_take_no_time(scripted: Scripted, manual_clock: ManualClock) -> None:
    """A retry waits by the manual clock."""
    agent = scripted([Raise(gotato_py.RateLimited("slow down", retry_after=30.0)), say("Hello.")])
    assert agent.run("Hi").text == "Hello."
    assert manual_clock.waits == [30.0]


def test_a_model_can_be_looked_at_later(scripted: Scripted) -> None:
    """A ScriptedModel in the place of a script is taken as it is, and options are those of Agent."""
    model, other = ScriptedModel([say("a")]), EventRecorder()
    clock = ManualClock(unix=5.0)
    scripted(model, instructions="Be brief.", extensions=[other], clock=clock).run("Hi")
    assert [request.system for request in model.requests] == ["Be brief."]
    assert other.events[0].timestamp == 5.0


CONFTEST = 'pytest_plugins = ["gotato_testkit.fixtures"]\n'
TESTS = """
from gotato_testkit import say

made = []

def test_one(scripted, event_recorder, manual_clock, sequential_ids):
    made.append(scripted([say("Hello.")]))
    assert made[0].run("Hi").text == "Hello."
    assert event_recorder.text == "Hello."

def test_two(scripted):
    assert made[0].status == "closed"
    assert scripted([say("Again.")]).id == "agent-1"
"""


def test_the_plugin_works_by_its_name(tmp_path: Path) -> None:
    """`pytest_plugins` is all that a project needs; agents are closed at the end of their test."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["-q", "-p", "no:cacheprovider", *[f"--override-ini=pythonpath={' '.join(ROOTS)}"]]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("module", ["gotato_testkit", "gotato_testkit.recording", "gotato_testkit.faults"])
def test_importing_it_loads_no_test_tools(module: str) -> None:
    """Neither Hypothesis nor pytest nor OpenSSL is loaded, and no dataclass is declared."""
    program = f"""
import sys
sys.path[:0] = {ROOTS!r}
there = set(sys.modules)  # coverage, where it measures this process, has imported some
import {module}
loaded = {{"hypothesis", "pytest", "hashlib", "dataclasses", "inspect"}} & (set(sys.modules) - there)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_door_is_complete() -> None:
    """Every public name is there."""
    assert all(hasattr(gotato_testkit, name) for name in gotato_testkit.__all__)
    assert len(set(gotato_testkit.__all__)) == len(gotato_testkit.__all__)
