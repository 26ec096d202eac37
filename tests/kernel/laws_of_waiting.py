"""The six laws where calls may wait for a person, and how a case asks one: gates that ask, answers by a tool's name.

Where a run waits, calls are open at the tail of its transcript; everything else is as after any other run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    Decision,
    Deny,
    Hooks,
    MemoryTranscript,
    RunResult,
    RunStatus,
    ToolContext,
    ToolMessage,
    check_messages,
)
from gotato_testkit import ScriptedModel, say

from .laws import assert_events, assert_history, assert_request, assert_threads
from .stage import Stage

YES, NO = Approve(), Deny("too dear")


def asks(*tools: str, expires_in: float | None = None, name: str = "") -> Hooks:
    """A gate that asks a person about these tools."""

    def gate(use: ToolContext[Any]) -> Allow | Ask:
        return Ask(f"May it {use.name}?", expires_in=expires_in) if use.name in tools else Allow()

    return Hooks(before_tool=gate, name=name)


def answers(result: RunResult[Any], **decisions: Decision) -> dict[str, Decision]:
    """The decisions, given by the names of the tools that wait, by the keys of their calls."""
    keys = {waiting.name: waiting.key for waiting in result.waiting}
    return {keys[name]: decision for name, decision in decisions.items()}


def waits_for(result: RunResult[Any]) -> list[str]:
    """The tools that a run waits for a person about."""
    assert result.status is RunStatus.WAITING, result
    return [waiting.name for waiting in result.waiting]


def ran(stage: Stage) -> list[str]:
    """What became of every call, in the order of the commits: `pay ok`."""
    names = {
        f"{message.id}:{index}": call.name
        for message in stage.messages
        for index, call in enumerate(getattr(message, "tool_calls", ()))
    }
    return [f"{names[message.result.key]} {message.result.status.value}" for message in stage.results]


def assert_laws(stage: Stage, *, again: bool = True, repair: bool = False) -> None:
    """Asserts the laws as they stand, runs once more (which drops what waits), and asserts them again.

    `again` and `repair` are those of `laws.assert_laws`.
    """
    if not repair:
        assert_invariants(stage)
    if again and stage.agent.status != "closed":
        stage.script.replace(say("And on it goes."))
        result = stage.agent.run("once more", check=False)
        assert (result.status, result.text) == (RunStatus.COMPLETED, "And on it goes."), result
        assert stage.agent.status == "idle"
    else:
        model = ScriptedModel([say("And on it goes.")])
        assert Agent(model, transcript=stage.transcript).run("once more").text == "And on it goes."
        assert_request(model.requests[0].messages)
    assert_invariants(stage)


def assert_invariants(stage: Stage) -> None:
    """The laws, as they stand now."""
    assert_tail(stage)
    for request in stage.model.requests:
        assert_request(request.messages)
    assert stage.watcher.breaches == []
    parallel = stage.agent._setup.limits.max_parallel_tools
    runs = list(dict.fromkeys(event.run_id for event in stage.events))
    for run_id in runs:
        assert_events([event for event in stage.events if event.run_id == run_id], parallel)
    order = [event.run_id for event in stage.events]
    assert order == [run_id for run_id in runs for _ in range(order.count(run_id))], "the events of runs are mixed"
    assert_threads(stage)
    assert stage.model.unclosed == 0
    assert [key for key, count in stage.effects.items() if count > 1] == [], "a tool ran twice for one key"


def assert_tail(stage: Stage) -> None:
    """What is open waits or stands behind what waits, and the status of every agent on this transcript says so."""
    assert_history(stage.transcript)
    status = stage.agent.status
    assert status in {"idle", "waiting", "closed"}
    is_open = check_messages(stage.transcript.messages) != []
    if status != "closed":
        assert is_open == (status == "waiting")
    assert Agent(ScriptedModel([]), transcript=stage.transcript).status == ("waiting" if is_open else "idle")
    if isinstance(stage.transcript, MemoryTranscript):
        assert_portable(stage.transcript)


def assert_portable(transcript: MemoryTranscript) -> None:
    """As JSON the transcript reaches another process as it is: what waits, what was answered, what was started."""
    copy = MemoryTranscript.from_dict(json.loads(json.dumps(transcript.to_dict(), allow_nan=False)))
    assert list(copy.messages) == list(transcript.messages)
    assert (copy.waiting, copy.started) == (transcript.waiting, transcript.started)


def results_of(stage: Stage, tool: str) -> list[ToolMessage]:
    """The results of the calls of one tool."""
    keys = {
        f"{message.id}:{index}"
        for message in stage.messages
        for index, call in enumerate(getattr(message, "tool_calls", ()))
        if call.name == tool
    }
    return [message for message in stage.results if message.result.key in keys]


def paying(log: list[str]) -> list[Callable[..., str]]:
    """Three tools that write down what they were called with."""

    def read(path: str = "") -> str:
        """Reads."""
        log.append(f"read {path}")
        return "read"

    def pay(amount: int = 0) -> str:
        """Pays."""
        log.append(f"pay {amount}")
        return "paid"

    def mail(to: str = "", copies: list[str] | None = None) -> str:
        """Mails."""
        log.append(f"mail {to} {copies}")
        return "mailed"

    return [read, pay, mail]
