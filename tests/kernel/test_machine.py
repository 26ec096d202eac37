"""One agent under everything at once: scripts, faults, cancels, interrupts, people, hosts, extensions and kills, and
what holds after each."""

from __future__ import annotations

import os

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from gotato_py import (
    Approve,
    AssistantMessage,
    Decision,
    Deny,
    InvalidArgument,
    UserMessage,
    WaitingCall,
)

from . import machine_laws as laws
from .machine_caller import Message, Outcome, carry_out, judge
from .machine_deeds import CONTROLS, INTERRUPTS
from .machine_nexts import assert_next_run_works, assert_same_agent_goes_on
from .machine_plans import makes, plans, questions
from .machine_tools import workers
from .machine_words import NO_LIMITS, Make, Plan
from .machine_world import World

ANSWERS = ("all", "all", "some", "none", "changed", "unknown")
PART = os.environ.get("MACHINE_PART")
"""Which ten thousand steps the machine takes, each part by a process of its own: Hypothesis keeps much of what it has
drawn until it ends. None leaves it to the Hypothesis profile."""
A_RUN = 10
A_PART = 1_000
"""How many runs of ten steps a part has."""
EXAMPLES = settings().max_examples * (2 if settings().derandomize else 1)
pytestmark = pytest.mark.timeout(0 if PART else 7200 if EXAMPLES > 1_000 else 240)


def may_go_on(world: World) -> bool:
    """Whether `run()` has something to go on from."""
    messages = world.kept.messages
    if not messages or world.agent.status == "waiting":
        return False
    last = messages[-1]
    return not isinstance(last, AssistantMessage) or last.stop_reason in ("cancelled", "error")


def _is_expired(call: WaitingCall) -> bool:
    return call.expires_at is not None


def _costs_nothing(world: World, plan: Plan, message: UserMessage) -> bool:
    """Whether the message was answered last, and nothing keeps the run from saying so."""
    users = [each for each in world.kept.messages if isinstance(each, UserMessage)]
    last = world.kept.messages[-1] if users else None
    said = isinstance(last, AssistantMessage) and not last.tool_calls and last.stop_reason in ("end_turn", "none")
    answered = said and last is not None and "rejected" not in last.metadata
    calm = plan.output is None and plan.way in ("run", "checked", "stream", "text", "result")
    return bool(users) and users[-1].id == message.id and answered and calm and world.make.limits == NO_LIMITS


class Machine(RuleBasedStateMachine):
    """Agents on one transcript, driven by plans."""

    world: World

    @initialize(make=makes)
    def begin(self, make: Make) -> None:
        """The first process."""
        self.world = World(make)

    def teardown(self) -> None:
        world = getattr(self, "world", None) or World()
        world.tools.let_go()
        world.agent.close()
        assert workers() == []
        assert [call for agent in world.agents for call in agent.abandoned] == []

    def play(self, plan: Plan, message: Message, answers: dict[str, Decision] | None = None) -> Outcome:
        """One run, and everything that holds after it."""
        world = self.world
        if world.agent.status == "closed":
            world.rebuild(world.make)
        outcome = carry_out(world, plan, message, answers)
        if not outcome.killed:
            judge(world, outcome)
        failed = world.store_failed or any(each in INTERRUPTS for each in world.fired) or world.raised
        if outcome.killed or failed or plan.way == "drop":
            world.closed = False
        elif outcome.result is not None:
            world.closed = True
        laws.check(world, closed=world.closed)
        assert_next_run_works(world)
        return outcome

    @rule(plan=plans, go_on=st.booleans(), then=st.integers(0, 3))
    def run(self, plan: Plan, go_on: bool, then: int) -> None:
        """A run with a message, or one that goes on."""
        self.play(plan, None if go_on and may_go_on(self.world) else "do it")
        if then == 0:
            assert_same_agent_goes_on(self.world)
            laws.check(self.world, closed=self.world.closed)

    @rule(asking=questions, plan=plans, kind=st.sampled_from(ANSWERS), bits=st.integers(0, 255))
    def answer(self, asking: Plan, plan: Plan, kind: str, bits: int) -> None:
        """A person answers all or some of what waits, again or otherwise, or something that does not wait."""
        world = self.world
        world.agent.wait_idle()  # closes what an interrupt has left behind
        if world.agent.status != "waiting":
            self.play(asking, "may I?")
        waiting = world.waiting()
        answers: dict[str, Decision] = {"nobody:0": Approve()} if kind == "unknown" else {}
        changed = False
        for place, call in enumerate(waiting):
            if kind == "none" or (kind == "some" and bits >> place & 1):
                continue
            fresh = Approve() if bits >> (place + 4) & 1 else Deny("not today")
            answers[call.key] = fresh if call.decision is None or kind == "changed" else call.decision
            changed = changed or (call.decision is not None and answers[call.key] != call.decision)
        outcome = self.play(plan, None, answers)
        if not world.fired and not any(_is_expired(call) for call in waiting):
            misuse = not waiting or kind == "unknown" or changed
            assert isinstance(outcome.error, InvalidArgument) is misuse, outcome.error

    @rule(plan=plans, nth=st.integers(1, 4))
    def redeliver(self, plan: Plan, nth: int) -> None:
        """A task comes twice: a message with an id that may be known."""
        world = self.world
        known = [entry.value for entry in world.log if entry.kind == "append" and isinstance(entry.value, UserMessage)]
        message = known[-nth] if len(known) >= nth else UserMessage("do it", id=f"task-{nth}")
        there = any(message.id in (each.id, each.metadata.get("last_user")) for each in world.kept.messages)
        free = _costs_nothing(world, plan, message)
        before, began = list(world.kept.messages), len(world.log)
        outcome = self.play(plan, message)
        committed = [entry.value.id for entry in world.log[began:] if entry.kind == "append"]
        assert committed.count(message.id) <= (not there), "a message that is there is not committed again"
        if free and not world.fired and not outcome.killed:
            assert outcome.result is not None
            assert (outcome.result.status, outcome.result.message) == ("completed", before[-1])
            assert (outcome.result.new_messages, outcome.result.metrics.turns) == ((), 0)
            assert list(world.kept.messages) == before

    @rule(make=makes)
    def reopen(self, make: Make) -> None:
        """Another process goes on, with an agent that is made otherwise."""
        self.world.tools.let_go()
        self.world.reopen(make)
        assert_next_run_works(self.world)

    @rule(make=makes)
    def rebuild(self, make: Make) -> None:
        """Another agent of the same process goes on."""
        self.world.rebuild(make)
        laws.check(self.world, closed=self.world.closed)

    @rule(action=st.sampled_from([*CONTROLS, "cancel"]), elsewhere=st.booleans())
    def meddle(self, action: str, elsewhere: bool) -> None:
        """Between runs, somebody does what can only be done in one."""
        world, taken = self.world, len(self.world.hosts.accepted)
        if action == "cancel":
            assert not world.agent.cancel("too late")
        elif elsewhere:
            world.hosts.in_thread(action, idle=True).join()
        else:
            world.hosts.control(action, idle=True)
        assert len(world.hosts.accepted) == taken, "a message was accepted that no run will deliver"

    @rule(seconds=st.sampled_from([0.0, 4.0, 6.0]), maxsize=st.sampled_from([1, 4, 256]))
    def wait(self, seconds: float, maxsize: int) -> None:
        """Time passes, and somebody subscribes."""
        self.world.clock.advance(seconds)
        if self.world.agent.status != "closed":
            self.world.hosts.subscribe(maxsize)


def test_the_invariants_hold_whatever_happens() -> None:
    """After any run, whatever its script, its faults, its extensions and its caller did, the invariants hold and the
    next run works."""
    machine = seed(int(PART))(Machine) if PART else Machine
    examples = A_PART if PART else EXAMPLES
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=A_RUN))
