"""The agent that is killed: a model that decides from the transcript alone, its tools, and what they leave outside."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

from gotato_py import (
    Agent,
    Allow,
    Ask,
    AssistantMessage,
    Hooks,
    Limits,
    Message,
    ModelEvent,
    ModelRequest,
    Pending,
    Scope,
    Tool,
    ToolContext,
    ToolMessage,
    UserMessage,
    tool,
)
from gotato_session import Session
from gotato_testkit import call, say

DONE = "All done."
ITEMS = 4
"""To pay in each job."""


class Outside:
    """The world: a line for each payment, written at once, which no kill takes back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pay(self, key: str, item: str) -> None:
        """Takes the money."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            line = f"{key} {item}\n".encode()
            if (written := os.write(file, line)) < len(line):  # killed in the middle of this very write
                os.ftruncate(file, os.fstat(file).st_size - written)
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os.close(file)

    def paid(self) -> list[tuple[str, str]]:
        """The payments so far: the key of the call, and the item."""
        if not self.path.exists():
            return []
        return [(line.split()[0], line.split()[1]) for line in self.path.read_text("utf-8").splitlines()]


def tools(outside: Outside, parallel: bool) -> list[Tool]:
    """What the agent can do; paying is what must not be repeated."""

    @tool(effect="write_external")
    def pay(item: str, use: ToolContext[None]) -> str:
        """Pays."""
        outside.pay(use.key, item)
        return "paid"

    @tool(effect="write_external", sequential=not parallel)
    def transfer(item: str, use: ToolContext[None]) -> str:
        """Pays, if a person agrees."""
        outside.pay(use.key, item)
        return "paid"

    @tool(effect="write_external")
    def order(item: str, use: ToolContext[None]) -> Pending:
        """Pays, and is told later that it was."""
        outside.pay(use.key, item)
        return Pending(f"order {item}")

    @tool(effect="read")
    def look_up(item: str) -> str:
        """Looks whether it was paid."""
        return "paid" if item in [each for _, each in outside.paid()] else "unpaid"

    return [pay, transfer, order, look_up]


class Clerk:
    """A model. It pays every item of the last job; one whose payment is of unknown effect it looks up first."""

    name = "clerk"

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """The next calls, or that all is done."""
        messages = list(request.messages)
        start = max(at for at, each in enumerate(messages) if isinstance(each, UserMessage) and "job " in each.text)
        told = messages[start].text
        job = told[told.index("job ") + 4 :].split()[0]
        states = _states(messages[start:])
        items = [f"{job}/{number}" for number in range(ITEMS)]
        left = [item for item in items if states.get(item) not in ("paid", "denied")]
        rng = Random(f"{job} {len(messages)}")
        answer = say("I go on.") if left and rng.random() < 0.5 else None
        for item in left[: rng.randint(1, 3)]:
            name = "look_up" if states.get(item) == "unknown" else rng.choice(("pay", "pay", "transfer", "order"))
            answer = call(name, item=item) if answer is None else answer + call(name, item=item)
        return iter(answer if answer is not None else say(DONE))


def _states(messages: list[Message]) -> dict[str, str]:
    """What is known of each item: "paid", "denied", "unknown" or "unpaid"."""
    calls: dict[str, tuple[str, str]] = {}
    states: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            for index, each in enumerate(message.tool_calls):
                calls[f"{message.id}:{index}"] = each.name, json.loads(each.arguments)["item"]
        elif isinstance(message, ToolMessage):
            name, item = calls[message.result.key]
            states[item] = _state(name, message)
    return states


def _state(name: str, message: ToolMessage) -> str:
    status = message.result.status
    if name == "look_up":
        return message.text if status == "ok" else "unknown"
    known = {"ok": "paid", "pending": "paid", "cancelled": "unknown", "timed_out": "unknown", "blocked": "denied"}
    return known.get(status, "unpaid")


def a_gate(use: ToolContext[object]) -> Allow | Ask:
    """A person decides about transfers."""
    return Ask(f"Transfer {use.arguments['item']}?") if use.name == "transfer" else Allow()


def an_agent(session: Session, outside: Outside, rng: Random, *, alone: bool) -> Agent:
    """A new agent on the session; `alone` has no threads beside the caller's."""
    parallel = 1 if alone or rng.random() < 0.8 else 3
    extensions: list[object] = [Hooks(before_tool=a_gate)]
    if rng.random() < 0.25:
        extensions.append(session)
    limits = Limits(max_parallel_tools=parallel, max_transcript_bytes=None, max_messages=None)
    return Agent(Clerk(), tools=tools(outside, parallel > 1), transcript=session, extensions=extensions, limits=limits)
