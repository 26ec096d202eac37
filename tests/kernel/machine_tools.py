"""The tools of the machine's agents: each does what its call asks for, in whatever thread it is run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Protocol, cast

import gotato_testkit as kit
from gotato_py import Agent, Tool, ToolContext, ToolSpec, Usage

from .machine_deeds import CONTROLS, INTERRUPTS, RAISES, RETURNS
from .machine_hosts import Hosts
from .machine_words import BOUND, Make

SHORT = 0.03
"""Seconds that a tool hangs where nothing would give it up."""
SCHEMA = {
    "type": "object",
    "properties": {"do": {"type": "string"}},
    "required": ["do"],
    "additionalProperties": False,
}


class Employing(Protocol):
    """What the tools ask of their world."""

    agent: Agent
    clock: kit.ManualClock
    main: int
    raised: list[BaseException]
    make: Make
    hosts: Hosts

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        ...

    def probe(self, at: str) -> None:
        """Called wherever the kernel calls out."""
        ...


class Tools:
    """The tools of a world's agents, and what they wait for."""

    def __init__(self, world: Employing) -> None:
        self._world = world
        self._held = threading.Event()  # what tools that hang wait for
        self._ended = threading.Condition()
        self._count = 0

    def fixed(self, make: Make) -> tuple[object, ...]:
        """Those that an agent always has."""
        slow = Act(self, "slow", timeout=None if make.steady else 0.01)
        return Act(self, "act"), slow, Act(self, "solo", sequential=True), self.add

    def changing(self, make: Make) -> tuple[Tool, ...]:
        """Those that its source may give."""
        return Act(self, "extra"), Act(self, "other", timeout=None if make.steady else 1.0)

    def add(self, a: int, b: int, use: ToolContext[object]) -> int:
        """Adds two numbers."""
        self._world.note("tool", use)
        self._world.probe("tool")
        return a + b

    def arm(self) -> None:
        """Tools hang again from here on."""
        if self._held.is_set():
            self._held = threading.Event()

    def let_go(self) -> None:
        """Lets the tools that hang go on, and waits until their threads have ended."""
        self._held.set()
        settle(0, BOUND)

    def act(self, do: str, use: ToolContext[object]) -> object:
        """Does what the call asks for."""
        self._world.note("tool", use)
        self._world.probe("tool")
        try:
            return self._act(do, use, here=threading.get_ident() == self._world.main)
        finally:
            with self._ended:
                self._count += 1
                self._ended.notify_all()

    def _act(self, do: str, use: ToolContext[object], *, here: bool) -> object:
        world = self._world
        if do in RAISES:
            raise RAISES[do]()
        if do in RETURNS:
            return RETURNS[do]()
        if do in CONTROLS:
            world.hosts.control(do, sure=here)
            return do
        if do in INTERRUPTS and (here or do != "ctrl-c"):
            self._interrupt(INTERRUPTS[do], "tool" if here else "worker")
        match do:
            case "busy":
                world.hosts.expect_busy(None if here else use.scope)
            case "cancel":
                world.agent.cancel("by a tool")
            case "close":
                world.agent.close()
            case "signal" if here:
                signal.raise_signal(signal.SIGUSR1)
            case "charge":
                use.charge(Usage(7, 5))
            case "progress":
                use.progress("half")
                use.progress("nearly")
            case "wait":
                use.scope.wait(3)
            case "time":
                world.clock.advance(30)
            case "nested":
                inner = Agent(kit.ScriptedModel([kit.say("inside")]), clock=world.clock)
                return inner.run("inner", scope=use.scope, check=False).text
            case _:
                return f"did {do}" if here else self._wait(do, use)
        return "done"

    def _wait(self, do: str, use: ToolContext[object]) -> str:
        """Keeps a worker thread."""
        held, ends = self._held, use.name == "slow" or self._world.make.limits.tool_timeout is not None
        match do:
            case "hang":
                held.wait(BOUND if ends else SHORT)
            case "cancel and hang":
                self._world.agent.cancel("by a tool")
                held.wait(BOUND)
            case "heed" | "heed late":
                ended = threading.Event()
                use.scope.on_end(ended.set)
                ended.wait(BOUND if ends else SHORT)
                if do == "heed":
                    use.scope.check()
            case "behind":
                with self._ended:
                    count = self._count
                    self._ended.wait_for(lambda: self._count > count, SHORT)
            case _:
                pass
        return f"did {do}"

    def _interrupt(self, deed: Callable[[], None], where: str) -> None:
        self._world.note("interrupt", where)
        try:
            deed()
        except BaseException as error:
            self._world.raised.append(error)
            raise


class Act:
    """A tool that does as it is told."""

    def __init__(self, tools: Tools, name: str, *, timeout: float | None = None, sequential: bool = False) -> None:
        self._tools = tools
        self.spec = ToolSpec(name, "Does something.", SCHEMA, timeout=timeout, sequential=sequential)

    def execute(self, use: ToolContext[object]) -> object:
        return self._tools.act(cast(str, use.arguments["do"]), use)


def workers() -> list[threading.Thread]:
    """The kernel's worker threads."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("gotato tool")]


def settle(most: int, seconds: float = 1.0) -> int:
    """Waits until no more than so many worker threads are left, some seconds at most; how many are."""
    until = time.monotonic() + seconds
    while len(workers()) > most and time.monotonic() < until:
        time.sleep(0.001)
    return len(workers())
