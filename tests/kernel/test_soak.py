"""Many runs on many threads: every transcript exact, nothing lost, no thread left, memory flat.

The full size, 100 agents with 1,000 runs each, is `GOTATO_SOAK=1000 pytest tests/kernel/test_soak.py --timeout=600`.
"""

from __future__ import annotations

import gc
import itertools
import os
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

import gotato_testkit as kit
from gotato_py import (
    Agent,
    AssistantMessage,
    Busy,
    Done,
    MemoryTranscript,
    ModelEvent,
    ModelRequest,
    Scope,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    ToolMessage,
    Transcript,
    UserMessage,
    check_messages,
)

from ..effort import by_profile

RUNS = int(os.environ.get("GOTATO_SOAK", by_profile(dev=20, ci=100, nightly=1_000)))
"""Runs of each agent."""
AGENTS, THREADS = by_profile(dev=25, ci=100, nightly=100), 8
ROUNDS = by_profile(dev=200, ci=1_000, nightly=1_000)


class Parrot:
    """A model without state: calls the tool with the user's words, then repeats what the tool said."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            yield TextDelta(f"heard {last.text}")
            yield Done()
        else:
            yield ToolCallReady(ToolCall("c", "echo", f'{{"said": "{last.text}"}}'))
            yield Done(StopReason.TOOL_CALLS)


def echo(said: str) -> str:
    """Says it back."""
    return said


def in_threads(count: int, work: Callable[[], None]) -> None:
    """Runs the work in several threads at once; raises what the first of them to fail has raised."""
    errors: SimpleQueue[BaseException] = SimpleQueue()

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised again below, in the test's own thread
            errors.put(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not errors.empty():
        raise errors.get()


def assert_exact(transcript: Transcript, said: list[str]) -> None:
    """The transcript holds these rounds and nothing else."""
    told = [f"{message.role}: {message.text}" for message in transcript.messages]
    rounds = [(f"user: {text}", "assistant: ", f"tool: {text}", f"assistant: heard {text}") for text in said]
    assert told == list(itertools.chain(*rounds))
    assert check_messages(transcript.messages) == []


def soak(runs: int) -> None:
    """Each agent takes its runs, ten to a conversation, in whatever thread takes it from the queue."""
    model = Parrot()
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(AGENTS):
        waiting.put(number)
    finished: Counter[int] = Counter()

    def work() -> None:
        while not waiting.empty():
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            for start in range(0, runs, 10):
                transcript = MemoryTranscript()
                with Agent(model, tools=[echo], transcript=transcript) as agent:
                    said = [f"{number}-{run}" for run in range(start, min(start + 10, runs))]
                    for text in said:
                        assert agent.run(text).text == f"heard {text}"
                        finished[number] += 1
                assert_exact(transcript, said)

    in_threads(THREADS, work)
    assert finished == dict.fromkeys(range(AGENTS), runs)


def test_many_agents_on_many_threads_are_exact() -> None:
    """Many agents on eight threads: every run of each is in its transcript, exactly, and no thread is left."""
    before = threading.active_count()
    soak(RUNS)
    assert threading.active_count() <= before


def test_memory_stays_flat() -> None:
    """After a warm-up, further runs leave no memory behind."""
    soak(10)
    gc.collect()
    tracemalloc.start()
    try:
        soak(10)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            soak(10)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 64 * 1024, f"{after - before} bytes more after {30 * AGENTS} runs"


def test_one_agent_forgets_its_runs() -> None:
    """An agent that runs many times holds its transcript, and nothing else that grows with its runs."""

    def held(runs: int) -> int:
        agent = Agent(Parrot(), tools=[echo])
        gc.collect()
        tracemalloc.start()
        for run in range(runs):
            agent.run(f"say {run % 10}")
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        messages = len(agent.transcript.messages)
        return size // messages

    held(20)
    few, many = held(100), held(400)
    assert many < few * 1.25 + 64, f"{few} bytes a message after 100 runs, {many} after 400"


def test_of_two_runs_at_once_exactly_one_has_the_agent() -> None:
    """Two threads that run one agent at the same moment: one gets its answer, the other Busy, nothing is lost."""
    barrier = threading.Barrier(2)
    outcomes: dict[int, list[str]] = {index: [] for index in range(ROUNDS)}
    holds = threading.Semaphore(0)

    def hold() -> None:
        assert holds.acquire(timeout=30)

    steps = ([kit.Do(hold), TextDelta("mine"), Done()] for _ in range(ROUNDS))
    agent = Agent(kit.ScriptedModel(steps))

    def contend() -> None:
        for index in range(ROUNDS):
            barrier.wait(30)
            try:
                outcomes[index].append(agent.run(f"round {index}").text)
            except Busy as busy:
                outcomes[index].append("busy" if busy.run_id and busy.since > 0 else "busy, not saying with what")
                holds.release()

    in_threads(2, contend)
    assert all(sorted(each) == ["busy", "mine"] for each in outcomes.values())
    messages = agent.transcript.messages
    assert [each.text for each in messages if isinstance(each, UserMessage)] == [f"round {i}" for i in range(ROUNDS)]
    assert [each.text for each in messages if isinstance(each, AssistantMessage)] == ["mine"] * ROUNDS
    assert len(messages) == 2 * ROUNDS


def test_cancels_from_other_threads_lose_nothing() -> None:
    """While a thread cancels again and again, every run ends completed or cancelled, whole either way."""
    agent = Agent(Parrot(), tools=[echo])
    over = threading.Event()
    statuses: Counter[str] = Counter()

    def cancel() -> None:
        while not over.is_set():
            agent.cancel("again")
            over.wait(0.00005)

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        for index in range(300):
            result = agent.run(f"{index}", check=False)
            statuses[str(result.status)] += 1
            assert check_messages(agent.transcript.messages) == []
            assert result.new_messages[0].text == f"{index}"
    finally:
        over.set()
        thread.join()
    assert set(statuses) <= {"completed", "cancelled"}
    users = [each.text for each in agent.transcript.messages if isinstance(each, UserMessage)]
    assert users == [str(index) for index in range(300)]
