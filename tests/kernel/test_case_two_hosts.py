"""Cases of two threads that want the same agent at the same time: both run it, one closes it while the other runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Barrier, Semaphore

import pytest

from gotato_py import AgentClosed, Busy, Event, EventStream, Limits, RunResult, RunStatus, TextDelta, UserMessage
from gotato_testkit import Do, FakeTool, Stall, call, say

from ..effort import by_profile
from .callers import Elsewhere
from .hosts import PATIENCE_S, SOON_S, Host
from .last_lines import LastLines
from .laws import assert_invariants, assert_laws
from .stage import Stage

STEP = by_profile(dev=101, ci=31, nightly=1)
"""Every which line is tried."""
ROUNDS = by_profile(dev=50, ci=300, nightly=1_000)


def in_step(count: int, act: Callable[[int], object]) -> list[object]:
    """So many threads that do it at the same moment; what each returned, or the `Busy` or `AgentClosed` it met."""
    barrier = Barrier(count)

    def do(number: int) -> object:
        barrier.wait(PATIENCE_S)
        try:
            return act(number)
        except (Busy, AgentClosed) as error:
            return error

    hosts = [Host(partial(do, number)) for number in range(count)]
    return [host.join() for host in hosts]


class TestC31BothRun:
    """Two threads run one agent at the same moment."""

    def test_c31_one_wins(self) -> None:
        """One has the agent, each time; the other is told at once who has it, and commits nothing; he may steer it."""
        for number in range(ROUNDS):
            refused = Semaphore(0)
            hold: Callable[[], object] = partial(refused.acquire, timeout=PATIENCE_S)
            stage = Stage([TextDelta("One"), Do(hold), *say(" moment.")], say("Both."))
            stream = stage.agent.subscribe()
            began = time.time()

            def prompt(host: int, stage: Stage = stage, refused: Semaphore = refused) -> object:
                try:
                    return stage.agent.run(f"I am {host}")
                except Busy:
                    stage.agent.steer(UserMessage(f"I am {host}", id=f"u-{host}"))
                    raise
                finally:
                    refused.release()

            outcomes = in_step(2, prompt)
            (busy,) = [each for each in outcomes if isinstance(each, Busy)]
            (result,) = [each for each in outcomes if isinstance(each, RunResult)]
            assert busy.run_id == result.run_id
            assert began - 1 <= (busy.since or 0) <= time.time() + 1
            winner = outcomes.index(result)
            first, steered, answer = f"U I am {winner}", f"U I am {1 - winner}", "A One moment. end_turn"
            late = [first, answer, steered, "A Both. end_turn"]
            early = [first, steered, answer]  # the winner had not asked the model yet
            assert stage.history in (late, early)
            assert result.text == ("Both." if stage.history == late else "One moment.")
            assert list(iter(partial(stream.get, 0), None)) == stage.events
            if number % 20 == 0:
                assert_laws(stage)

    def test_c31_many_want_it(self) -> None:
        """Of eight threads seven are told that it is busy, with a run or a stream alike."""
        refused = Semaphore(0)

        def hold() -> None:
            for _ in range(7):
                assert refused.acquire(timeout=PATIENCE_S)

        def prompt(host: int) -> object:
            try:
                if host % 2:
                    return stage.agent.run("go")
                with stage.agent.stream("go") as stream:
                    return stream.result
            except Busy:
                refused.release()
                raise

        stage = Stage([TextDelta("One"), Do(hold), *say(" moment.")])
        outcomes = in_step(8, prompt)
        assert sum(isinstance(each, Busy) for each in outcomes) == 7
        assert stage.history == ["U go", "A One moment. end_turn"]
        assert_laws(stage)

    def test_c31_the_same_message_again(self) -> None:
        """A caller who gave up waiting and sends the same message again meets `Busy`, and later gets its answer."""
        message = UserMessage("charge it", id="u-1")
        met: list[Busy] = []

        def again() -> None:
            with pytest.raises(Busy) as raised:
                stage.agent.run(message)
            met.append(raised.value)

        tool = FakeTool("charge", Do(lambda: Host(again).join()))
        stage = Stage(call("charge"), say("Charged."), tools=[tool])
        first = stage.run(message)
        second = stage.run(message)
        assert [each.run_id for each in met] == [first.run_id]
        assert (second.text, second.new_messages, len(stage.asked)) == ("Charged.", (), 2)
        assert len(stage.effects) == 1
        assert_laws(stage)


def run_behind(act: Callable[[], object], stage: Stage) -> RunResult[None]:
    """Runs the agent when that has been done."""
    act()
    return stage.run()


def played(stage: Stage, streaming: bool) -> bool:
    """Runs the agent, or reads its stream. Returns whether it was still open."""
    try:
        list(stage.agent.stream("do it", check=False)) if streaming else stage.run()
    except AgentClosed:
        return False
    return True


class TestC32OneCloses:
    """One thread closes the agent while others use it."""

    def test_c32_two_close_it(self) -> None:
        """Both return when the run has ended, which is cancelled once; what it had not delivered is listed."""
        going = Semaphore(0)
        stage = Stage([TextDelta("Work"), Do(going.release), Stall()])
        stream = stage.agent.subscribe()
        runner = Host(stage.run)
        assert going.acquire(timeout=PATIENCE_S)
        ids = [stage.agent.follow_up("later"), stage.agent.steer("now")]

        def close(_: int) -> str:
            stage.agent.close()
            return stage.kinds[-1]

        began = time.monotonic()
        assert in_step(2, close) == ["agent_end"] * 2
        assert time.monotonic() - began < SOON_S
        result = runner.join()
        assert (result.status, [each.id for each in result.undelivered]) == (RunStatus.CANCELLED, ids[::-1])
        assert list(stream) == stage.events
        assert_laws(stage)

    def test_c32_as_it_begins(self) -> None:
        """Closed and run at the same moment, it runs or refuses to; its subscribers get all of that, or nothing."""
        seen: set[str] = set()
        for number in range(ROUNDS):
            stage = Stage(say("Fine."))
            streams: list[EventStream] = []
            # Which of them is the first is the machine's business, but now and then the close is.
            run = partial(run_behind, stage.agent.close, stage) if number % 20 == 0 else stage.run
            acts: list[Callable[[], object]] = [
                run, stage.agent.close, lambda stage=stage, kept=streams: kept.append(stage.agent.subscribe()),  # type: ignore[misc]
            ]  # fmt: skip
            streams.append(stage.agent.subscribe())
            outcome = in_step(3, lambda host, acts=acts: acts[host]())[0]  # type: ignore[misc]
            assert stage.agent.status == "closed"
            seen.add(type(outcome).__name__)
            if isinstance(outcome, AgentClosed):
                assert (stage.messages, stage.events) == ([], [])
            assert list(streams[0]) == stage.events
            late: list[Event] = list(streams[1])
            assert late == stage.events[len(stage.events) - len(late) :]
            assert_invariants(stage)
        assert "AgentClosed" in seen
        assert_laws(Stage(say("Done.")))

    @pytest.mark.parametrize("streaming", [False, True], ids=["run", "stream"])
    def test_c32_at_any_line(self, streaming: bool) -> None:
        """Another thread that closes it before any line of a run waits for its end, and everything is closed then."""
        number, statuses = 1, set[str]()
        with Elsewhere() as thread:
            while True:
                number += STEP
                stage = Stage(call("a"), say("Done."), tools=[FakeTool("a", "a")], limits=Limits(max_parallel_tools=2))
                stream = stage.agent.subscribe()
                lines = LastLines({number: partial(thread.begin, stage.agent.close)})
                with lines.watching():
                    lines.arm_once()
                    closed_before = not played(stage, streaming)
                assert not (closed_before and stage.events)
                if number > lines.count:
                    break
                thread.join()
                assert stage.agent.status == "closed"
                assert list(stream) == stage.events
                statuses |= {str(event.to_dict()["status"]) for event in stage.events[-1:]}
                assert_laws(stage)
        assert statuses == {"completed", "cancelled"}
        assert number > 500
