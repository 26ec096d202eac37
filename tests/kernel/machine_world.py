"""The world that the agent's state machine drives: one transcript, the agents that take turns on it, and what befalls.

Everything that the kernel calls is a *probe*: it is counted, and may carry a `Fault`. Everything that happens is
written to one log in the order in which it happened, for the laws to read.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import gotato_testkit as kit
from gotato_py import (
    Agent,
    Event,
    Hooks,
    MemoryTranscript,
    RetryPolicy,
    RunStream,
    Scope,
    StoreFailure,
    WaitingCall,
)

from .machine_deeds import CONTROLS, INTERRUPTS, Interrupt, TimeLimit
from .machine_extensions import COUNT, SAME, extension
from .machine_fakes import Builder, ProbedClock, ProbedModel, ProbedTranscript, Source, open_calls
from .machine_hosts import Hosts
from .machine_tools import Tools
from .machine_words import BOUND, Entry, Fault, Make, Plan

STORE_FAULTS = frozenset({"os error", "store failure", "broken store"})


class World:
    """One transcript and the agents that take turns on it."""

    def __init__(self, make: Make | None = None) -> None:
        self.log: list[Entry] = []
        self.clock = kit.ManualClock()
        self.next_id: Callable[[str], str] = kit.SequentialIds()
        self.kept = MemoryTranscript()
        self.transcript = ProbedTranscript(self)
        self.steps: deque[kit.Step] = deque()
        self.offers: deque[str] = deque()
        self.builds: deque[str] = deque()
        self.moods: dict[tuple[int, str], deque[str]] = {}
        self.grumbles: Collection[str] = ()
        self.model = ProbedModel(self)
        self.hosts = Hosts(self)
        self.tools = Tools(self)
        self.faults: list[Fault] = []
        self.counts: dict[str, int] = {}
        self.fired: list[str] = []
        self.raised: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.broken_store = self.cancelled = False
        self.rewritten = self.built = self.wants_output = False
        self.stream: RunStream[Any] | None = None  # the run that goes on, where it is one
        self.scope: Scope | None = None  # what its caller gave it
        self.noting = False  # what the log itself asks of the kernel is nothing to interrupt
        self.snapshot: tuple[str, int] | None = None  # what a killed process leaves: the transcript, the log so far
        self.makes: dict[str, Make] = {}  # by run
        self.run_id = ""
        self.repairing = False  # whether an entry may be closing a run that was left behind
        self.closed = True  # whether nothing was left for the next entry to close
        self.known: set[str] = set()  # the runs whose events were read to their end
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
            tools=[*self.tools.fixed(make), *([Source(self, self.tools.changing(make))] if make.sourced else [])],
            transcript=self.transcript,
            context_builder=Builder(self) if make.built else None,
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
            self.repairing = False
        self.noting = self.noting and not here

    def mood(self, who: int, point: str) -> str:
        """What that extension does now at that point."""
        does = self.moods.get((who, point))
        return does.popleft() if does else SAME

    def arm(self, plan: Plan) -> None:
        """Sets the stage for a run, and counts probes from zero."""
        self.faults, self.counts, self.fired, self.raised = list(plan.faults), {}, [], []
        self.moods = {(each.who, each.point): deque(each.does) for each in plan.moods}
        self.steps.extend(plan.steps)
        self.offers, self.builds = deque(plan.offers), deque(plan.builds)
        self.grumbles, self.wants_output = plan.grumbles, plan.output is not None
        self.repairing = not self.closed
        self.tools.arm()

    def disarm(self) -> None:
        """Ends the faults, and waits for the threads that they started."""
        self.faults, self.broken_store, self.grumbles = [], False, ()
        self.moods, self.rewritten, self.built, self.wants_output = {}, False, False, False
        self.stream = self.scope = None
        self.offers.clear()
        self.builds.clear()
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
            self.hosts.control(action)
            return
        match action.split():
            case ["cancel"]:
                self.cancelled = self.agent.cancel("by a callback")
            case ["cancel", "scope"] if self.scope is not None:
                self.scope.cancel("by its owner")
            case ["close", "stream"]:
                self.close_stream()
            case ["signal"]:
                signal.raise_signal(signal.SIGUSR1)
            case ["close"]:
                self.agent.close()
            case ["kill"]:
                self.snapshot = (json.dumps(self.kept.to_dict()), len(self.log))
            case ["thread", "close", "stream"]:
                thread = threading.Thread(target=self.close_stream)
                thread.start()
                thread.join(BOUND)
            case ["thread", *rest]:
                self.hosts.in_thread(" ".join(rest)).join(BOUND)
            case ["late", *rest]:
                self.threads.append(self.hosts.in_thread(" ".join(rest)))
            case ["busy"]:
                self.hosts.expect_busy()
            case ["os", "error"]:
                raise OSError(28, "no space")
            case ["store", "failure"]:
                raise StoreFailure("no space")
            case ["broken", "store"]:
                self.broken_store = True
            case _:
                raise AssertionError(action)

    def close_stream(self) -> None:
        """Closes the stream from within its run, or from another thread: that only cancels it."""
        if self.stream is not None:
            self.stream.close()

    @property
    def store_failed(self) -> bool:
        """Whether the transcript has raised."""
        return bool(STORE_FAULTS & {*self.fired})

    def waiting(self) -> list[WaitingCall]:
        """The calls at the tail that wait for a person, answered or not."""
        opened = open_calls(self.kept.messages)
        return [call for call in self.kept.waiting if call.key in opened]

    # Other processes

    def reopen(self, make: Make) -> None:
        """The transcript goes to another process, by way of JSON, and an agent there takes over; this one is gone."""
        stored = self.stored()
        self.note("killed", self.run_id)  # no matter if it had ended
        self.hosts.subscribers.clear()
        self.kept = MemoryTranscript.from_dict(json.loads(stored))
        if self.stored() != stored:
            self.note("wrong", "the transcript is not what was stored")
        self.make, self.agent = make, self.build(make)

    def stored(self) -> str:
        """The transcript as JSON."""
        return json.dumps(self.kept.to_dict())

    def revive(self) -> bool:
        """Goes on in another process if this one was killed, and forgets what happened since. Whether it was."""
        if self.snapshot is None:
            return False
        stored, length = self.snapshot
        self.snapshot = None
        self.tools.let_go()
        del self.log[length:]
        begun = [entry.value for entry in self.log if entry.kind == "begin_run"]
        for run_id in {*begun[-1:], self.run_id}:  # it may have been closing one that was left behind before
            self.note("killed", run_id)
        self.kept = MemoryTranscript.from_dict(json.loads(stored))
        self._catch_up()
        self.hosts.subscribers.clear()
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
        waiting = [entry.value for entry in self.log if entry.kind == "waiting"]
        if self.kept.waiting and self.kept.waiting not in waiting[-1:]:
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
