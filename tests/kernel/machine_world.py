"""The world that the agent's state machine drives: one transcript, the agents that take turns on it, and what befalls.

Everything that the kernel calls is a *probe*: it is counted, and may carry a `Fault`. Everything that happens is
written to one log in the order in which it happened, for the laws to read.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gotato_testkit as kit
from gotato_py import (
    Agent,
    AgentClosed,
    AgentEnd,
    Busy,
    Event,
    Hooks,
    InvalidArgument,
    InvalidState,
    LimitExceeded,
    Limits,
    MemoryTranscript,
    NotRunning,
    RetryPolicy,
    StoreFailure,
    UserMessage,
    WaitingCall,
)

from .machine_deeds import CONTROLS, INTERRUPTS, Interrupt, TimeLimit
from .machine_extensions import COUNT, SAME, Mood, extension
from .machine_fakes import ProbedClock, ProbedModel, ProbedTranscript, Source, open_calls
from .machine_subscribers import Subscriber
from .machine_tools import Tools

STORE_FAULTS = frozenset({"os error", "store failure", "broken store"})
BOUND = 5.0
"""Seconds that anything here waits at most, in a test that is about to fail."""


NO_LIMITS = Limits()
"""The default ones, large enough to be none here."""


class Entry(NamedTuple):
    """One line of the log. `size` is the number of messages in the transcript at that moment."""

    kind: str
    value: Any
    size: int


@dataclass(frozen=True)
class Fault:
    """Something that happens at the `nth` probe of the kind `at` ("any" counts all of them)."""

    at: str
    nth: int
    action: str


@dataclass(frozen=True)
class Make:
    """How an agent is made."""

    limits: Limits = NO_LIMITS
    attempts: int = 3
    points: tuple[str, ...] = ()
    sourced: bool = False
    native: bool = False
    watched: bool = True


class Accepted(NamedTuple):
    """A message that an agent took for the run that goes on."""

    control: str
    id: str
    run_id: str


class World:
    """One transcript and the agents that take turns on it."""

    def __init__(self, make: Make | None = None) -> None:
        self.log: list[Entry] = []
        self.clock = kit.ManualClock()
        self.next_id = kit.SequentialIds()
        self.kept = MemoryTranscript()
        self.transcript = ProbedTranscript(self)
        self.steps: deque[kit.Step] = deque()
        self.offers: deque[str] = deque()
        self.moods: dict[tuple[int, str], deque[str]] = {}
        self.grumbles: Collection[str] = ()
        self.model = ProbedModel(self)
        self.tools = Tools(self)
        self.faults: list[Fault] = []
        self.counts: dict[str, int] = {}
        self.fired: list[str] = []
        self.raised: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.broken_store = self.cancelled = False
        self.rewritten = self.wants_output = False
        self.noting = False  # what the log itself asks of the kernel is nothing to interrupt
        self.snapshot: tuple[str, int] | None = None  # what a killed process leaves: the transcript, the log so far
        self.accepted: list[Accepted] = []
        self.withdrawn: set[str] = set()
        self.makes: dict[str, Make] = {}  # by run
        self.run_id = ""
        self.closed = True  # whether nothing was left for the next entry to close
        self.known: set[str] = set()  # the runs whose events were read to their end
        self.subscribers: list[Subscriber] = []
        self.agents: list[Agent] = []
        self.main = threading.get_ident()
        self.make = make or Make()
        self.agent = self.build(self.make)

    def build(self, make: Make) -> Agent:
        """A new agent on the same transcript."""
        self.model.capabilities = frozenset({"response_schema"} if make.native else ())
        watching = [Hooks(observe=self._grumble, name="grumbler"), Hooks(observe=self._watch, name="watcher")]
        told = [extension(self, who, make.points) for who in range(COUNT)] if make.points else []
        agent = Agent(
            self.model,
            instructions="Be brief.",
            tools=[*self.tools.fixed, *([Source(self, self.tools.changing)] if make.sourced else [])],
            transcript=self.transcript,
            extensions=[*told, *(watching if make.watched else [])],
            limits=make.limits,
            retry=RetryPolicy(max_attempts=make.attempts, jitter=0),
            interrupts=[Interrupt, TimeLimit],
            clock=ProbedClock(self),
            ids=self._ids,
        )
        self.agents.append(agent)
        return agent

    def rebuild(self, make: Make) -> None:
        """Another agent takes over; closing this one closes what an interrupt has left behind."""
        self.agent.close()
        self.make = make
        self.agent = self.build(make)

    # The log, and what befalls

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        here = threading.get_ident() == self.main
        self.noting = here or self.noting
        self.log.append(Entry(kind, value, len(self.kept.messages)))
        if kind == "begin_run":
            self.run_id = str(value)
            self.makes[self.run_id] = self.make
        self.noting = self.noting and not here

    def mood(self, who: int, point: str) -> str:
        """What that extension does now at that point."""
        does = self.moods.get((who, point))
        return does.popleft() if does else SAME

    def arm(self, faults: Sequence[Fault], moods: Sequence[Mood] = (), offers: Sequence[str] = ()) -> None:
        """Counts probes from zero, for these faults."""
        self.faults, self.counts, self.fired, self.raised = list(faults), {}, [], []
        self.moods = {(each.who, each.point): deque(each.does) for each in moods}
        self.offers = deque(offers)
        self.tools.arm()

    def disarm(self) -> None:
        """Ends the faults, and waits for the threads that they started."""
        self.faults, self.broken_store, self.grumbles = [], False, ()
        self.moods, self.rewritten, self.wants_output = {}, False, False
        self.offers.clear()
        self.steps.clear()
        for thread in self.threads:
            thread.join(BOUND)
        self.threads.clear()

    def probe(self, at: str) -> None:
        """Called wherever the kernel calls out."""
        if not self.faults or threading.get_ident() != self.main:
            return
        for kind in (at, "any"):
            self.counts[kind] = self.counts.get(kind, 0) + 1
        due = [each for each in self.faults if each.at in (at, "any") and each.nth == self.counts[each.at]]
        for fault in due:
            self.faults.remove(fault)
        for fault in due:
            self.happen(fault.action, at)

    def happen(self, action: str, at: str) -> None:
        """Something befalls the agent at that place."""
        self.fired.append(action)
        if action in INTERRUPTS:
            self.note("interrupt", at)
            try:
                INTERRUPTS[action]()
            except BaseException as error:
                self.raised.append(error)
                raise
        if action in CONTROLS:
            self.control(action)
            return
        match action.split():
            case ["cancel"]:
                self.cancelled = self.agent.cancel("by a callback")
            case ["signal"]:
                signal.raise_signal(signal.SIGUSR1)
            case ["close"]:
                self.agent.close()
            case ["kill"]:
                self.snapshot = (json.dumps(self.kept.to_dict()), len(self.log))
            case ["thread", *rest]:
                self.in_thread(" ".join(rest)).join(BOUND)
            case ["late", *rest]:
                self.threads.append(self.in_thread(" ".join(rest)))
            case ["busy"]:
                self.expect_busy()
            case ["os", "error"]:
                raise OSError(28, "no space")
            case ["store", "failure"]:
                raise StoreFailure("no space")
            case ["broken", "store"]:
                self.broken_store = True
            case _:
                raise AssertionError(action)

    def in_thread(self, action: str, *, idle: bool = False) -> threading.Thread:
        """Another thread that does it to the agent."""
        agent = self.agent

        def wait() -> None:
            if not agent.wait_idle(BOUND):
                self.note("wrong", "wait_idle waited in vain")

        deeds = {"cancel": lambda: agent.cancel("by a thread"), "close": agent.close, "wait": wait}
        deed = deeds.get(action, lambda: self.control(action, idle=idle))
        thread = threading.Thread(target=deed, name=f"machine {action}")
        thread.start()
        return thread

    @property
    def store_failed(self) -> bool:
        """Whether the transcript has raised."""
        return bool(STORE_FAULTS & {*self.fired})

    # What anybody may do to an agent

    def control(self, action: str, *, idle: bool = False) -> None:
        """Does it, and notes what must not come of it; `idle` says that no run goes on."""
        try:
            self._control(action, idle=idle)
        except NotRunning:
            self.note("refused", action)
        except LimitExceeded as error:
            if idle or error.limit not in ("max_steer", "max_follow_up"):
                self.note("wrong", f"{action} was limited: {error}")
        except InvalidArgument as error:
            if action != "bad steer" and self.make.limits.max_message_bytes is None:
                self.note("wrong", f"{action} was refused: {error}")

    def _control(self, action: str, *, idle: bool) -> None:
        agent, last = self.agent, self.accepted[-1].id if self.accepted else "nothing"
        match action:
            case "steer":
                self.accept("steer", agent.steer("by the way"))
            case "follow up":
                self.accept("follow_up", agent.follow_up("and then"))
            case "steer again" if self.accepted:
                known = any(each[1:] == (last, self.run_id) for each in self.accepted) and last not in self.withdrawn
                known = known or any(message.id == last for message in self.kept.messages)
                agent.steer(UserMessage("by the way", id=last))
                if not known:
                    self.accept("steer", last)
            case "bad steer":
                agent.steer("  ")
                self.note("wrong", "a blank message was queued")
            case "withdraw":
                if agent.withdraw("nobody's"):
                    self.note("wrong", "a message was withdrawn that was never queued")
                if agent.withdraw(last):
                    self.withdrawn.add(last)
            case "subscribe":
                self.subscribe(256)
            case "wait idle":
                self._wait_idle(idle)
            case "look":
                if (agent.status == "running") == idle:
                    self.note("wrong", f"the status is {agent.status}")
                repr(agent), agent.abandoned, agent.tools
            case _:
                pass

    def accept(self, control: str, message_id: str) -> None:
        """Remembers what an agent has taken."""
        self.accepted.append(Accepted(control, message_id, self.run_id))
        self.withdrawn.discard(message_id)
        most = getattr(self.make.limits, f"max_{control}")
        if most is not None and self.queued(control) > most:
            self.note("wrong", f"more than {most} messages wait to be delivered by {control}")

    def queued(self, control: str) -> int:
        """How many messages wait to be delivered."""
        delivered = {message.id for message in self.kept.messages} | self.withdrawn
        return sum(each[0::2] == (control, self.run_id) and each.id not in delivered for each in self.accepted)

    def _wait_idle(self, idle: bool) -> None:
        try:
            if self.agent.wait_idle(0) is not idle:
                self.note("wrong", "wait_idle is wrong about the run")
        except InvalidState:
            if idle:
                self.note("wrong", "wait_idle was refused where nothing runs")

    def subscribe(self, maxsize: int) -> None:
        """One more listener."""
        events = [entry.value for entry in self.log if entry.kind == "event"]
        ending = events[-1].run_id if events and isinstance(events[-1], AgentEnd) else ""
        stream = self.agent.subscribe(maxsize)
        told = Subscriber(stream, self.agent.id, len(self.log), watched=self.make.watched, ending=ending)
        self.subscribers.append(told)

    def expect_busy(self) -> None:
        """A second run is refused while the first goes on, and nothing is committed."""
        before = len(self.kept.messages)
        for attempt in (lambda: self.agent.run("again"), lambda: next(self.agent.stream("again"))):
            try:
                attempt()
            except (Busy, AgentClosed):
                pass
            else:
                self.note("wrong", "a second run was let in")
        if len(self.kept.messages) != before:
            self.note("wrong", "a refused run has committed something")

    def waiting(self) -> list[WaitingCall]:
        """The calls at the tail that wait for a person, answered or not."""
        opened = open_calls(self.kept.messages)
        return [call for call in self.kept.waiting if call.key in opened]

    # Other processes

    def reopen(self, make: Make) -> None:
        """The transcript goes to another process, by way of JSON, and an agent there takes over; this one is gone."""
        stored = self.stored()
        self.note("killed", self.run_id)  # no matter if it had ended
        self.subscribers.clear()
        self.kept = MemoryTranscript.from_dict(json.loads(stored))
        if self.stored() != stored:
            self.note("wrong", "the transcript is not what was stored")
        self.make, self.agent = make, self.build(make)

    def stored(self) -> str:
        """The transcript as JSON."""
        return json.dumps(self.kept.to_dict())

    def revive(self) -> bool:
        """If the process was killed: forgets what happened since, and goes on in another one. Returns whether it was."""
        if self.snapshot is None:
            return False
        stored, length = self.snapshot
        self.snapshot = None
        self.tools.let_go()
        del self.log[length:]
        self.note("killed", self.run_id)
        self.kept = MemoryTranscript.from_dict(json.loads(stored))
        self._catch_up()
        self.subscribers.clear()
        self.agent = self.build(self.make)
        return True

    def _catch_up(self) -> None:
        """Notes what was kept when the process was killed, and not noted any more."""
        noted = [entry.value.id for entry in self.log if entry.kind == "append"]
        marked = [entry.value for entry in self.log if entry.kind == "started"]
        compacted = [entry.value for entry in self.log if entry.kind == "replace"]
        for compaction in self.kept.compactions[len(compacted) :]:
            self.note("replace", compaction)
        for message in self.kept.messages:
            if message.id not in noted and all(message != each.summary for each in self.kept.compactions):
                self.note("append", message)
        for key in self.kept.started:
            if key not in marked:
                self.note("started", key)
        if self.kept.waiting:
            self.note("waiting", self.kept.waiting)

    # Observers, ids

    def _watch(self, event: Event) -> None:
        self.note("event", event)
        self.probe("observer")

    def _grumble(self, event: Event) -> None:
        if event.kind in self.grumbles:
            raise LookupError("an observer that fails")

    def _ids(self, kind: str) -> str:
        self.probe("ids")
        return self.next_id(kind)
