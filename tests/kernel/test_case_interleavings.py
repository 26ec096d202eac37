"""Cases of the settle window, by the thousand: messages that come at any moment of the end of a run.

Each call has one of three outcomes, and no other: this run delivers the message, or lists it as undelivered because it
did not complete; or the call raises `NotRunning`, and the message is nowhere.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

import pytest

from gotato_py import Accept, Hooks, MemoryTranscript, Message, Scope, SystemClock, TurnView
from gotato_py.transcript import MessageView
from gotato_testkit import say

from ..effort import by_profile
from .callers import CALLS, Caller, Elsewhere, Scene
from .hosts import PATIENCE_S
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)
STEP = by_profile(dev=11, ci=2, nightly=1)
"""Every which line is tried."""
AT_RANDOM = by_profile(dev=100, ci=1_000, nightly=3_000)
"""How many interleavings of real threads are tried, beside those line by line: by night over ten thousand in all."""


Do = Callable[[Callable[[], object]], object]
"""Who does something: this thread, as a signal handler would, or another one."""


def here(act: Callable[[], object]) -> object:
    """Does it in this thread."""
    return act()


def played(calls: Mapping[int, tuple[Do, str]], *, fails_at: int = 0) -> tuple[Counter[str], int]:
    """A run with these calls before these lines of its end: what came of them, and how many lines there are."""
    acts: dict[int, Callable[[], object]] = {}
    lines = LastLines(acts)
    scene = Scene(lines.arm_once, fails_at=fails_at)
    callers = {do: scene.caller() for do, _ in calls.values()}
    acts.update({at: partial(do, partial(callers[do].call, what)) for at, (do, what) in calls.items()})
    with lines.watching():
        result = scene.agent.run("do it", check=False)
    return scene.check(result), lines.count


@pytest.mark.parametrize("fails_at", [0, 2], ids=["completes", "fails"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_c30_at_every_line(where: str, fails_at: int) -> None:
    """Before each line from the last delta to the end a message comes, from this thread or another; some lines later it
    is taken back, or the run cancelled."""
    seen: Counter[str] = Counter()
    with Elsewhere() as thread:
        do: Do = here if where == "here" else thread.do
        for control in ("steer", "follow_up"):
            for then in ("", "withdraw", "cancel"):
                for number in count(1, STEP if fails_at == 0 else 2 * STEP):
                    calls = {number: (do, control), number + 7: (do, then)} if then else {number: (do, control)}
                    outcomes, lines = played(calls, fails_at=fails_at)
                    seen += outcomes
                    if number > lines:
                        break
    assert seen.keys() == {"delivered", "refused", "withdrawn", "listed"}, seen
    assert_laws(Stage(say("Done.")))


def test_c30_two_callers() -> None:
    """Three calls from this thread and three from another at random lines: all of them have their outcomes."""
    dice = random.Random(30)
    seen: Counter[str] = Counter()
    with Elsewhere() as thread:
        for _ in range(AT_RANDOM // 5):
            doers: list[Do] = [here, thread.do] * 3
            outcomes, _ = played({dice.randrange(1, 400): (do, dice.choice(CALLS[:3])) for do in doers})
            seen += outcomes
    assert seen.keys() == {"delivered", "refused", "withdrawn"}, seen
    assert_laws(Stage(say("Done.")))


class Ticking:
    """Whatever a run calls back: a clock, ids, a transcript, an extension. Acts at the ticks of these numbers."""

    def __init__(self, acts: Mapping[int, Callable[[], object]]) -> None:
        self._acts = dict(acts)
        self._ids = count(1).__next__
        self._busy = False
        self.count = 0

    def tick(self) -> None:
        """One call back; what an act calls back itself does not count."""
        if self._busy:
            return
        self.count += 1
        act = self._acts.pop(self.count, None)
        if act is not None:
            self._busy = True
            act()
            self._busy = False

    def ids(self, kind: str) -> str:
        """Ids in order."""
        self.tick()
        return f"{kind}-{self._ids()}"

    def hooks(self) -> Hooks:
        """An extension without wishes at the points that a run without tools passes."""

        def nothing(*_: object) -> None:
            self.tick()

        def accept(*_: object) -> Accept:
            self.tick()
            return Accept()

        def unchanged(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            self.tick()
            return messages

        return Hooks(
            before_run=nothing, before_turn=nothing, should_stop=nothing, before_settle=nothing, observe=nothing,
            check_answer=accept, transform=unchanged,
        )  # fmt: skip


class TickingClock:
    """A clock that ticks whenever it is looked at."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick

    def time(self) -> float:
        """Unix seconds."""
        self._tick()
        return SystemClock.time()

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        self._tick()
        return SystemClock.monotonic()

    def wait(self, scope: Scope, seconds: float) -> bool:
        """Waits as the system's does."""
        return SystemClock().wait(scope, seconds)


class TickingTranscript(MemoryTranscript):
    """A transcript that ticks before and after a commit, and when it is read."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self._tick = tick

    @property
    def messages(self) -> MessageView:
        """What the model may see now."""
        self._tick()
        return super().messages

    def append(self, message: M) -> M:
        """Commits."""
        self._tick()
        kept = super().append(message)
        self._tick()
        return kept

    def begin_run(self, run_id: str) -> None:
        """Begins."""
        self._tick()

    def end_run(self, record: object) -> None:
        """Ends."""
        self._tick()


@pytest.mark.parametrize("then", ["", "withdraw", "cancel"])
@pytest.mark.parametrize("control", ["steer", "follow_up"])
def test_c30_from_whatever_is_called_back(control: str, then: str) -> None:
    """A call from the clock, the ids, the transcript, the model or an extension has one of its outcomes, too."""
    seen: Counter[str] = Counter()
    number = 0
    while True:
        number += 1
        callers: list[Caller] = []
        acts = {number: control, number + 5: then} if then else {number: control}
        ticking = Ticking({at: partial(_call, callers, what) for at, what in acts.items()})
        scene = Scene(
            ticking.tick, clock=TickingClock(ticking.tick), ids=ticking.ids, extensions=[ticking.hooks()],
            transcript=TickingTranscript(ticking.tick),
        )  # fmt: skip
        callers.append(scene.caller())
        seen += scene.check(scene.agent.run("do it", check=False))
        if number > ticking.count:
            break
    assert number > 50
    expected = {"": {"delivered"}, "withdraw": {"delivered", "withdrawn"}, "cancel": {"delivered", "listed"}}[then]
    assert seen.keys() == {"refused"} | expected
    assert_laws(Stage(say("Done.")))


def _call(callers: Sequence[Caller], what: str) -> None:
    for caller in callers:  # nobody calls while the agent is made
        caller.call(what)


@contextmanager
def switching_often() -> Generator[None, None, None]:
    """Lets threads take turns as often as they can: a run is shorter than what they usually take at a time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Steerers:
    """Threads that each wait a little and then make their calls, whenever they are told to begin."""

    def __init__(self, count: int) -> None:
        self._rounds: SimpleQueue[tuple[Caller, Sequence[tuple[int, str]]] | None] = SimpleQueue()
        self._awake: SimpleQueue[None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (given := self._rounds.get()) is not None:
            caller, plan = given
            self._awake.put(None)
            for delay, what in plan:
                for _ in range(delay):
                    pass
                caller.call(what)
            self._done.put(None)

    def begin(self, caller: Caller, plan: Sequence[tuple[int, str]]) -> None:
        """Has one of them make these calls, each so many loops after the one before; returns when it is awake."""
        self._rounds.put((caller, plan))
        self._awake.get(timeout=PATIENCE_S)

    def join(self, count: int) -> None:
        """Waits for so many that have begun."""
        for _ in range(count):
            self._done.get(timeout=PATIENCE_S)

    def end(self) -> None:
        """Ends the threads."""
        for _ in self._threads:
            self._rounds.put(None)
        for thread in self._threads:
            thread.join(PATIENCE_S)


def test_c30_threads_at_random_moments() -> None:
    """Real threads call at random moments of the ends of thousands of runs, and this one right behind them; every call
    has one of its outcomes."""
    dice = random.Random(31)
    steerers = Steerers(2)
    seen: Counter[str] = Counter()
    with switching_often():
        for _ in range(AT_RANDOM):
            most = dice.choice((20, 200, 2_000))
            plans = [[(dice.randrange(most), dice.choice(CALLS[:3])) for _ in range(3)] for _ in range(2)]
            scenes: list[Scene] = []
            scene = Scene(partial(begin_all, steerers, plans, scenes), fails_at=dice.choice((0, 0, 0, 2)))
            scenes.append(scene)
            result = scene.agent.run("do it", check=False)
            steerers.join(len(scene.callers))
            scene.caller().call("steer")
            seen += scene.check(result)
    steerers.end()
    assert seen.keys() == {"delivered", "refused", "withdrawn", "listed"}, seen
    assert_laws(Stage(say("Done.")))


def begin_all(steerers: Steerers, plans: Sequence[Sequence[tuple[int, str]]], scenes: Sequence[Scene]) -> None:
    """Begins these plans, at the last delta of the first answer."""
    for scene in scenes:
        if not scene.callers:
            for plan in plans:
                steerers.begin(scene.caller(), plan)
