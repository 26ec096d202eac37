"""The rows that are CPU time of the loop itself: turns, events, deltas, construction, threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks.floor import FloorAgent, FloorModel
from benchmarks.measure import Effort, Figure, Goal, Measured, Row, paired
from benchmarks.ours import LOOKUP, OurModel, our_agent
from benchmarks.work import FINAL, ROUNDS, Script, lookup

from gotato_py import Agent, Event, Hooks, Message, TurnView

THREADS = 8


def floor_agent(rounds: int, *, deltas: int = 0) -> FloorAgent:
    """The floor's agent, on a script of its own."""
    return FloorAgent(FloorModel(Script(rounds, deltas)), [lookup])


def _run_floor(agent: FloorAgent) -> str:
    return agent.run("go")


def _run_ours(agent: Agent) -> str:
    return agent.run("go").text


def _timed_runs(runs: Sequence[Callable[[], str]]) -> float:
    """Seconds of this thread's CPU for all the runs; what other processes take in between does not count."""
    text = ""
    began = time.thread_time()
    for run in runs:
        text = run()
    took = time.thread_time() - began
    if text != FINAL:
        raise AssertionError(text)
    return took


def _per_turn(rounds: int, runs: int, make: Callable[[], Callable[[], str]]) -> Figure:
    """Microseconds per model turn over some runs, each a new conversation; the agents are made before."""

    def figure() -> float:
        return _timed_runs([make() for _ in range(runs)]) / (runs * (rounds + 1)) * 1e6

    return figure


def floor_turn(rounds: int, runs: int) -> Figure:
    """Microseconds per model turn of the floor."""
    return _per_turn(rounds, runs, lambda: partial(_run_floor, floor_agent(rounds)))


def our_turn(rounds: int, runs: int, extensions: Sequence[object] = ()) -> Figure:
    """The same of gotato-py."""
    return _per_turn(rounds, runs, lambda: partial(_run_ours, our_agent(rounds, extensions=extensions)))


def turn(effort: Effort) -> Measured:
    """A model turn, nobody listening."""
    return paired(floor_turn(ROUNDS, 8), our_turn(ROUNDS, 8), effort.times(60))


def observed_turn(effort: Effort) -> Measured:
    """A model turn with one observer."""

    def observe(event: Event) -> None:
        """Looks at nothing."""

    return paired(floor_turn(ROUNDS, 8), our_turn(ROUNDS, 8, [Hooks(observe=observe)]), effort.times(40))


def transformed_turn(effort: Effort) -> Measured:
    """A model turn with one transform."""

    def transform(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
        """Changes nothing, as most do for most requests."""
        return messages

    return paired(floor_turn(ROUNDS, 8), our_turn(ROUNDS, 8, [Hooks(transform=transform)]), effort.times(40))


def growth(effort: Effort) -> Measured:
    """What a turn costs in a run of 400 rounds, as a multiple of one of 25."""

    def grown(make: Callable[[int, int], Figure]) -> float:
        short = make(ROUNDS, 16)()
        return make(400, 1)() / short

    return paired(lambda: grown(floor_turn), lambda: grown(our_turn), effort.times(40))


def delta(count: int) -> Callable[[Effort], Measured]:
    """A text delta through `stream()`, in an answer of `count` deltas."""

    def floor() -> float:
        agent, got = floor_agent(0, deltas=count), deque[str](maxlen=1)
        began = time.thread_time()
        for piece in agent.stream("go"):
            got.append(piece)
        return (time.thread_time() - began) / count * 1e6

    def ours() -> float:
        agent, got = our_agent(0, deltas=count), deque[str](maxlen=1)
        began = time.thread_time()
        with agent.stream("go") as events:
            for piece in events.text:
                got.append(piece)
        return (time.thread_time() - began) / count * 1e6

    return lambda effort: paired(floor, ours, effort.times(40 if count < 10_000 else 20))


def construct(tool: object) -> Callable[[Effort], Measured]:
    """`Agent(model, tools=[one])` and close, the model there already."""
    script, many = Script(1), 500

    def floor() -> float:
        model = FloorModel(script)
        began = time.thread_time()
        for _ in range(many):
            FloorAgent(model, [lookup])
        return (time.thread_time() - began) / many * 1e6

    def ours() -> float:
        model = OurModel(script)
        began = time.thread_time()
        for _ in range(many):
            Agent(model, tools=[tool]).close()
        return (time.thread_time() - began) / many * 1e6

    return lambda effort: paired(floor, ours, effort.times(40))


def _call(run: Callable[[], str]) -> str:
    return run()


def threads(effort: Effort) -> Measured:
    """Turns per second from 8 threads, as a part of those from one."""
    agents = effort.times(48, 8)

    def part(make: Callable[[], Callable[[], str]]) -> float:
        alone = [make() for _ in range(agents)]
        began = time.perf_counter()
        for run in alone:
            run()
        single = time.perf_counter() - began
        shared = [make() for _ in range(agents)]
        with ThreadPoolExecutor(THREADS) as pool:
            began = time.perf_counter()
            for text in pool.map(_call, shared):
                if text != FINAL:
                    raise AssertionError(text)
            return single / (time.perf_counter() - began)

    return paired(
        lambda: part(lambda: partial(_run_floor, floor_agent(ROUNDS))),
        lambda: part(lambda: partial(_run_ours, our_agent(ROUNDS))),
        effort.times(15),
    )


# 5 and 2 µs on a machine where the floor takes 0.1: the ratio is what holds on others, and in their slower moments.
_DELTA = Goal(5 / 0.1, 2 / 0.1, "ratio")
ROWS = (
    Row("turn", "a model turn, nobody listening", "µs", Goal(10, 6, "ratio"), turn),
    Row("growth", "the same at 400 turns against 25", "x", Goal(1.4, 1.1), growth),
    Row("transform", "a model turn with one transform", "µs", Goal(14, 9, "ratio"), transformed_turn),
    Row("observer", "a model turn with one observer", "µs", Goal(14, 9, "ratio"), observed_turn),
    Row("delta_1000", "a delta through stream(), of 1,000", "µs", _DELTA, delta(1000)),
    Row("delta_10000", "a delta through stream(), of 10,000", "µs", _DELTA, delta(10_000)),
    Row("construct", "Agent(model, tools=[one]) and close, @tool", "µs", Goal(30, 10), construct(LOOKUP)),
    Row("construct_bare", "the same with a bare function", "µs", Goal(30, 10), construct(lookup)),
    Row("threads", "8 threads against 1, turns per second", "x", Goal(0.5, 0.9, least=True), threads),
)
