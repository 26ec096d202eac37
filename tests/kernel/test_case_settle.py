"""Cases of the settle window: what comes as a run is about to end, and in what order it ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Semaphore

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    AuthenticationFailed,
    Busy,
    Event,
    EventStream,
    Hooks,
    LimitExceeded,
    Limits,
    MemoryTranscript,
    NotRunning,
    RunRecord,
    RunResult,
    RunStatus,
    TurnView,
    UserMessage,
)
from gotato_testkit import Do, Raise, ScriptedModel, Step, say

from ..effort import by_profile
from .callers import Elsewhere
from .controls import delivered, on
from .hosts import PATIENCE_S, Host
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage


def run_of(stage: Stage) -> RunResult[None]:
    """The script as a run."""
    return stage.run()


def stream_of(stage: Stage) -> RunResult[None]:
    """The script as a stream, read to its end."""
    with stage.agent.stream("do it", check=False) as stream:
        list(stream)
    return stream.result


both_ways = pytest.mark.parametrize("go", [run_of, stream_of])


class TestC30FollowUps:
    """A follow-up comes where the run would settle."""

    @both_ways
    def test_c30_one_at_a_time(self, go: Callable[[Stage], RunResult[None]]) -> None:
        """Each follow-up gets an answer of its own, in the order in which they were queued."""

        def queue() -> None:
            for text in ("one", "two", "three"):
                stage.agent.follow_up(text)

        stage = Stage(say("0."), say("1."), say("2."), say("3."), extensions=[on("agent_start", queue)])
        result = go(stage)
        assert (result.text, result.metrics.turns) == ("3.", 4)
        told = [line.split()[1] for line in stage.history]
        assert told == ["do", "0.", "one", "1.", "two", "2.", "three", "3."]
        assert [control for _, control in delivered(stage)] == ["follow_up"] * 3
        assert_laws(stage)

    def test_c30_steers_first(self) -> None:
        """All steers come before the next follow-up, whichever was queued first; then follow-ups, one an answer."""

        def queue() -> None:
            stage.agent.follow_up("f1")
            stage.agent.follow_up("f2")
            stage.agent.steer("s1")
            stage.agent.steer("s2")

        def once_more() -> None:
            stage.agent.steer("s3")

        stage = Stage(
            [*say("0.")[:-1], Do(queue), *say()], say("1."), [*say("2.")[:-1], Do(once_more), *say()], say("3."),
            say("4."),
        )  # fmt: skip
        assert stage.run().text == "4."
        told = [line.split()[1] for line in stage.history]
        assert told == ["do", "0.", "s1", "s2", "1.", "f1", "2.", "s3", "3.", "f2", "4."]
        assert_laws(stage)

    def test_c30_then_the_extensions(self) -> None:
        """`before_settle` is asked when nothing is queued any more; what comes meanwhile is still delivered."""
        order: list[str] = []

        def before_settle(view: TurnView) -> UserMessage | None:
            assert view.result is not None
            order.append(view.result.text)
            if len(order) == 1:
                stage.agent.follow_up("f2")
                stage.agent.steer("s1")
            return UserMessage("veto") if len(order) == 2 else None

        extensions = [on("agent_start", lambda: stage.agent.follow_up("f1")), Hooks(before_settle=before_settle)]
        stage = Stage(say("0."), say("1."), say("2."), say("3."), say("4."), extensions=extensions)
        assert stage.run().text == "4."
        told = [line.split()[1] for line in stage.history]
        assert told == ["do", "0.", "f1", "1.", "s1", "2.", "f2", "3.", "veto", "4."]
        assert order == ["1.", "3.", "4."]
        assert [control for _, control in delivered(stage)] == ["follow_up", "steer", "follow_up"]
        assert_laws(stage)

    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    def test_c30_before_settle_and_a_message(self, control: str) -> None:
        """A message that comes while an extension asks to go on is delivered after what that one asked."""

        def before_settle(view: TurnView) -> UserMessage | None:
            if stage.history[-1] != "A 0. end_turn":
                return None
            getattr(stage.agent, control)("meanwhile")
            return UserMessage("veto")

        stage = Stage(say("0."), say("1."), say("2."), extensions=[Hooks(before_settle=before_settle)])
        assert stage.run().text == "2."
        told = [line.split()[1] for line in stage.history]
        assert told == ["do", "0.", "veto", "1.", "meanwhile", "2."]
        assert_laws(stage)


class TestC30Vetoes:
    """`max_settle_vetoes` bounds how often extensions may ask to go on."""

    @pytest.mark.parametrize("most", [0, 1, 2, 3, None])
    @pytest.mark.parametrize("wanted", [0, 1, 2, 3, 4])
    def test_c30_so_many(self, wanted: int, most: int | None) -> None:
        """So many are granted; one more ends the run as limited, with everything that was said in the result."""

        def before_settle(view: TurnView) -> UserMessage | None:
            asked.append(view.turn)
            return UserMessage("once more") if len(asked) <= wanted else None

        asked: list[int] = []
        limits = Limits(max_settle_vetoes=most)
        stage = Stage(*(say(f"{n}.") for n in range(9)), extensions=[Hooks(before_settle=before_settle)], limits=limits)
        result = stage.run()
        granted = wanted if most is None else min(wanted, most)
        assert stage.history.count("U once more") == granted
        assert result.text == f"{granted}."
        if granted == wanted:
            assert (result.status, len(asked)) == (RunStatus.COMPLETED, wanted + 1)
        else:
            assert isinstance(result.error, LimitExceeded)
            assert (result.status, result.error.limit) == (RunStatus.LIMITED, "max_settle_vetoes")
        assert_laws(stage, again=granted == wanted)


class Telling(MemoryTranscript):
    """A transcript that tells when it is told of the end of a run."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def end_run(self, record: RunRecord) -> None:
        """Tells."""
        self._act()


class TestC30TheEnd:
    """§7: settling, with `agent_end` for observers; then, in one step, idle, and `agent_end` for everybody else."""

    def assert_settling(self, stage: Stage) -> None:
        """Nothing is taken, nothing can be cancelled or withdrawn, and the run still has the agent."""
        for control in (stage.agent.steer, stage.agent.follow_up):
            with pytest.raises(NotRunning):
                control("too late")
        assert stage.agent.withdraw("u-1") is False
        assert stage.agent.cancel("too late") is False
        assert stage.agent.status == "running"
        with pytest.raises(Busy) as raised:
            stage.agent.run("me too")
        assert raised.value.run_id == stage.events[-1].run_id

    @both_ways
    @pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED])
    def test_c30_settling(self, status: RunStatus, go: Callable[[Stage], RunResult[None]]) -> None:
        """An observer of `agent_end`, and the transcript's `end_run`, see a run that is settling."""
        checked: list[bool] = []

        def look() -> None:
            self.assert_settling(stage)
            checked.append(True)

        steps: dict[RunStatus, Step] = {
            RunStatus.COMPLETED: say("Done."),
            RunStatus.FAILED: Raise(AuthenticationFailed("no key")),
            RunStatus.CANCELLED: [*say("Half")[:-1], Do(lambda: stage.agent.cancel("by the test")), *say()],
        }
        stage = Stage(steps[status], extensions=[on("agent_end", look)], transcript=Telling(look))
        assert go(stage).status is status
        assert checked == [True, True]
        assert_laws(stage)

    def test_c30_observers_first(self) -> None:
        """While observers get `agent_end`, no subscriber has it; when one has it, the agent is idle."""
        early: list[Event | None] = []
        read = on("agent_end", lambda: early.extend(iter(lambda: stream.get(timeout=0), None)))
        stage = Stage(say("Done."), extensions=[read])
        stream = stage.agent.subscribe()
        assert stage.run().ok
        assert "agent_end" not in [event.kind for event in early if event is not None]
        last = stream.get(timeout=0)
        assert isinstance(last, AgentEnd)
        assert [*early, last] == stage.events
        assert stream.get(timeout=0) is None
        assert_laws(stage)

    def test_c30_the_stream_last(self) -> None:
        """Whoever reads `agent_end` from the stream finds the agent idle, and can run it within the loop's body."""
        stage = Stage(say("Done."), say("Again."))
        for event in stage.agent.stream("do it"):
            if event.kind == "agent_end":
                assert stage.agent.status == "idle"
                assert stage.agent.wait_idle(timeout=0) is True
                assert stage.run("again").text == "Again."
        assert_laws(stage)

    def test_c30_a_subscriber_runs_at_once(self) -> None:
        """A thread that has seen `agent_end` runs the agent at once, up to two thousand times, and is never `Busy`."""
        for number in range(by_profile(dev=40, ci=200, nightly=200)):
            stage = Stage(*(say("Done.") for _ in range(20)))
            assert play_in_turns(stage, 10) == 10
            if number % 20 == 0:  # the laws take longer than the runs
                assert_laws(stage)


def test_c30_a_subscriber_runs_before_the_last_step() -> None:
    """Before any line of the end of a run a subscriber who has seen that end runs the agent, and is not told `Busy`."""
    number, ran = 0, 0
    with Elsewhere() as thread:
        while True:
            number += 1
            acts: dict[int, Callable[[], object]] = {}
            lines, texts = LastLines(acts), list[str]()
            agent = Agent(ScriptedModel([[*say("One.")[:-1], Do(lines.arm_once), *say()], say("Two.")]))
            acts[number] = partial(thread.begin, partial(run_after_the_end, agent, agent.subscribe(), texts))
            with lines.watching():
                agent.run("yours")
            if number > lines.count:
                break
            thread.join()
            ran += texts == ["Two."]
    assert ran > 2
    assert_laws(Stage(say("Done.")))


def run_after_the_end(agent: Agent, stream: EventStream, texts: list[str]) -> None:
    """Runs the agent, if the stream has the end of a run."""
    if any(isinstance(event, AgentEnd) for event in iter(lambda: stream.get(timeout=0), None)):
        texts.append(agent.run("mine").text)


def play_in_turns(stage: Stage, rounds: int) -> int:
    """Runs the agent; a subscriber runs it again as soon as he sees the end of that. Returns how often he could."""
    answered = Semaphore(0)
    with stage.agent.subscribe() as stream:

        def answer() -> int:
            mine: list[str] = []
            for event in stream:
                if event.kind == "agent_end" and event.run_id not in mine:
                    mine.append(stage.agent.run("mine").run_id)
                    answered.release()
                    if len(mine) == rounds:
                        break
            return len(mine)

        host = Host(answer)
        for _ in range(rounds):
            stage.agent.run("yours")
            assert answered.acquire(timeout=PATIENCE_S)
        return host.join()
