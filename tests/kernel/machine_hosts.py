"""What anybody may do to an agent, in a run or between runs, from its own thread or another: it is done, and what must
not come of it is noted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Protocol

from gotato_py import (
    Agent,
    AgentClosed,
    AgentEnd,
    Busy,
    InvalidArgument,
    InvalidState,
    LimitExceeded,
    MemoryTranscript,
    NotRunning,
    Scope,
    UserMessage,
)

from .machine_subscribers import Subscriber
from .machine_words import BOUND, Accepted, Entry, Make

ROOM = 100
"""Bytes that every message here fits into."""


class Hosting(Protocol):
    """What the hosts ask of their world."""

    agent: Agent
    make: Make
    kept: MemoryTranscript
    log: list[Entry]
    run_id: str
    repairing: bool

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        ...


class Hosts:
    """The hosts of a world's agents: what was accepted from them, and who of them listens."""

    def __init__(self, world: Hosting) -> None:
        self._world = world
        self.accepted: list[Accepted] = []
        self.withdrawn: set[str] = set()
        self.subscribers: list[Subscriber] = []

    def control(self, action: str, *, idle: bool = False, sure: bool = True) -> None:
        """Does it; `idle` says that no run goes on. Who is not `sure` may be the tool of a run that was left behind."""
        limits = self._world.make.limits
        try:
            self._control(action, idle=idle, sure=sure)
        except NotRunning:
            self._world.note("refused", action)
        except LimitExceeded as error:
            known = error.limit in ("max_steer", "max_follow_up")
            if idle or not known or self._queued(error.limit.removeprefix("max_")) < getattr(limits, error.limit):
                self._wrong(f"{action} was limited: {error}")
        except InvalidArgument as error:
            if action != "bad steer" and (limits.max_message_bytes is None or limits.max_message_bytes >= ROOM):
                self._wrong(f"{action} was refused: {error}")

    def _control(self, action: str, *, idle: bool, sure: bool) -> None:
        agent = self._world.agent
        match action:
            case "steer":
                self._accept("steer", agent.steer("by the way"))
            case "follow up":
                self._accept("follow_up", agent.follow_up("and then"))
            case "steer again" if self.accepted:
                self._steer_again(self.accepted[-1].id)
            case "bad steer":
                agent.steer("  ")
                self._wrong("a blank message was queued")
            case "withdraw":
                if agent.withdraw("nobody's"):
                    self._wrong("a message was withdrawn that was never queued")
                if self.accepted and agent.withdraw(self.accepted[-1].id):
                    self.withdrawn.add(self.accepted[-1].id)
            case "subscribe":
                self.subscribe(256)
            case "wait idle":
                self._wait_idle(idle, sure=sure)
            case "look":
                running = agent.status == "running"
                if running == idle and sure and not self._world.repairing:
                    self._wrong(f"the status is {agent.status}")
                str((agent, agent.abandoned))
            case _:
                pass

    def _wrong(self, what: str) -> None:
        self._world.note("wrong", what)

    def _steer_again(self, known: str) -> None:
        """A message with the id of one that is queued or delivered is that one; any other is new, for this run."""
        queued = any(each[1:] == (known, self._world.run_id) for each in self.accepted) and known not in self.withdrawn
        there = queued or any(known in (each.id, each.metadata.get("last_user")) for each in self._world.kept.messages)
        self._world.agent.steer(UserMessage("by the way", id=known))
        if not there:
            self._accept("steer", known)

    def _accept(self, control: str, message_id: str) -> None:
        self.accepted.append(Accepted(control, message_id, self._world.run_id))
        self.withdrawn.discard(message_id)
        most = getattr(self._world.make.limits, f"max_{control}")
        if most is not None and self._queued(control) > most:
            self._wrong(f"more than {most} messages wait to be delivered by {control}")

    def _queued(self, control: str) -> int:
        """How many messages wait to be delivered by the run that goes on."""
        gone = {message.id for message in self._world.kept.messages} | self.withdrawn
        mine = [each for each in self.accepted if (each.control, each.run_id) == (control, self._world.run_id)]
        return sum(each.id not in gone for each in mine)

    def _wait_idle(self, idle: bool, *, sure: bool) -> None:
        try:
            if self._world.agent.wait_idle(0) is not idle and sure:
                self._wrong("wait_idle is wrong about the run")
        except InvalidState:
            if idle:
                self._wrong("wait_idle was refused where nothing runs")

    def subscribe(self, maxsize: int) -> None:
        """One more listener."""
        world = self._world
        events = [entry.value for entry in world.log if entry.kind == "event"]
        ending = events[-1].run_id if events and isinstance(events[-1], AgentEnd) else ""
        stream = world.agent.subscribe(maxsize)
        told = Subscriber(stream, world.agent.id, len(world.log), watched=world.make.watched, ending=ending)
        self.subscribers.append(told)

    def in_thread(self, action: str, *, idle: bool = False) -> Thread:
        """Another thread that does it."""
        agent = self._world.agent

        def wait() -> None:
            if not agent.wait_idle(BOUND):
                self._wrong("wait_idle waited in vain")

        deeds: dict[str, Callable[[], object]] = {
            "cancel": lambda: agent.cancel("by a thread"),
            "close": agent.close,
            "wait": wait,
        }
        thread = Thread(target=deeds.get(action, lambda: self.control(action, idle=idle)), name=f"machine {action}")
        thread.start()
        return thread

    def expect_busy(self, scope: Scope | None = None) -> None:
        """A second run is refused while the first goes on, and nothing is committed.

        `scope` is that of a tool which asks in its own thread: once it has ended, the first run may be over.
        """
        world = self._world
        before = len(world.kept.messages)
        for attempt in (self._run_again, self._stream_again):
            if scope is not None and scope.cancelled:
                return
            try:
                attempt()
            except (Busy, AgentClosed):
                pass
            else:
                if scope is None or not scope.cancelled:
                    self._wrong("a second run was let in")
        if len(world.kept.messages) != before and (scope is None or not scope.cancelled):
            self._wrong("a refused run has committed something")

    def _run_again(self) -> None:
        self._world.agent.run("again")

    def _stream_again(self) -> None:
        with self._world.agent.stream("again") as stream:
            next(stream)
